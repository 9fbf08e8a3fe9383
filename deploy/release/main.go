// Command release makes what is released where neither a container engine nor
// GoReleaser runs: the image, as the Dockerfile describes it, and the packages,
// as .goreleaser.yaml does. The same source, version and time give the same bytes.
//
//	go run . image --output ../../dist/image --docker ../../dist/image.tar
//	go run . packages --output ../../dist
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// source is what is built, and what it is called.
type source struct {
	dir      string // root of the tree
	version  string
	revision string
	created  time.Time // what all times in the outcome are
	vcs      string    // -buildvcs
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("write one of image, packages")
	}
	f := flag.NewFlagSet(args[0], flag.ContinueOnError)
	s := source{vcs: "auto"}
	f.StringVar(&s.dir, "source", "../..", "root of the tree")
	f.StringVar(&s.version, "version", "", "version of the release (default: what git describe says)")
	output := f.String("output", "", "folder for the outcome (required)")
	platforms := f.String("platforms", "linux/amd64,linux/arm64", "what to build for")
	docker := f.String("docker", "", "image: also a file for docker load, of the first platform")
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	if *output == "" || f.NArg() > 0 {
		return errors.New("--output is needed, and no argument")
	}
	if err := s.describe(); err != nil {
		return err
	}
	switch args[0] {
	case "image":
		return writeImage(&s, strings.Split(*platforms, ","), *output, *docker)
	case "packages":
		for _, p := range strings.Split(*platforms, ",") {
			if _, err := writePackages(&s, p, *output); err != nil {
				return err
			}
		}
		return nil
	default:
		return fmt.Errorf("unknown command %q: write one of image, packages", args[0])
	}
}

// versionOf returns a version for what git describes. Where there is no tag that is
// a commit alone, of which dpkg takes those that begin with a digit only, and as
// newer than every release.
func versionOf(described string) string {
	if strings.HasPrefix(described, "v") {
		return described
	}
	return "v0.0.0-g" + described
}

// describe fills in what git knows. SOURCE_DATE_EPOCH, in seconds, is the time
// where it is set.
func (s *source) describe() error {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", append([]string{"-C", s.dir}, args...)...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	var err error
	if s.version == "" {
		if s.version, err = git("describe", "--tags", "--always", "--dirty"); err != nil {
			return err
		}
		s.version = versionOf(s.version)
	}
	if s.revision, err = git("rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds := os.Getenv("SOURCE_DATE_EPOCH")
	if seconds == "" {
		if seconds, err = git("log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	s.created = time.Unix(n, 0).UTC()
	return nil
}

// build compiles the program for a platform, os/arch, into a file.
func (s *source) build(platform, file string) error {
	system, arch, _ := strings.Cut(platform, "/")
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs="+s.vcs, "-ldflags", "-s -w -X main.version="+s.version, "-o", file, "./cmd/ahp-gateway")
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+arch, "GOFLAGS=")
	return output(cmd)
}

// output runs a command and, where it fails, returns what it wrote.
func output(cmd *exec.Cmd) error {
	var text bytes.Buffer
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, text.Bytes())
	}
	return nil
}
