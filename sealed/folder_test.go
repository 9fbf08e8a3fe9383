package sealed_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/sealed"
)

var (
	at    = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	first = strings.Repeat("5e", sealed.KeySize)
	later = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xa7}, sealed.KeySize))
)

const value = "a secret of acme, which is not in any file"

func key(t testing.TB, text string) *sealed.Key {
	t.Helper()
	k, err := sealed.ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func put(t testing.TB, f *sealed.Folder, tenant, name, value string) (undo func() error) {
	t.Helper()
	undo, err := f.Put(tenant, name, value, at)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

func expect(t testing.TB, f *sealed.Folder, tenant, name, want string) {
	t.Helper()
	if got, err := f.Open(tenant, name); got != want || err != nil {
		t.Errorf("Open(%s, %s) = %q, %v; want %q", tenant, name, got, err, want)
	}
}

// files returns the regular files below dir with their content.
func files(t testing.TB, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && path != dir {
			t.Errorf("mode of %s = %v; want nothing for others", path, mode)
		}
		if e.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestParseKey(t *testing.T) {
	raw := bytes.Repeat([]byte{0xfb}, sealed.KeySize)
	for _, text := range []string{
		fmt.Sprintf("%x", raw), fmt.Sprintf(" %X\r\n", raw), base64.StdEncoding.EncodeToString(raw), base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw) + "\n",
	} {
		f := sealed.New(filepath.Join(t.TempDir(), "s"), []*sealed.Key{key(t, text)})
		put(t, f, "acme", "token", value)
		expect(t, f, "acme", "token", value)
	}
	for _, text := range []string{
		"", "5e", first[2:], first + "5e", strings.Repeat("zz", 32), later[4:], later + later, "hunter2", strings.Repeat("A", 42) + "B",
	} {
		if _, err := sealed.ParseKey(text); !errors.Is(err, sealed.ErrKey) {
			t.Errorf("ParseKey(%q) = %v; want %v", text, err, sealed.ErrKey)
		}
	}
}

func TestSecretsComeChangeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".secrets")
	f := sealed.New(dir, []*sealed.Key{key(t, first)})
	if got, err := f.List("acme"); len(got) != 0 || err != nil {
		t.Errorf("List without a folder = %v, %v; want none", got, err)
	}
	if _, err := f.Open("acme", "token"); !errors.Is(err, sealed.ErrAbsent) {
		t.Errorf("Open of nothing = %v; want %v", err, sealed.ErrAbsent)
	}
	if _, err := f.Delete("acme", "token"); !errors.Is(err, sealed.ErrAbsent) {
		t.Errorf("Delete of nothing = %v; want %v", err, sealed.ErrAbsent)
	}
	undo := put(t, f, "acme", "token", value)
	expect(t, f, "acme", "token", value)
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Open("acme", "token"); !errors.Is(err, sealed.ErrAbsent) {
		t.Errorf("Open of what was taken back = %v; want %v", err, sealed.ErrAbsent)
	}
	put(t, f, "acme", "token", value)
	marked := files(t, dir)[sealed.Mark]
	undo = put(t, f, "acme", "token", "another")
	if files(t, dir)[sealed.Mark] == marked {
		t.Errorf("%s did not change with a secret", sealed.Mark)
	}
	expect(t, f, "acme", "token", "another")
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	expect(t, f, "acme", "token", value)
	undo, err := f.Delete("acme", "token")
	if err != nil {
		t.Fatal(err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	expect(t, f, "acme", "token", value)

	// Equal values of two tenants, or of two names, look different.
	put(t, f, "globex", "token", value)
	put(t, f, "acme", "other", value)
	one, err := f.List("acme")
	two, _ := f.List("globex")
	if err != nil || len(one) != 2 || len(two) != 1 || one[0].Digest == one[1].Digest || one[1].Digest == two[0].Digest {
		t.Fatalf("List = %v, %v, %v; want three different digests", one, two, err)
	}
	if want := (sealed.Secret{Name: "token", Set: at, Digest: one[1].Digest}); one[1] != want || len(want.Digest) != 8 {
		t.Errorf("List of acme = %+v; want %+v", one[1], want)
	}
	put(t, f, "acme", "token", value)
	if again, _ := f.List("acme"); !reflect.DeepEqual(again, one) {
		t.Errorf("List after an equal value = %v; want %v", again, one)
	}
	for name, content := range files(t, dir) {
		if strings.Contains(content, value) || strings.Contains(content, "secret of acme") {
			t.Errorf("%s holds a secret", name)
		}
	}
	if err := f.Clear("acme"); err != nil {
		t.Fatal(err)
	}
	if left, _ := f.List("acme"); len(left) != 0 {
		t.Errorf("List after Clear = %v; want none", left)
	}
	expect(t, f, "globex", "token", value)
	if err := f.Clear("acme"); err != nil {
		t.Errorf("Clear of nothing = %v; want none", err)
	}
}

// A file that is changed anywhere, or that is another secret's, does not open.
func TestTampering(t *testing.T) {
	dir := t.TempDir()
	f := sealed.New(dir, []*sealed.Key{key(t, first)})
	put(t, f, "acme", "token", value)
	put(t, f, "acme", "other", "another value")
	put(t, f, "globex", "token", "globex's value")
	path := filepath.Join(dir, "acme", "token")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, data []byte) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Open("acme", "token"); err == nil || got != "" || errors.Is(err, sealed.ErrAbsent) || strings.Contains(err.Error(), "value") {
			t.Errorf("Open of %s = %q, %v; want an error that quotes nothing", what, got, err)
		}
		if list, err := f.List("acme"); err != nil || len(list) != 2 || list[1] != (sealed.Secret{Name: "token"}) || list[0].Digest == "" {
			t.Errorf("List with %s = %+v, %v; want the name alone, and the other secret", what, list, err)
		}
	}
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 1
		refuse(fmt.Sprintf("a file with byte %d flipped", i), flipped)
	}
	for _, length := range []int{0, 1, 8, 15, 16, 20, 40, len(good) - 1} {
		refuse(fmt.Sprintf("the first %d bytes", length), good[:length])
	}
	refuse("a longer file", append(bytes.Clone(good), 0))
	refuse("the secret itself", []byte(value))
	for _, other := range []string{"globex/token", "acme/other"} {
		data, err := os.ReadFile(filepath.Join(dir, other))
		if err != nil {
			t.Fatal(err)
		}
		refuse("the file of "+other, data)
	}
	for what, make := range map[string]func() error{
		"a link to another tenant's": func() error { return os.Symlink("../globex/token", path) },
		"a folder":                   func() error { return os.Mkdir(path, 0o700) },
	} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := make(); err != nil {
			t.Fatal(err)
		}
		if got, err := f.Open("acme", "token"); err == nil || got != "" {
			t.Errorf("Open of %s = %q, %v; want an error", what, got, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, f, "acme", "token", value)
}

// A new key comes first and the old one goes once nothing is sealed by it.
func TestKeyRotation(t *testing.T) {
	dir := t.TempDir()
	before, after := key(t, first), key(t, later)
	put(t, sealed.New(dir, []*sealed.Key{before}), "acme", "token", value)
	both := sealed.New(dir, []*sealed.Key{after, before})
	expect(t, both, "acme", "token", value)
	put(t, both, "acme", "other", "set since")
	outdated := func() (names []string) {
		t.Helper()
		list, err := both.List("acme")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			if !s.Set.Equal(at) || s.Digest == "" {
				t.Errorf("secret %+v; want one that opens and was set at %v", s, at)
			}
			if s.Outdated {
				names = append(names, s.Name)
			}
		}
		return names
	}
	if got := outdated(); !reflect.DeepEqual(got, []string{"token"}) {
		t.Errorf("sealed by the old key are %q; want token", got)
	}
	newest := sealed.New(dir, []*sealed.Key{after})
	expect(t, newest, "acme", "other", "set since")
	if _, err := newest.Open("acme", "token"); err == nil {
		t.Error("Open without the key that has sealed = no error; want one")
	}
	if _, err := newest.Reseal("acme"); err == nil {
		t.Error("Reseal without the key that has sealed = no error; want one")
	}
	if n, err := both.Reseal("acme"); n != 1 || err != nil {
		t.Errorf("Reseal = %d, %v; want 1", n, err)
	}
	if got := outdated(); got != nil {
		t.Errorf("sealed by the old key after Reseal are %q; want none", got)
	}
	expect(t, newest, "acme", "token", value)
}

func TestSecretsAreBounded(t *testing.T) {
	dir := t.TempDir()
	f := sealed.New(dir, []*sealed.Key{key(t, first)})
	for i := range sealed.MaxSecrets {
		put(t, f, "acme", fmt.Sprint("s", i), "value")
	}
	if _, err := f.Put("acme", "more", "value", at); !errors.Is(err, sealed.ErrFull) {
		t.Errorf("Put of one too many = %v; want %v", err, sealed.ErrFull)
	}
	put(t, f, "acme", "s0", strings.Repeat("v", sealed.MaxValue))
	expect(t, f, "acme", "s0", strings.Repeat("v", sealed.MaxValue))
	for name, want := range map[string]bool{
		"a": true, "0": true, "policy-token_2.old": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false,
		"": false, ".": false, "..": false, ".a": false, "-a": false, "A": false, "a/b": false, "a\x00": false, "ä": false, "a\n": false,
	} {
		if got := sealed.IsName(name); got != want {
			t.Errorf("IsName(%q) = %t; want %t", name, got, want)
		}
	}
	// What a crash has left is gone with the next change.
	left := filepath.Join(dir, "acme", ".ahp-gateway-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, f, "acme", "s0", "value")
	if _, err := os.Stat(left); err != nil {
		t.Errorf("what another process may be writing, after Put: %v; want it there", err)
	}
	long := time.Now().Add(-2 * time.Hour)
	if err := os.Chtimes(left, long, long); err != nil {
		t.Fatal(err)
	}
	put(t, f, "acme", "s0", "value")
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a half-written file after Put: %v; want it gone", err)
	}
}

// What else stands under a tenant's id in the folder is not the gateway's to remove.
func TestClearRemovesSecretsAlone(t *testing.T) {
	dir := t.TempDir()
	f := sealed.New(dir, []*sealed.Key{key(t, first)})
	if _, err := f.Put("acme", "token", "hunter2", time.Now()); err != nil {
		t.Fatal(err)
	}
	strange := filepath.Join(dir, "acme", "server.key")
	if err := os.WriteFile(strange, []byte("somebody else's"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "acme", "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	holds := func(want bool) {
		t.Helper()
		if got, err := f.Holds("acme"); got != want || err != nil {
			t.Errorf("Holds = %t, %v; want %t", got, err, want)
		}
	}
	holds(true)
	if err := f.Clear("acme"); err != nil {
		t.Errorf("Clear = %v; want none", err)
	}
	holds(false) // what is left there opens for nobody
	if _, err := f.Open("acme", "token"); !errors.Is(err, sealed.ErrAbsent) {
		t.Errorf("Open of a secret that was cleared = %v; want %v", err, sealed.ErrAbsent)
	}
	if _, err := os.Stat(strange); err != nil {
		t.Errorf("another's file after Clear: %v; want it there", err)
	}

	// One that no key opens is a secret all the same, and so might be what is not
	// looked at.
	if err := os.WriteFile(filepath.Join(dir, "acme", "token"), []byte("ahpseal1 of another key"), 0o600); err != nil {
		t.Fatal(err)
	}
	holds(true)
	for n := range 16*sealed.MaxSecrets + 1 {
		if err := os.WriteFile(filepath.Join(dir, "acme", fmt.Sprint(".", n)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Holds("acme"); err == nil {
		t.Error("Holds of more than can be looked at = no error; want one")
	}
	if err := f.Clear("acme"); err == nil {
		t.Error("Clear of more than can be looked at = no error; want one")
	}
	if held, err := f.Holds("nobody"); held || err != nil {
		t.Errorf("Holds of nobody = %t, %v; want nothing", held, err)
	}
}

// What is taken back is one's own: what another process has done since stays.
func TestUndoLeavesOthers(t *testing.T) {
	dir := t.TempDir()
	f, other := sealed.New(dir, []*sealed.Key{key(t, first)}), sealed.New(dir, []*sealed.Key{key(t, first)})
	for _, before := range []string{"", "the first"} {
		for what, c := range map[string]struct {
			since func()
			want  string
		}{
			"sets it":     {func() { put(t, other, "acme", "token", "another's") }, "another's"},
			"removes all": {func() { _ = other.Clear("acme") }, ""},
		} {
			if err := f.Clear("acme"); err != nil {
				t.Fatal(err)
			}
			if before != "" {
				put(t, f, "acme", "token", before)
			}
			undo := put(t, f, "acme", "token", "ours")
			c.since()
			if err := undo(); err != nil {
				t.Errorf("undo after another process %s = %v; want none", what, err)
			}
			if got, err := f.Open("acme", "token"); got != c.want || (err != nil) != (c.want == "") {
				t.Errorf("secret after another process %s, and undo = %q, %v; want %q", what, got, err, c.want)
			}
		}
	}
	put(t, f, "acme", "token", "the first")
	undo, err := f.Delete("acme", "token")
	if err != nil {
		t.Fatal(err)
	}
	put(t, other, "acme", "token", "another's")
	if err := undo(); err != nil {
		t.Errorf("undo of a removal = %v; want none", err)
	}
	expect(t, f, "acme", "token", "another's")
}
