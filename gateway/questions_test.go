package gateway

import (
	"strconv"
	"strings"
	"testing"

	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// elicitation is a hooks/intercept or hooks/observe of one side of an
// elicitation, whose text is in part.
func elicitation(method, id, source, event, part string) string {
	head := `{"jsonrpc":"2.0",`
	tail := `}}}`
	if method == "hooks/intercept" {
		head += `"id":"` + id + `",`
		tail = `},"capabilities":{"effects":["deny"],"elicitation":{"form":{}}}}}`
		if event == "result" {
			tail = `},"capabilities":{"effects":["modify"],"modify":{"content":{"replace":true,"merge":false}},"elicitation":{"form":{}}}}}`
		}
	}
	return head + `"method":"` + method + `","params":{"protocolVersion":"draft","event":{"id":"` + id + `","source":"` + source +
		`","type":"user.elicitation.` + event + `","time":"2026-01-02T03:04:05Z","harness":{"name":"h","version":"1"},"elicitation":{"server":"s","mode":"form",` +
		part + tail
}

func question(form string) string {
	text := `{"message":"Which one?","requestedSchema":{"type":"object","properties":{"one":` + form + `}}}`
	return `"request":{"id":"q","kind":"text","mediaType":"text/plain","selection":"body","text":` + strconv.Quote(text) + `}}`
}

const (
	hiddenQuestion = `"request":{"id":"q","kind":"text","mediaType":"text/plain","selection":"metadata"}}`
	whole          = `{"type":"integer"}`
	words          = `{"type":"string"}`
)

// A hook edits an answer into what its question asks for. The gateway knows the
// questions that the harness has told it of, in either way, and refuses what it
// cannot hold against one, as a harness does that has lost it.
func TestAnswersAreHeldAgainstTheirQuestions(t *testing.T) {
	const source = "urn:example:harness"
	asks := func(method, source, part string) string { return elicitation(method, "q1", source, "request", part) }
	for name, test := range map[string]struct {
		before []string
		edited bool
	}{
		"no question":                  {nil, false},
		"intercepted":                  {[]string{asks("hooks/intercept", source, question(whole))}, true},
		"observed":                     {[]string{asks("hooks/observe", source, question(whole))}, true},
		"intercepted, asked for words": {[]string{asks("hooks/intercept", source, question(words))}, false},
		"of another source":            {[]string{asks("hooks/intercept", "urn:example:other", question(whole))}, false},
		"of another id":                {[]string{elicitation("hooks/observe", "q2", source, "request", question(whole))}, false},
		"not shown":                    {[]string{asks("hooks/intercept", source, hiddenQuestion)}, false},
		"not shown before it was": {[]string{asks("hooks/intercept", source, hiddenQuestion),
			asks("hooks/observe", source, question(whole))}, true},
		"told twice": {[]string{asks("hooks/intercept", source, question(whole)), asks("hooks/observe", source, question(whole))}, true},
		"told again, otherwise": {[]string{asks("hooks/intercept", source, question(whole)),
			asks("hooks/observe", source, question(words))}, true},
	} {
		edits := fakebackend.Start(t, fakebackend.WithScript(func(_ int, q *fakebackend.Request) string {
			if q.EventID == "a1" {
				return `effects:[{"type":"modify","target":"content","operation":"replace","value":{"one":2}}]`
			}
			return "pass"
		}))
		text := open(registration("draft", hook("com.example.edits", edits.URL,
			`"events":["user.elicitation.result"],"mode":"intercept","timeoutMs":5000,"failurePolicy":"fail-open","content":{"default":"body"}`)))
		r := start(t, text)
		for _, message := range test.before {
			if a := r.post("/hooks", message); a.status == 200 && a.decision() != "pass" || a.status > 204 {
				t.Fatalf("%s: %s was answered %s; want a pass", name, message, a.body)
			}
		}
		if _, err := r.Reload(t.Context(), parse(t, text)); err != nil {
			t.Fatal(err)
		}
		a := r.post("/hooks", elicitation("hooks/intercept", "a1", source, "result",
			`"action":"accept","result":{"id":"r","kind":"text","mediaType":"text/plain","selection":"body","text":"{\"action\":\"accept\",\"content\":{}}"}},"parentEventId":"q1"`))
		if got := strings.Contains(a.body, `"value":{"one":2}`); got != test.edited || a.status != 200 {
			t.Errorf("%s: answered %s; want an edit %v", name, a.body, test.edited)
		}
	}
}
