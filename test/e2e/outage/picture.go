package outage

import (
	"fmt"
	"image/color"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"out_kafka_reconnect/test/chart"
	"out_kafka_reconnect/test/e2e/rig"
)

// A picture is a run as curves over time, in seconds since its beginning.
type picture struct {
	title    string
	logged   plotter.XYs
	appended plotter.XYs
	spans    []chart.Band
	outages  []chart.Band
	end      float64
}

// points is how many a curve has at most.
const points = 400

// paint makes the picture of a run.
func (w *world) paint(r *Result, h *harvest, spans []span, end time.Time) picture {
	since := func(t time.Time) float64 { return t.Sub(w.began).Seconds() }
	verdict := fmt.Sprintf("%s logged, %s lost, %s doubled", chart.Thousands(r.Accepted), chart.Thousands(r.Lost), chart.Thousands(r.Doubled))
	p := picture{
		title:  fmt.Sprintf("%s in %s: %s", w.run.Name, hostName(w.host.Kind()), verdict),
		logged: growth(h.loggedTimes(), since), appended: growth(h.firstCopies(), since), end: since(end),
	}
	if r.Lost > 0 { // what is lost can't tell when it was logged
		p.logged = history(w.tally.History(), since)
	}
	for _, s := range spans {
		p.spans = append(p.spans, chart.Band{Name: s.state, From: since(s.from), To: since(s.to)})
	}
	for _, o := range w.outages {
		ready := o.Ready
		if ready.IsZero() {
			ready = end
		}
		p.outages = append(p.outages, chart.Band{Name: "fault", From: since(o.Fault), To: since(ready)})
	}
	for _, curve := range []*plotter.XYs{&p.logged, &p.appended} {
		if n := len(*curve); n > 0 {
			*curve = append(*curve, plotter.XY{X: p.end, Y: (*curve)[n-1].Y})
		}
	}
	return p
}

// history is the curve of what was logged.
func history(marks []rig.Mark, since func(time.Time) float64) plotter.XYs {
	xys := plotter.XYs{{}}
	for _, m := range marks {
		xys = append(xys, plotter.XY{X: since(m.At), Y: float64(m.Accepted)})
	}
	return thin(xys)
}

// growth is the curve of what was written: one step up for each time.
func growth(times []time.Time, since func(time.Time) float64) plotter.XYs {
	xys := plotter.XYs{{}}
	for i, at := range times {
		if i > 0 && at.Sub(times[i-1]) > time.Second/2 { // nothing was written in between
			xys = append(xys, plotter.XY{X: since(at), Y: float64(i)})
		}
		xys = append(xys, plotter.XY{X: since(at), Y: float64(i + 1)})
	}
	return thin(xys)
}

// thin leaves out points that nobody would see: those that are close to the last one that was kept and to the next.
func thin(xys plotter.XYs) plotter.XYs {
	if len(xys) < 3 {
		return xys
	}
	last := xys[len(xys)-1]
	dx, dy := last.X/points, last.Y/points
	kept := plotter.XYs{xys[0]}
	for i := 1; i < len(xys)-1; i++ {
		from := kept[len(kept)-1]
		if xys[i+1].X-from.X > dx || xys[i+1].Y-from.Y > dy {
			kept = append(kept, xys[i])
		}
	}
	return append(kept, last)
}

// The size of a picture, and the colours in it.
const (
	pictureWidth  = 8 * vg.Inch
	pictureHeight = 3.6 * vg.Inch
	bandHeight    = 0.85 * vg.Inch
)

var (
	stateColours = map[string]color.RGBA{
		connecting: {0xf2, 0xd3, 0x5c, 0xff},
		up:         {0x7c, 0xb8, 0x7a, 0xff},
		degraded:   {0xf0, 0x9a, 0x3e, 0xff},
		down:       chart.Red,
		absent:     {0xcf, 0xcf, 0xcf, 0xff},
	}
	// stateOrder is that of the legend.
	stateOrder = []string{connecting, up, degraded, down, absent}
)

// write draws the picture into a file.
func (p picture) write(path string) error {
	upper := p.newPlot()
	upper.Title.Text = p.title
	upper.Y.Label.Text = "records"
	upper.Y.Tick.Marker = plot.TickerFunc(chart.CountTicks)
	upper.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		marks := chart.SecondTicks(low, high)
		for i := range marks {
			marks[i].Label = "" // they stand below the states
		}
		return marks
	})
	upper.Legend.Top, upper.Legend.Left = true, true
	top := 1.0
	for _, xy := range slices.Concat(p.logged, p.appended) {
		top = max(top, xy.Y)
	}
	upper.Y.Min, upper.Y.Max = 0, top*1.05
	faults := chart.Bands{Stretches: p.outages, Colour: func(string) color.Color { return chart.Sand }}
	upper.Add(faults)
	upper.Legend.Add("from the fault until all is ready", faults)
	if err := chart.AddLine(upper, "logged", p.logged, chart.Grey); err != nil {
		return err
	}
	if err := chart.AddLine(upper, "acknowledged", p.appended, chart.Blue); err != nil {
		return err
	}

	lower := p.newPlot()
	lower.X.Label.Text = "seconds"
	lower.Y.Tick.Marker = plot.ConstantTicks{{Value: 0.5, Label: "state "}}
	lower.Y.Tick.Length, lower.Y.Width = 0, 0
	lower.Y.Min, lower.Y.Max = 0, 1
	states := chart.Bands{Stretches: p.spans, Colour: func(name string) color.Color { return stateColours[name] }}
	lower.Add(states)

	canvas, all := chart.Canvas(pictureWidth, pictureHeight)
	legendHeight := vg.Length(16)
	upperPart := draw.Crop(all, 6, -10, bandHeight, -4)
	lowerPart := draw.Crop(all, 6, -10, legendHeight, -(pictureHeight - bandHeight))
	// Both plots begin and end at the same places: the wider labels of the upper one decide.
	left := upper.DataCanvas(upperPart).Min.X
	lowerPart.Min.X += left - lower.DataCanvas(lowerPart).Min.X
	right := upper.DataCanvas(upperPart).Max.X
	lowerPart.Max.X += right - lower.DataCanvas(lowerPart).Max.X
	upper.Draw(upperPart)
	lower.Draw(lowerPart)
	p.drawStates(draw.Crop(all, left, 0, 2, -(pictureHeight - legendHeight)))

	return chart.WriteSVG(path, canvas)
}

// newPlot is what both parts share.
func (p picture) newPlot() *plot.Plot {
	n := chart.New()
	n.X.Min, n.X.Max = 0, p.end
	n.X.Tick.Marker = plot.TickerFunc(chart.SecondTicks)
	return n
}

// drawStates is the legend of the states that occur.
func (p picture) drawStates(c draw.Canvas) {
	style := chart.TextStyle()
	x := c.Min.X
	for _, state := range stateOrder {
		if !slices.ContainsFunc(p.spans, func(b chart.Band) bool { return b.Name == state }) {
			continue
		}
		c.SetColor(stateColours[state])
		box := vg.Rectangle{Min: vg.Point{X: x, Y: c.Min.Y + 1}, Max: vg.Point{X: x + 9, Y: c.Min.Y + 10}}
		c.Fill(box.Path())
		c.FillText(style, vg.Point{X: x + 12, Y: c.Min.Y + 1}, state)
		x += 12 + style.Width(state) + 14
	}
}
