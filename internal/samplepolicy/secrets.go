package samplepolicy

import (
	"net/http"
	"regexp"
)

// secretShapes are what credentials look like. Each begins at a character that
// cannot be part of one, so that "task-…" is not taken for "sk-…".
var secretShapes = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"an AWS access key id", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:AKIA|ASIA)[A-Z0-9]{16}(?:$|[^A-Za-z0-9])`)},
	{"an AWS secret access key", regexp.MustCompile(`(?i)aws_?secret_?access_?key["'\s:=]{1,8}[A-Za-z0-9/+]{40}(?:$|[^A-Za-z0-9/+])`)},
	{"a GitHub token", regexp.MustCompile(`(?:^|[^A-Za-z0-9])(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{60})`)},
	// The run of 20 keeps hyphenated words like "sk-some-css-class" out.
	{"an OpenAI or Anthropic API key", regexp.MustCompile(`(?:^|[^A-Za-z0-9])sk-[A-Za-z0-9_-]*[A-Za-z0-9]{20}`)},
	{"a Slack token", regexp.MustCompile(`(?:^|[^A-Za-z0-9])xox[abeoprs]-[A-Za-z0-9-]{10}`)},
	{"a private key", regexp.MustCompile(`-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`)},
	{"a JSON Web Token", regexp.MustCompile(`(?:^|[^A-Za-z0-9])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10}`)},
}

// Secrets returns a backend that denies a tool call whose input, at any depth,
// holds what looks like a credential. The reason names the kind of credential
// and never quotes it. The code is io.ahp-gateway.demo.secret.
func Secrets() http.Handler {
	return policy(func(c call) *deny {
		for _, text := range texts(c.input) {
			for _, shape := range secretShapes {
				if shape.pattern.MatchString(text) {
					return &deny{"deny", "The tool input holds what looks like " + shape.what + ".", "io.ahp-gateway.demo.secret"}
				}
			}
		}
		return nil
	})
}
