package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rounds of a cell that costs so many µs per request in each.
func costing(name string, each ...float64) Cell {
	c := Cell{Name: name, PerSecond: 1000, Busy: 1}
	total := 0.0
	for _, us := range each {
		c.Rounds = append(c.Rounds, Round{Requests: 100, CPU: time.Duration(us * 100 * 1000)})
		total += us
	}
	c.CPU = total / float64(len(each))
	return c
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestRatio(t *testing.T) {
	a, b := costing("a", 10, 30, 20, 20), costing("b", 10, 10, 10, 20)
	f := ratio(&a, &b)
	if !near(f.Value, 80.0/50) || !near(f.Median, 1.5) || !near(f.Low, 1) || !near(f.High, 3) || f.Void != "" {
		t.Errorf("ratio = %+v; want the totals' 1.6, the median 1.5 of 1, 3, 2, 1", f)
	}
	b.Void = "because"
	if f := ratio(&a, &b); f.Void != "b: because" {
		t.Errorf("ratio to a void cell = %+v; want it void", f)
	}
	one, many := costing("one", 10, 12), costing("many", 40, 45)
	if f := slope(&one, &many, 3); !near(f.Value, 10.5) || !near(f.Median, 10.5) || !near(f.Low, 10) || !near(f.High, 11) {
		t.Errorf("slope = %+v; want 10.5 between 10 and 11", f)
	}
}

// A ceiling that the generator or the backend has set says nothing.
func TestCeilingIsVoidWhereTheGatewayWasIdle(t *testing.T) {
	for busy, want := range map[float64]bool{0.95: false, 0.6: true} {
		ours, theirs := costing(on, 10), costing(nginxAsk, 10)
		ours.Busy, theirs.PerSecond = busy, 500
		r := &Results{Figures: map[string]Figure{}, Groups: []Group{{Name: "peers", Cells: []Cell{ours, theirs}}}}
		r.figure()
		if f := r.Figures[figAsk]; !near(f.Value, 2) || (f.Void != "") != want {
			t.Errorf("ceiling of a gateway busy for %g = %+v; want 2, void %v", busy, f, want)
		}
	}
}

// Every threshold is about a figure that there is, and every figure that check
// holds to a limit is one that it measures.
// What is added to something void, and allocations that were not told, are void
// as well.
func TestVoidFigures(t *testing.T) {
	r := &Results{Figures: map[string]Figure{},
		Groups: []Group{{Name: "base", Cells: []Cell{{Name: on, AllocsVoid: "too few"}, {Name: onDraft, Allocs: 3}}}},
		Held:   []Held{{Name: on, Of: "3,000/s", Latency: map[string]float64{"p50": 1}}}}
	r.figure()
	for name, want := range map[string]string{figAllocs: "too few", figDraftAll: "", figAdded50: "what the backend alone takes is void"} {
		if got := r.Figures[name].Void; got != want {
			t.Errorf("figure %q is void for %q; want %q", name, got, want)
		}
	}
}

func TestThresholds(t *testing.T) {
	thresholds, err := loadThresholds("thresholds.json")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{figBare, figHAProxy, figNginx, figHit, figHop, figLinear, figOff, figDraft, figAllocs, figDraftAll, figAsk, figTraefik, figAdded50,
		figAdded99, figTenants, figTenantRSS, figMB, figMBDraft}
	known := make(map[string]bool)
	for _, name := range names {
		known[name] = true
	}
	for _, x := range thresholds {
		if !known[x.Figure] {
			t.Errorf("thresholds.json has %q; there is no such figure", x.Figure)
		}
		if x.Limit != 0 && !x.within(x.Goal, x.Limit) {
			t.Errorf("%s: the goal %g is beyond the limit %g", x.Figure, x.Goal, x.Limit)
		}
		if strings.HasPrefix(x.Figure, "added") && x.Limit != 0 {
			t.Errorf("%s has a limit; a latency is no ratio", x.Figure)
		}
	}
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "thresholds.json")
	text := `[{"figure":"a","goal":1,"limit":2},{"figure":"b","goal":3,"limit":2,"min":true},{"figure":"c","goal":1}]`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		a, b Figure
		want string // of the error
	}{
		{Figure{Value: 9, Median: 2}, Figure{Value: 2}, ""},
		{Figure{Value: 1, Median: 2.1}, Figure{Value: 2}, ": a"},
		{Figure{Value: 1}, Figure{Value: 1.9}, ": b"},
		{Figure{Value: 1, Void: "busy"}, Figure{Value: 1}, ": a; b"},
	} {
		var out bytes.Buffer
		err := check(&Results{Figures: map[string]Figure{"a": c.a, "b": c.b}}, path, true, &out)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)) {
			t.Errorf("check(%+v, %+v) = %v; want %q\n%s", c.a, c.b, err, c.want, &out)
		}
	}
	for all, want := range map[bool]bool{true: true, false: false} {
		if err := check(&Results{}, path, all, new(bytes.Buffer)); (err != nil) != want {
			t.Errorf("check of nothing, all %v = %v; want an error %v", all, err, want)
		}
	}
}

// A short run starts the real programs, and what it saves can be reported.
func TestRun(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("CPU time is measured on Linux alone")
	}
	t.Chdir("..") // where the gateway can be built
	dir := t.TempDir()
	self := filepath.Join(dir, "bench")
	if out, err := build(t.Context(), self, "./bench"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	saved, page := filepath.Join(dir, "run.json"), filepath.Join(dir, "report.html")
	results, err := measure(t.Context(), "run", plan{workers: 1, rounds: 2, requests: 2000, only: "base,faults", program: self}, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range results.Groups {
		for _, c := range g.Cells {
			if c.Void != "" || c.Requests < 1000 || c.RSS == 0 || c.Name == on && c.Allocs == 0 {
				t.Errorf("%s, %s = %+v; want figures", g.Name, c.Name, c)
			}
		}
	}
	if len(results.Groups) != 2 || results.Figures[figBare].Value <= 0 {
		t.Errorf("%d groups, figures %+v; want 2, with %s", len(results.Groups), results.Figures, figBare)
	}
	if err := results.save(saved); err != nil {
		t.Fatal(err)
	}
	var markdown bytes.Buffer
	if err := report([]string{saved}, "bench/thresholds.json", page, &markdown); err != nil {
		t.Fatal(err)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{on, bare, figBare, "When things go wrong"} {
		if !strings.Contains(markdown.String(), want) || !bytes.Contains(html, []byte(want)) {
			t.Errorf("the report does not show %q:\n%s", want, &markdown)
		}
	}
	if bytes.Contains(html, []byte("http://")) || bytes.Contains(html, []byte("https://")) || bytes.Contains(html, []byte("<script")) {
		t.Error("the page needs more than itself")
	}
}

// A gateway that answers with anything but decisions makes its cells void.
func TestErrorsVoidACell(t *testing.T) {
	c := Cell{Rounds: []Round{{Requests: 10, CPU: time.Millisecond}, {Requests: 10, Errors: 1, Error: "status 503: no", CPU: time.Millisecond}}}
	if err := c.sum(cell{process: &process{cmd: &exec.Cmd{Process: &os.Process{Pid: os.Getpid()}}}}, 1); err != nil {
		t.Fatal(err)
	}
	if c.Void != "1 of 20 requests failed, such as: status 503: no" || c.CPU != 100 {
		t.Errorf("cell = %+v; want it void, 100 µs", c)
	}
}

// A peer of others is started where its files say, or is absent with the reason.
func TestForeign(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	dir := t.TempDir()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 to stand for a peer")
	}
	l := &lab{ctx: t.Context(), dir: dir, workers: 3, log: t.Output()}
	t.Cleanup(l.stopAll)
	backend := &process{url: "http://127.0.0.1:1234/hooks"}
	p, version, absent, err := l.foreign(foreign{
		name: "a peer", program: python, version: []string{"--version"},
		files: map[string]string{"told.txt": "%[1]s %[2]s %[3]s %[4]d"},
		args:  []string{"-m", "http.server", "--bind", "127.0.0.1", "--directory", "%[5]s", "%[2]s"},
	}, backend)
	if err != nil || absent != "" || !strings.HasPrefix(version, "Python 3") {
		t.Fatalf("foreign = version %q, absent %q, %v; want it to listen", version, absent, err)
	}
	told, err := os.ReadFile(filepath.Join(dir, "told.txt"))
	address := hostOf(p.url)
	if want := address + " " + address[strings.IndexByte(address, ':')+1:] + " 127.0.0.1:1234 3"; string(told) != want {
		t.Errorf("its file says %q, %v; want %q", told, err, want)
	}
	if u, err := p.usage(); err != nil || u.CPU <= 0 || u.RSS <= 0 {
		t.Errorf("usage = %+v, %v; want some", u, err)
	}
	for _, f := range []foreign{{name: "none", program: "no-such-program"}, {name: "ends", program: python, args: []string{"-c", "raise SystemExit('cannot')"}}} {
		if _, _, absent, err := l.foreign(f, backend); err != nil || absent == "" {
			t.Errorf("foreign(%s) = absent %q, %v; want a reason", f.name, absent, err)
		}
	}
}

// Both ways to ask for the CPU time agree, as far as the coarser one goes.
func TestRan(t *testing.T) {
	for sum, end := 0, time.Now().Add(200*time.Millisecond); time.Now().Before(end); sum++ {
	}
	fine, err := ran(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	coarse, err := ticks(os.Getpid())
	if err != nil || fine < 150*time.Millisecond || (fine-coarse).Abs() > fine/2 {
		t.Errorf("ran = %s, ticks = %s, %v; want about the same", fine, coarse, err)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{nil, {"nothing"}, {"serve"}, {"serve", "nothing"}, {"drive", "-url", "nowhere"}, {"report", "no.json"},
		{"drive", "-requests", "0"}, {"drive", "3000"}, {"check", "-only", "bsae"}, {"check", "-only", "base,held"}, {"run", "-rounds", "0"},
		{"run", "-workers", "0"}, {"peers", "-requests", "-1"}, {"peers", "peers"}, {"compare"}, {"compare", "-old", "no-such-file"}} {
		if err := run(context.Background(), args, new(bytes.Buffer), new(bytes.Buffer)); err == nil {
			t.Errorf("bench %q = nil; want an error", args)
		}
	}
}

func TestEvent(t *testing.T) {
	for _, draft := range []bool{false, true} {
		for _, size := range []int{0, 4096, 1 << 20} {
			body := event(draft, draft, size)
			if !json.Valid(body) || size > 0 && len(body) != size {
				t.Errorf("event(draft %v, %d) has %d bytes, JSON %v; want that many of JSON", draft, size, len(body), json.Valid(body))
			}
		}
	}
}
