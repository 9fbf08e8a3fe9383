package main

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report renders results that were saved: a Markdown table to w, and a page.
// Without files they are those of the commands run and peers that there are.
func report(files []string, thresholds, page string, w io.Writer) error {
	optional := len(files) == 0
	if optional {
		files = []string{"bench/results/run.json", "bench/results/peers.json"}
	}
	var all []*Results
	for _, file := range files {
		r, err := loadResults(file)
		if errors.Is(err, fs.ErrNotExist) && optional {
			continue // one of the two commands was not run
		}
		if err != nil {
			return err
		}
		all = append(all, r)
	}
	if len(all) == 0 {
		return errors.New("nothing was measured yet: bench run, bench peers")
	}
	if err := writeMarkdown(w, all, thresholds); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(page), 0o755); err != nil {
		return err
	}
	f, err := os.Create(page)
	if err != nil {
		return err
	}
	if err := errors.Join(writePage(f, all, thresholds), f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nThe page with plots is %s\n", page)
	return nil
}

// goal is one line of the table of goals.
type goal struct {
	Threshold
	Figure
	Reached string
}

// goals returns the thresholds with what was measured of them.
func goals(all []*Results, path string) ([]goal, error) {
	thresholds, err := loadThresholds(path)
	if err != nil {
		return nil, err
	}
	var goals []goal
	for _, t := range thresholds {
		g := goal{Threshold: t, Reached: "not measured"}
		for _, r := range all {
			f, ok := r.Figures[t.Figure]
			if !ok {
				continue
			}
			g.Figure = f
			switch {
			case f.Void != "":
				g.Reached = "void: " + f.Void
			case t.within(f.value(), t.Goal):
				g.Reached = "yes"
			default:
				g.Reached = "no"
			}
			break
		}
		goals = append(goals, g)
	}
	return goals, nil
}

// Sign is how the goal binds.
func (g goal) Sign() string {
	if g.Min {
		return "≥"
	}
	return "≤"
}

// Text is the measured value with its spread.
func (g goal) Text() string {
	if g.Reached == "not measured" {
		return "–"
	}
	text := fmt.Sprintf("%.2f", g.Figure.value())
	if g.Unit != "" {
		text += " " + g.Unit
	}
	if g.Low != g.High {
		text += fmt.Sprintf(" (%.2f–%.2f)", g.Low, g.High)
	}
	return text
}

func writeMarkdown(w io.Writer, all []*Results, thresholds string) error {
	list, err := goals(all, thresholds)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, r := range all {
		fmt.Fprintf(&b, "%s: commit %s, %s, %s, %s, %d cores, each program on %d\n\n", r.Date.Format("2006-01-02 15:04"), r.Commit, r.Go, r.OS, r.CPU, r.Cores, r.Workers)
	}
	b.WriteString("| figure | goal | measured: median of the rounds (lowest–highest) | reached |\n|---|---|---|---|\n")
	for _, g := range list {
		fmt.Fprintf(&b, "| %s | %s %g | %s | %s |\n", g.Threshold.Figure, g.Sign(), g.Goal, g.Text(), g.Reached)
	}
	for _, r := range all {
		for _, group := range r.Groups {
			fmt.Fprintf(&b, "\n### %s\n\n| | CPU µs per request | requests/s | busy | allocations | bytes | RSS MB |\n|---|---|---|---|---|---|---|\n", group.Title)
			for _, c := range group.Cells {
				allocs, bytes := "", ""
				if c.Bytes > 0 {
					allocs, bytes = fmt.Sprintf("%.1f", c.Allocs), fmt.Sprintf("%.0f", c.Bytes)
				}
				fmt.Fprintf(&b, "| %s | %.1f | %.0f | %.0f %% | %s | %s | %.0f |\n", named(c.Name, c.Void), c.CPU, c.PerSecond, c.Busy*100, allocs, bytes, float64(c.RSS)/(1<<20))
			}
		}
		if len(r.Held) > 0 {
			b.WriteString("\n### Latency at a held rate, from when each request was due, µs\n\n| | rate | answered | p50 | p90 | p99 | p99.9 | max | added p50 | p99 | p99.9 | busy |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
		}
		for _, h := range r.Held {
			fmt.Fprintf(&b, "| %s | %s: %.0f/s | %.0f/s |", named(h.Name, h.Void), h.Of, h.Rate, h.Answered)
			for _, q := range quantiles {
				fmt.Fprintf(&b, " %.0f |", h.Latency[q.name])
			}
			fmt.Fprintf(&b, " %.0f |", h.Latency["max"])
			for _, q := range []string{"p50", "p99", "p99.9"} {
				if added, ok := h.Added[q]; ok {
					fmt.Fprintf(&b, " %.0f |", added)
				} else {
					b.WriteString(" |")
				}
			}
			fmt.Fprintf(&b, " %.0f %% |\n", h.Busy*100)
		}
		var names []string
		for name := range r.Peers {
			names = append(names, name)
		}
		slices.Sort(names)
		for i, name := range names {
			if i == 0 {
				b.WriteString("\nOthers:\n\n")
			}
			fmt.Fprintf(&b, "* %s: %s\n", name, r.Peers[name])
		}
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// writeFigures writes every figure in a line.
func writeFigures(w io.Writer, r *Results) error {
	var names []string
	for name := range r.Figures {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		f := r.Figures[name]
		if _, err := fmt.Fprintf(w, "%-52s %.3f %s, median of the rounds %.3f (%.3f–%.3f) %s\n", name, f.Value, f.Unit, f.Median, f.Low, f.High, f.Void); err != nil {
			return err
		}
	}
	return nil
}

// named is a name, and why its figures say nothing.
func named(name, void string) string {
	if void == "" {
		return name
	}
	return name + " (**void**: " + void + ")"
}

// bar is one bar of a chart.
type bar struct {
	Name, Value string
	Y, Width    float64
	Ours, Void  bool
}

// chart is a bar chart of what requests cost.
type chart struct {
	Title  string
	Height float64
	Bars   []bar
}

const (
	barWidth  = 560 // of the longest
	barHeight = 24
)

// newChart draws values, of which the largest is the longest bar.
func newChart(title, format string, names []string, values []float64, void, ours []bool) chart {
	c := chart{Title: title, Height: float64(len(names)*barHeight + 8)}
	most := slices.Max(values)
	for i, name := range names {
		c.Bars = append(c.Bars, bar{Name: name, Value: fmt.Sprintf(format, values[i]), Y: float64(i * barHeight), Width: barWidth * values[i] / max(most, 1e-9),
			Ours: ours[i], Void: void[i]})
	}
	return c
}

func charts(all []*Results) []chart {
	var charts []chart
	for _, r := range all {
		for _, g := range r.Groups {
			var names []string
			var values []float64
			var void, ours []bool
			for _, c := range g.Cells {
				names, values, void, ours = append(names, c.Name), append(values, c.CPU), append(void, c.Void != ""), append(ours, c.Gateway)
			}
			if len(names) > 0 {
				charts = append(charts, newChart(g.Title+": CPU µs per request", "%.1f", names, values, void, ours))
			}
		}
		for _, q := range []string{"p50", "p99"} {
			var names []string
			var values []float64
			var void, ours []bool
			for _, h := range r.Held {
				names, values, void, ours = append(names, h.Name+", "+h.Of), append(values, h.Latency[q]), append(void, h.Void != ""), append(ours, h.Name == on)
			}
			if len(names) > 0 {
				charts = append(charts, newChart("Latency at a held rate: "+q+" in µs", "%.0f", names, values, void, ours))
			}
		}
	}
	return charts
}

var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>ahp-gateway: benchmark</title>
<style>
body { font: 15px/1.4 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem; border-bottom: 1px solid #ddd; text-align: left; }
.no { color: #a00; } .yes { color: #070; } svg { display: block; width: 100%; height: auto; } text { font-size: 13px; fill: #222; }
</style>
<h1>ahp-gateway: benchmark</h1>
{{range .Results}}<p>{{.Date.Format "2006-01-02 15:04"}}: commit {{.Commit}}, {{.Go}}, {{.OS}}, {{.CPU}}, {{.Cores}} cores, each program on {{.Workers}}</p>
{{end}}<h2>Goals</h2>
<table><tr><th>figure<th>goal<th>measured: median of the rounds (lowest–highest)<th>reached</tr>
{{range .Goals}}<tr><td>{{.Threshold.Figure}}<td>{{.Sign}} {{.Goal}}<td>{{.Text}}<td class="{{.Reached}}">{{.Reached}}</tr>
{{end}}</table>
{{range .Charts}}<h2>{{.Title}}</h2>
<svg viewBox="0 0 1000 {{.Height}}" role="img" aria-label="{{.Title}}">
{{range .Bars}}<g transform="translate(0 {{.Y}})"><text x="350" y="16" text-anchor="end">{{.Name}}{{if .Void}} (void){{end}}</text><rect x="360" y="3" height="17" width="{{printf "%.1f" .Width}}" fill="{{if .Void}}#bbb{{else if .Ours}}#2b6cb0{{else}}#90a4ae{{end}}"/><text x="{{printf "%.1f" .Width}}" dx="366" y="16">{{.Value}}</text></g>
{{end}}</svg>
{{end}}</html>
`))

// writePage writes a page that needs nothing but itself.
func writePage(w io.Writer, all []*Results, thresholds string) error {
	list, err := goals(all, thresholds)
	if err != nil {
		return err
	}
	return page.Execute(w, map[string]any{"Results": all, "Goals": list, "Charts": charts(all)})
}
