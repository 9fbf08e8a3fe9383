package gateway

import (
	"fmt"
	"log/slog"

	"github.com/valyala/fasthttp"

	"github.com/ahp-gateway/ahp-gateway/config"
)

// newPublic returns the server of the public listener: everything that fasthttp
// leaves unbounded by default is bounded.
func (g *Gateway) newPublic(f *config.File) *fasthttp.Server {
	return &fasthttp.Server{
		Handler:                      g.handle,
		ErrorHandler:                 g.unreadable,
		Name:                         "ahp-gateway",
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		ReadBufferSize:               f.Limits.Headers,
		MaxRequestBodySize:           f.Limits.Body,
		ReadTimeout:                  f.Limits.ReadTimeout,
		WriteTimeout:                 f.Limits.WriteTimeout,
		IdleTimeout:                  f.Limits.IdleTimeout,
		Concurrency:                  f.Limits.Connections,
		DisablePreParseMultipartForm: true,
		SecureErrorLogMessage:        true,
		CloseOnShutdown:              true,
		TCPKeepalive:                 true,
		Logger:                       serverLog{g.log},
	}
}

// serverLog takes fasthttp's own messages, which are about connections. Errors
// in them may quote what a caller sent, a credential as well as anything else:
// they stay out.
type serverLog struct{ log *slog.Logger }

func (l serverLog) Printf(format string, args ...any) {
	for i, a := range args {
		if _, ok := a.(error); ok {
			args[i] = "(error withheld)"
		}
	}
	l.log.Debug(fmt.Sprintf(format, args...), "component", "http")
}
