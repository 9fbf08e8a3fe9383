package audit

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

func TestAppendJSON(t *testing.T) {
	at := time.Date(2026, 5, 4, 5, 2, 1, 120, time.FixedZone("", 2*60*60))
	long := strings.Repeat("é", MaxString) // two bytes each
	tests := []struct {
		name   string
		record Record
		want   string
	}{
		{"least", Record{Time: at}, `{"time":"2026-05-04T03:02:01.00000012Z","verdict":"unknown"}`},
		{
			"everything",
			Record{
				Time: at, Tenant: "acme", Version: "draft", Method: "hooks/intercept", EventID: "e", Source: "urn:s",
				EventType: "tool.before", SessionID: "se", CallID: "c", Tool: "Bash", Verdict: VerdictDeny,
				Synthetic: true, Code: "com.example.c", Reason: "No.", ErrorCode: -32003, DeniedBy: "com.example.b",
				Subscription: "s", Dedupe: DedupeConflict, Inexact: true, Generation: 7,
				Duration: 1500 * time.Microsecond, TraceID: "4bf9", Input: []byte(`{"a":1}`),
				Steps: []Step{
					{Backend: "com.example.a", Outcome: OutcomeChanged, Duration: 2 * time.Millisecond,
						Effects: ahp.EffectSet(0).With(ahp.EffectModify).With(ahp.EffectAsk)},
					{
						Backend: "com.example.b", Subscription: "s", Outcome: OutcomeFailedClosed,
						Class: ahp.FailDeadline, Detail: "750ms", Duration: 750 * time.Millisecond,
					},
					{Backend: "com.example.c", Outcome: OutcomeNotCalled},
				},
			},
			`{"time":"2026-05-04T03:02:01.00000012Z","tenant":"acme","version":"draft","method":"hooks/intercept",` +
				`"event_id":"e","source":"urn:s","event_type":"tool.before","session_id":"se","call_id":"c","tool":"Bash",` +
				`"verdict":"deny","synthetic":true,"code":"com.example.c","reason":"No.","error_code":-32003,` +
				`"denied_by":"com.example.b","subscription":"s","dedupe":"conflict","inexact":true,"generation":7,` +
				`"duration_us":1500,"trace_id":"4bf9","input":{"a":1},"steps":[` +
				`{"outcome":"changed","backend":"com.example.a","effects":["ask","modify"],"duration_us":2000},` +
				`{"outcome":"failed_closed","backend":"com.example.b","subscription":"s","failure":"deadline",` +
				`"detail":"750ms","duration_us":750000},` +
				`{"outcome":"not_called","backend":"com.example.c"}]}`,
		},
		{
			"answer of a shadow subscription",
			Record{Time: at, Verdict: VerdictPass, Shadow: true, Steps: []Step{{Backend: "b", Outcome: OutcomeShadowDeny}}},
			`{"time":"2026-05-04T03:02:01.00000012Z","shadow":true,` +
				`"steps":[{"outcome":"shadow_deny","backend":"b"}]}`,
		},
		{
			"a change",
			Record{
				Time: at, Tenant: "acme", Generation: 8, Duration: time.Millisecond,
				Change: &Change{By: "0a1b2c3d", Action: "put", Before: "11", After: "22", Status: 200},
			},
			`{"time":"2026-05-04T03:02:01.00000012Z","tenant":"acme","generation":8,"duration_us":1000,` +
				`"change":{"outcome":"done","status":200,"action":"put","by":"0a1b2c3d","before":"11","after":"22"}}`,
		},
		{
			"a change of a secret",
			Record{Time: at, Tenant: "acme", Change: &Change{By: "0a1b2c3d", Action: "put-secret", Secret: "token", Status: 200}},
			`{"time":"2026-05-04T03:02:01.00000012Z","tenant":"acme",` +
				`"change":{"outcome":"done","status":200,"action":"put-secret","by":"0a1b2c3d","secret":"token"}}`,
		},
		{
			"a change that was refused, with a long text",
			Record{Time: at, Change: &Change{Action: "x" + long, Status: 401}},
			`{"time":"2026-05-04T03:02:01.00000012Z","change":{"outcome":"refused","status":401,"action":"x` +
				strings.Repeat("é", MaxString/2-1) + `","truncated":["action"]}}`,
		},
		{
			"a change that failed",
			Record{Time: at, Change: &Change{Action: "delete", Status: 500}},
			`{"time":"2026-05-04T03:02:01.00000012Z","change":{"outcome":"failed","status":500,"action":"delete"}}`,
		},
		{
			"cut on a rune boundary and said so",
			Record{Time: at, EventID: "x" + long, Tool: long, Verdict: VerdictPass, Steps: []Step{
				{Outcome: OutcomeFailedOpen, Class: ahp.FailDNS, Detail: long},
			}},
			`{"time":"2026-05-04T03:02:01.00000012Z","event_id":"x` + strings.Repeat("é", 127) + `","tool":"` +
				strings.Repeat("é", 128) + `","verdict":"pass","truncated":["event_id","tool"],"steps":[` +
				`{"outcome":"failed_open","failure":"dns","detail":"` + strings.Repeat("é", 128) + `","truncated":["detail"]}]}`,
		},
		{
			"escapes",
			Record{Time: at, Tool: "\"\\\n\r\t\x00\x7f\u0085\u2028\u202e\xff\xed\xa0\x80€😀", Verdict: VerdictError},
			`{"time":"2026-05-04T03:02:01.00000012Z","tool":"\"\\\n\r\t\u0000\u007f\u0085\u2028\u202e` +
				"\uFFFD\uFFFD\uFFFD\uFFFD€😀" + `","verdict":"error"}`,
		},
		{
			"input that is not JSON is a string",
			Record{Time: at, Input: []byte(`{"a":`)},
			`{"time":"2026-05-04T03:02:01.00000012Z","verdict":"unknown","input":"{\"a\":"}`,
		},
		{
			"input of more than one line is a string",
			Record{Time: at, Input: []byte("[\n1]")},
			`{"time":"2026-05-04T03:02:01.00000012Z","verdict":"unknown","input":"[\n1]"}`,
		},
		{
			"input that is not UTF-8 is a string",
			Record{Time: at, Input: []byte("\"\xff\"")},
			`{"time":"2026-05-04T03:02:01.00000012Z","verdict":"unknown","input":"\"` + "\uFFFD" + `\""}`,
		},
		{
			"input that is too long is cut",
			Record{Time: at, Input: []byte(`"` + strings.Repeat("a", MaxInput) + `"`)},
			`{"time":"2026-05-04T03:02:01.00000012Z","verdict":"unknown","input":"\"` +
				strings.Repeat("a", MaxInput-1) + `","truncated":["input"]}`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := string(AppendJSON([]byte("before "), &test.record))
			if want := "before " + test.want + "\n"; got != want {
				t.Errorf("AppendJSON(%+v) =\n%swant\n%s", test.record, got, want)
			}
			if object := got[len("before "):]; !json.Valid([]byte(object)) {
				t.Errorf("AppendJSON(%+v) = %s; want valid JSON", test.record, object)
			}
		})
	}
}

func TestAppendJSONBoundsSteps(t *testing.T) {
	line := AppendJSON(nil, &Record{Steps: make([]Step, MaxSteps+3)})
	var got struct {
		Steps   []any `json:"steps"`
		Omitted int   `json:"steps_omitted"`
	}
	if err := json.Unmarshal(line, &got); err != nil {
		t.Fatalf("Unmarshal(%s) = %v; want nil", line, err)
	}
	if len(got.Steps) != MaxSteps || got.Omitted != 3 {
		t.Errorf("AppendJSON(%d steps) has %d steps, %d omitted; want %d, 3", MaxSteps+3, len(got.Steps), got.Omitted, MaxSteps)
	}
}

func TestAppendJSONDoesNotAllocate(t *testing.T) {
	r := typical()
	buf := make([]byte, 0, 4096)
	if got := testing.AllocsPerRun(100, func() { buf = AppendJSON(buf[:0], r) }); got != 0 {
		t.Errorf("AppendJSON allocates %v times; want 0", got)
	}
}

// Every enumerated value has a name of its own: records and metric labels
// would otherwise say the same of different things.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for v := VerdictPass; v <= VerdictChanged; v++ {
		seen["verdict "+v.String()] = true
	}
	for o := OutcomePass; o <= OutcomeNotCalled; o++ {
		seen["outcome "+o.String()] = true
	}
	for d := DedupeMiss; d <= DedupeConflict; d++ {
		seen["dedupe "+d.String()] = true
	}
	if want := 4 + 11 + 4; len(seen) != want || seen["verdict unknown"] || seen["outcome unknown"] || seen["dedupe "] {
		t.Errorf("names = %v; want %d distinct ones, none unknown", seen, want)
	}
	for _, name := range []string{"drop", "block"} {
		if o, ok := ParseOverflow(name); !ok || o.String() != name {
			t.Errorf("ParseOverflow(%q) = %v, %v; want %s, true", name, o, ok, name)
		}
	}
	if _, ok := ParseOverflow("Drop"); ok {
		t.Error(`ParseOverflow("Drop") = _, true; want false`)
	}
}

// oracle is the record as encoding/json would write it.
type oracle struct {
	Time         string       `json:"time"`
	Tenant       string       `json:"tenant,omitempty"`
	EventID      string       `json:"event_id,omitempty"`
	Tool         string       `json:"tool,omitempty"`
	Verdict      string       `json:"verdict"`
	Synthetic    bool         `json:"synthetic,omitempty"`
	Reason       string       `json:"reason,omitempty"`
	ErrorCode    int32        `json:"error_code,omitempty"`
	Generation   uint64       `json:"generation,omitempty"`
	DurationUS   int64        `json:"duration_us,omitempty"`
	Input        any          `json:"input,omitempty"`
	Truncated    []string     `json:"truncated,omitempty"`
	Steps        []oracleStep `json:"steps,omitempty"`
	StepsOmitted int          `json:"steps_omitted,omitempty"`
}

type oracleStep struct {
	Outcome   string   `json:"outcome"`
	Backend   string   `json:"backend,omitempty"`
	Failure   string   `json:"failure,omitempty"`
	Detail    string   `json:"detail,omitempty"`
	Truncated []string `json:"truncated,omitempty"`
}

func FuzzAppendJSON(f *testing.F) {
	f.Add("acme", "e-1", "Bash", "No.", []byte(`{"a":[1,2]}`), int64(0), int32(0), uint8(1))
	f.Add("\xff\xfe", "\u2028", strings.Repeat("é", 300), "\x00\"", []byte("nul"), int64(-1), int32(-32700), uint8(200))
	f.Add("", "", strings.Repeat("\x80", 300), "", []byte("\r"), int64(math.MinInt64), int32(1), uint8(0))
	f.Fuzz(func(t *testing.T, tenant, id, tool, reason string, input []byte, nanos int64, code int32, enum uint8) {
		r := Record{
			Time: time.Unix(0, nanos), Tenant: tenant, EventID: id, Tool: tool, Reason: reason, Input: input,
			Verdict: Verdict(enum), Dedupe: Dedupe(enum), Synthetic: enum&1 == 1, ErrorCode: code,
			Generation: uint64(nanos), Duration: time.Duration(nanos),
			Steps: []Step{{Backend: tenant, Outcome: Outcome(enum), Class: ahp.FailureClass(enum), Detail: reason}},
		}
		line := AppendJSON(nil, &r)
		if bytes.IndexByte(line, '\n') != len(line)-1 || strings.ContainsAny(string(line[:len(line)-1]), "\r\x7f\x00") {
			t.Fatalf("AppendJSON = %q; want one line without controls", line)
		}
		var got oracle
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("Unmarshal(AppendJSON) = %v for %q; want nil", err, line)
		}
		want := oracle{
			Time: r.Time.UTC().Format(time.RFC3339Nano), Tenant: cutString(tenant, MaxString),
			EventID: cutString(id, MaxString), Tool: cutString(tool, MaxString), Verdict: r.Verdict.String(),
			Synthetic: r.Synthetic, Reason: cutString(reason, MaxString), ErrorCode: code, Generation: r.Generation,
			DurationUS: r.Duration.Microseconds(), Input: got.Input, Truncated: got.Truncated,
			Steps: []oracleStep{{
				Outcome: r.Steps[0].Outcome.String(), Backend: cutString(tenant, MaxString),
				Detail: cutString(reason, MaxString), Truncated: got.Steps[0].Truncated,
			}},
		}
		if r.Steps[0].Class != ahp.NoFailure {
			want.Steps[0].Failure = r.Steps[0].Class.String()
		}
		encoded, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var normal oracle
		if err := json.Unmarshal(encoded, &normal); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, normal) {
			t.Errorf("AppendJSON = %+v; want %+v", got, normal)
		}
		cut := 0
		for _, s := range []string{tenant, id, tool, reason} {
			if len(s) > MaxString {
				cut++
			}
		}
		if len(input) > MaxInput {
			cut++
		}
		if len(got.Truncated) != cut {
			t.Errorf("AppendJSON truncated = %v; want %d members", got.Truncated, cut)
		}
	})
}
