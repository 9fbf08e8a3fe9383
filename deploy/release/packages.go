package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // the formats
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// writePackages makes the packages that .goreleaser.yaml describes, for one
// platform, and returns their files.
func writePackages(s *source, platform, dir string) ([]string, error) {
	project, err := config.Load(filepath.Join(s.dir, ".goreleaser.yaml"))
	if err != nil {
		return nil, err
	}
	if len(project.NFPMs) != 1 {
		return nil, fmt.Errorf(".goreleaser.yaml describes %d packages; want one", len(project.NFPMs))
	}
	p := project.NFPMs[0]
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	program := filepath.Join(work, "ahp-gateway")
	if err := s.build(platform, program); err != nil {
		return nil, err
	}
	// What its hooks write stands where they write it.
	for _, hook := range project.Before.Hooks {
		cmd := exec.Command("sh", "-c", hook)
		cmd.Dir = s.dir
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", s.created.Unix()))
		if err := output(cmd); err != nil {
			return nil, err
		}
	}
	_, arch, _ := strings.Cut(platform, "/")
	in := func(path string) string {
		if path == "" {
			return ""
		}
		return filepath.Join(s.dir, path)
	}
	var made []string
	for _, format := range p.Formats {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: p.PackageName, Arch: arch, Platform: "linux", Version: s.version, VersionSchema: "semver",
			Section: p.Section, Priority: p.Priority, Maintainer: p.Maintainer, Description: p.Description,
			Vendor: p.Vendor, Homepage: p.Homepage, License: p.License, MTime: s.created,
			Overridables: nfpm.Overridables{
				Umask:      0o022,
				Depends:    p.Dependencies,
				Recommends: p.Recommends,
				Suggests:   p.Suggests,
				Scripts: nfpm.Scripts{
					PreInstall: in(p.Scripts.PreInstall), PostInstall: in(p.Scripts.PostInstall),
					PreRemove: in(p.Scripts.PreRemove), PostRemove: in(p.Scripts.PostRemove),
				},
			},
		})
		info.Contents = files.Contents{{
			Source: program, Destination: filepath.Join(p.Bindir, "ahp-gateway"),
			FileInfo: &files.ContentFileInfo{Mode: 0o755, MTime: s.created},
		}}
		for _, c := range p.Contents {
			if c.Packager != "" && c.Packager != format {
				continue
			}
			source := c.Source
			if c.Type != "dir" && c.Type != "symlink" {
				source = in(source)
			}
			info.Contents = append(info.Contents, &files.Content{
				Source: source, Destination: c.Destination, Type: c.Type,
				FileInfo: &files.ContentFileInfo{Owner: c.FileInfo.Owner, Group: c.FileInfo.Group, Mode: c.FileInfo.Mode, MTime: s.created},
			})
		}
		if err := nfpm.PrepareForPackager(info, format); err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		packager, err := nfpm.Get(format)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		if err := packager.Package(info, &out); err != nil {
			return nil, fmt.Errorf("%s: %w", format, err)
		}
		path := filepath.Join(dir, packager.ConventionalFileName(info))
		if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
			return nil, err
		}
		made = append(made, path)
	}
	return made, nil
}
