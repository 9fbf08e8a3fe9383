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
