package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker: -ldflags "-X main.version=v1.2.3".
var version string

// programVersion is the version of this build, for people and for User-Agent.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// build is what is known of how this program was built. Commit and Date are of
// the commit it was built from, "" where the build had no repository.
type build struct {
	Version      string       `json:"version"`
	Commit       string       `json:"commit,omitempty"`
	Date         string       `json:"date,omitempty"` // RFC 3339
	Modified     bool         `json:"modified"`       // beyond that commit
	Go           string       `json:"go"`
	Platform     string       `json:"platform"`
	Dependencies []dependency `json:"dependencies,omitempty"`
}

// dependency is a module that is linked in.
type dependency struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"` // as in go.sum
}

// newBuild reads what the Go toolchain has written into the program.
func newBuild(info *debug.BuildInfo, dependencies bool) build {
	b := build{Version: programVersion(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info == nil {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	if !dependencies {
		return b
	}
	b.Dependencies = []dependency{}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Dependencies = append(b.Dependencies, dependency{m.Path, m.Version, m.Sum})
	}
	return b
}

// text is b for people, the line of the version first.
func (b build) text() []byte {
	text := fmt.Appendf(nil, "ahp-gateway %s %s %s\n", b.Version, b.Go, b.Platform)
	if b.Commit != "" {
		text = fmt.Appendf(text, "commit %s", b.Commit)
		if b.Modified {
			text = append(text, " (modified)"...)
		}
		text = fmt.Appendf(text, "\ndate %s\n", b.Date)
	}
	for _, d := range b.Dependencies {
		text = fmt.Appendf(text, "%s %s %s\n", d.Path, d.Version, d.Sum)
	}
	return text
}

func (p program) versionCommand() *cobra.Command {
	claim, dependencies, asJSON := false, false, false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or what the gateway claims to conform to",
		Long: `Prints the version, the Go version and the platform, and where the build knew
them the commit and its date. With --dependencies, also every module that is
linked in, with its version and its sum as in go.sum.

With --conformance, prints a JSON document that says which roles, transports,
profiles, snapshots and events of the Agent Hooks Protocol this build serves, and
what it does not.`,
		Example: `  ahp-gateway version
  ahp-gateway version --dependencies
  ahp-gateway version --json | jq -r .commit
  ahp-gateway version --conformance | jq .limitations`,
		Args: cobra.NoArgs,
		RunE: action(func(context.Context) error {
			switch {
			case claim && dependencies:
				return usage("--conformance and --dependencies are both given; write one of them")
			case claim:
				return p.writeJSON(newConformance())
			}
			info, _ := debug.ReadBuildInfo()
			b := newBuild(info, dependencies)
			if asJSON {
				return p.writeJSON(b)
			}
			return write(p.stdout, b.text())
		}),
	}
	f := cmd.Flags()
	f.BoolVar(&claim, "conformance", false, "print the machine-readable conformance claim")
	f.BoolVar(&dependencies, "dependencies", false, "print the modules that are linked in as well")
	f.BoolVar(&asJSON, "json", false, "print JSON; the conformance claim always is")
	return cmd
}

// writeJSON writes v for machines that people look over the shoulder of.
func (p program) writeJSON(v any) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	return write(p.stdout, out.Bytes())
}
