package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/cobra"
)

func main() {
	p := program{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, notify: signal.Notify}
	os.Exit(p.run(context.Background(), os.Args))
}

// Exit codes. Those of send and diff are their own.
const (
	exitFailure = 1
	exitUsage   = 2

	exitDeny    = 2
	exitChanged = 3

	exitDifferent = 3
)

// program is what a command may use of its process.
type program struct {
	// name is how the program was called, for lines that people copy.
	name           string
	stdin          io.Reader
	stdout, stderr io.Writer
	// notify is signal.Notify outside of tests. What it was asked for stays
	// so until the process ends: a signal that comes while the last lines
	// are written must not change the exit code.
	notify func(c chan<- os.Signal, sig ...os.Signal)
}

// exit ends a command with a code. err may be nil where the command has said
// everything itself.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// usageError is a mistake in how a command was called.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

func usage(format string, args ...any) error { return usageError{fmt.Sprintf(format, args...)} }

// run runs the command that args, the program's name first, call for, and
// returns its exit code.
func (p program) run(ctx context.Context, args []string) int {
	p.name = "ahp-gateway"
	rest := []string{}
	if len(args) > 0 {
		p.name, rest = args[0], args[1:]
	}
	root := p.root()
	root.SetArgs(rest)
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	var e *exit
	if errors.As(err, &e) {
		if e.err != nil {
			fmt.Fprintf(p.stderr, "%s: %v\n", cmd.CommandPath(), e.err)
		}
		return e.code
	}
	// What is left is wrong usage: a command's own errors go through action.
	fmt.Fprintf(p.stderr, "%s: %v\nRun '%s --help' for usage.\n", cmd.CommandPath(), err, cmd.CommandPath())
	if cmd.Name() == sendName { // where 2 means deny
		return exitFailure
	}
	return exitUsage
}

func (p program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ahp-gateway",
		Short: "A gateway for the Agent Hooks Protocol",
		Long: `ahp-gateway takes the hook events of agent harnesses over HTTP, asks every
registered policy backend in turn, and answers with one decision.

Exit codes: 0 success, 1 configuration or runtime error, 2 wrong usage.
The send and diff commands have their own: see their --help.`,
		Example: `  ahp-gateway demo
  ahp-gateway validate --config gateway.yaml
  ahp-gateway serve --config gateway.yaml`,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          needsCommand,
	}
	root.AddCommand(p.serveCommand(), p.validateCommand(), p.diffCommand(), p.configCommand(), p.demoCommand(), p.sendCommand(), p.healthCommand(), p.tenantCommand(), p.manCommand(), p.versionCommand())
	return root
}

// noArguments refuses arguments. instead says what those were meant for: a text
// in which %s is the first of them, quoted for a shell.
func noArguments(instead string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return usage("takes no arguments: write "+instead, quote(args[0]))
	}
}

// theseArguments wants one argument for each name.
func theseArguments(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usage("needs %s", strings.Join(names[len(args):], " and "))
		case len(args) > len(names):
			return usage("takes %s alone; leave %s out", strings.Join(names, " and "), quote(args[len(names)]))
		}
		return nil
	}
}

// needsCommand answers a call that names a group of commands and none of them.
func needsCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	all := strings.Join(names, ", ")
	if len(args) == 0 {
		return usage("a command is needed; write one of %s", all)
	}
	if cmd.SuggestionsMinimumDistance = 1; len(args[0]) <= 64 {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			return usage("unknown command %q; did you mean %s?", args[0], strings.Join(near, " or "))
		}
	}
	return usage("unknown command %.64q; write one of %s", args[0], all)
}

// action makes an error of a command that says nothing of an exit code one with
// exit code 1.
func action(f func(context.Context) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		err := f(cmd.Context())
		var e *exit
		var u usageError
		if err == nil || errors.As(err, &e) || errors.As(err, &u) {
			return err
		}
		return &exit{exitFailure, err}
	}
}

// write writes a command's whole output, so that a full disk is no success.
func write(w io.Writer, data []byte) error {
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("output: %w", err)
	}
	return nil
}
