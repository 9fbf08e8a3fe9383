package ahp

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// requestOf returns a request of about n bytes of which most is tool input:
// source text with the escapes that such text has.
func requestOf(b *testing.B, path string, n int) []byte {
	b.Helper()
	line := `\tif err != nil {\n\t\treturn fmt.Errorf(\"read: %w\", err) // what a tool call writes to a file\n\t}\n`
	good := message(b, path)
	const input = `{"command":"ls -la"`
	if !bytes.Contains(good, []byte(input)) {
		b.Fatalf("%s has no %s", path, input)
	}
	text := strings.Repeat(line, max(0, n-len(good))/len(line))
	return bytes.Replace(good, []byte(input), []byte(input+`,"content":"`+text+`"`), 1)
}

func BenchmarkDecode(b *testing.B) {
	for _, path := range []string{intercept01, interceptDraft} {
		for _, size := range []int{512, 64 << 10, 1 << 20} {
			body := requestOf(b, path, size)
			version := strings.Split(path, "/")[1]
			b.Run(fmt.Sprintf("%s/%d", version, size), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				var m Message
				for b.Loop() {
					if err := Decode(body, &m); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDecodeDraft has an event of each kind: content, rules, capabilities.
func BenchmarkDecodeDraft(b *testing.B) {
	for _, path := range deepDraft {
		body := message(b, path)
		b.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var m Message
			for b.Loop() {
				if err := Decode(body, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCheckEffect is a modification with a message.
func BenchmarkCheckEffect(b *testing.B) {
	effect := []byte(`{"type":"modify","target":"prompt","operation":"merge","value":[{"id":"m","role":"user","parts":[{"id":"p","kind":"text","mediaType":"text/plain","selection":"body","text":"Be brief."}]}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, wrong := TurnStart.CheckEffect(effect); wrong != "" {
			b.Fatal(wrong)
		}
	}
}

// BenchmarkDecodeMembers is the dear case: much structure and little text.
func BenchmarkDecodeMembers(b *testing.B) {
	for _, members := range []int{16, 1024} {
		var input strings.Builder
		for i := range members {
			fmt.Fprintf(&input, `,"member%d":[%d,{"a":null,"b":true}]`, i, i)
		}
		body := bytes.Replace(message(b, intercept01), []byte(`{"command":"ls -la"`), []byte(`{"command":"ls -la"`+input.String()), 1)
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			var m Message
			for b.Loop() {
				if err := Decode(body, &m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecodeResponse(b *testing.B) {
	for _, path := range []string{empty01, deny01} {
		b.Run(filepath.Base(path), func(b *testing.B) {
			call := callOf(path)
			r := Response{Body: message(b, path)}
			b.SetBytes(int64(len(r.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if f := DecodeResponse(call, &r); !f.OK() {
					b.Fatal(f)
				}
			}
		})
	}
}

// BenchmarkCompose sends one request as it is and cuts the other.
func BenchmarkCompose(b *testing.B) {
	for _, path := range []string{intercept01, interceptFull01} {
		b.Run(filepath.Base(path), func(b *testing.B) {
			var m Message
			if err := Decode(message(b, path), &m); err != nil {
				b.Fatal(err)
			}
			dst, shown := make([]byte, 0, 2*len(m.Body)), make([]byte, 0, 2*len(m.Body))
			b.SetBytes(int64(len(m.Body)))
			b.ReportAllocs()
			for b.Loop() {
				m.Compose(dst[:0], m.Shown(shown[:0], m.Event.Raw, View{}), m.Capabilities.Raw, m.State)
			}
		})
	}
}

func BenchmarkAppendResult(b *testing.B) {
	dst, deny := make([]byte, 0, 1024), make([]byte, 0, 256)
	id := []byte(`"evt-1"`)
	b.ReportAllocs()
	for b.Loop() {
		deny = AppendDeny(deny[:0], "Force pushes are not allowed here.", "com.example.policy.push")
		dst = AppendResult(dst[:0], id, V01, deny)
	}
}
