package audit

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRedactInput(t *testing.T) {
	jwt := "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
	pem := `-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBg\n-----END PRIVATE KEY-----`
	tests := []struct{ name, input, want string }{
		{"shape is kept", ` { "a" : [ 1 , -2.5e3 , true , false , null , "x" , { } , [ ] ] } `, `{"a":[1,-2.5e3,true,false,null,"x",{},[]]}`},
		{"scalar", ` "x" `, `"x"`},
		{"order and duplicates are kept", `{"b":1,"a":2,"b":3}`, `{"b":1,"a":2,"b":3}`},
		{"secret names", `{"password":"p","API-Key":1,"x":{"authToken":{"deep":[1]},"Set-Cookie":["a"]},"y":2}`,
			`{"password":"[redacted]","API-Key":"[redacted]","x":{"authToken":"[redacted]","Set-Cookie":"[redacted]"},"y":2}`},
		{"escaped name", `{"p\u0061ssword":"p"}`, `{"password":"[redacted]"}`},
		{"short names are whole", `{"auth":1,"author":"me","pin":1,"spinner":2}`,
			`{"auth":"[redacted]","author":"me","pin":"[redacted]","spinner":2}`},
		{"jwt", `{"c":"echo ` + jwt + ` done"}`, `{"c":"echo [redacted] done"}`},
		{"credential as a name", `{"` + jwt + `":1}`, `{"[redacted]":1}`},
		{"aws", `["AKIAABCDEFGHIJKLMNOP"]`, `["[redacted]"]`},
		{"escaped credential", `["\u0041KIAABCDEFGHIJKLMNOP"]`, `["[redacted]"]`},
		{"github", `["ghp_abcdefghijklmnopqrstuvwxyz0123456789"]`, `["[redacted]"]`},
		{"sk", `["use sk-proj-abcdefghijklmnopqrst now"]`, `["use [redacted] now"]`},
		{"slack", `["xoxb-1234567890-abcdef"]`, `["[redacted]"]`},
		{"pem", `["a ` + pem + ` b"]`, `["a [redacted] b"]`},
		{"pem without end", `["a -----BEGIN RSA PRIVATE KEY-----\nMIIE"]`, `["a [redacted]"]`},
		{"bearer", `["curl -H 'X: Bearer abcdefgh12345678' /"]`, `["curl -H 'X: [redacted]' /"]`},
		{"overlapping", `["Authorization: Bearer abcdefgh12345678 x"]`, `["[redacted] x"]`},
		{"url", `["git clone https://me:hunter2@example.com/r"]`, `["git clone https[redacted]example.com/r"]`},
		{"assignment", `["DB_PASSWORD=hunter2 run"]`, `["DB_[redacted] run"]`},
		{"flag", `["run --api-key hunter2 x"]`, `["run [redacted] x"]`},
		{"plain words stay", `["list the keys: basic use of tokens"]`, `["list the keys: basic use of tokens"]`},
		{"not JSON", `{"a":`, `"[redacted]"`},
		{"nothing", ``, `"[redacted]"`},
		{"controls", `["\u0000\u2028\u202e"]`, `["\u0000\u2028\u202e"]`},
		{"long number", `[1,` + strings.Repeat("9", 100) + `,2]`, `[1,"[truncated]"]`},
		{"long string", `["` + strings.Repeat("a", 5000) + `",1]`, `["` + strings.Repeat("a", 1024) + `[truncated]",1]`},
		{"credential across the cut", `["` + strings.Repeat("a ", 506) + `AKIAABCDEFGHIJKLMNOP ` + strings.Repeat("b", 2000) + `"]`,
			`["` + strings.Repeat("a ", 506) + `[redacted][truncated]"]`},
		{"members that do not fit", `{"k":{"a":"` + strings.Repeat("x", 1020) + `","b":"` + strings.Repeat("x", 1020) +
			`","c":"` + strings.Repeat("x", 1020) + `","d":"` + strings.Repeat("x", 1024) + `","e":1}}`,
			`{"k":{"a":"` + strings.Repeat("x", 1020) + `","b":"` + strings.Repeat("x", 1020) +
				`","c":"` + strings.Repeat("x", 1020) + `","d":"[truncated]"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := string(RedactInput([]byte("before "), []byte(test.input))); got != "before "+test.want {
				t.Errorf("RedactInput(%s) = %s; want %s", test.input, got[len("before "):], test.want)
			}
		})
	}
}

// What RedactInput returns is what AppendJSON writes as it is.
func TestRedactInputIsWrittenRaw(t *testing.T) {
	input := RedactInput(nil, []byte(`{"command":"ls","token":"t"}`))
	line := string(AppendJSON(nil, &Record{Input: input}))
	if want := `"input":{"command":"ls","token":"[redacted]"}`; !strings.Contains(line, want) {
		t.Errorf("AppendJSON(Input: %s) = %s; want %s in it", input, line, want)
	}
}

func FuzzRedactInput(f *testing.F) {
	const secret = "AKIAABCDEFGHIJKLMNOP"
	f.Add([]byte(`{"a":"b"}`), "word ")
	f.Add([]byte(strings.Repeat("[", 200)+strings.Repeat("]", 200)), "")
	f.Add([]byte(strings.Repeat(`{"a":[`, 70)+`1`+strings.Repeat("]}", 70)), "\u2028")
	f.Add([]byte(`["`+strings.Repeat(`\u0000`, 3000)+`"]`), strings.Repeat("x ", 600))
	f.Add([]byte(`[`+strings.Repeat(`"",`, 3000)+`1]`), strings.Repeat("é ", 340))
	f.Fuzz(func(t *testing.T, input []byte, before string) {
		check := func(input []byte) []byte {
			got := RedactInput(nil, input)
			if len(got) > MaxInput || !json.Valid(got) || !utf8.Valid(got) || bytes.ContainsAny(got, "\n\r") {
				t.Fatalf("RedactInput(%q) = %q (%d bytes); want one line of valid JSON of at most %d bytes", input, got, len(got), MaxInput)
			}
			return got
		}
		check(input)
		planted, err := json.Marshal(map[string]any{"a": []string{before + " " + secret + " tail"}, "secret_x": before})
		if err != nil {
			t.Fatal(err)
		}
		if got := check(planted); bytes.Contains(got, []byte(secret[:8])) && !strings.Contains(before, secret[:8]) {
			t.Errorf("RedactInput(%s) = %s; want the secret masked", planted, got)
		}
	})
}
