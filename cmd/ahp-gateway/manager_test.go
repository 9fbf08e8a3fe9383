//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A service manager hears when events are served, and when that ends.
func TestServiceManager(t *testing.T) {
	// Paths of sockets are short, and those of a test's folder need not be.
	dir, err := os.MkdirTemp("", "ahp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	heard := func(want string) {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 64)
		n, err := conn.Read(got)
		if err != nil || string(got[:n]) != want {
			t.Errorf("the manager hears %q, %v; want %q", got[:n], err, want)
		}
	}
	t.Setenv("NOTIFY_SOCKET", socket)
	gateway := filepath.Join(folder(t, "gateway.yaml", openFile(onePolicy("http://127.0.0.1:1"))), "gateway.yaml")
	p := launch(t, "serve", "--config", gateway)
	heard("READY=1")
	if url, _ := p.urls(); url == "" {
		t.Error("ready, and no listener")
	}
	p.quit()
	heard("STOPPING=1")

	// One that has gone keeps nobody from serving.
	t.Setenv("NOTIFY_SOCKET", filepath.Join(dir, "gone"))
	p = launch(t, "serve", "--config", gateway)
	p.urls()
	p.stderr.await(t, `the service manager could not be told`, 1)
	p.quit()
}
