package gateway

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/pprof"
	"time"
)

// privateConnections bounds the connections of the private listener: whoever may
// connect to it must not take the file descriptors and the memory of those who are
// served.
const privateConnections = 256

// newPrivate returns the server of the private listener.
func (g *Gateway) newPrivate(address net.Addr) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !g.ready.Load() {
			plain(w, http.StatusServiceUnavailable, "draining")
			return
		}
		if g.missesTenants() && len(g.current.Load().parties) == 0 {
			plain(w, http.StatusServiceUnavailable, "no tenant is known yet"+g.stored().trouble())
			return
		}
		state := "ready"
		if g.stats.lastGood.Load() {
			state = "ready, with the last good configuration: the present one has a mistake"
		}
		state += g.stats.trouble() + g.common.trouble()
		if g.stored != nil {
			state += g.stored().trouble()
		}
		plain(w, http.StatusOK, state)
	})
	if g.metrics != nil {
		mux.Handle("GET /metrics", g.metrics)
	}
	mux.HandleFunc("GET /admin/config", func(w http.ResponseWriter, _ *http.Request) {
		f := g.current.Load().file
		w.Header().Set("Content-Type", "application/yaml")
		for _, setting := range needRestart(g.started, f) {
			_, _ = w.Write([]byte("# takes a restart and is not in use yet: " + setting + "\n"))
		}
		_, _ = w.Write(f.Print())
	})
	mux.HandleFunc("GET /admin/backends", g.backends)
	mux.HandleFunc("GET /admin/tenants/usage", g.usage)
	mux.HandleFunc("GET /admin/credentials", g.credentials)
	if g.adminAPI != nil {
		mux.Handle("/admin/v1/", g.adminAPI)
	}
	if onLoopback(address) { // a profile costs processor time, and a heap holds much
		mux.HandleFunc("GET /debug/pprof/", pprof.Index)
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return &http.Server{
		Handler:           sameHost(g.knownClients(mux), address),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          newPrivateLog(g.log),
	}
}

// sameHost refuses requests that name another host where the listener is on
// loopback: a page in a browser can have its own name resolve to it.
func sameHost(next http.Handler, address net.Addr) http.Handler {
	if !onLoopback(address) {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLoopback("http://" + r.Host) {
			plain(w, http.StatusMisdirectedRequest, "not this host")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func onLoopback(address net.Addr) bool {
	a, ok := address.(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

// backends tells the state of every backend, for people and scripts.
func (g *Gateway) backends(w http.ResponseWriter, _ *http.Request) {
	type row struct {
		Tenant   string `json:"tenant"`
		Backend  string `json:"backend"`
		Breaker  string `json:"breaker"`
		InFlight int    `json:"in_flight"`
		Queued   int    `json:"queued"`
		// Discovery is "done", or the failure for which the backend is skipped
		// or keeps its earlier subscriptions; left out where the registration lists the subscriptions.
		Discovery string `json:"discovery,omitempty"`
	}
	snap := g.current.Load()
	answer := struct {
		Generation uint64 `json:"generation"`
		Backends   []row  `json:"backends"`
	}{Generation: snap.generation, Backends: []row{}}
	for _, p := range snap.parties {
		discovered := make(map[*peer]string)
		for _, d := range p.discovered {
			discovered[d.peer] = d.String()
		}
		for _, b := range p.peers {
			answer.Backends = append(answer.Backends, row{b.tenant, b.id, b.breaker.State().String(), b.breaker.InFlight(), b.courier.waiting(), discovered[b]})
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}
