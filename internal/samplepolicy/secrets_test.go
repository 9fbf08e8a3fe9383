package samplepolicy

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// The credentials here are made up and put together at run time, so that the
// scanners of code hosts do not take this file for a leak.
func TestSecrets(t *testing.T) {
	letters := strings.Repeat("aB3dE6gH9j", 9)
	jwt := "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiJleGFtcGxlIn0." + letters[:43]
	h := Secrets()
	for name, in := range map[string]string{
		"AWS id":           "AKIA" + "ABCDEFGHIJ234567",
		"AWS temporary id": "id=ASIA" + "ABCDEFGHIJ234567 region=x",
		"AWS secret":       "aws_secret_access_key = " + letters[:40],
		"AWS secret, env":  `export AWS_SECRET_ACCESS_KEY="` + letters[:40] + `"`,
		"GitHub":           "ghp" + "_" + letters[:36],
		"GitHub in a URL":  "https://x:ghs" + "_" + letters[:36] + "@github.com/o/r",
		"GitHub after _":   "TOKEN_gho" + "_" + letters[:36],
		"GitHub PAT":       "github" + "_pat_" + letters[:22] + "_" + letters[:59],
		"OpenAI":           "s" + "k-" + letters[:48],
		"OpenAI project":   "s" + "k-proj-" + letters[:30] + "_" + letters[:30],
		"Anthropic":        "x-api-key: s" + "k-ant-api03-" + letters[:40] + "-" + letters[:20],
		"Slack":            "xo" + "xb-123456789012-" + letters[:24],
		"PEM":              "-----BEGIN " + "PRIVATE KEY-----\nMII",
		"PEM RSA":          "-----BEGIN RSA " + "PRIVATE KEY-----",
		"PEM OpenSSH":      "-----BEGIN OPENSSH " + "PRIVATE KEY-----",
		"PGP":              "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----",
		"JWT":              "Authorization: Bearer " + jwt,
	} {
		c := call{kind: "file_write", name: "Write", input: map[string]any{"edits": []any{map[string]any{"text": in}}}}
		if got := decide(t, h, c); got != "io.ahp-gateway.demo.secret" {
			t.Errorf("Secrets(%s) = %q; want a denial", name, got)
		}
		if d := h.(policy)(c); d != nil && strings.Contains(d.Reason, in[len(in)-8:]) {
			t.Errorf("Secrets(%s) reason = %q; want none of the secret", name, d.Reason)
		}
		if got := decide(t, h, call{input: map[string]any{in: 1}}); got == "" {
			t.Errorf("Secrets(%s as a member name) = no objection; want a denial", name)
		}
	}
	for _, in := range []string{
		"", "git status", "AKIA", "AKIAshort", "XAKIA" + "ABCDEFGHIJ234567", "ghp_short",
		"sk-learn", "sk-some-long-css-class-name-of-a-page", "task-" + letters[:30],
		"xoxo", "-----BEGIN PUBLIC KEY-----", "-----BEGIN CERTIFICATE-----",
		"eyJ.eyJ.x", "0123456789abcdef0123456789abcdef01234567",
	} {
		if got := decide(t, h, shell(in)); got != "" {
			t.Errorf("Secrets(%q) = %q; want no objection", in, got)
		}
	}
}

// A secret is found where the sender wrote it with escapes, and never answered.
func TestSecretsOverHTTP(t *testing.T) {
	body := strings.Replace(testdata(t, "passed-0.1.json"), "git push", `\u0041KIA`+"ABCDEFGHIJ234567", 1)
	rec := httptest.NewRecorder()
	Secrets().ServeHTTP(rec, post(body))
	if got := rec.Body.String(); !strings.Contains(got, `"type":"deny"`) || strings.Contains(got, "ABCDEFGHIJ") {
		t.Errorf("Secrets(escaped AWS id) = %s; want a denial that does not quote it", got)
	}
}

func BenchmarkSecrets(b *testing.B) {
	h := Secrets().(policy)
	for name, c := range map[string]call{
		"short": shell("git push origin main"),
		"1MiB":  shell(strings.Repeat("sk-some eyJabc xoxb AKIA ", 1<<20/25)),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h(c)
			}
		})
	}
}
