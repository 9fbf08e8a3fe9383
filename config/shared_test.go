package config

import (
	"testing"
	"time"
)

func TestSharedURL(t *testing.T) {
	for url, want := range map[string]Redis{
		"redis://127.0.0.1":                {Address: "127.0.0.1:6379"},
		"redis://redis.example.com:7000/2": {Address: "redis.example.com:7000", Database: 2},
		"rediss://[::1]/0":                 {Address: "[::1]:6379", TLS: true},
		"redis://localhost/":               {Address: "localhost:6379"},
	} {
		want.URL, want.Timeout, want.Prefix = url, 50*time.Millisecond, "ahp"
		f, warnings, err := Parse("gateway.yaml", []byte("shared: {redis: {url: \""+url+"\"}}\nregistration: "+minimalRegistration), testEnv)
		if err != nil {
			t.Errorf("Parse(%s) = %v; want no mistake", url, err)
			continue
		}
		if f.Shared != (Shared{Redis: want, OnFailure: "local"}) {
			t.Errorf("Parse(%s).Shared = %+v; want %+v", url, f.Shared, want)
		}
		plain := !want.TLS && want.Address == "redis.example.com:7000"
		if len(warnings) > 0 != plain {
			t.Errorf("Parse(%s) warns %v; want a warning only of plain text on a network", url, warnings)
		}
	}
	if f, _, err := Parse("gateway.yaml", []byte("registration: "+minimalRegistration), testEnv); err != nil || f.Shared != (Shared{}) {
		t.Errorf("Parse(without shared) = %+v, %v; want none", f, err)
	}
}
