package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand is for packagers, who run it once per release, and so is hidden.
func (p program) manCommand() *cobra.Command {
	dir, date := "", ""
	cmd := &cobra.Command{
		Use:    "man --dir DIR",
		Short:  "Write the manual pages",
		Long:   "Writes the manual pages, one for every command, into the folder DIR, which is\nmade if it is not there.",
		Hidden: true,
		Args:   noArguments("--dir %s"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return action(func(context.Context) error {
				if dir == "" {
					return usage("--dir is needed")
				}
				on, err := time.Parse(time.DateOnly, date)
				if err != nil {
					return usage("--date is %.64q; want one such as 2026-01-31", date)
				}
				return writeManual(cmd.Root(), dir, on)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the pages (required)")
	cmd.Flags().StringVar(&date, "date", "1970-01-01", "date that the pages bear")
	return cmd
}

// writeManual writes the pages of cmd and of every command below it.
func writeManual(cmd *cobra.Command, dir string, on time.Time) error {
	cmd.InitDefaultHelpFlag()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, pageName(cmd)+".1"), manualPage(cmd, on), 0o644); err != nil {
		return err
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			if err := writeManual(c, dir, on); err != nil {
				return err
			}
		}
	}
	return nil
}

func pageName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manualPage writes the page of a command in the macros of man(7). The texts are
// not Markdown, in which tool.* or <id> would mean something else, so they are
// taken word for word: paragraphs, and lines that are indented as they stand.
func manualPage(cmd *cobra.Command, on time.Time) []byte {
	var b bytes.Buffer
	line := func(parts ...string) { b.WriteString(strings.Join(parts, " ") + "\n") }
	section := func(name string) { line(".SH", name) }
	line(".TH", roffQuoted(strings.ToUpper(pageName(cmd))), "1", on.Format(time.DateOnly), roffQuoted("ahp-gateway"), roffQuoted("User Commands"))
	section("NAME")
	line(roff(pageName(cmd)), `\-`, roff(cmd.Short))
	section("SYNOPSIS")
	line(".B", roffQuoted(cmd.UseLine()))
	section("DESCRIPTION")
	roffText(&b, cmp.Or(cmd.Long, cmd.Short+"."))
	options := func(name string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		section(name)
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, meaning := pflag.UnquoteUsage(f)
			what := "--" + f.Name
			if f.Shorthand != "" {
				what = "-" + f.Shorthand + ", " + what
			}
			if value != "" {
				what += " " + value
			}
			switch f.DefValue {
			case "", "false", "0", "[]":
			default:
				meaning += " (default " + f.DefValue + ")"
			}
			line(".TP")
			line(".B", roffQuoted(what))
			line(roff(meaning))
		})
	}
	options("OPTIONS", cmd.NonInheritedFlags())
	options("OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		section("EXAMPLES")
		roffText(&b, cmd.Example)
	}
	var also []string
	if cmd.HasParent() {
		also = append(also, pageName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			also = append(also, pageName(c))
		}
	}
	if len(also) > 0 {
		section("SEE ALSO")
		for i, name := range also {
			end := ","
			if i == len(also)-1 {
				end = ""
			}
			line(".BR", roff(name), "(1)"+end)
		}
	}
	return b.Bytes()
}

// roffText writes paragraphs, which blank lines part; what is indented is kept
// line by line.
func roffText(b *bytes.Buffer, text string) {
	verbatim := false
	end := func() {
		if verbatim {
			b.WriteString(".EE\n.RE\n")
			verbatim = false
		}
	}
	parted, first := false, true
	for l := range strings.Lines(text) {
		l = strings.TrimRight(l, "\n")
		l = strings.Replace(l, "\t", "  ", 1)
		indented := strings.HasPrefix(l, "  ")
		switch {
		case l == "":
			parted = true
			continue
		case indented && !verbatim:
			if !first {
				b.WriteString(".PP\n")
			}
			b.WriteString(".RS 4\n.EX\n")
			verbatim = true
		case indented && parted:
			b.WriteString("\n")
		case !indented && (parted || verbatim):
			end()
			b.WriteString(".PP\n")
		}
		parted, first = false, false
		if indented {
			l = l[2:]
		}
		b.WriteString(roff(l) + "\n")
	}
	end()
}

// roff returns s as text that troff prints as it is.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(s)
	if strings.HasPrefix(s, ".") {
		s = `\&` + s
	}
	return s
}

// roffQuoted returns s as one argument of a macro.
func roffQuoted(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
