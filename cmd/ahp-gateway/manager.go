package main

import (
	"log/slog"
	"net"
	"os"
	"time"
)

// tellManager tells the service manager that started this process how it stands,
// in the words of sd_notify(3). Where none asks for it, NOTIFY_SOCKET is not set
// and nothing is done. A manager that does not listen is no failure.
func tellManager(log *slog.Logger, state string) {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return
	}
	// A path that begins with @ is of the abstract namespace, which is what
	// package net makes of it too.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		if err = conn.SetWriteDeadline(time.Now().Add(time.Second)); err == nil {
			_, err = conn.Write([]byte(state))
		}
	}
	if err != nil {
		log.Warn("the service manager could not be told", "state", state, "error", err)
	}
}
