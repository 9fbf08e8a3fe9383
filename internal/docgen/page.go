package main

import (
	"bytes"
	"fmt"
	"strings"
)

// repository is where links to files of the repository lead.
const repository = "https://github.com/ahp-gateway/ahp-gateway/blob/main/"

// page is the text of one page.
type page struct{ bytes.Buffer }

// wide leaves the table of contents out, to give a table its room.
func (p *page) wide() { p.WriteString("---\nhide: [toc]\n---\n\n") }

// title begins the page. source says what it is made from.
func (p *page) title(name, source string) {
	fmt.Fprintf(p, "# %s\n\n<!-- Written by internal/docgen from %s. Run go generate ./... after a change. -->\n", name, source)
}

// text adds paragraphs.
func (p *page) text(format string, args ...any) {
	fmt.Fprintf(p, "\n"+format+"\n", args...)
}

// table adds a table. Cells may hold Markdown, but no line breaks.
func (p *page) table(head []string, rows [][]string) {
	p.WriteByte('\n')
	p.row(head)
	p.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		p.row(r)
	}
}

func (p *page) row(cells []string) {
	for _, c := range cells {
		p.WriteString("| " + strings.ReplaceAll(c, "|", `\|`) + " ")
	}
	p.WriteString("|\n")
}

// block adds a fenced block.
func (p *page) block(language, text string) {
	fmt.Fprintf(p, "\n```%s\n%s\n```\n", language, strings.TrimRight(text, "\n"))
}

// code returns text as inline code, and nothing for nothing.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// file returns a link to a file of the repository.
func file(text, path string) string {
	return "[" + text + "](" + repository + path + ")"
}
