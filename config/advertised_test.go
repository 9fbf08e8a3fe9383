package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

// gate is an advertised subscription with more members.
func gate(more string) string {
	return `{"events":["tool.before"],"mode":"intercept","timeoutMs":750,"failurePolicy":"fail-open","content":{"default":"metadata"}` + more + `}`
}

func advertise(subs ...string) []byte {
	return []byte(`{"subscriptions":[` + strings.Join(subs, ",") + `]}`)
}

func TestParseConfiguration(t *testing.T) {
	plain := Subscription{
		Selectors: []string{"tool.before"}, Mode: Intercept, Timeout: 750 * time.Millisecond,
		Content: ahp.ContentSelection{Default: ahp.SelectMetadata},
	}
	with := func(change func(*Subscription)) Subscription {
		s := plain
		change(&s)
		return s
	}
	for _, test := range []struct {
		name     string
		data     []byte
		shadow   []string
		want     []Subscription
		warnings []string
	}{
		{"plain", advertise(gate("")), nil, []Subscription{plain}, nil},
		{"managed", advertise(gate(`,"scope":"managed","disableable":false`)), nil,
			[]Subscription{with(func(s *Subscription) { s.Managed, s.FailClosed = true, true })}, nil},
		{"everything", advertise(
			gate(`,"id":"a","includeNative":true,"filters":{"toolKinds":["shell"]}`),
			`{"events":["*","session.*"],"mode":"observe","content":{"default":"body","reasoning":"omit"}}`), nil,
			[]Subscription{
				with(func(s *Subscription) { s.ID, s.IncludeNative = "a", true }),
				{Selectors: []string{"*", "session.*"}, Mode: Observe, Content: ahp.ContentSelection{
					Default: ahp.SelectBody, Categories: map[string]ahp.Selection{"reasoning": ahp.SelectOmit}}},
			}, nil},
		{"unknown members", []byte(`{"more":1,"subscriptions":[` + gate(`,"colour":"red"`) + `]}`), nil, []Subscription{plain},
			[]string{"com.example.b: warning: unknown key: remove it: it is ignored", "com.example.b: warning: subscriptions[0]: unknown key: remove it: it is ignored"}},
		{"inapplicable families", advertise(
			`{"events":["acme.*","tool.before"],"mode":"intercept","timeoutMs":750,"failurePolicy":"fail-open","content":{"default":"metadata"}}`,
			`{"events":["acme.*"],"mode":"observe","content":{"default":"omit"}}`,
			`{"events":["file.*"],"mode":"intercept","timeoutMs":750,"failurePolicy":"fail-open","content":{"default":"metadata"}}`), nil,
			[]Subscription{plain},
			[]string{
				"com.example.b: warning: subscriptions[0].events[0]: covers no event that this gateway has in that mode: it is left out",
				"com.example.b: warning: subscriptions[1].events[0]: covers no event that this gateway has in that mode: it is left out",
				"com.example.b: warning: subscriptions[2].events[0]: covers no event that this gateway has in that mode: it is left out",
			}},
		{"upload", advertise(
			`{"events":["tool.after"],"mode":"observe","content":{"default":"body","files":"omit"},"upload":{"endpoint":"https://u.example.com","timeoutMs":1,"maxBytes":1}}`), nil,
			[]Subscription{{Selectors: []string{"tool.after"}, Mode: Observe, Content: ahp.ContentSelection{Default: ahp.SelectBody, Categories: map[string]ahp.Selection{
				"images": ahp.SelectMetadata, "audio": ahp.SelectMetadata, "video": ahp.SelectMetadata, "files": ahp.SelectOmit}}}},
			[]string{"com.example.b: warning: subscriptions[0].upload: content upload is not supported yet, and an advertised one takes the operator's permission: it is left out, and attachments are shown as metadata"}},
		{"upload of nothing", advertise(gate(`,"upload":{}`)), nil, []Subscription{plain},
			[]string{"com.example.b: warning: subscriptions[0].upload: content upload is not supported yet, and an advertised one takes the operator's permission: it is left out, and attachments are shown as metadata"}},
		{"shadow", advertise(gate(`,"id":"a"`), gate(`,"id":"b"`), gate(``)), []string{"b"},
			[]Subscription{
				with(func(s *Subscription) { s.ID = "a" }),
				with(func(s *Subscription) { s.ID, s.Shadow = "b", true }),
				plain,
			}, nil},
		{"all in shadow", advertise(gate(`,"disableable":false`)), []string{"*"},
			[]Subscription{with(func(s *Subscription) { s.Managed, s.FailClosed, s.Shadow = true, true, true })},
			[]string{"com.example.b: warning: subscriptions[0]: is managed or not disableable, and in shadow: keep it only while the policy is being tried out: its decisions are not enforced"}},
		{"absent from shadow", advertise(gate(`,"id":"a"`)), []string{"gone"}, []Subscription{with(func(s *Subscription) { s.ID = "a" })},
			[]string{`com.example.b: warning: the backend advertises no subscription with this id, which is to be in shadow (found "gone"): write the id member of one that it advertises, or "*" in quotes for all`}},
		{"longer than the budget", advertise(strings.Replace(gate(""), "750", "9000", 1)), nil,
			[]Subscription{with(func(s *Subscription) { s.Timeout = 9 * time.Second })},
			[]string{"com.example.b: warning: subscriptions[0].timeoutMs: is longer than limits.budget of the whole chain, 5s: write a shorter timeout or a larger budget"}},
	} {
		got, warnings, err := ParseConfiguration("com.example.b", test.data, 5*time.Second, test.shadow)
		var lines []string
		for _, w := range warnings {
			checkMistake(t, w)
			lines = append(lines, w.String())
		}
		if err != nil || !reflect.DeepEqual(got, test.want) || !reflect.DeepEqual(lines, test.warnings) {
			t.Errorf("ParseConfiguration(%s) = %+v, %q, %v; want %+v, %q", test.name, got, lines, err, test.want, test.warnings)
		}
	}
}

func TestParseConfigurationRefuses(t *testing.T) {
	for _, test := range []struct{ data, path, what string }{
		{`{}`, "subscriptions", "is missing"},
		{`{"subscriptions":null}`, "subscriptions", "must be a list, and is empty"},
		{`{"subscriptions":[]}`, "subscriptions", "is an empty list"},
		{`{"subscriptions":{}}`, "subscriptions", "must be a list, not an object"},
		{`{"subscriptions":["hunter2"]}`, "subscriptions[0]", "must be an object, not a string"},
		{string(advertise(gate(`,"scope":"managed"`))), "subscriptions[0].disableable", "is missing"},
		{string(advertise(strings.Replace(gate(""), "750", "0", 1))), "subscriptions[0].timeoutMs", "is out of range"},
		{string(advertise(strings.Replace(gate(""), `"timeoutMs":750,`, "", 1))), "subscriptions[0].timeoutMs", "is missing"},
		{string(advertise(strings.Replace(gate(""), "fail-open", "hunter2", 1))), "subscriptions[0].failurePolicy", "is not one of the values known here"},
		{string(advertise(strings.Replace(gate(""), "tool.before", "hunter2", 1))), "subscriptions[0].events[0]", "is no event of snapshot draft"},
		{string(advertise(strings.Replace(gate(""), "tool.before", "session.end", 1))), "subscriptions[0].events[0]", "is not an event for mode intercept in snapshot draft"},
		{string(advertise(strings.Replace(gate(""), "tool.before", "tool.permission.*", 1))), "subscriptions[0].events[0]", "is not a selector"},
		{string(advertise(strings.Replace(gate(""), "tool.before", "Hunter2.*", 1))), "subscriptions[0].events[0]", "is no family of events"},
		{string(advertise(strings.Replace(gate(""), `["tool.before"]`, `["*","*"]`, 1))), "subscriptions[0].events[1]", "is there twice"},
		{string(advertise(strings.Replace(gate(""), `"metadata"`, `"metadata","hunter2":"hunter2"`, 1))), "subscriptions[0].content", "is not one of the values known here"},
		{string(advertise(strings.Replace(gate(""), `"default"`, `"text"`, 1))), "subscriptions[0].content.default", "is missing"},
		{string(advertise(gate(`,"upload":"hunter2"`))), "subscriptions[0].upload", "must be an object, not a string"},
		{string(advertise(gate(`,"id":"hunter2"`), gate(`,"id":"hunter2"`))), "subscriptions[1].id", "is the id of subscriptions[0] too"},
		{string(advertise(gate(`,"filters":{"paths":["hunter2","hunter2"]}`))), "subscriptions[0].filters.paths[1]", "is there twice"},
		{string(advertise(strings.Split(strings.Repeat(gate("")+"|", maxAdvertised+1), "|")[:maxAdvertised+1]...)), "subscriptions", "holds more than 128 subscriptions"},
		{`{"more":` + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + `,"subscriptions":[` + gate("") + `]}`, "", "values nest deeper than 64 levels"},
		{`subscriptions: []`, "", "not valid JSON, invalid character 's' at start of value"},
		{"\xff", "", "the file is not valid UTF-8"},
	} {
		got, _, err := ParseConfiguration("com.example.b", []byte(test.data), 0, nil)
		ms := AsMistakes(err)
		if got != nil || len(ms) == 0 || ms[0].Path != test.path || ms[0].What != test.what || ms[0].File != "com.example.b" {
			t.Errorf("ParseConfiguration(%.200s) = %+v, %v; want %s: %s", test.data, got, err, test.path, test.what)
		}
		for _, m := range ms {
			checkMistake(t, m) // which looks for hunter2
		}
	}
}

// A backend knows the credential that it is called with. Wherever it writes
// that, no mistake shows it.
func TestParseConfigurationQuotesNothing(t *testing.T) {
	good := `{"subscriptions":[` + gate(`,"filters":{"paths":["/x"]},"upload":{},"scope":"user","disableable":true`) + `]}`
	for i := range len(good) {
		for _, insert := range []string{`hunter2`, `"hunter2":"hunter2",`, `"hunter2",`, `.hunter2`} {
			_, warnings, err := ParseConfiguration("com.example.b", []byte(good[:i]+insert+good[i:]), 0, nil)
			for _, m := range append(AsMistakes(err), warnings...) {
				checkMistake(t, m)
			}
		}
	}
}

func FuzzParseConfiguration(f *testing.F) {
	f.Add(advertise(gate("")))
	f.Add(advertise(gate(`,"id":"a","upload":{"endpoint":"https://u.example.com","timeoutMs":1,"maxBytes":1}`), gate(`,"scope":"managed","disableable":false`)))
	f.Add(advertise(`{"events":["*","acme.*"],"mode":"observe","content":{"default":"body"},"filters":{"toolKinds":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		subs, warnings, err := ParseConfiguration("fuzz", data, time.Second, []string{"a"})
		for _, m := range append(AsMistakes(err), warnings...) {
			checkMistakeForm(t, m)
		}
		if err != nil {
			return
		}
		// What is accepted is also what a document may say.
		p := new(printer)
		p.registration(&Registration{Version: ahp.Draft, Hooks: []Hook{{ID: "a.b", URL: "https://p.example.com", Discover: len(subs) == 0, Subscriptions: subs}}})
		again, _, err := ParseRegistration("fuzz.yaml", p.out)
		if err != nil {
			t.Fatalf("ParseRegistration(printed) = %v; want no mistake in\n%s", err, p.out)
		}
		for i := range subs {
			subs[i].Shadow = false
		}
		if got, want := fmt.Sprintf("%+v", again.Hooks[0].Subscriptions), fmt.Sprintf("%+v", subs); got != want {
			t.Fatalf("printed and read again = %s; want %s", got, want)
		}
	})
}
