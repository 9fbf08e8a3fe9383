package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestHideQuery(t *testing.T) {
	for query, want := range map[string]string{
		"":                                       "",
		"version=3&a=b":                          "version=3&a=b",
		"version=3;a=b":                          "version=3;a=b",
		"token=hunter2":                          "token=redacted",
		"token=hunter2;x=1":                      "token=redacted",
		"a=b&api_key=hunter2&c=d":                "a=b&api_key=redacted&c=d",
		"a=b;api_key=hunter2":                    "a=b;api_key=redacted",
		"a=b;api_key=hun;ter2&c=d":               "a=b;api_key=redacted&c=d",
		"a=b;c=d;%61pi_key=hunter2":              "a=b;c=d;%61pi_key=redacted",
		"a=b;%zz=hunter2":                        "a=b;%zz=redacted",
		"code=hunter2":                           "code=redacted",
		"pass=hunter2":                           "pass=redacted",
		"db_pwd=hunter2":                         "db_pwd=redacted",
		"a=sk-hunter2":                           "a=redacted",
		"a=b;c=sk-hunter2":                       "a=b;c=redacted",
		"a=abcdefghijkl0123456789mnop":           "a=redacted",
		"a=abcdefghijkl0123456789mnop;b=c":       "a=redacted",
		"country-code=nl&compass=north&encode=1": "country-code=nl&compass=north&encode=1",
		"a":                                      "a",
		"token=;x=hunter2":                       "token=redacted",
		"token=":                                 "token=",
	} {
		url := "https://policy.example.com/ahp"
		if query != "" {
			query, want = "?"+query, "?"+want
		}
		got := hideQuery(url + query)
		if got != url+want || hideQuery(got) != got {
			t.Errorf("hideQuery(%s) = %s, and of that %s; want %s", url+query, got, hideQuery(got), url+want)
		}
	}
}

// What stands in a document literally and could be a credential is hidden, and
// refused by those who must not set one.
func TestLiteralCredentials(t *testing.T) {
	hook := func(url, headers, more string) string {
		return fmt.Sprintf(`{"id": "x", "registration": {"protocolVersion": "draft", "hooks": [{"id": "com.example.p", "transport": {"type": "http", "url": %q, "headers": {%s}}%s}]}}`, url, headers, more)
	}
	resource := func(uri string) string {
		return hook("https://h.example/", "", fmt.Sprintf(`, "authentication": {"type": "oauth", "flow": "client_credentials", "issuer": "https://i.example", "resource": %q, "clientId": "c", "clientSecretRef": "x"}`, uri))
	}
	for doc, want := range map[string]int{
		hook("https://h.example/?a=b", `"X-Team": "platform"`, ""):         0,
		resource("https://h.example/?a=b"):                                 0,
		hook("https://h.example/?a=b;api_key=hunter2", "", ""):             1,
		hook("https://h.example/?code=hunter2", `"X-Pass": "hunter2"`, ""): 2,
		hook("https://h.example/", `"PWD": "hunter2"`, ""):                 1,
		resource("https://h.example/?api_key=hunter2"):                     1,
	} {
		d, err := ParseTenant("", []byte(doc))
		if err != nil {
			t.Fatal(err)
		}
		shown := d.Redacted()
		if got := len(d.LiteralCredentials()); got != want || strings.Contains(string(shown.JSON()), "hunter2") || len(shown.LiteralCredentials()) != want {
			t.Errorf("LiteralCredentials of %s: %d, and %d of what is shown, %s; want %d", doc, got, len(shown.LiteralCredentials()), shown.JSON(), want)
		}
	}
}
