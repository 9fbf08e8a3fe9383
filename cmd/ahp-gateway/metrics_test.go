package main

import (
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestMetrics(t *testing.T) {
	for _, c := range []struct {
		text   string
		err    error
		status int
		body   string
		log    string
	}{
		{"a 1\n", nil, 200, "a 1\n", ""},
		{"a 1\n", errors.New("b is broken"), 200, "a 1\n", "b is broken"},
		{"", errors.New("all is broken"), 500, "no metrics could be gathered\n", "all is broken"},
	} {
		log := newOutput()
		h := metrics(slog.New(slog.NewTextHandler(log, nil)), func(w io.Writer, accept string) (string, error) {
			_, _ = io.WriteString(w, c.text)
			return "text/plain; wanted=" + accept, c.err
		})
		req := httptest.NewRequest("GET", "/metrics", nil)
		req.Header.Set("Accept", "this")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != c.status || w.Body.String() != c.body || !strings.Contains(log.String(), c.log) || (c.log == "") != (log.String() == "") {
			t.Errorf("metrics that gather %q, %v = %d, %q, log %q; want %d, %q, %q", c.text, c.err, w.Code, w.Body, log, c.status, c.body, c.log)
		}
		if got := w.Header().Get("Content-Type"); c.status == 200 && got != "text/plain; wanted=this" {
			t.Errorf("metrics have Content-Type %q; want that of what was gathered", got)
		}
	}
}
