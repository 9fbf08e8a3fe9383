package samplepolicy

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// Rule denies the calls of some tools that match a pattern. See the package
// documentation for the rule file it is read from.
type Rule struct {
	ID      string         `json:"id"`
	Kinds   []string       `json:"kinds"`
	Tools   []string       `json:"tools"`
	Field   string         `json:"field"`
	Pattern *regexp.Regexp `json:"pattern"`
	Reason  string         `json:"reason"`
	Code    string         `json:"code"`
}

//go:embed rules.json
var defaultRules []byte

// DefaultRules returns the embedded rules: they deny force pushes and the
// recursive removal of the root or home folder.
func DefaultRules() ([]Rule, error) { return ParseRules(defaultRules) }

// ParseRules reads a rule file. It reports every incomplete rule at once; a
// syntax error, an unknown member or a bad pattern ends the reading.
func ParseRules(data []byte) ([]Rule, error) {
	if _, err := parseJSON(data); err != nil {
		return nil, fmt.Errorf("samplepolicy: rule file: %w", err)
	}
	var file struct {
		Rules []Rule `json:"rules"`
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return nil, fmt.Errorf("samplepolicy: rule file: %w", err)
	}
	if err := checkRules(file.Rules); err != nil {
		return nil, fmt.Errorf("samplepolicy: rule file: %w", err)
	}
	return file.Rules, nil
}

// reverseDNS is the shape of an effect's code.
var reverseDNS = regexp.MustCompile(`^(?:[A-Za-z][A-Za-z0-9_-]*\.)+[A-Za-z][A-Za-z0-9_-]*$`)

func checkRules(rules []Rule) error {
	var errs []error
	if len(rules) == 0 {
		errs = append(errs, errors.New("rules must not be empty"))
	}
	seen := map[string]bool{}
	for i, r := range rules {
		bad := func(what string) { errs = append(errs, fmt.Errorf("rules[%d] %.64q: %s", i, r.ID, what)) }
		if r.ID == "" || seen[r.ID] {
			bad("id must be unique and not empty")
		}
		seen[r.ID] = true
		for _, kind := range r.Kinds {
			if !slices.Contains(toolKinds, kind) {
				bad(fmt.Sprintf("kinds: %.64q is no tool kind", kind))
			}
		}
		if r.Pattern == nil || r.Pattern.String() == "" {
			bad("pattern must not be empty")
		}
		if r.Reason == "" {
			bad("reason must not be empty")
		}
		if !reverseDNS.MatchString(r.Code) {
			bad("code must be a reverse-DNS name")
		}
	}
	return errors.Join(errs...)
}

// Rules returns a backend that denies a tool call with the first rule that
// matches it. It panics if the rules are not what ParseRules would accept,
// because a backend that cannot deny must not look like one that can.
func Rules(rules []Rule) http.Handler {
	if err := checkRules(rules); err != nil {
		panic("samplepolicy: " + err.Error())
	}
	rules = slices.Clone(rules)
	return policy(func(c call) *deny {
		for _, r := range rules {
			if r.matches(c) {
				return &deny{"deny", r.Reason, r.Code}
			}
		}
		return nil
	})
}

func (r Rule) matches(c call) bool {
	everyTool := len(r.Kinds) == 0 && len(r.Tools) == 0
	kind := len(r.Kinds) > 0 && (c.kind == "" || slices.Contains(r.Kinds, c.kind))
	if !everyTool && !kind && !slices.Contains(r.Tools, c.name) {
		return false
	}
	var read any = c.input
	if r.Field != "" {
		read = c.input[r.Field]
	}
	for _, text := range texts(read) {
		for _, command := range commands(text) {
			if r.Pattern.MatchString(command) {
				return true
			}
		}
	}
	return false
}

var (
	// joins are what looks like a separator and is none: a line that continues
	// and a redirection such as 2>&1, &>log or >|file.
	joins      = regexp.MustCompile(`\\\r?\n|[0-9]*[<>]&[0-9-]*|&>>?|>\|`)
	separators = regexp.MustCompile(`[;|&\r\n]+`)
)

// commands cuts text where a shell would end a simple command. It does not
// know quotes.
func commands(text string) []string {
	return separators.Split(joins.ReplaceAllString(text, " "), -1)
}
