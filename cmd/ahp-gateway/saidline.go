package main

import (
	"bytes"
	"regexp"
	"strings"
)

// maxSaid is how much is looked at of an answer that is none of the gateway's,
// and maxSaidLine how much of it is shown, in bytes.
const (
	maxSaid     = 4096
	maxSaidLine = 200
)

// madeKey is what keys look like that the API makes.
var madeKey = regexp.MustCompile(`ahp_[A-Za-z0-9._-]+`)

// quotedLine returns the first line with something in it of such an answer, a
// proxy's page for example, fit for the end of a message: without key, which who
// answers may have sent back, and without one that was made. It is "" where there
// is none.
func quotedLine(body []byte, key string) string {
	text := string(bytes.TrimSpace(body[:min(len(body), maxSaid)]))
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
		// What is left of one that the bound has cut in two.
		for n := min(len(key)-1, len(text)); n >= 4; n-- {
			if strings.HasSuffix(text, key[:n]) {
				text = text[:len(text)-n]
				break
			}
		}
	}
	line, _, _ := strings.Cut(madeKey.ReplaceAllString(text, "[key]"), "\n")
	if line = strings.TrimSpace(line); line == "" {
		return ""
	}
	if len(line) > maxSaidLine {
		line = strings.ToValidUTF8(line[:maxSaidLine], "") + "…"
	}
	return ", and says: " + printable(line)
}
