package audit

import (
	"strings"
	"testing"
	"time"
)

// discard is a sink that costs nothing.
type discard struct{}

func (discard) Write([]byte) error { return nil }
func (discard) Flush() error       { return nil }
func (discard) Close() error       { return nil }

// typical is a denied tool call of a chain of one.
func typical() *Record {
	return &Record{
		Time: time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC), Tenant: "acme", Version: "0.1",
		Method: "hooks/intercept", EventID: "0197c3a2-6f0e-7cc1-9a55-0c5d1f0a7e11",
		Source: "urn:example:agent:7", EventType: "tool.before", SessionID: "0197c3a2-6f0e-7cc1-9a55-000000000001",
		CallID: "call-42", Tool: "Bash", Verdict: VerdictDeny, Code: "com.example.policy.force_push",
		Reason: "Force-push to a protected branch.", DeniedBy: "com.example.policy", Subscription: "shell",
		Steps: []Step{{
			Backend: "com.example.policy", Subscription: "shell", Outcome: OutcomeDeny, Duration: 812 * time.Microsecond,
		}},
		Dedupe: DedupeMiss, Generation: 3, Duration: 1034 * time.Microsecond,
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736",
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	r := typical()
	buf := AppendJSON(nil, r)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendJSON(buf[:0], r)
	}
}

func BenchmarkPut(b *testing.B) {
	q := NewQueue(discard{}, DefaultSize, Block, nil)
	r := typical()
	b.ReportAllocs()
	for b.Loop() {
		q.Put(nil, r)
	}
	if err := q.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkPutFull is the cost of a record that is dropped.
func BenchmarkPutFull(b *testing.B) {
	sink := newGated()
	q := NewQueue(sink, 1, Drop, nil)
	r := typical()
	q.Put(nil, r)
	<-sink.entered
	q.Put(nil, r)
	b.ReportAllocs()
	for b.Loop() {
		q.Put(nil, r)
	}
	sink.open()
	if err := q.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkArenaCopy is the same with all strings in one allocation.
func BenchmarkArenaCopy(b *testing.B) {
	r := typical()
	var arena []byte
	b.ReportAllocs()
	for b.Loop() {
		c := *r
		fields := [...]*string{
			&c.EventID, &c.Source, &c.EventType, &c.SessionID, &c.CallID, &c.Tool, &c.Code, &c.Reason, &c.TraceID,
		}
		arena = arena[:0]
		for _, s := range fields {
			arena = append(arena, cutString(*s, MaxString)...)
		}
		all := string(arena)
		for _, s := range fields {
			n := min(len(*s), MaxString)
			*s, all = all[:n], all[n:]
		}
		c.Steps = append([]Step(nil), c.Steps...)
		copied = &c
	}
}

// BenchmarkDeepCopy is what Put would have to do before it could leave the
// encoding to the queue's own goroutine.
func BenchmarkDeepCopy(b *testing.B) {
	r := typical()
	b.ReportAllocs()
	for b.Loop() {
		c := *r
		for _, s := range []*string{
			&c.EventID, &c.Source, &c.EventType, &c.SessionID, &c.CallID, &c.Tool, &c.Code, &c.Reason, &c.TraceID,
		} {
			*s = strings.Clone(*s)
		}
		c.Steps = append([]Step(nil), c.Steps...)
		for i := range c.Steps {
			c.Steps[i].Detail = strings.Clone(c.Steps[i].Detail)
		}
		copied = &c
	}
}

var copied *Record

func BenchmarkRedactInput(b *testing.B) {
	input := []byte(`{"command":"curl -H 'Authorization: Bearer abcdefgh12345678' https://example.com/v1","timeout":30,` +
		`"env":{"API_KEY":"k","PATH":"/usr/bin"},"description":"` + strings.Repeat("words and more ", 20) + `"}`)
	var out []byte
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		out = RedactInput(out[:0], input)
	}
}

// BenchmarkRedactInputLarge shows that the cost is bounded however large and
// dense the input is.
func BenchmarkRedactInputLarge(b *testing.B) {
	input := []byte(`["` + strings.Repeat(strings.Repeat(`eyJabcdefghijklmnopqrst.`, 60)+`","`, 700) + `"]`)
	var out []byte
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		out = RedactInput(out[:0], input)
	}
}
