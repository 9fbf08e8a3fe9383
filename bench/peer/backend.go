package peer

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

// Script is how a backend behaves. The zero value answers every hooks/intercept
// at once with no effects.
type Script struct {
	// Effects is the raw effects array of what is neither denied nor failed.
	// Default: [].
	Effects string
	// Deny and Fail are the shares of requests that are denied and answered
	// with status 503, from 0 to 1.
	Deny, Fail float64
	// Delay is how long an answer takes, in the mean: Exponential draws each
	// from an exponential distribution.
	Delay       time.Duration
	Exponential bool
}

// Backend serves a policy backend on l until that is closed. What it does with
// a request depends on Script and chance alone.
func Backend(l net.Listener, s Script) error {
	if s.Effects == "" {
		s.Effects = "[]"
	}
	pass := []byte(`"effects":` + s.Effects + `}}`)
	deny := []byte(`"effects":[{"type":"deny","reason":"against the policy"}]}}`)
	server := &fasthttp.Server{
		NoDefaultServerHeader: true, NoDefaultDate: true, MaxRequestBodySize: 16 << 20, ReadBufferSize: 16 << 10,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if s.Delay > 0 {
				time.Sleep(s.delay())
			}
			chance := 1.0
			if s.Deny > 0 || s.Fail > 0 {
				chance = rand.Float64()
			}
			if chance < s.Fail {
				ctx.SetStatusCode(fasthttp.StatusServiceUnavailable)
				return
			}
			body := ctx.PostBody()
			id := member(body, `"id":`)
			if id == nil {
				ctx.SetStatusCode(fasthttp.StatusNoContent)
				return
			}
			ctx.SetContentType("application/json")
			answer := &ctx.Response
			answer.AppendBodyString(`{"jsonrpc":"2.0","id":`)
			answer.AppendBody(id)
			answer.AppendBodyString(`,"result":{"protocolVersion":`)
			answer.AppendBody(member(body, `"protocolVersion":`))
			answer.AppendBodyString(",")
			if chance < s.Fail+s.Deny {
				answer.AppendBody(deny)
			} else {
				answer.AppendBody(pass)
			}
		},
	}
	return closed(server.Serve(l))
}

// delay returns how long one answer takes.
func (s Script) delay() time.Duration {
	if !s.Exponential {
		return s.Delay
	}
	return time.Duration(float64(s.Delay) * -math.Log(1-rand.Float64()))
}

// member returns the string behind the first name in a message that the load
// generator has made.
func member(body []byte, name string) []byte {
	i := bytes.Index(body, []byte(name))
	if i < 0 || i+len(name) >= len(body) || body[i+len(name)] != '"' {
		return nil
	}
	value := body[i+len(name):]
	end := bytes.IndexByte(value[1:], '"')
	if end < 0 {
		return nil
	}
	return value[:end+2]
}

// Sink takes any POST, such as traces by OTLP.
func Sink(l net.Listener) error {
	server := &fasthttp.Server{MaxRequestBodySize: 64 << 20, Handler: func(ctx *fasthttp.RequestCtx) {
		ctx.SetContentType(string(ctx.Request.Header.ContentType()))
	}}
	return closed(server.Serve(l))
}

// closed is err, or nil where it says that the listener was closed.
func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// ParseDelay reads "5ms", or "exp:5ms" for an exponential distribution.
func (s *Script) ParseDelay(text string) (err error) {
	text, s.Exponential = strings.CutPrefix(text, "exp:")
	if s.Delay, err = time.ParseDuration(text); err != nil {
		return errors.New("peer: a delay is a duration or exp: and a duration, not " + strconv.Quote(text))
	}
	return nil
}
