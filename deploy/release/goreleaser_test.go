package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// .goreleaser.yaml has no key that GoReleaser does not know, names files that are
// there, and builds with the flags of the image.
func TestGoReleaser(t *testing.T) {
	path := filepath.Join(tree, ".goreleaser.yaml")
	project, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	b := project.Builds[0]
	if len(project.Builds) != 1 || !slices.Equal(b.Goos, []string{"linux", "darwin", "windows"}) || !slices.Equal(b.Goarch, []string{"amd64", "arm64"}) {
		t.Errorf("builds are for %v × %v; want linux, darwin, windows × amd64, arm64", b.Goos, b.Goarch)
	}
	dockerfile, err := os.ReadFile(filepath.Join(tree, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	flags := "CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build " + strings.Join(b.Flags, " ") +
		` -ldflags "` + strings.Replace(b.Ldflags[0], "v{{ .Version }}", "${VERSION}", 1) + `"`
	if !slices.Equal(b.Env, []string{"CGO_ENABLED=0"}) || !strings.Contains(string(dockerfile), flags) {
		t.Errorf("the Dockerfile does not build with %s", flags)
	}
	sources := []string{"sh deploy/package/generate.sh bin/package"}
	if !slices.Equal(project.Before.Hooks, sources) {
		t.Errorf("hooks = %q; want %q", project.Before.Hooks, sources)
	}
	for _, a := range project.Archives {
		for _, f := range a.Files {
			sources = append(sources, f.Source)
		}
	}
	p := project.NFPMs[0]
	for _, c := range p.Contents {
		sources = append(sources, c.Source)
	}
	for _, s := range append(sources, p.Scripts.PostInstall, p.Scripts.PreRemove, p.Scripts.PostRemove) {
		if s == "" || strings.HasPrefix(s, "sh ") || strings.HasPrefix(s, "bin/package/") { // which the hook writes
			continue
		}
		if _, err := os.Stat(filepath.Join(tree, s)); err != nil {
			t.Errorf(".goreleaser.yaml names %s: %v", s, err)
		}
	}
	unknown := filepath.Join(t.TempDir(), "unknown.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(unknown, append(text, "nonsense: 1\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(unknown); err == nil {
		t.Error("a key that GoReleaser does not know is accepted; want a check that can fail")
	}
}

// The program builds for every system that a release is for.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	for _, platform := range []string{"darwin/arm64", "windows/amd64"} { // Linux is in the image
		if err := release().build(platform, filepath.Join(t.TempDir(), "ahp-gateway")); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
	}
	// The other two differ by the processor alone: it is enough that their files
	// are read as the compiler reads them.
	for _, platform := range []string{"darwin/amd64", "windows/arm64"} {
		system, arch, _ := strings.Cut(platform, "/")
		cmd := exec.Command("go", "list", "-deps", "./cmd/ahp-gateway")
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=")
		if err := output(cmd); err != nil {
			t.Errorf("%s: %v", platform, err)
		}
	}
}
