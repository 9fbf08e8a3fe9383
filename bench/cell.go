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
	options load.Options
	admin   string // of a gateway, or ""
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
	return cell{name: name, process: g.process, options: g.load(size), admin: g.admin}
}

// to returns the cell of another program that takes the same requests as a
// gateway with a key does.
func to(name string, p *process, size int) cell {
	return cell{name: name, process: p, options: load.Options{
		Address: hostOf(p.url), Accept: decided,
		Templates: []*load.Template{load.NewTemplate(hostOf(p.url), "/hooks", event(false, false, size), "Authorization: Bearer "+key(0))},
	}}
}

// stride keeps the ids of the series apart: each round of each cell is one.
const stride = 1 << 28

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

// rounds measures cells in turns, every other time in reverse order, so that
// whatever else the machine does falls on all of them.
func (l *lab) rounds(cells []cell, p plan) ([]Cell, error) {
	results := make([]Cell, len(cells))
	for i, c := range cells {
		results[i].Name = c.name
		// Connections are opened and buffers grown.
		if _, err := l.round(c, i, max(500, p.count(c)/10, c.warm)); err != nil {
			return nil, err
		}
	}
	order := make([]int, len(cells))
	for i := range order {
		order[i] = i
	}
	for n := range p.rounds {
		for _, i := range order {
			r, err := l.round(cells[i], (n+1)*len(cells)+i, p.count(cells[i]))
			if err != nil {
				return nil, err
			}
			results[i].Rounds = append(results[i].Rounds, r)
		}
		slices.Reverse(order)
	}
	for i, c := range cells {
		if err := results[i].sum(c, l.workers); err != nil {
			return nil, err
		}
	}
	return results, l.ctx.Err()
}

// round measures a cell once, with the ids of a series.
func (l *lab) round(c cell, series, requests int) (Round, error) {
	if err := l.ctx.Err(); err != nil {
		return Round{}, err
	}
	o := c.options
	o.Requests = uint64(requests)
	ids := c.ids
	if ids == nil {
		ids = fresh
	}
	o.ID = ids(series)
	measured := Round{}
	var made allocations
	if c.admin != "" {
		var err error
		if made, err = allocationsOf(c.admin); err != nil {
			return measured, err
		}
	}
	before, err := c.process.usage()
	if err != nil {
		return Round{}, err
	}
	r, err := load.Run(o)
	if err != nil {
		return Round{}, fmt.Errorf("%s: %w", c.name, err)
	}
	after, err := c.process.usage()
	if err != nil {
		return Round{}, err
	}
	measured = Round{Requests: r.Requests, Errors: r.Errors, Error: r.First, CPU: after.CPU - before.CPU, Elapsed: r.Elapsed}
	if c.admin != "" {
		// What reading them costs is known from reading them twice.
		then, err := allocationsOf(c.admin)
		if err != nil {
			return measured, err
		}
		again, err := allocationsOf(c.admin)
		if err != nil {
			return measured, err
		}
		measured.Allocs = max(0, 2*then.Count-made.Count-again.Count)
		measured.Bytes = max(0, 2*then.Bytes-made.Bytes-again.Bytes)
	}
	return measured, nil
}

// sum fills in what the rounds come to.
func (c *Cell) sum(of cell, workers int) error {
	var total Round
	for _, r := range c.Rounds {
		total.Requests += r.Requests
		total.Errors += r.Errors
		total.CPU += r.CPU
		total.Elapsed += r.Elapsed
		total.Allocs += r.Allocs
		total.Bytes += r.Bytes
		if total.Error == "" {
			total.Error = r.Error
		}
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
	c.Allocs, c.Bytes = total.Allocs/float64(total.Requests), total.Bytes/float64(total.Requests)
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
