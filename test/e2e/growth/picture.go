package main

import (
	"image/color"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"out_kafka_reconnect/test/chart"
)

const backlogFile = "backlog.svg"

// pictures makes every plot, by the name of its file.
func pictures(r *report) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, s := range sections {
		p := plotOf("CPU of a record by "+s.series, s.series, "CPU microseconds a record")
		if s.series == byChunk { // the only one that is high on the left
			p.Legend.XOffs = 5 * vg.Inch
		}
		curves := []struct {
			path string
			col  color.Color
		}{{whole, chart.Blue}, {client, chart.Grey}, {alone, chart.Red}}
		for _, c := range curves {
			var xys plotter.XYs
			for _, x := range r.xs(s.series) {
				xys = append(xys, plotter.XY{X: float64(x), Y: r.at(s.series, c.path, x).CPU / 1000})
			}
			if err := chart.AddLine(p, c.path, xys, c.col); err != nil {
				return nil, err
			}
		}
		if err := draws(files, s.file, p, r.xs(s.series)); err != nil {
			return nil, err
		}
	}
	return files, backlogPlot(r, files)
}

// backlogPlot has what a waiting chunk costs after the outage.
func backlogPlot(r *report, files map[string][]byte) error {
	p := plotOf("Delivering a waiting chunk and telling of it", byBacklog, "CPU microseconds a chunk")
	var xs []int
	for _, c := range []struct {
		name    string
		ordered bool
		col     color.Color
	}{{"as it comes", false, chart.Blue}, {"ordered", true, chart.Red}} {
		var xys plotter.XYs
		xs = nil
		for _, l := range r.Backlogs {
			if l.Ordered == c.ordered {
				xs = append(xs, l.Chunks)
				xys = append(xys, plotter.XY{X: float64(l.Chunks), Y: (l.Drain + l.Collect) / 1000})
			}
		}
		if err := chart.AddLine(p, c.name, xys, c.col); err != nil {
			return err
		}
	}
	return draws(files, backlogFile, p, xs)
}

// plotOf is an empty plot whose horizontal axis is logarithmic and whose vertical one begins at zero, so that flat looks flat.
func plotOf(title, x, y string) *plot.Plot {
	p := chart.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Scale = plot.LogScale{}
	// The text follows the lines, so that one in a wider font than ours does not run into them.
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, 12
	return p
}

// draws makes the file of a plot, with a mark at each place that was measured.
func draws(files map[string][]byte, file string, p *plot.Plot, xs []int) error {
	var marks plot.ConstantTicks
	for _, x := range xs {
		label := chart.Thousands(x)
		if first := strconv.Itoa(x)[0]; len(xs) > 8 && first != '1' && first != '5' {
			label = ""
		}
		marks = append(marks, plot.Tick{Value: float64(x), Label: label})
	}
	p.X.Tick.Marker = marks
	p.Y.Min = 0
	p.Y.Max *= 1.2 // room for the legend
	canvas, all := chart.Canvas(8*vg.Inch, 3*vg.Inch)
	p.Draw(draw.Crop(all, 6, -14, 4, -4))
	svg, err := chart.SVG(canvas)
	files[file] = svg
	return err
}
