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

func (p program) versionCommand() *cobra.Command {
	claim := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, or what the gateway claims to conform to",
		Long: `Prints the version. With --conformance, prints a JSON document that says which
roles, transports, profiles, snapshots and events of the Agent Hooks Protocol
this build serves, and what it does not.`,
		Example: `  ahp-gateway version
  ahp-gateway version --conformance | jq .limitations`,
		Args: cobra.NoArgs,
		RunE: action(func(context.Context) error {
			if !claim {
				return write(p.stdout, fmt.Appendf(nil, "ahp-gateway %s %s %s/%s\n", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH))
			}
			return p.writeJSON(newConformance())
		}),
	}
	cmd.Flags().BoolVar(&claim, "conformance", false, "print the machine-readable conformance claim")
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
