package audit

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Bounds of a redacted input.
const (
	// maxValue is how many bytes of one string are kept.
	maxValue = 1024
	// overlap is how far beyond maxValue a string is searched, so that a
	// credential that lies across the cut is masked rather than halved.
	overlap = 512
	// maxNumber is the length of the longest number that is kept.
	maxNumber = 64
	// maxDepth is how deep containers are followed; the strict reading of
	// events allows no more.
	maxDepth = 128
	// maxSearch is how many bytes are searched for credentials in all, so that
	// the cost does not grow with the input.
	maxSearch = 4 * MaxInput
)

const (
	redacted = "[redacted]"
	omitted  = "[truncated]"
)

// RedactInput appends a copy of the JSON value input to dst in which secrets
// are masked, and returns the extended slice. What is appended is one line of
// valid JSON of at most MaxInput bytes.
//
// The shape is kept. The value of a member whose name speaks of a secret
// becomes "[redacted]" whatever its kind; so does any part of a string or of a
// member name that looks like a credential. A long string is cut, and the first
// value that does not fit ends the copy; both places say "[truncated]". Input
// that is not JSON becomes "[redacted]" as a whole.
//
// This is a safety net for operators who ask for inputs to be recorded, not a
// proof: a secret that looks like nothing in particular is not found.
func RedactInput(dst, input []byte) []byte {
	if !json.Valid(input) {
		return appendString(dst, redacted)
	}
	r := redactor{
		tokens: json.NewDecoder(bytes.NewReader(input)),
		out:    dst,
		end:    len(dst) + MaxInput,
		unread: maxSearch,
	}
	r.tokens.UseNumber()
	r.copy()
	return r.out
}

// redactor copies the tokens of one valid JSON value.
type redactor struct {
	tokens *json.Decoder
	out    []byte
	end    int // out must not grow beyond
	unread int // bytes that may still be searched for credentials
	open   []container
	piece  []byte // the scalar being written, before it is known to fit
}

// container is an object or array that is open in out.
type container struct {
	closing byte
	empty   bool // nothing was written in it yet
	named   bool // an object whose last member still lacks its value
}

// note is the longest text that says something was left out.
const note = `,"` + omitted + `":"` + omitted + `"`

func (r *redactor) copy() {
	for {
		token, err := r.tokens.Token()
		if err != nil {
			// The input is valid, so this is its end.
			return
		}
		if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
			r.open = r.open[:len(r.open)-1]
			r.out = append(r.out, byte(delim))
			continue
		}
		if !r.write(token) {
			r.finish()
			return
		}
	}
}

// write copies one token that is a member's name, a scalar or the begin of a
// container. It reports false and writes nothing when that does not fit.
func (r *redactor) write(token json.Token) bool {
	r.piece = r.piece[:0]
	var top *container
	isName := false
	if len(r.open) > 0 {
		top = &r.open[len(r.open)-1]
		isName = top.closing == '}' && !top.named
		if !top.empty && !top.named {
			r.piece = append(r.piece, ',')
		}
	}
	secret := false
	var opened *container
	switch t := token.(type) {
	case json.Delim:
		opened = &container{closing: byte(t) + 2, empty: true} // '{' to '}' and '[' to ']'
		r.piece = append(r.piece, byte(t))
	case string:
		r.piece = r.appendText(r.piece, t)
		if isName {
			r.piece = append(r.piece, ':')
			secret = secretName(t)
		}
	case json.Number:
		if len(t) > maxNumber {
			return false
		}
		r.piece = append(r.piece, t...)
	case bool:
		if t {
			r.piece = append(r.piece, "true"...)
		} else {
			r.piece = append(r.piece, "false"...)
		}
	case nil:
		r.piece = append(r.piece, "null"...)
	}
	if secret {
		r.piece = appendString(r.piece, redacted)
	}
	if r.unread <= 0 || len(r.open) == maxDepth && opened != nil ||
		len(r.out)+len(r.piece)+len(note)+len(r.open)+len(`}`) > r.end {
		return false
	}
	r.out = append(r.out, r.piece...)
	if top != nil {
		top.empty = false
		top.named = isName && !secret
	}
	if opened != nil {
		r.open = append(r.open, *opened)
	}
	if secret {
		r.skipValue()
	}
	return true
}

// skipValue reads over the value that comes next.
func (r *redactor) skipValue() {
	for depth := 0; ; {
		token, err := r.tokens.Token()
		if err != nil {
			return
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return
		}
	}
}

// finish says that something is missing and closes what is open. Write has
// kept room for it.
func (r *redactor) finish() {
	value := note[len(note)-len(omitted)-2:]
	if len(r.open) == 0 {
		r.out = append(r.out, value...)
		return
	}
	top := r.open[len(r.open)-1]
	if !top.empty && !top.named {
		r.out = append(r.out, ',')
	}
	if top.closing == '}' && !top.named {
		r.out = append(r.out, value...)
		r.out = append(r.out, ':')
	}
	r.out = append(r.out, value...)
	for len(r.open) > 0 {
		r.out = append(r.out, r.open[len(r.open)-1].closing)
		r.open = r.open[:len(r.open)-1]
	}
}

// appendText appends s as a JSON string, masked and cut.
func (r *redactor) appendText(dst []byte, s string) []byte {
	window := cutString(s, maxValue+overlap)
	r.unread -= len(window)
	if window == "" {
		return append(dst, `""`...)
	}
	var kept strings.Builder
	read := 0
	for _, span := range findCredentials(window) {
		if span[0] >= maxValue {
			break
		}
		kept.WriteString(window[min(read, span[0]):span[0]])
		if span[0] >= read {
			kept.WriteString(redacted)
		}
		read = max(read, span[1])
	}
	if read < maxValue {
		kept.WriteString(cutString(window[read:], maxValue-read))
	}
	if len(s) > max(maxValue, read) {
		kept.WriteString(omitted)
	}
	return appendString(dst, kept.String())
}

// secretWords are what a member name holds, in lower case and without
// punctuation, when its value is a secret.
var secretWords = []string{
	"token", "password", "passwd", "passphrase", "secret", "authorization",
	"apikey", "accesskey", "privatekey", "signingkey", "encryptionkey",
	"credential", "cookie", "sessionid", "connectionstring",
}

// secretNames are whole names that are too short to look for inside others.
var secretNames = []string{"auth", "pwd", "pass", "pin", "otp", "jwt", "bearer", "sid"}

// secretName reports whether the value of a member of that name is masked.
func secretName(name string) bool {
	name = strings.Map(func(r rune) rune {
		switch r {
		case '-', '_', '.', ' ':
			return -1
		}
		return r
	}, strings.ToLower(cutString(name, maxValue)))
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	for _, whole := range secretNames {
		if name == whole {
			return true
		}
	}
	return false
}

// patterns find what looks like a credential. Each is tried only on a string
// that holds one of its hints in lower case, because most strings hold none. A
// pattern that can run to the end of the string does so on purpose: the rest
// of the secret lies beyond.
var patterns = []struct {
	hints []string
	find  *regexp.Regexp
}{
	{[]string{"-----begin "}, // PEM
		regexp.MustCompile(`-----BEGIN [A-Z0-9 ]{1,64}-----(?s:.*?)(?:-----END [A-Z0-9 ]{1,64}-----|\z)`)},
	{[]string{"eyj"}, // JWT and JWE
		regexp.MustCompile(`eyJ[A-Za-z0-9_-]{12,}(?:\.[A-Za-z0-9_-]*){0,4}`)},
	{[]string{"akia", "asia", "abia", "acca"}, // AWS
		regexp.MustCompile(`(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}`)},
	{[]string{"aiza"}, // Google
		regexp.MustCompile(`AIza[A-Za-z0-9_-]{30,}`)},
	{[]string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, // GitHub
		regexp.MustCompile(`(?:gh[pousr]|github_pat)_[A-Za-z0-9_]{20,}`)},
	{[]string{"glpat-"}, // GitLab
		regexp.MustCompile(`glpat-[A-Za-z0-9_.-]{16,}`)},
	{[]string{"sk-", "k_live_", "k_test_"}, // OpenAI, Anthropic, Stripe
		regexp.MustCompile(`sk-[A-Za-z0-9_-]{16,}|[srp]k_(?:live|test)_[A-Za-z0-9]{10,}`)},
	{[]string{"xox", "xapp-"}, // Slack
		regexp.MustCompile(`(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}`)},
	{[]string{"hf_", "npm_", "pypi-"}, // package and model registries
		regexp.MustCompile(`(?:hf_|npm_|pypi-)[A-Za-z0-9_-]{20,}`)},
	{[]string{"bearer", "basic"}, // HTTP credentials
		regexp.MustCompile(`(?i)\b(?:bearer|basic)[ \t]+[a-z0-9._~+/=-]{8,}`)},
	{[]string{"://"}, // user information of a URL
		regexp.MustCompile(`://[^/\s:@]*:[^/\s@]+@`)},
	{[]string{"passw", "pwd", "secret", "token", "key", "authorization", "cookie"}, // assignments
		regexp.MustCompile(`(?i)(?:passw(?:or)?d|pwd|secret|token|api[_-]?key|access[_-]?key|authorization|cookie)` +
			`["']?[ \t]*[:=][ \t]*["']?[^\s"'&;]+`)},
	{[]string{"--"}, // flags
		regexp.MustCompile(`(?i)--[a-z-]*(?:password|passphrase|secret|token|key|cookie)[ \t]+["']?[^\s"']+`)},
}

// findCredentials returns where s looks like credentials, by their beginning.
// Spans may overlap.
func findCredentials(s string) [][]int {
	var spans [][]int
	lower := strings.ToLower(s)
	for i := range patterns {
		for _, hint := range patterns[i].hints {
			if strings.Contains(lower, hint) {
				spans = append(spans, patterns[i].find.FindAllStringIndex(s, -1)...)
				break
			}
		}
	}
	slices.SortFunc(spans, func(a, b []int) int { return a[0] - b[0] })
	return spans
}
