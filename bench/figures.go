package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// Names of figures.
const (
	figBare      = "CPU, everything on ÷ bare fasthttp proxy"
	figHAProxy   = "CPU, everything on ÷ HAProxy"
	figNginx     = "CPU, everything on ÷ nginx proxy"
	figHit       = "CPU, duplicate ÷ the backend alone"
	figHop       = "CPU, one more backend ÷ one more bare fasthttp call"
	figLinear    = "CPU of a backend beyond the eighth ÷ before"
	figOff       = "CPU, everything on ÷ everything off"
	figDraft     = "CPU, draft ÷ 0.1"
	figAllocs    = "allocations, everything on"
	figDraftAll  = "allocations, everything on, draft"
	figAsk       = "ceiling ÷ nginx auth_request"
	figTraefik   = "ceiling ÷ Traefik ForwardAuth"
	figAdded50   = "added p50 at 3,000/s"
	figAdded99   = "added p99 at 3,000/s"
	figTenants   = "CPU, 10,000 tenants ÷ one"
	figTenantRSS = "memory of a tenant"
	figMB        = "CPU, 1 MB event ÷ bare fasthttp proxy"
	figMBDraft   = "CPU, 1 MB draft event ÷ bare fasthttp proxy"
)

// figure makes the figures that the measured groups allow.
func (r *Results) figure() {
	set := func(name string, f Figure) {
		for _, v := range []*float64{&f.Value, &f.Median, &f.Low, &f.High} {
			if math.IsInf(*v, 0) || math.IsNaN(*v) {
				*v, f.Void = 0, "a round was too short to be measured"
			}
		}
		r.Figures[name] = f
	}
	quotient := func(name string, a, b *Cell) {
		if a != nil && b != nil {
			set(name, ratio(a, b))
		}
	}
	ceiling := func(name string, a, b *Cell) {
		if a != nil && b != nil {
			f := Figure{Value: a.PerSecond / b.PerSecond, Unit: "×", Void: void(a, b)}
			if a.Busy < 0.9 && f.Void == "" {
				f.Void = fmt.Sprintf("the gateway was busy for %.0f %% only: the generator or the backend was the limit", a.Busy*100)
			}
			set(name, f)
		}
	}
	base := r.group("base")
	quotient(figBare, base.cell(on), base.cell(bare))
	quotient(figHit, base.cell(hit), base.cell(floor))
	quotient(figOff, base.cell(on), base.cell(off))
	quotient(figDraft, base.cell(onDraft), base.cell(on))
	for name, c := range map[string]*Cell{figAllocs: base.cell(on), figDraftAll: base.cell(onDraft)} {
		if c != nil {
			set(name, Figure{Value: c.Allocs, Void: cmp.Or(void(c), c.AllocsVoid)})
		}
	}
	chain := r.group("chain")
	if one, eight, most := chain.cell(chainOf(1)), chain.cell(chainOf(8)), chain.cell(chainOf(16)); one != nil && most != nil {
		ours, theirs := slope(one, most, 15), slope(chain.cell(hopsOf(1)), chain.cell(hopsOf(16)), 15)
		set(figHop, Figure{Value: ours.Value / theirs.Value, Median: ours.Median / theirs.Median, Unit: "×", Void: ours.Void + theirs.Void})
		early, late := slope(one, eight, 7), slope(eight, most, 8)
		set(figLinear, Figure{Value: late.Value / early.Value, Median: late.Median / early.Median, Unit: "×", Void: early.Void + late.Void})
	}
	size := r.group("size")
	quotient(figMB, size.cell(on+oneMB), size.cell(bare+oneMB))
	quotient(figMBDraft, size.cell(onDraft+oneMB), size.cell(bare+oneMB))
	tenants := r.group("tenants")
	quotient(figTenants, tenants.cell(tenantsOf(10000)), tenants.cell(tenantsOf(1)))
	if one, many := tenants.cell(tenantsOf(1)), tenants.cell(tenantsOf(10000)); one != nil && many != nil {
		set(figTenantRSS, Figure{Value: float64(many.RSS-one.RSS) / 9999 / 1024, Unit: "KB", Void: void(one, many)})
	}
	peers := r.group("peers")
	quotient(figHAProxy, peers.cell(on), peers.cell(haproxy))
	quotient(figNginx, peers.cell(on), peers.cell(nginx))
	ceiling(figAsk, peers.cell(on), peers.cell(nginxAsk))
	ceiling(figTraefik, peers.cell(on), peers.cell(traefik))
	for i := range r.Held {
		h := &r.Held[i]
		if h.Name != on || h.Of != "3,000/s" {
			continue
		}
		for name, q := range map[string]string{figAdded50: "p50", figAdded99: "p99"} {
			f := Figure{Value: h.Added[q] / 1000, Unit: "ms", Void: h.Void}
			if h.Added == nil && f.Void == "" {
				f.Void = "what the backend alone takes is void"
			}
			set(name, f)
		}
	}
}

// Threshold is what a figure should be and must not exceed, or with Min not
// fall below.
type Threshold struct {
	Figure string  `json:"figure"`
	Goal   float64 `json:"goal"`
	// Limit is what check refuses: what is measured today, and what a noisy
	// machine and a short run need beyond it. Zero is no limit: a figure for the report alone.
	Limit float64 `json:"limit,omitempty"`
	Min   bool    `json:"min,omitempty"`
}

// within reports whether a value is on the right side of a limit.
func (t Threshold) within(value, limit float64) bool {
	if t.Min {
		return value >= limit
	}
	return value <= limit
}

func loadThresholds(path string) ([]Threshold, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []Threshold
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// value is what a figure is judged by: of a ratio the median over the rounds,
// which one bad round does not move.
func (f Figure) value() float64 {
	if f.Median != 0 {
		return f.Median
	}
	return f.Value
}

// check holds results against the limits and writes each to w. It returns an
// error if one is not kept, or could not be measured, or, where all of them were
// to be, was not.
func check(r *Results, path string, all bool, w io.Writer) error {
	thresholds, err := loadThresholds(path)
	if err != nil {
		return err
	}
	var broken []string
	for _, t := range thresholds {
		if t.Limit == 0 {
			continue
		}
		f, ok := r.Figures[t.Figure]
		verdict := "ok"
		switch {
		case !ok && !all:
			continue
		case !ok:
			verdict = "not measured"
		case f.Void != "":
			verdict = "void: " + f.Void
		case !t.within(f.value(), t.Limit):
			verdict = "OVER ITS LIMIT"
			if t.Min {
				verdict = "UNDER ITS LIMIT"
			}
		}
		if verdict != "ok" {
			broken = append(broken, t.Figure)
		}
		fmt.Fprintf(w, "%-52s %8.3f %-3s limit %g, goal %g: %s\n", t.Figure, f.value(), f.Unit, t.Limit, t.Goal, verdict)
	}
	if len(broken) > 0 {
		return fmt.Errorf("beyond %s: %s", path, strings.Join(broken, "; "))
	}
	return nil
}
