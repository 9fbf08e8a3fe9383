package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/ahp-gateway/ahp-gateway/bench/load"
)

// Results are what one command has measured.
type Results struct {
	Commit  string            `json:"commit"`
	Date    time.Time         `json:"date"`
	Go      string            `json:"go"`
	OS      string            `json:"os"`
	CPU     string            `json:"cpu"`
	Cores   int               `json:"cores"`
	Workers int               `json:"workers"` // processors that each program may use
	Peers   map[string]string `json:"peers,omitempty"`
	Groups  []Group           `json:"groups,omitempty"`
	Held    []Held            `json:"held,omitempty"`
	// Figures are what the thresholds are about, by name.
	Figures map[string]Figure `json:"figures"`
}

// Group are cells that were measured in turns.
type Group struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Cells []Cell `json:"cells"`
}

// Cell is one program under one load, in a closed loop.
type Cell struct {
	Name      string  `json:"name"`
	Gateway   bool    `json:"gateway,omitempty"` // it is one
	Requests  uint64  `json:"requests"`
	Errors    uint64  `json:"errors,omitempty"`
	Void      string  `json:"void,omitempty"` // why the figures say nothing
	CPU       float64 `json:"cpu_us"`         // of the program, per request
	PerSecond float64 `json:"per_second"`
	Busy      float64 `json:"busy"` // share of the processors it may use
	Allocs    float64 `json:"allocs,omitempty"`
	Bytes     float64 `json:"bytes,omitempty"` // allocated, per request
	// AllocsVoid is why nothing is said of allocations, although it was to be.
	AllocsVoid string  `json:"allocs_void,omitempty"`
	RSS        int64   `json:"rss"`
	Top        int64   `json:"rss_top"`
	Rounds     []Round `json:"rounds"`
}

// Round is one of a cell's measurements.
type Round struct {
	Requests uint64        `json:"requests"`
	Errors   uint64        `json:"errors,omitempty"`
	Error    string        `json:"error,omitempty"`
	CPU      time.Duration `json:"cpu_ns"`
	Elapsed  time.Duration `json:"elapsed_ns"`
}

// add adds another measurement of the same cell.
func (r *Round) add(o Round) {
	r.Requests += o.Requests
	r.Errors += o.Errors
	r.CPU += o.CPU
	r.Elapsed += o.Elapsed
	if r.Error == "" {
		r.Error = o.Error
	}
}

func (r Round) cost() float64 { return micros(r.CPU) / float64(r.Requests) }

// Held is one program at a held rate, in an open loop.
type Held struct {
	Name     string  `json:"name"`
	Rate     float64 `json:"rate"`     // that was to be held
	Answered float64 `json:"answered"` // per second
	Of       string  `json:"of"`       // what the rate is
	Requests uint64  `json:"requests"`
	Errors   uint64  `json:"errors,omitempty"`
	Void     string  `json:"void,omitempty"`
	// Quantiles of the latency from when each request was due, in µs.
	Latency map[string]float64 `json:"latency_us"`
	// Added is what is beyond the backend alone at the same rate, in µs; there is
	// none where either is void.
	Added map[string]float64 `json:"added_us,omitempty"`
	// Lag is the 99th percentile of what the generator itself was late, in µs.
	Lag  float64 `json:"lag_p99_us"`
	Busy float64 `json:"busy"`
}

// quantiles are those that are told.
var quantiles = []struct {
	name string
	at   float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}}

// lag returns the 99th percentile of what the generator was late, in µs.
func lag(r *load.Result) float64 { return float64(r.Lag.ValueAtQuantile(99)) / 1e3 }

// missed reports whether a rate was to be held and was not.
func missed(r *load.Result, rate float64) bool { return r.PerSecond() < 0.98*rate }

func latencies(h *hdrhistogram.Histogram) map[string]float64 {
	m := map[string]float64{"max": float64(h.Max()) / 1e3}
	for _, q := range quantiles {
		m[q.name] = float64(h.ValueAtQuantile(q.at)) / 1e3
	}
	return m
}

// Figure is one number, and for a ratio how it spreads over the rounds.
type Figure struct {
	Value  float64 `json:"value"`            // of a ratio: that of the totals
	Median float64 `json:"median,omitempty"` // of the rounds' ratios
	Low    float64 `json:"low,omitempty"`
	High   float64 `json:"high,omitempty"`
	Unit   string  `json:"unit,omitempty"`
	Void   string  `json:"void,omitempty"`
}

// group returns the group with that name, or nil.
func (r *Results) group(name string) *Group {
	i := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Groups[i]
}

// cell returns the cell with that name, or nil.
func (g *Group) cell(name string) *Cell {
	if g == nil {
		return nil
	}
	i := slices.IndexFunc(g.Cells, func(c Cell) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &g.Cells[i]
}

// ratio returns what a costs in units of what b costs.
func ratio(a, b *Cell) Figure {
	f := Figure{Value: a.CPU / b.CPU, Unit: "×", Void: void(a, b)}
	var each []float64
	for i := range min(len(a.Rounds), len(b.Rounds)) {
		each = append(each, a.Rounds[i].cost()/b.Rounds[i].cost())
	}
	f.Median, f.Low, f.High = spread(each)
	return f
}

// slope returns what one more of n costs, in µs: the difference of the cells
// with many and with one of them.
func slope(one, many *Cell, n int) Figure {
	f := Figure{Value: (many.CPU - one.CPU) / float64(n), Unit: "µs", Void: void(one, many)}
	var each []float64
	for i := range min(len(one.Rounds), len(many.Rounds)) {
		each = append(each, (many.Rounds[i].cost()-one.Rounds[i].cost())/float64(n))
	}
	f.Median, f.Low, f.High = spread(each)
	return f
}

func void(cells ...*Cell) string {
	for _, c := range cells {
		if c.Void != "" {
			return c.Name + ": " + c.Void
		}
	}
	return ""
}

func spread(each []float64) (median, low, high float64) {
	if len(each) == 0 {
		return 0, 0, 0
	}
	slices.Sort(each)
	median = each[len(each)/2]
	if len(each)%2 == 0 {
		median = (median + each[len(each)/2-1]) / 2
	}
	return median, each[0], each[len(each)-1]
}

// save writes the results as JSON.
func (r *Results) save(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}

// loadResults reads what save has written.
func loadResults(path string) (*Results, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(Results)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
