//go:build !linux

package load

import (
	"net"
	"time"
)

func precise() {}

func pause(d time.Duration) { time.Sleep(d) }

func blocking(c net.Conn) (net.Conn, error) { return c, nil }
