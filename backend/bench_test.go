package backend

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/ahp-gateway/ahp-gateway/ahp"
	"github.com/ahp-gateway/ahp-gateway/internal/fakebackend"
)

// newBareClient returns a client to a server that answers requests of call's
// size and allocates nothing, so that a benchmark counts the client's own
// allocations.
func newBareClient(b *testing.B, call *ahp.Call) *Client {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { listener.Close() })
	c := newTestClient(b, loopback("http://"+listener.Addr().String()+"/hooks", nil))
	size := len(c.head.appendCall(nil, call)) + len(call.Body)
	answer := []byte(goodHead + "Content-Length: 75\r\n\r\n" + goodBody)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				request := make([]byte, size)
				for {
					if _, err := io.ReadFull(conn, request); err != nil {
						return
					}
					if _, err := conn.Write(answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return c
}

// BenchmarkInterceptAlone is one call over loopback with a server that costs
// as little as it can.
func BenchmarkInterceptAlone(b *testing.B) {
	call := newCall("e1", time.Hour)
	call.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	c := newBareClient(b, call)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		var resp ahp.Response
		for pb.Next() {
			if f := c.Intercept(call, &resp); !f.OK() {
				b.Errorf("Intercept = %v; want success", f)
				return
			}
		}
	})
}

// BenchmarkIntercept is one call over loopback, the fake backend included.
func BenchmarkIntercept(b *testing.B) {
	for _, size := range []int{0, 4 << 10, 64 << 10} {
		for _, secure := range []bool{false, true} {
			b.Run(fmt.Sprintf("extra=%d/tls=%v", size, secure), func(b *testing.B) {
				options := []fakebackend.Option{fakebackend.WithoutRecording()}
				if secure {
					options = append(options, fakebackend.WithTLS())
				}
				s := fakebackend.Start(b, options...)
				c := newTestClient(b, loopback(s.URL, s.Roots()))
				call := newCall("e1", time.Hour)
				call.Body = append(call.Body, bytes.Repeat([]byte(" "), size)...)
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					var resp ahp.Response
					for pb.Next() {
						if f := c.Intercept(call, &resp); !f.OK() {
							b.Errorf("Intercept = %v; want success", f)
							return
						}
					}
				})
			})
		}
	}
}
