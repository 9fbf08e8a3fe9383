package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
)

// metrics serves what gather writes, for Prometheus to scrape. gather returns
// the media type, which depends on the request's Accept header.
func metrics(log *slog.Logger, gather func(w io.Writer, accept string) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The media type is known only once everything has been written, and a
		// scrape that failed half-way must not look like a whole one.
		var body bytes.Buffer
		mediaType, err := gather(&body, r.Header.Get("Accept"))
		if err != nil {
			log.Warn("metrics are incomplete", "error", err)
		}
		if body.Len() == 0 {
			http.Error(w, "no metrics could be gathered", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		_, _ = w.Write(body.Bytes())
	})
}
