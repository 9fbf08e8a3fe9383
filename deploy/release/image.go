package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nonroot is who the program is in the image.
const nonroot = 65532

// entry is a file or folder of the image.
type entry struct {
	mode  int64
	owner int    // of user and group
	data  []byte // nil for a folder
}

// contents returns what is in the image, by path without a slash in front.
func contents(s *source, platform string) (map[string]entry, error) {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "ahp-gateway")
	if err := s.build(platform, program); err != nil {
		return nil, err
	}
	roots := exec.Command("go", "run", "./roots")
	roots.Dir = filepath.Join(s.dir, "deploy/release")
	roots.Stderr = os.Stderr
	certificates, err := roots.Output()
	if err != nil {
		return nil, fmt.Errorf("roots: %w", err)
	}
	all := map[string]entry{
		"etc/ahp-gateway":                        {mode: 0o755},
		"etc/ssl/certs/ca-certificates.crt":      {mode: 0o644, data: certificates},
		"var/lib/ahp-gateway":                    {mode: 0o700, owner: nonroot},
		"etc/passwd":                             {mode: 0o644},
		"etc/group":                              {mode: 0o644},
		"usr/share/licenses/ahp-gateway/LICENSE": {mode: 0o644},
		"usr/bin/ahp-gateway":                    {mode: 0o755},
	}
	for path, from := range map[string]string{
		"etc/passwd":                             filepath.Join(s.dir, "deploy/image/etc/passwd"),
		"etc/group":                              filepath.Join(s.dir, "deploy/image/etc/group"),
		"usr/share/licenses/ahp-gateway/LICENSE": filepath.Join(s.dir, "LICENSE"),
		"usr/bin/ahp-gateway":                    program,
	} {
		e := all[path]
		if e.data, err = os.ReadFile(from); err != nil {
			return nil, err
		}
		all[path] = e
	}
	for path := range maps.Clone(all) {
		for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{mode: 0o755}
			}
		}
	}
	return all, nil
}

// layer returns the one layer of the image.
func layer(all map[string]entry, at time.Time) (v1.Layer, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, path := range slices.Sorted(maps.Keys(all)) { // a folder before what is in it
		e := all[path]
		h := &tar.Header{Typeflag: tar.TypeReg, Name: path, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.data)), ModTime: at}
		if e.data == nil {
			h.Typeflag, h.Name = tar.TypeDir, path+"/"
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(out.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// settings is the configuration of the image, but for what a platform adds. The
// Dockerfile says the same.
func settings(s *source) v1.Config {
	const program, file = "/usr/bin/ahp-gateway", "/etc/ahp-gateway/gateway.yaml"
	return v1.Config{
		User:         fmt.Sprintf("%d:%d", nonroot, nonroot),
		Entrypoint:   []string{program},
		Cmd:          []string{"serve", "--config", file},
		ExposedPorts: map[string]struct{}{"8787/tcp": {}},
		Env:          []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", program, "health", "--config", file},
			Interval: 15 * time.Second, Timeout: 5 * time.Second, StartPeriod: 10 * time.Second, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "ahp-gateway",
			"org.opencontainers.image.description": "A gateway for the Agent Hooks Protocol",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.source":      "https://github.com/ahp-gateway/ahp-gateway",
			"org.opencontainers.image.version":     s.version,
			"org.opencontainers.image.revision":    s.revision,
			"org.opencontainers.image.created":     s.created.Format(time.RFC3339),
		},
	}
}

// newImage makes the image of a platform.
func newImage(s *source, platform string) (v1.Image, error) {
	all, err := contents(s, platform)
	if err != nil {
		return nil, err
	}
	l, err := layer(all, s.created)
	if err != nil {
		return nil, err
	}
	system, arch, _ := strings.Cut(platform, "/")
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	at := v1.Time{Time: s.created}
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS: system, Architecture: arch, Created: at, Config: settings(s), RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	return mutate.Append(img, mutate.Addendum{Layer: l, MediaType: types.OCILayer, History: v1.History{Created: at, CreatedBy: "deploy/release"}})
}

// writeImage writes the images of the platforms into an OCI layout, whose index is
// what is pushed, and the first of them into a file for docker load.
func writeImage(s *source, platforms []string, dir, docker string) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, platform := range platforms {
		img, err := newImage(s, platform)
		if err != nil {
			return err
		}
		system, arch, _ := strings.Cut(platform, "/")
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: system, Architecture: arch}},
		})
		if i > 0 || docker == "" {
			continue
		}
		tag, err := name.NewTag("ahp-gateway:" + s.version)
		if err != nil {
			return err
		}
		if err := tarball.WriteToFile(docker, tag, img); err != nil {
			return err
		}
	}
	_, err := layout.Write(dir, index)
	return err
}
