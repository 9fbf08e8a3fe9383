package main

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"go/version"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// tree is the root of the source.
const tree = "../.."

// release is what the tests build. Another folder has another repository around
// it, or none, so what a repository says is left out.
func release() *source {
	return &source{dir: tree, version: "v1.2.3", revision: "0123456789abcdef", created: time.Unix(1767225600, 0).UTC(), vcs: "false"}
}

// maxImage is the most that an image may take unpacked, in bytes.
const maxImage = 40_000_000

// made are the folders of what tests share. The tests run one after the other.
var made []string

// built is the image of linux/amd64 and linux/arm64, made once for all tests.
var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "image"); err != nil {
		return "", err
	}
	made = append(made, dir)
	return dir, writeImage(release(), []string{"linux/amd64", "linux/arm64"}, filepath.Join(dir, "oci"), filepath.Join(dir, "docker.tar"))
})

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range made {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func builtImage(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// The index holds both platforms, each with a program for it, and neither is large.
func TestImagePlatforms(t *testing.T) {
	dir := builtImage(t)
	index, err := layout.ImageIndexFromPath(filepath.Join(dir, "oci"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
		img, err := index.Image(d.Digest)
		if err != nil {
			t.Fatal(err)
		}
		c, err := img.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if got := c.OS + "/" + c.Architecture; got != d.Platform.String() || d.MediaType != types.OCIManifestSchema1 {
			t.Errorf("image of %s is a %s of %s", d.Platform, d.MediaType, got)
		}
		compressed, unpacked := int64(0), int64(0)
		layers, err := img.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("the image of %s has %d layers, %v; want one", d.Platform, len(layers), err)
		}
		size, err := layers[0].Size()
		if err != nil {
			t.Fatal(err)
		}
		compressed += size
		for path, e := range unpackedFiles(t, layers[0]) {
			unpacked += int64(len(e.data))
			if path != "usr/bin/ahp-gateway" {
				continue
			}
			program, err := elf.NewFile(bytes.NewReader(e.data))
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[d.Platform.Architecture]
			if libraries, err := program.ImportedLibraries(); program.Machine != want || len(libraries) != 0 || err != nil {
				t.Errorf("the program of %s is for %v and needs %v, %v; want %v and none", d.Platform, program.Machine, libraries, err, want)
			}
		}
		t.Logf("%s: %d bytes, %d compressed", d.Platform, unpacked, compressed)
		if unpacked > maxImage {
			t.Errorf("the image of %s takes %d bytes; want at most %d", d.Platform, unpacked, maxImage)
		}
	}
	if !slices.Equal(platforms, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the index is of %v; want amd64 and arm64", platforms)
	}
	// What is given to docker load is the same image.
	loaded, err := tarball.ImageFromPath(filepath.Join(dir, "docker.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, err := loaded.ConfigName()
	if err != nil {
		t.Fatal(err)
	}
	img, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := img.ConfigName(); err != nil || config != want {
		t.Errorf("the file for docker load holds %v; want %v, %v", config, want, err)
	}
}

// Built again from a copy of the source in another folder, everything is the same
// to the byte.
func TestImageReproducible(t *testing.T) {
	first := builtImage(t)
	dir := t.TempDir()
	s := release()
	s.dir = filepath.Join(dir, "elsewhere")
	copied := exec.Command("sh", "-ec", `mkdir "$1"; git -C "$0" ls-files -z --cached --others --exclude-standard | tar -C "$0" --null -T - -cf - | tar -C "$1" -xf -`, tree, s.dir)
	if err := output(copied); err != nil {
		t.Fatal(err)
	}
	if err := writeImage(s, []string{"linux/amd64", "linux/arm64"}, filepath.Join(dir, "oci"), filepath.Join(dir, "docker.tar")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(first, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		relative, err := filepath.Rel(first, path)
		if err != nil {
			return err
		}
		want, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, relative))
		if err == nil && !bytes.Equal(got, want) {
			err = errors.New("differs")
		}
		if err != nil {
			t.Errorf("%s, built again: %v", relative, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The Dockerfile says what the built image says, and its instructions, carried
// out, leave the same files behind.
func TestDockerfile(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(tree, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	result, err := parser.Parse(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range result.Warnings {
		t.Errorf("Dockerfile: %s", w.Short)
	}
	stages, arguments, err := instructions.Parse(result.AST, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(stages) != 2 || stages[1].BaseName != "scratch" || stages[0].BaseName != "golang:${GO_VERSION}-bookworm" {
		t.Fatalf("Dockerfile has %d stages; want one of golang's and one from scratch", len(stages))
	}
	goVersion := *arguments[0].Args[0].Value
	if required := goOf(t, filepath.Join(tree, "go.mod")); version.Compare("go"+goVersion, "go"+required) < 0 || version.Compare("go"+goVersion, "go"+goOf(t, "go.mod")) < 0 {
		t.Errorf("Dockerfile builds with Go %s; want what both go.mod require, %s", goVersion, required)
	}

	s := release()
	var got v1.Config
	got.Labels, got.ExposedPorts = map[string]string{}, map[string]struct{}{}
	got.Env = settings(s).Env // which every build adds
	fill := strings.NewReplacer("${VERSION}", s.version, "${REVISION}", s.revision, "${CREATED}", s.created.Format(time.RFC3339), `"`, "")
	for _, c := range stages[1].Commands {
		switch c := c.(type) {
		case *instructions.LabelCommand:
			for _, l := range c.Labels {
				got.Labels[l.Key] = fill.Replace(l.Value)
			}
		case *instructions.ExposeCommand:
			for _, p := range c.Ports {
				got.ExposedPorts[p+"/tcp"] = struct{}{}
			}
		case *instructions.UserCommand:
			got.User = c.User
		case *instructions.EntrypointCommand:
			got.Entrypoint = c.CmdLine
		case *instructions.CmdCommand:
			got.Cmd = c.CmdLine
		case *instructions.HealthCheckCommand:
			h := c.Health
			got.Healthcheck = &v1.HealthConfig{Test: h.Test, Interval: h.Interval, Timeout: h.Timeout, StartPeriod: h.StartPeriod, Retries: h.Retries}
		case *instructions.CopyCommand:
			if c.From != "build" || !slices.Equal(c.SourcePaths, []string{"/out/"}) || c.DestPath != "/" {
				t.Errorf("Dockerfile copies %v from %s to %s; want /out/ of the build alone", c.SourcePaths, c.From, c.DestPath)
			}
		case *instructions.ArgCommand:
		default:
			t.Errorf("Dockerfile has an instruction %s, which deploy/release does not follow", c.Name())
		}
	}
	if want := settings(s); !reflect.DeepEqual(got, want) {
		t.Errorf("the Dockerfile's configuration = %+v; want\n%+v", got, want)
	}

	dir := builtImage(t)
	if os.Getuid() != 0 {
		t.Skip("only root can give a folder to the image's user")
	}
	out := t.TempDir()
	ran := false
	for _, c := range stages[0].Commands {
		run, ok := c.(*instructions.RunCommand)
		if !ok || !strings.Contains(strings.Join(run.CmdLine, " "), "/out") {
			continue
		}
		ran = true
		script := strings.ReplaceAll(strings.Join(run.CmdLine, " "), "/out", out)
		script = strings.ReplaceAll(script, "-buildvcs=auto", "-buildvcs=false")
		cmd := exec.Command("sh", "-ec", script)
		cmd.Dir = tree
		cmd.Env = append(os.Environ(), "TARGETOS=linux", "TARGETARCH=amd64", "VERSION="+s.version, fmt.Sprintf("SOURCE_DATE_EPOCH=%d", s.created.Unix()), "GOFLAGS=")
		if err := output(cmd); err != nil {
			t.Fatal(err)
		}
	}
	if !ran {
		t.Fatal("Dockerfile has no RUN that makes /out")
	}
	img, err := tarball.ImageFromPath(filepath.Join(dir, "docker.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil {
		t.Fatal(err)
	}
	left := unpackedFiles(t, layers[0])
	err = filepath.WalkDir(out, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == out {
			return err
		}
		relative, _ := filepath.Rel(out, path)
		info, err := d.Info()
		if err != nil {
			return err
		}
		got := entry{mode: int64(info.Mode().Perm()), owner: int(info.Sys().(*syscall.Stat_t).Uid)}
		if !d.IsDir() {
			if got.data, err = os.ReadFile(path); err != nil {
				return err
			}
		}
		want, ok := left[relative]
		if !ok || got.mode != want.mode || got.owner != want.owner || !bytes.Equal(got.data, want.data) || !info.ModTime().Equal(s.created) {
			t.Errorf("the Dockerfile makes %s with mode %o of %d, %d bytes, %v; want %o of %d, %d bytes", relative, got.mode, got.owner, len(got.data), info.ModTime(), want.mode, want.owner, len(want.data))
		}
		delete(left, relative)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("the Dockerfile does not make %v", slices.Sorted(maps.Keys(left)))
	}
}

// unpackedFiles reads the files of a layer.
func unpackedFiles(t *testing.T, l v1.Layer) map[string]entry {
	t.Helper()
	in, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	all := make(map[string]entry)
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		e := entry{mode: h.Mode, owner: h.Uid}
		if h.Typeflag == tar.TypeReg {
			if e.data, err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
		all[strings.TrimSuffix(h.Name, "/")] = e
	}
}

// goOf returns the Go version that a go.mod requires.
func goOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "go "); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Fatalf("%s requires no Go version", path)
	return ""
}
