package main

//go:generate go run . ../.. ../../docs/reference

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: docgen ROOT FOLDER: of the repository, and where the pages go")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "docgen:", err)
		os.Exit(1)
	}
}

// run writes every page into folder.
func run(root, folder string) error {
	dir, err := os.MkdirTemp("", "docgen")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "ahp-gateway")
	build := exec.Command("go", "build", "-o", binary, "./cmd/ahp-gateway")
	build.Dir, build.Stderr = root, os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	for _, p := range []struct {
		file  string
		write func(p *page) error
	}{
		{"configuration.md", func(p *page) error { return configuration(p, root) }},
		{"registration.md", registration},
		{"commands.md", func(p *page) error { return commands(p, binary) }},
		{"conformance.md", func(p *page) error { return conformance(p, binary) }},
		{"metrics.md", func(p *page) error { return metrics(p, root) }},
		{"failures.md", func(p *page) error { return failures(p, root) }},
		{"coverage.md", func(p *page) error { return coverage(p, root) }},
	} {
		var text page
		err := p.write(&text)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, p.file), text.Bytes(), 0o644)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("%s cannot be written", p.file), err)
		}
	}
	return nil
}
