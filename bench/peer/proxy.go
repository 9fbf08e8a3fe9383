package peer

import (
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/valyala/fasthttp"
)

// connections is how many each proxy keeps to its backend.
const connections = 512

// FastHTTP serves on l a bare proxy to the backend, made of fasthttp's server and
// client. It calls the backend hops times for each request, one after the other,
// and answers with what came last.
func FastHTTP(l net.Listener, backend string, hops int) error {
	to, err := url.Parse(backend)
	if err != nil {
		return err
	}
	client := &fasthttp.HostClient{
		Addr: to.Host, MaxConns: connections, NoDefaultUserAgentHeader: true, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		MaxResponseBodySize: 16 << 20,
	}
	server := &fasthttp.Server{
		NoDefaultServerHeader: true, NoDefaultDate: true, MaxRequestBodySize: 16 << 20, ReadBufferSize: 16 << 10,
		Handler: func(ctx *fasthttp.RequestCtx) {
			ctx.Request.Header.Del(fasthttp.HeaderAuthorization) // a caller's credential is not a backend's
			ctx.Request.SetHost(to.Host)
			ctx.Request.URI().SetPath(to.Path)
			for range hops {
				if err := client.Do(&ctx.Request, &ctx.Response); err != nil {
					ctx.Error("bad gateway", fasthttp.StatusBadGateway)
					return
				}
			}
		},
	}
	return closed(server.Serve(l))
}

// NetHTTP serves on l the standard library's reverse proxy to the backend.
func NetHTTP(l net.Listener, backend string) error {
	to, err := url.Parse(backend)
	if err != nil {
		return err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.Proxy = connections, connections, nil
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL = to
			r.Out.Host = to.Host
			r.Out.Header.Del("Authorization")
		},
	}
	err = (&http.Server{Handler: proxy, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return closed(err)
}
