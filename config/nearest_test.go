package config

import (
	"fmt"
	"strings"
	"testing"
)

// Whoever writes a document chooses how many words it gets wrong, and how many
// there are to compare them with: only the first are compared.
func TestGuessesAreBounded(t *testing.T) {
	const wrong = 2 * maxGuesses
	var backends, shadow, mapped, selectors []string
	for i := range wrong {
		backends = append(backends, fmt.Sprintf("com.example.polic%d: {}", i))
		shadow = append(shadow, fmt.Sprintf("suitabl%d", i))
		mapped = append(mapped, fmt.Sprintf("v%d: acme-productio%d", i, i))
		selectors = append(selectors, fmt.Sprintf("tool.afte%d", i))
	}
	file := func(auth, events, backends string) string {
		return `auth: {resource: "https://gateway.example/hooks", issuers: [{issuer: "https://idp.example", tenants: {` + auth + `}}]}
tenants:
  - id: acme-production
    keys: [{sha256: "` + strings.Repeat("1", 64) + `"}]
    registration: {protocolVersion: "0.1", hooks: [{id: com.example.policy, transport: {type: http, url: "http://127.0.0.1:9000"},
      subscriptions: [{id: suitable, events: [` + events + `], mode: observe}]}]}
    backends: {` + backends + `}
`
	}
	for name, text := range map[string]string{
		"backends":  file("v: acme-production", "tool.after", strings.Join(backends, ", ")),
		"shadow":    file("v: acme-production", "tool.after", "com.example.policy: {shadow: ["+strings.Join(shadow, ", ")+"]}"),
		"tenants":   file(strings.Join(mapped, ", "), "tool.after", ""),
		"selectors": file("v: acme-production", strings.Join(selectors, ", "), ""),
	} {
		_, _, err := Parse("gateway.yaml", []byte(text), testEnv)
		guesses, all := 0, AsMistakes(err)
		for _, m := range all {
			if strings.HasPrefix(m.Instead, "did you mean ") {
				guesses++
			}
		}
		if len(all) != wrong || guesses != maxGuesses {
			t.Errorf("%s: %d guesses in %d mistakes; want %d in %d: %v", name, guesses, len(all), maxGuesses, wrong, all[0])
		}
	}
}

// What is known in a place is listed with each word once.
func TestKnownOnce(t *testing.T) {
	_, _, err := Parse("gateway.yaml", []byte(`zzzzzzzz: 1
limits: {zzzzzzzz: 1}
breaker: {zzzzzzzz: 1}
audit: {zzzzzzzz: 1}
tls: {zzzzzzzz: 1}
backend: {zzzzzzzz: 1}
auth: {zzzzzzzz: 1, issuers: [{zzzzzzzz: 1}]}
tenants: [{zzzzzzzz: 1, keys: [{zzzzzzzz: 1}]}]
`), testEnv)
	lists := 0
	for _, m := range AsMistakes(err) {
		_, known, ok := strings.Cut(m.Instead, "known here: ")
		if !ok {
			continue
		}
		lists++
		seen := make(map[string]bool)
		for _, word := range strings.Split(known, ", ") {
			if seen[word] {
				t.Errorf("%s: %s is known twice: %s", m.Path, word, known)
			}
			seen[word] = true
		}
	}
	if lists < 8 {
		t.Errorf("%d lists of what is known; want one for every section: %v", lists, err)
	}
}
