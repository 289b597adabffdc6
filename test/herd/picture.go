package herd

import (
	"fmt"
	"image/color"
	"math"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"out_kafka_reconnect/test/chart"
)

// The plots beside the attempts over an outage.
const (
	connectedFile = "connected.svg"
	slowFile      = "connected-slowly.svg"
	lengthsFile   = "lengths.svg"
)

func attemptsFile(outage time.Duration) string {
	return fmt.Sprintf("attempts-%ds.svg", outage/time.Second)
}

// afterShown is how many seconds after the outage a plot of attempts shows.
const afterShown = 15

// amber is the colour of the third curve.
var amber = color.RGBA{0xf0, 0x9a, 0x3e, 0xff}

// colours belong to the policies, in their order.
var colours = []color.Color{chart.Blue, amber, chart.Red, chart.Grey}

// pictures makes every plot, by the name of its file.
func pictures(b book) (map[string][]byte, error) {
	plots := map[string]*plot.Plot{}
	var err error
	keep := func(file string) func(*plot.Plot, error) {
		return func(p *plot.Plot, failed error) {
			plots[file] = p
			if err == nil {
				err = failed
			}
		}
	}
	for _, o := range outages {
		keep(attemptsFile(o))(attemptsPlot(b, o))
	}
	keep(connectedFile)(connectedPlot(b, outageOf(ours, outages[1]), "after an outage of "+length(outages[1])))
	keep(slowFile)(connectedPlot(b, outageOf(ours, outages[1]).slow(), "after an outage of "+length(outages[1])+", Kafka accepts 500 a second"))
	keep(lengthsFile)(lengthsPlot(b))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for file, p := range plots {
		canvas, all := chart.Canvas(8*vg.Inch, 3.2*vg.Inch)
		p.Draw(draw.Crop(all, 6, -10, 4, -4))
		if files[file], err = chart.SVG(canvas); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// attemptsPlot has the attempts by the second, logarithmic as the policies are tenfolds apart; none is
// drawn as one.
func attemptsPlot(b book, outage time.Duration) (*plot.Plot, error) {
	p := chart.New()
	p.Title.Text = "Attempts a second, " + chart.Thousands(most) + " agents, outage of " + length(outage)
	p.X.Label.Text = "seconds after Kafka is back"
	p.Y.Label.Text = "attempts a second"
	p.X.Tick.Marker = plot.TickerFunc(chart.SecondTicks)
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.TickerFunc(decades)
	p.Y.Min, p.Y.Max = 1, 120_000
	from := -float64(min(shown, int(outage/time.Second)))
	p.X.Min, p.X.Max = from, afterShown
	away := chart.Bands{Stretches: []chart.Band{{From: from}}, Colour: func(string) color.Color { return chart.Sand }}
	p.Add(away)
	p.Legend.Add("Kafka is away", away)
	for i, policy := range policies {
		r := b.of(outageOf(policy, outage))
		var steps plotter.XYs
		x := from
		for _, n := range append(r.Before[:len(r.Before):len(r.Before)], r.After...) {
			y := math.Max(1, float64(n))
			steps = append(steps, plotter.XY{X: x, Y: y}, plotter.XY{X: x + 1, Y: y})
			x++
		}
		steps = append(steps, plotter.XY{X: x, Y: 1}, plotter.XY{X: afterShown, Y: 1})
		if err := chart.AddLine(p, policy.Name, steps, colours[i]); err != nil {
			return nil, err
		}
	}
	if outage >= seconds(shown) {
		placeLegend(p, 8, 8)
	} else { // there is more room on the right
		placeLegend(p, legendRight, 80)
	}
	return p, nil
}

// connectedPlot has the share of agents that are connected, for all policies in the outage
// of a case.
func connectedPlot(b book, c Case, title string) (*plot.Plot, error) {
	p := chart.New()
	p.Title.Text = "Connected agents " + title
	p.X.Label.Text = "seconds after Kafka is back"
	p.Y.Label.Text = "% connected"
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(chart.SecondTicks), plot.TickerFunc(chart.CountTicks)
	p.Y.Min, p.Y.Max = 0, 103
	for i, policy := range policies {
		c.Policy = policy
		xys := make(plotter.XYs, len(b.of(c).Share))
		for j, n := range b.of(c).Share {
			xys[j] = plotter.XY{X: float64(j) * shareEvery.Seconds(), Y: 100 * float64(n) / float64(c.Agents)}
			p.X.Max = math.Max(p.X.Max, xys[j].X)
		}
		if err := chart.AddLine(p, policy.Name, xys, colours[i]); err != nil {
			return nil, err
		}
	}
	p.X.Min = 0
	placeLegend(p, legendRight, 8)
	return p, nil
}

// lengthsPlot has the busiest second over the length of the outage.
func lengthsPlot(b book) (*plot.Plot, error) {
	p := chart.New()
	p.Title.Text = "The busiest second after an outage, " + chart.Thousands(most) + " agents"
	p.X.Label.Text = "seconds that the outage lasted"
	p.Y.Label.Text = "attempts in a second"
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.TickerFunc(chart.SecondTicks), plot.TickerFunc(chart.CountTicks)
	first, last := float64(lengths[0]), float64(lengths[len(lengths)-1])
	for i, policy := range []Policy{ours, backoffOnly, asItRuns, alwaysLong} {
		xys := make(plotter.XYs, len(lengths))
		for j, l := range lengths {
			xys[j] = plotter.XY{X: float64(l), Y: float64(b.of(outageOf(policy, seconds(l))).PeakOne)}
		}
		if err := chart.AddLine(p, policy.Name, xys, colours[i]); err != nil {
			return nil, err
		}
	}
	bar := float64(outageOf(ours, outages[0]).bar())
	if err := chart.AddLine(p, "the bar of kafka_reconnect", plotter.XYs{{X: first, Y: bar}, {X: last, Y: bar}}, color.Black); err != nil {
		return nil, err
	}
	p.X.Min, p.Y.Min, p.Y.Max = 0, 0, 13_000
	placeLegend(p, legendRight, 80)
	return p, nil
}

// legendRight is where a legend begins that stands on the right.
const legendRight = 5 * vg.Inch

// placeLegend puts the legend a distance from the lower left corner. The text follows the
// lines, so that one in a wider font than ours does not run into them.
func placeLegend(p *plot.Plot, x, y vg.Length) {
	p.Legend.Left, p.Legend.XOffs, p.Legend.YOffs = true, x, y
}

// decades puts a mark at each power of ten.
func decades(low, high float64) []plot.Tick {
	var marks []plot.Tick
	for v := 1.0; v <= high; v *= 10 {
		if v >= low {
			marks = append(marks, plot.Tick{Value: v, Label: chart.Thousands(int(v))})
		}
	}
	return marks
}
