package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ahp-gateway/ahp-gateway/bench/load"
)

// plan is how much is measured.
type plan struct {
	workers, rounds, requests int
	only, out                 string
	program                   string // this one, if it is not the running one
	old                       string // what compare measures beside
}

// count returns the requests in a round of a cell.
func (p plan) count(c cell) int { return max(100, p.requests/max(1, c.scale)) }

// groupsOf are the groups that the commands measure.
var groupsOf = map[string][]string{
	"run":     {"base", "chain", "size", "features", "tenants", "faults", held},
	"peers":   {"peers", held},
	"compare": {"compare"},
	"check":   {"base", "chain", "size", "tenants"},
}

// held is the group of latencies at held rates.
const held = "held"

// check refuses what would measure nothing. rest are arguments that are no flags.
func (p plan) check(command string, rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("%s: %q is no flag", command, rest[0])
	case p.rounds < 1 || p.workers < 1 || p.requests < 100:
		return fmt.Errorf("%s: there have to be at least one round, one worker and 100 requests", command)
	}
	if p.only != "" {
		for _, name := range strings.Split(p.only, ",") {
			if !slices.Contains(groupsOf[command], name) {
				return fmt.Errorf("%s: -only: no group %q; there are %s", command, name, strings.Join(groupsOf[command], ", "))
			}
		}
	}
	return nil
}

func (p plan) wants(group string) bool {
	return p.only == "" || slices.Contains(strings.Split(p.only, ","), group)
}

// measure runs what the command of that name measures.
func measure(ctx context.Context, command string, p plan, log io.Writer) (*Results, error) {
	dir, err := os.MkdirTemp("", "ahp-gateway-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	l := &lab{ctx: ctx, dir: dir, self: p.program, gateway: filepath.Join(dir, "ahp-gateway"), workers: p.workers, log: log}
	if l.self == "" {
		if l.self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	if out, err := build(ctx, l.gateway, "./cmd/ahp-gateway"); err != nil {
		return nil, fmt.Errorf("the gateway cannot be built here: %w\n%s", err, out)
	}
	defer l.stopAll()
	r := &Results{Commit: commit(ctx), Date: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), OS: runtime.GOOS + "/" + runtime.GOARCH,
		CPU: processor(), Cores: runtime.NumCPU(), Workers: p.workers, Peers: map[string]string{}, Figures: map[string]Figure{}}
	groups := map[string][]group{
		"run":     {{"base", l.base}, {"chain", l.chain}, {"size", l.size}, {"features", l.features}, {"tenants", l.tenants}, {"faults", l.faults}},
		"peers":   {{"peers", l.peers}},
		"compare": {{"compare", l.compare}},
		"check":   {{"base", l.base}, {"chain", l.shortChain}, {"size", l.large}, {"tenants", l.tenants}},
	}[command]
	for _, g := range groups {
		if !p.wants(g.name) {
			continue
		}
		fmt.Fprintf(log, "%s: %s\n", time.Now().Format(time.TimeOnly), g.name)
		if err := g.measure(r, p); err != nil {
			return nil, fmt.Errorf("%s: %w", g.name, err)
		}
		l.stopAll()
	}
	if slices.Contains(groupsOf[command], held) && p.wants(held) {
		fmt.Fprintf(log, "%s: held rates\n", time.Now().Format(time.TimeOnly))
		if err := l.held(r, p, command == "peers"); err != nil {
			return nil, fmt.Errorf("held: %w", err)
		}
	}
	r.figure()
	return r, nil
}

// build makes a program of this module, as a release does.
func build(ctx context.Context, to, what string) (out []byte, err error) {
	return exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", to, what).CombinedOutput()
}

// group measures one group of cells and adds it to the results.
type group struct {
	name    string
	measure func(*Results, plan) error
}

// stage is what starts programs one after the other until one of them fails.
type stage struct {
	*lab
	err error
}

// serve starts one of our own peers; args are those of the command.
func (s *stage) serve(name string, args ...string) *process {
	return keepFirst(s, func() (*process, error) { return s.start(name, "", nil, s.self, append([]string{"serve"}, args...)...) })
}

// backend starts a policy backend; flags are those of serve.
func (s *stage) backend(name string, flags ...string) *process {
	return s.serve(name, append([]string{"backend"}, flags...)...)
}

// proxy starts one of our own proxies.
func (s *stage) proxy(name, kind string, to *process, hops int) *process {
	return s.serve(name, kind, "-to", to.url, "-hops", fmt.Sprint(hops))
}

// sink starts what takes traces.
func (s *stage) sink() *process { return s.serve("sink", "sink") }

func (s *stage) gateway(name string, of settings) *gatewayProcess {
	return keepFirst(s, func() (*gatewayProcess, error) { return s.startGateway(name, of) })
}

// keepFirst calls start unless something has failed before, and then returns
// what can be looked at but not used.
func keepFirst[T process | gatewayProcess](s *stage, start func() (*T, error)) *T {
	if s.err == nil {
		var started *T
		if started, s.err = start(); s.err == nil {
			return started
		}
	}
	none := new(T)
	if g, ok := any(none).(*gatewayProcess); ok {
		g.process = new(process)
	}
	return none
}

// add measures cells and adds them to the results.
func (s *stage) add(r *Results, p plan, name, title string, cells []cell) error {
	if s.err != nil {
		return s.err
	}
	measured, err := s.rounds(cells, p)
	r.Groups = append(r.Groups, Group{Name: name, Title: title, Cells: measured})
	return err
}

// Names of cells that figures are made from.
const (
	floor    = "the backend alone"
	bare     = "bare fasthttp proxy"
	on       = "gateway, everything on"
	onDraft  = on + ", draft"
	off      = "gateway, everything off"
	hit      = "gateway, duplicates"
	oneMB    = ", 1 MB"
	haproxy  = "HAProxy"
	nginx    = "nginx proxy"
	nginxAsk = "nginx auth_request"
	traefik  = "Traefik ForwardAuth"
	caddy    = "Caddy forward_auth"
)

const small = 512 // bytes of the usual event

// changing are effects of a backend that does more than pass.
const changing = `[{"type":"modify","target":"input","operation":"merge","value":{"dry":true}},{"type":"message","text":"careful"}]`

// base is what one decision with one backend costs.
func (l *lab) base(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	changes := s.backend("changes", "-effects", changing)
	one := settings{chain: []string{b.url}}
	draft := settings{draft: true, chain: []string{b.url}}
	effects := settings{draft: true, effects: true, chain: []string{changes.url}}
	full := s.gateway("on", one.everything(sink.url))
	duplicates := cellOf(hit, full, small)
	duplicates.ids = repeated
	cells := []cell{
		to(floor, b, small),
		to(bare, s.proxy("fasthttp", "fasthttp", b, 1), small),
		to("net/http ReverseProxy", s.proxy("nethttp", "nethttp", b, 1), small),
		cellOf(off, s.gateway("off", one), small),
		cellOf(on, full, small),
		cellOf(onDraft, s.gateway("draft", draft.everything(sink.url)), small),
		cellOf(onDraft+" with effects", s.gateway("effects", effects.everything(sink.url)), small),
		duplicates,
	}
	return s.add(r, p, "base", "One decision, one backend, 0.5 KB event", cells)
}

// chain is what further backends cost.
func (l *lab) chain(r *Results, p plan) error { return l.chains(r, p, 0, 1, 2, 4, 8, 16) }

func (l *lab) shortChain(r *Results, p plan) error { return l.chains(r, p, 1, 8, 16) }

func (l *lab) chains(r *Results, p plan, lengths ...int) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	var cells []cell
	for _, n := range lengths {
		c := cellOf(chainOf(n), s.gateway(fmt.Sprintf("chain-%d", n), settings{chain: slices.Repeat([]string{b.url}, n)}.everything(sink.url)), small)
		c.scale = max(1, n/2)
		cells = append(cells, c)
		if n > 0 {
			hops := to(hopsOf(n), s.proxy(fmt.Sprintf("hops-%d", n), "fasthttp", b, n), small)
			hops.scale = c.scale
			cells = append(cells, hops)
		}
	}
	return s.add(r, p, "chain", "Further backends in the chain", cells)
}

func chainOf(n int) string { return fmt.Sprintf("gateway, %d backends", n) }
func hopsOf(n int) string  { return fmt.Sprintf("bare fasthttp, %d calls", n) }

// size is what larger events cost.
func (l *lab) size(r *Results, p plan) error {
	return l.sizes(r, p, []sized{{"0.5 KB", 512, 1}, {"4 KB", 4 << 10, 1}, {"64 KB", 64 << 10, 4}, {"1 MB", 1 << 20, 50}})
}

func (l *lab) large(r *Results, p plan) error { return l.sizes(r, p, []sized{{"1 MB", 1 << 20, 50}}) }

type sized struct {
	name  string
	bytes int
	scale int
}

func (l *lab) sizes(r *Results, p plan, sizes []sized) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	one := settings{chain: []string{b.url}, body: "4MiB"}.everything(sink.url)
	changed := settings{draft: true, chain: []string{b.url}, body: "4MiB"}.everything(sink.url)
	proxy, v01, draft := s.proxy("fasthttp", "fasthttp", b, 1), s.gateway("on", one), s.gateway("draft", changed)
	var cells []cell
	for _, size := range sizes {
		for _, c := range []cell{
			to(floor+", "+size.name, b, size.bytes),
			to(bare+", "+size.name, proxy, size.bytes),
			cellOf(on+", "+size.name, v01, size.bytes),
			cellOf(onDraft+", "+size.name, draft, size.bytes),
		} {
			c.scale = size.scale
			cells = append(cells, c)
		}
	}
	return s.add(r, p, "size", "Larger events, one backend", cells)
}

// features is what each part of the gateway costs.
func (l *lab) features(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	full := settings{chain: []string{b.url}}.everything(sink.url)
	without := func(name string, change func(*settings)) cell {
		changed := full
		change(&changed)
		return cellOf(name, s.gateway(strings.ReplaceAll(name, " ", "-"), changed), small)
	}
	base := s.gateway("on", full)
	halfKnown := cellOf("every other event is a duplicate", base, small)
	halfKnown.ids = mixed
	return s.add(r, p, "features", "Everything on, but", []cell{
		cellOf(on, base, small),
		without("no audit", func(s *settings) { s.audit = false }),
		without("no traces", func(s *settings) { s.traced = "" }),
		without("every request traced", func(s *settings) { s.traced = "1" }),
		without("no dedupe", func(s *settings) { s.dedupe = false }),
		without("no breaker", func(s *settings) { s.breaker = false }),
		without("no keys", func(s *settings) { s.tenants = 0 }),
		without("no rate limit", func(s *settings) { s.limits = false }),
		without("TLS", func(s *settings) { s.tls = true }),
		halfKnown,
	})
}

// tenants is what many of them cost.
func (l *lab) tenants(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	var cells []cell
	for _, n := range []int{1, 100, 10000} {
		c := cellOf(tenantsOf(n), s.gateway(fmt.Sprintf("tenants-%d", n), settings{chain: []string{b.url}, tenants: n}.everything(sink.url)), small)
		c.warm = 4 * n // each has connections and has remembered something
		if n > 1000 {
			c.admin = "" // reading so many metrics would be most of what is measured
		}
		cells = append(cells, c)
	}
	return s.add(r, p, "tenants", "Many tenants, each with its own key and backend, asking in turns", cells)
}

func tenantsOf(n int) string { return fmt.Sprintf("gateway, %d tenants", n) }

// faults is what it costs when things go wrong.
func (l *lab) faults(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	slow := s.backend("slow", "-delay", "exp:5ms")
	denies := s.backend("denies", "-deny", "0.5")
	fails := s.backend("fails", "-fail", "0.2")
	dead, err := freePort()
	if err != nil {
		return err
	}
	with := func(name string, open bool, chain ...string) cell {
		c := cellOf(name, s.gateway(strings.ReplaceAll(name, " ", "-"), settings{chain: chain, open: open}.everything(sink.url)), small)
		c.scale = 4
		return c
	}
	return s.add(r, p, "faults", "When things go wrong", []cell{
		with("two good backends", true, b.url, b.url),
		with("half of the events denied by the first of two", false, denies.url, b.url),
		with("a fifth of the answers of the first of two fail", true, fails.url, b.url),
		with("the first of two is gone and its breaker open", true, "http://"+dead+"/hooks", b.url),
		with("one of five takes 5 ms", false, b.url, b.url, slow.url, b.url, b.url),
	})
}

// compare is this gateway beside another build of it.
func (l *lab) compare(r *Results, p plan) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	changes := s.backend("changes", "-effects", changing)
	var cells []cell
	for i, of := range []settings{
		{chain: []string{b.url}},
		{draft: true, effects: true, chain: []string{changes.url}},
	} {
		name := []string{"0.1", "draft with effects"}[i]
		before := of.everything(sink.url)
		before.program = p.old
		for _, g := range []*gatewayProcess{s.gateway(fmt.Sprintf("before-%d", i), before), s.gateway(fmt.Sprintf("after-%d", i), of.everything(sink.url))} {
			which := "after"
			if g.program != "" {
				which = "before"
			}
			fresh, known := cellOf(which+", "+name, g, small), cellOf(which+", "+name+", duplicates", g, small)
			known.ids = repeated
			cells = append(cells, fresh, known)
		}
	}
	if err := s.add(r, p, "compare", "Two builds of the gateway, everything on", cells); err != nil {
		return err
	}
	g := r.group("compare")
	for i := range g.Cells {
		if rest, ok := strings.CutPrefix(g.Cells[i].Name, "after, "); ok {
			name, f := "CPU, after ÷ before: "+rest, ratio(&g.Cells[i], g.cell("before, "+rest))
			r.Figures[name] = f
			if f.Void != "" {
				return fmt.Errorf("%s is void: %s", name, f.Void)
			}
		}
	}
	return nil
}

// held measures latencies at held rates: of the backend alone, and of what
// stands before it.
func (l *lab) held(r *Results, p plan, peers bool) error {
	s := &stage{lab: l}
	b, sink := s.backend("backend"), s.sink()
	full := s.gateway("on", settings{chain: []string{b.url}}.everything(sink.url))
	cells := []cell{to(floor, b, small), to(bare, s.proxy("fasthttp", "fasthttp", b, 1), small), cellOf(on, full, small)}
	if s.err != nil {
		return s.err
	}
	if peers {
		others, err := l.others(b, r)
		if err != nil {
			return err
		}
		cells = append(cells, others...)
	}
	ceiling, err := l.rounds(cells[2:3], plan{workers: p.workers, rounds: 3, requests: p.requests})
	if err != nil {
		return err
	}
	most := ceiling[0].PerSecond
	rates := []struct {
		of string
		at float64
	}{{"3,000/s", 3000}, {"50 % of what the gateway answers in a closed loop", most / 2}, {"80 % of what the gateway answers in a closed loop", most * 0.8}}
	series := 1 << 10
	for _, rate := range rates {
		sums := make([]load.Result, len(cells))
		busy := make([]time.Duration, len(cells))
		for n := range max(1, p.rounds/3) {
			for i := range cells {
				if n%2 == 1 {
					i = len(cells) - 1 - i
				}
				c := cells[i]
				target := c.target
				target.Connections, target.Precise = 64, true
				series++
				before, err := c.process.usage()
				if err != nil {
					return err
				}
				got, err := load.Run(target, load.Plan{ID: fresh(series), Rate: rate.at, Duration: 3 * time.Second})
				if err != nil {
					return fmt.Errorf("%s: %w", c.name, err)
				}
				after, err := c.process.usage()
				if err != nil {
					return err
				}
				sums[i].Add(got)
				busy[i] += after.CPU - before.CPU
				if err := l.ctx.Err(); err != nil {
					return err
				}
			}
		}
		alone := "" // why the first cell, which is the backend alone, is void
		for i, c := range cells {
			sum := &sums[i]
			h := Held{Name: c.name, Rate: rate.at, Of: rate.of, Requests: sum.Requests, Errors: sum.Errors, Latency: latencies(sum.Latency),
				Answered: sum.PerSecond(), Lag: lag(sum), Busy: busy[i].Seconds() / sum.Elapsed.Seconds() / float64(l.workers)}
			switch {
			case sum.Errors > 0:
				h.Void = fmt.Sprintf("%d requests failed, such as: %s", sum.Errors, sum.First)
			case h.Lag > 500:
				h.Void = fmt.Sprintf("the generator was %.0f µs late", h.Lag)
			case missed(sum, rate.at):
				h.Void = fmt.Sprintf("only %.0f/s were answered", h.Answered)
			}
			if i == 0 {
				alone = h.Void
			} else if alone == "" && h.Void == "" {
				h.Added = make(map[string]float64)
				for q, us := range latencies(sums[0].Latency) {
					h.Added[q] = h.Latency[q] - us
				}
			}
			r.Held = append(r.Held, h)
		}
	}
	return nil
}

// commit returns what is checked out, or "unknown".
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// processor returns the name of the processor, or "unknown".
func processor() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "unknown"
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
