package main

import (
	_ "embed" // the head of the document
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"out_kafka_reconnect/test/chart"
)

//go:embed throughput_head.md
var head string

// pictureFile is the plot's, beside the results.
const pictureFile = "throughput.svg"

// document is docs/throughput.md.
func (r *report) document() string {
	return head + "\n## Figures\n\n" + r.Markdown() + "\n![records a second, and CPU for a million records](throughput/" + pictureFile + ")\n" + r.goals()
}

// A goal is a bar for a ratio or a difference.
type goal struct {
	what  string
	most  bool // the bar is the most that is allowed, not the least
	bar   float64
	found []float64 // with one worker and with four, or one figure for both
	unit  string
}

// goals compares the figures with what this project wants to reach.
func (r *report) goals() string {
	var goals []goal
	both := func(figure func(output string) float64) []float64 { return []float64{figure(ours), figure(oursFour)} }
	for _, s := range shapes() {
		for _, codec := range codecs {
			c := cellOf(r.Throughput, s.name, codec)
			where := ", " + s.name + ", " + codec
			goals = append(goals,
				goal{"records/s, times the built-in's" + where, false, 1.5, both(func(o string) float64 { return c.rate(o) / c.rate(builtIn) }), ""},
				goal{"output's CPU, times the built-in's" + where, true, 0.5, both(func(o string) float64 { return c.cpu(o) / c.cpu(builtIn) }), ""},
				goal{"peak RSS above the built-in's" + where, true, 30, both(func(o string) float64 { return above(c.peak(o), c.peak(builtIn)) }), " MiB"},
			)
		}
		c := cellOf(r.Held, s.name, codecs[0])
		where := ", input held back, " + s.name
		goals = append(goals,
			goal{"output's CPU, times the built-in's" + where, true, 0.5, both(func(o string) float64 { return c.cpu(o) / c.cpu(builtIn) }), ""},
			goal{"peak RSS above the built-in's" + where, true, 30, both(func(o string) float64 { return above(c.peak(o), c.peak(builtIn)) }), " MiB"},
		)
	}
	p99 := func(output string) float64 {
		return of(r.Latency, func(l latency) bool { return l.Output == output }, func(l latency) float64 { return l.P99 })
	}
	goals = append(goals,
		goal{"p99 from the log line to the broker's log, above the built-in's", true, 10, both(func(o string) float64 { return above(p99(o), p99(builtIn)) }), " ms"},
	)
	for _, s := range shapes() {
		for _, codec := range codecs {
			c := r.halves(s.name, codec)
			goals = append(goals,
				goal{"produce half, records/s, times the loop in C, " + s.name + ", " + codec, false, 0.9, []float64{c.rate(halfGo) / c.rate(halfC)}, ""},
				goal{"produce half, CPU, times the loop in C, " + s.name + ", " + codec, true, 1.25, []float64{c.cpu(halfGo) / c.cpu(halfC)}, ""},
			)
		}
	}
	var b strings.Builder
	b.WriteString("\n## Goals\n\nA figure in bold misses its bar.\n\n| goal | bar | 1 worker | 4 workers |\n|---|---|---|---|\n")
	for _, g := range goals {
		sign := "≥"
		if g.most {
			sign = "≤"
		}
		fmt.Fprintf(&b, "| %s | %s %g%s |", g.what, sign, g.bar, g.unit)
		for _, found := range g.found {
			if math.IsNaN(found) || math.IsInf(found, 0) {
				b.WriteString(" not measured |")
				continue
			}
			mark := ""
			if g.most && found > g.bar || !g.most && found < g.bar {
				mark = "**"
			}
			fmt.Fprintf(&b, " %s%.2f%s%s |", mark, found, g.unit, mark)
		}
		b.WriteString(strings.Repeat(" |", 2-len(g.found)) + "\n")
	}
	return b.String()
}

// above is the difference of two figures, of which 0 stands for none.
func above(a, b float64) float64 {
	if a == 0 || b == 0 {
		return math.NaN()
	}
	return a - b
}

var colours = map[string]color.Color{
	builtIn: chart.Grey, ours: chart.Blue, oursFour: color.RGBA{0x1b, 0x3a, 0x6b, 0xff}, oursEngine: color.RGBA{0x8f, 0xb3, 0xe6, 0xff},
}

// picture draws records a second and the output's CPU as bars.
func (r *report) picture() ([]byte, error) {
	const width, height = 700, 300
	canvas, all := chart.Canvas(width, height)
	half := vg.Length(width) / 2
	left, right := draw.Crop(all, 0, -half, 0, 0), draw.Crop(all, half, 0, 0, 0)
	for _, side := range []struct {
		title  string
		area   draw.Canvas
		figure func(cell, string) float64
	}{
		{"records a second", left, cell.rate},
		{"output's CPU, seconds for a million records", right, cell.cpu},
	} {
		p := chart.New()
		p.Title.Text = side.title
		p.Y.Min = 0
		p.Y.Tick.Marker = plot.TickerFunc(chart.CountTicks)
		var names []string
		for i, output := range outputNames {
			var values plotter.Values
			names = nil
			for _, s := range shapes() {
				for _, codec := range codecs {
					values = append(values, side.figure(cellOf(r.Throughput, s.name, codec), output))
					names = append(names, s.name+", "+codec)
				}
			}
			bars, err := plotter.NewBarChart(values, 12)
			if err != nil {
				return nil, fmt.Errorf("drawing the bars of %s: %w", output, err)
			}
			bars.Color, bars.LineStyle.Width, bars.Offset = colours[output], 0, (vg.Length(i)-1.5)*13
			p.Add(bars)
			p.Legend.Add(output, bars)
		}
		p.Legend.Top = true
		p.NominalX(names...)
		p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5 // room for whole groups
		p.Y.Max *= 1.3                                   // room for the legend
		p.Draw(side.area)
	}
	return chart.SVG(canvas)
}
