package main

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/ahp-gateway/ahp-gateway/bench/load"
)

// cell is one thing to measure: a program under a load.
type cell struct {
	name    string
	process *process
	target  load.Target
	gateway bool   // is measured
	admin   string // of a gateway whose allocations are counted, or ""
	scale   int    // divides the plan's requests in a round, for what takes long
	warm    int    // requests before the first round; at least some
	ids     func(series int) func(n uint64) uint64
}

// decided reports whether an answer is a decision.
func decided(status int, body []byte) bool {
	return status == 200 && bytes.Contains(body, []byte(`"effects":[`))
}

// fine reports whether an answer lets the request pass, of those that decide
// by status.
func fine(status int, _ []byte) bool { return status == 200 }

// cellOf returns the cell of a gateway under events of about that size.
func cellOf(name string, g *gatewayProcess, size int) cell {
	return cell{name: name, process: g.process, target: g.target(size), gateway: true, admin: g.admin}
}

// to returns the cell of another program that takes the same requests as a
// gateway with a key does.
func to(name string, p *process, size int) cell {
	return cell{name: name, process: p, target: load.Target{
		Address: hostOf(p.url), Accept: decided,
		Templates: []*load.Template{load.NewTemplate(hostOf(p.url), "/hooks", event(false, false, size), "Authorization: Bearer "+key(0))},
	}}
}

// stride keeps the ids of the series apart: each part of each cell is one. An id
// has 12 digits, which is enough for this many series.
const (
	stride    = 1 << 24
	maxSeries = 999_999_999_999/stride - 1
)

// fresh are ids that were never used.
func fresh(series int) func(n uint64) uint64 {
	return func(n uint64) uint64 { return uint64(series+1)*stride + n }
}

// repeated are a few ids again and again.
func repeated(int) func(n uint64) uint64 { return func(n uint64) uint64 { return n % 64 } }

// mixed are fresh ids of which every other is one of before.
func mixed(series int) func(n uint64) uint64 {
	return func(n uint64) uint64 {
		if n%2 == 1 && n > 256 {
			n -= 255 // and its answer is settled by now
		}
		return uint64(series+1)*stride + n
	}
}

// parts is how many parts a round is measured in. What else happens on the
// machine, and to it, lasts for seconds: a cell is not to be away for long.
const parts = 4

// rounds measures cells in turns, every other time in reverse order, so that
// whatever else the machine does falls on all of them.
func (l *lab) rounds(cells []cell, p plan) ([]Cell, error) {
	results := make([]Cell, len(cells))
	sessions := make([]*load.Session, len(cells))
	order := make([]int, len(cells))
	series := 0
	for i, c := range cells {
		results[i].Name, results[i].Gateway = c.name, c.gateway
		order[i] = i
		var err error
		if sessions[i], err = load.Open(c.target); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		defer sessions[i].Close()
		// Connections are opened and buffers grown.
		series++
		if _, err := l.measure(c, sessions[i], series, max(500, p.count(c)/10, c.warm)); err != nil {
			return nil, err
		}
	}
	for range p.rounds {
		sums := make([]Round, len(cells))
		for range parts {
			for _, i := range order {
				series++
				r, err := l.measure(cells[i], sessions[i], series, max(10, p.count(cells[i])/parts))
				if err != nil {
					return nil, err
				}
				sums[i].add(r)
			}
			slices.Reverse(order)
		}
		for i := range cells {
			results[i].Rounds = append(results[i].Rounds, sums[i])
		}
	}
	for i, c := range cells {
		if err := results[i].sum(c, l.workers); err != nil {
			return nil, err
		}
		if c.admin == "" {
			continue
		}
		// Reading the metrics makes garbage, which somebody has to collect:
		// not while the processor's time is measured.
		series++
		if err := l.allocate(c, sessions[i], series, p.count(c), &results[i]); err != nil {
			return nil, err
		}
	}
	return results, l.ctx.Err()
}

// allocate measures what a gateway allocates for a number of requests.
func (l *lab) allocate(c cell, s *load.Session, series, requests int, to *Cell) error {
	before, err := allocationsOf(c.admin)
	if err != nil {
		return err
	}
	r, err := l.measure(c, s, series, requests)
	if err != nil {
		return err
	}
	// What reading them costs is known from reading them twice.
	after, err := allocationsOf(c.admin)
	if err != nil {
		return err
	}
	again, err := allocationsOf(c.admin)
	if err != nil {
		return err
	}
	count, bytes := 2*after.Count-before.Count-again.Count, 2*after.Bytes-before.Bytes-again.Bytes
	switch {
	case r.Errors > 0:
		to.AllocsVoid = fmt.Sprintf("%d of %d requests failed, such as: %s", r.Errors, r.Requests, r.Error)
	case requests < 1000 || count <= 0 || bytes <= 0:
		to.AllocsVoid = "too few requests to tell from what reading the metrics costs"
	default:
		to.Allocs, to.Bytes = count/float64(requests), bytes/float64(requests)
	}
	return nil
}

// measure measures a cell once, with the ids of a series.
func (l *lab) measure(c cell, s *load.Session, series, requests int) (Round, error) {
	if err := l.ctx.Err(); err != nil {
		return Round{}, err
	}
	ids := c.ids
	if ids == nil {
		ids = fresh
	}
	before, err := c.process.usage()
	if err != nil {
		return Round{}, err
	}
	r := s.Run(load.Plan{ID: ids(series), First: uint64(series) * uint64(requests), Requests: uint64(requests)})
	after, err := c.process.usage()
	if err != nil {
		return Round{}, err
	}
	return Round{Requests: r.Requests, Errors: r.Errors, Error: r.First, CPU: after.CPU - before.CPU, Elapsed: r.Elapsed}, nil
}

// sum fills in what the rounds come to.
func (c *Cell) sum(of cell, workers int) error {
	var total Round
	for _, r := range c.Rounds {
		total.add(r)
	}
	c.Requests, c.Errors = total.Requests, total.Errors
	if total.Errors > 0 {
		c.Void = fmt.Sprintf("%d of %d requests failed, such as: %s", total.Errors, total.Requests, total.Error)
	}
	if total.Requests == 0 {
		return nil
	}
	c.CPU = micros(total.CPU) / float64(total.Requests)
	c.PerSecond = float64(total.Requests) / total.Elapsed.Seconds()
	c.Busy = total.CPU.Seconds() / total.Elapsed.Seconds() / float64(workers)
	u, err := of.process.usage()
	if err != nil {
		return err
	}
	c.RSS, c.Top = u.RSS, u.Top
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
