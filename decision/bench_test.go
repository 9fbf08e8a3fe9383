package decision

import (
	"testing"

	"github.com/ahp-gateway/ahp-gateway/ahp"
)

const benchEvent = `{"type":"tool.before","tool":{"name":"shell","input":{"command":"ls -l","cwd":"/src"}},"path":"native"}`

// BenchmarkTurn is one backend's turn without a backend: its effects are
// admitted and folded into the state of a chain that has begun.
func BenchmarkTurn(b *testing.B) {
	for _, c := range []struct{ name, effects string }{
		{"none", `[]`},
		{"deny", `[{"type":"deny","reason":"Writes outside the workspace.","code":"com.example.outside"}]`},
		{"modify", `[{"type":"modify","target":"input","operation":"merge","value":{"cwd":"/tmp"}}]`},
		{"allow", `[{"type":"allow"},{"type":"message","text":"Read only."}]`},
	} {
		for _, v := range ahp.Versions {
			if v == ahp.V01 && c.name != "none" && c.name != "deny" {
				continue
			}
			b.Run(c.name+"/"+v.String(), func(b *testing.B) {
				r := respond(b, v, c.effects)
				terms := everything(ahp.ToolBefore)
				terms.Version = v
				event := []byte(benchEvent)
				var effects []Effect
				var state State
				state.Start(terms, event, nil)
				b.ReportAllocs()
				for b.Loop() {
					// Back to the turn before, which is what a pool does for less.
					state.Effects, state.buffer, state.Denied = state.Effects[:0], state.buffer[:0], false
					if state.owned() {
						state.Start(terms, event, nil)
					}
					var f ahp.Failure
					if effects, f = Admit(terms, event, r, effects[:0]); !f.OK() {
						b.Fatal(f)
					}
					state.Fold(effects, nil)
				}
			})
		}
	}
}

// BenchmarkStart is what a chain costs before its first turn.
func BenchmarkStart(b *testing.B) {
	caps := []byte(`{"effects":["deny","allow","ask","modify","message"],"modify":{"input":{"replace":true,"merge":true}}}`)
	event, state := []byte(benchEvent), []byte(`{"permission":"none","candidate":null}`)
	var s State
	b.ReportAllocs()
	for b.Loop() {
		terms := ParseTerms(ahp.Draft, ahp.ToolBefore, caps)
		s.Start(&terms, event, state)
	}
}

// BenchmarkAnswer is what a chain costs behind its last turn.
func BenchmarkAnswer(b *testing.B) {
	terms := everything(ahp.ToolBefore)
	for _, c := range []struct{ name, effects string }{
		{"none", `[]`},
		{"modify", `[{"type":"modify","target":"input","operation":"merge","value":{"cwd":"/tmp"}},{"type":"allow"}]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var s State
			s.Start(terms, []byte(benchEvent), nil)
			if f := fold(&s, terms, c.effects); !f.OK() {
				b.Fatal(f)
			}
			var space [8][]byte
			b.ReportAllocs()
			for b.Loop() {
				s.Answer(space[:0])
			}
		})
	}
}
