package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTenantsDir(t *testing.T) {
	f, warnings, err := Load("testdata/valid/gateway-tenants-dir.yaml", testEnv)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("Load = %v, %v; want no mistakes", warnings, err)
	}
	var ids []string
	for _, tenant := range f.Tenants {
		ids = append(ids, tenant.ID)
	}
	// The list comes first, then the files by name; what is hidden or has
	// another ending is no tenant.
	if want := []string{"listed", "acme", "globex", "initech"}; !slices.Equal(ids, want) {
		t.Fatalf("Load found tenants %q; want %q", ids, want)
	}
	dir, err := filepath.Abs("testdata/valid/tenants-dir")
	if err != nil {
		t.Fatal(err)
	}
	if f.TenantsDir != dir {
		t.Errorf("TenantsDir = %q; want %q", f.TenantsDir, dir)
	}
	// Paths start from the tenant's file, limits from the gateway file.
	acme, globex := f.Tenants[1], f.Tenants[2]
	if want := filepath.Join(dir, "secrets"); acme.Secrets.Dir != want || acme.Rate != 0 || acme.Burst != 0 {
		t.Errorf("tenant acme = %+v; want secrets in %s and no rate", acme, want)
	}
	if globex.Rate != 10 || globex.Burst != 20 || len(globex.Keys) != 1 || globex.Open {
		t.Errorf("tenant globex = %+v; want the file's rate 10, burst 20, one key", globex)
	}
	for _, name := range []string{"acme.yaml", "globex.json", "initech.yml", "documents/policy.yaml", "documents/globex.key"} {
		if path := filepath.Join(dir, name); !slices.Contains(f.Sources, path) {
			t.Errorf("Sources lack %s", path)
		}
	}
	for path, want := range map[string]bool{
		filepath.Join(dir, "new.yaml"):              true,
		filepath.Join(dir, "documents/policy.yaml"): false,
		filepath.Join(dir, ".hidden.yaml"):          false,
		filepath.Join(dir, "key.pem"):               false,
	} {
		if got := f.HasTenantFile(path); got != want {
			t.Errorf("HasTenantFile(%s) = %t; want %t", path, got, want)
		}
	}
}

// tenantText is the file of a tenant whose key's digest is 64 times digit.
func tenantText(id, digit string) string {
	return `{"id": "` + id + `", "keys": [{"sha256": "` + strings.Repeat(digit, 64) + `"}], "registration": ` + minimalRegistration + `}`
}

func TestTenantsDirWithoutATenant(t *testing.T) {
	dir := write(t, map[string]string{"gateway.yaml": "tenantsDir: tenants/\n", "tenants/README.md": "none yet"})
	f, warnings, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if err != nil || len(f.Tenants) != 0 {
		t.Fatalf("Load = %+v, %v; want no tenant and no mistake", f, err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "nobody can authenticate") {
		t.Errorf("Load warns %v; want that nobody can authenticate", warnings)
	}
	again, _, err := Parse("/printed.yaml", f.Print(), testEnv)
	if err != nil || again.TenantsDir != f.TenantsDir {
		t.Errorf("what Print makes of it = %+v, %v; want the same folder\n%s", again, err, f.Print())
	}
}

// Links are followed, as those of a mounted ConfigMap must be, and paths still
// start from where the link is.
func TestTenantsDirFollowsLinks(t *testing.T) {
	dir := write(t, map[string]string{
		"gateway.yaml":                "tenantsDir: tenants/\n",
		"tenants/..2026/acme.yaml":    "id: acme\nkeys: [{file: acme.key}]\nregistration: " + minimalRegistration,
		"tenants/acme.key":            "0123456789abcdef0123456789abcdef",
		"elsewhere/globex.yaml":       tenantText("globex", "1"),
		"tenants/sub/not-read.yaml":   "not read",
		"tenants/..2026/.hidden.yaml": "not read",
	})
	for name, target := range map[string]string{
		"tenants/..data":      "..2026",
		"tenants/acme.yaml":   "..data/acme.yaml",
		"tenants/globex.yaml": "../elsewhere/globex.yaml",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	f, _, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tenants) != 2 || f.Tenants[0].ID != "acme" || f.Tenants[1].ID != "globex" {
		t.Errorf("Load found %+v; want acme and globex", f.Tenants)
	}
	// A link that leads nowhere is no file that may be passed over.
	if err := os.Remove(filepath.Join(dir, "elsewhere/globex.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv); err == nil || !strings.Contains(err.Error(), "globex.yaml: cannot be read") {
		t.Errorf("Load with a dangling link = %v; want a mistake in globex.yaml", err)
	}
}

func TestTenantsDirBounds(t *testing.T) {
	dir := write(t, map[string]string{
		"gateway.yaml":      "tenantsDir: tenants/\n",
		"tenants/acme.yaml": tenantText("acme", "1") + strings.Repeat("\n", maxTenantFile),
	})
	_, _, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	if err == nil || !strings.Contains(err.Error(), "too large") {
		t.Errorf("Load of a tenant's file beyond 1 MiB = %v; want a mistake", err)
	}

	many := write(t, map[string]string{"1.yaml": "", "2.json": "", "3.yml": "", ".4.yaml": "", "5.txt": ""})
	if paths, err := listTenantFiles(many, 3); err != nil || len(paths) != 3 || !slices.IsSorted(paths) {
		t.Errorf("listTenantFiles(three files, 3) = %q, %v; want the three", paths, err)
	}
	if paths, err := listTenantFiles(many, 2); err == nil || paths != nil {
		t.Errorf("listTenantFiles(three files, 2) = %q, %v; want an error", paths, err)
	}
	// A change may fill the folder, and not more: the next load would refuse it.
	for _, c := range []struct {
		name string
		data []byte
		most int
		want int // files, or 0 for a refusal
	}{
		{"6.yaml", []byte("{}"), 4, 4},
		{"6.yaml", []byte("{}"), 3, 0},
		{"3.yml", []byte("{}"), 3, 3},
		{"3.yml", nil, 3, 2},
		{".6.yaml", []byte("{}"), 3, 3},
	} {
		paths, err := Change{filepath.Join(many, c.name), c.data}.tenantFiles(many, c.most)
		if len(paths) != c.want || (err == errTooMany) != (c.want == 0) {
			t.Errorf("tenantFiles of three files with %q in %s, at most %d = %q, %v; want %d", c.data, c.name, c.most, paths, err, c.want)
		}
	}
}

// A document that many tenants name is read once, and a mistake in it is
// reported once and keeps none of them.
func TestTenantsShareADocument(t *testing.T) {
	shared := `{"id": "T", "keys": [{"sha256": "D"}], "registration": "../shared.json"}`
	files := map[string]string{"gateway.yaml": "tenantsDir: tenants/\n", "shared.json": "{"}
	for i, id := range []string{"a", "b", "c"} {
		files["tenants/"+id+".json"] = strings.NewReplacer("T", id, "D", strings.Repeat(string(rune('0'+i)), 64)).Replace(shared)
	}
	dir := write(t, files)
	_, _, err := Load(filepath.Join(dir, "gateway.yaml"), testEnv)
	var ms Mistakes
	if !errors.As(err, &ms) || len(ms) != 1 || ms[0].File != filepath.Join(dir, "shared.json") {
		t.Errorf("Load = %v; want one mistake, in shared.json", err)
	}
}
