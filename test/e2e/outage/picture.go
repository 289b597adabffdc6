package outage

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"out_kafka_reconnect/test/e2e/rig"
)

// A picture is a run as curves over time, in seconds since its beginning.
type picture struct {
	title    string
	logged   plotter.XYs
	appended plotter.XYs
	spans    []band
	outages  []band
	end      float64
}

// A band is a stretch of time with a name.
type band struct {
	name     string
	from, to float64
}

// points is how many a curve has at most.
const points = 400

// paint makes the picture of a run.
func (w *world) paint(r *Result, h *harvest, spans []span, end time.Time) picture {
	since := func(t time.Time) float64 { return t.Sub(w.began).Seconds() }
	verdict := fmt.Sprintf("%s logged, %s lost, %s doubled", thousands(r.Accepted), thousands(r.Lost), thousands(r.Doubled))
	p := picture{
		title:  fmt.Sprintf("%s in %s: %s", w.run.Name, hostName(w.host.Kind()), verdict),
		logged: growth(h.loggedTimes(), since), appended: growth(h.firstCopies(), since), end: since(end),
	}
	if r.Lost > 0 { // what is lost can't tell when it was logged
		p.logged = history(w.tally.History(), since)
	}
	for _, s := range spans {
		p.spans = append(p.spans, band{s.state, since(s.from), since(s.to)})
	}
	for _, o := range w.outages {
		ready := o.Ready
		if ready.IsZero() {
			ready = end
		}
		p.outages = append(p.outages, band{"fault", since(o.Fault), since(ready)})
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
	loggedColour   = color.RGBA{0x99, 0x99, 0x99, 0xff}
	appendedColour = color.RGBA{0x1f, 0x5f, 0xbf, 0xff}
	faultColour    = color.RGBA{0xfb, 0xe6, 0xd4, 0xff}
	stateColours   = map[string]color.RGBA{
		connecting: {0xf2, 0xd3, 0x5c, 0xff},
		up:         {0x7c, 0xb8, 0x7a, 0xff},
		degraded:   {0xf0, 0x9a, 0x3e, 0xff},
		down:       {0xc9, 0x45, 0x3b, 0xff},
		absent:     {0xcf, 0xcf, 0xcf, 0xff},
	}
	// stateOrder is that of the legend.
	stateOrder = []string{connecting, up, degraded, down, absent}
)

// write draws the picture into a file.
func (p picture) write(path string) error {
	plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"}
	upper := p.newPlot()
	upper.Title.Text = p.title
	upper.Title.TextStyle.Font.Size = 12
	upper.Y.Label.Text = "records"
	upper.Y.Tick.Marker = plot.TickerFunc(countTicks)
	upper.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		marks := secondTicks(low, high)
		for i := range marks {
			marks[i].Label = "" // they stand below the states
		}
		return marks
	})
	upper.Legend.Top, upper.Legend.Left = true, true
	upper.Legend.XOffs, upper.Legend.YOffs, upper.Legend.Padding = 8, -6, 3
	upper.Legend.TextStyle.Font.Size = 9
	top := 1.0
	for _, xy := range slices.Concat(p.logged, p.appended) {
		top = max(top, xy.Y)
	}
	upper.Y.Min, upper.Y.Max = 0, top*1.05
	faults := bands{p.outages, func(string) color.Color { return faultColour }}
	upper.Add(faults)
	upper.Legend.Add("from the fault until all is ready", faults)
	for _, c := range []struct {
		name string
		xys  plotter.XYs
		col  color.Color
		dash bool
	}{{"logged", p.logged, loggedColour, false}, {"acknowledged", p.appended, appendedColour, false}} {
		line, err := plotter.NewLine(c.xys)
		if err != nil {
			return fmt.Errorf("drawing %s: %w", c.name, err)
		}
		line.Color, line.Width = c.col, 1.6
		upper.Add(line)
		upper.Legend.Add(c.name, line)
	}

	lower := p.newPlot()
	lower.X.Label.Text = "seconds"
	lower.Y.Tick.Marker = plot.ConstantTicks{{Value: 0.5, Label: "state "}}
	lower.Y.Tick.Length, lower.Y.Width = 0, 0
	lower.Y.Min, lower.Y.Max = 0, 1
	states := bands{p.spans, func(name string) color.Color { return stateColours[name] }}
	lower.Add(states)

	canvas := vgsvg.New(pictureWidth, pictureHeight)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path())
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

	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	// Who has no such font gets another one without serifs.
	named := bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,sans-serif"))
	return os.WriteFile(path, named, 0o644)
}

// newPlot is what both parts share.
func (p picture) newPlot() *plot.Plot {
	n := plot.New()
	n.X.Min, n.X.Max = 0, p.end
	n.X.Padding, n.Y.Padding = 0, 0
	n.X.Label.TextStyle.Font.Size, n.Y.Label.TextStyle.Font.Size = 10, 10
	n.X.Tick.Label.Font.Size, n.Y.Tick.Label.Font.Size = 9, 9
	n.X.Tick.Marker = plot.TickerFunc(secondTicks)
	return n
}

// drawStates is the legend of the states that occur.
func (p picture) drawStates(c draw.Canvas) {
	style := text.Style{Color: color.Black, Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: 9}, Handler: plot.DefaultTextHandler, YAlign: draw.YBottom}
	x := c.Min.X
	for _, state := range stateOrder {
		if !slices.ContainsFunc(p.spans, func(b band) bool { return b.name == state }) {
			continue
		}
		c.SetColor(stateColours[state])
		box := vg.Rectangle{Min: vg.Point{X: x, Y: c.Min.Y + 1}, Max: vg.Point{X: x + 9, Y: c.Min.Y + 10}}
		c.Fill(box.Path())
		c.FillText(style, vg.Point{X: x + 12, Y: c.Min.Y + 1}, state)
		x += 12 + style.Width(state) + 14
	}
}

// bands fill the whole height for a stretch of time.
type bands struct {
	stretches []band
	colour    func(name string) color.Color
}

// Plot implements plot.Plotter.
func (b bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, s := range b.stretches {
		box := vg.Rectangle{Min: vg.Point{X: x(s.from), Y: c.Min.Y}, Max: vg.Point{X: x(s.to), Y: c.Max.Y}}
		c.SetColor(b.colour(s.name))
		c.Fill(box.Path())
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b bands) Thumbnail(c *draw.Canvas) {
	c.SetColor(b.colour(""))
	c.Fill(c.Path())
	c.SetColor(loggedColour) // it may lie on a stretch of its own colour
	c.SetLineWidth(0.4)
	c.Stroke(c.Path())
}

// secondTicks puts a mark at round seconds.
func secondTicks(low, high float64) []plot.Tick {
	return ticks(low, high, 10, func(v float64) string { return fmt.Sprint(v) })
}

// countTicks puts a mark at round numbers.
func countTicks(low, high float64) []plot.Tick {
	return ticks(low, high, 6, func(v float64) string { return thousands(int(v)) })
}

// ticks puts about so many marks at multiples of 1, 2 or 5 times a power of ten.
func ticks(low, high float64, about int, label func(float64) string) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(about))))
	for _, factor := range []float64{2, 2.5, 2} {
		if (high-low)/step > float64(about) {
			step *= factor
		}
	}
	var marks []plot.Tick
	for v := math.Ceil(low/step) * step; v <= high; v += step {
		marks = append(marks, plot.Tick{Value: v, Label: label(v)})
	}
	return marks
}
