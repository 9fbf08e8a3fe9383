package main

import (
	"io"
	"log/slog"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// newLogger returns the process log. What l holds has been validated; an empty
// level is info and an empty format is text.
func newLogger(w io.Writer, l config.Log) *slog.Logger {
	o := &slog.HandlerOptions{Level: levels[l.Level]}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// levels are the log levels by name; an unknown name is info.
var levels = map[string]slog.Level{
	"debug": slog.LevelDebug,
	"info":  slog.LevelInfo,
	"warn":  slog.LevelWarn,
	"error": slog.LevelError,
}
