// Package chart is what the plots and tables of the generated documents share: the look of a
// plot, round numbers at its axes, a file that every viewer can show, and how numbers are
// written. It knows nothing of what is plotted.
package chart

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Grey, Blue and Red are the colours of curves, Sand is that of a stretch of trouble.
var (
	Grey = color.RGBA{0x99, 0x99, 0x99, 0xff}
	Blue = color.RGBA{0x1f, 0x5f, 0xbf, 0xff}
	Red  = color.RGBA{0xc9, 0x45, 0x3b, 0xff}
	Sand = color.RGBA{0xfb, 0xe6, 0xd4, 0xff}
)

// typeface is part of every SVG as a name only.
var typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}

// New returns an empty plot with our fonts and no empty margins.
func New() *plot.Plot {
	plot.DefaultFont = typeface
	p := plot.New()
	p.X.Padding, p.Y.Padding = 0, 0
	p.X.Label.TextStyle.Font.Size, p.Y.Label.TextStyle.Font.Size = 10, 10
	p.X.Tick.Label.Font.Size, p.Y.Tick.Label.Font.Size = 9, 9
	p.Title.TextStyle.Font.Size = 12
	p.Legend.XOffs, p.Legend.YOffs, p.Legend.Padding = 8, -6, 3
	p.Legend.TextStyle.Font.Size = 9
	return p
}

// TextStyle is that of the small print beside a plot.
func TextStyle() text.Style {
	f := typeface
	f.Size = 9
	return text.Style{Color: color.Black, Font: f, Handler: plot.DefaultTextHandler, YAlign: draw.YBottom}
}

// AddLine draws a curve and names it in the legend.
func AddLine(p *plot.Plot, name string, xys plotter.XYs, col color.Color) error {
	line, err := plotter.NewLine(xys)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", name, err)
	}
	line.Color, line.Width = col, 1.6
	p.Add(line)
	p.Legend.Add(name, line)
	return nil
}

// Canvas returns a white canvas and how to draw on it.
func Canvas(width, height vg.Length) (*vgsvg.Canvas, draw.Canvas) {
	canvas := vgsvg.New(width, height)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path())
	return canvas, all
}

// SVG returns what was drawn as the bytes of a file.
func SVG(canvas *vgsvg.Canvas) ([]byte, error) {
	var svg bytes.Buffer
	if _, err := canvas.WriteTo(&svg); err != nil {
		return nil, err
	}
	// Who has no such font gets another one without serifs.
	return bytes.ReplaceAll(svg.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,sans-serif")), nil
}

// WriteSVG writes what was drawn into a file.
func WriteSVG(path string, canvas *vgsvg.Canvas) error {
	svg, err := SVG(canvas)
	if err != nil {
		return fmt.Errorf("drawing %s: %w", path, err)
	}
	return os.WriteFile(path, svg, 0o644)
}

// A Band is a stretch of the horizontal axis with a name.
type Band struct {
	Name     string
	From, To float64
}

// Bands fill the whole height for a stretch of time.
type Bands struct {
	Stretches []Band
	Colour    func(name string) color.Color
}

// Plot implements plot.Plotter.
func (b Bands) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	for _, s := range b.Stretches {
		box := vg.Rectangle{Min: vg.Point{X: x(s.From), Y: c.Min.Y}, Max: vg.Point{X: x(s.To), Y: c.Max.Y}}
		c.SetColor(b.Colour(s.Name))
		c.Fill(box.Path())
	}
}

// Thumbnail implements plot.Thumbnailer.
func (b Bands) Thumbnail(c *draw.Canvas) {
	c.SetColor(b.Colour(""))
	c.Fill(c.Path())
	c.SetColor(Grey) // it may lie on a stretch of its own colour
	c.SetLineWidth(0.4)
	c.Stroke(c.Path())
}

// SecondTicks puts a mark at round seconds.
func SecondTicks(low, high float64) []plot.Tick {
	return ticks(low, high, 10, func(v float64) string { return fmt.Sprint(v) })
}

// CountTicks puts a mark at round numbers.
func CountTicks(low, high float64) []plot.Tick {
	return ticks(low, high, 6, func(v float64) string { return Thousands(int(v)) })
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

// Thousands writes a number with a comma before every three digits.
func Thousands(n int) string {
	if n < 0 {
		return "-" + Thousands(-n)
	}
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Tenths rounds to a tenth, and never to "-0.0".
func Tenths(v float64) string {
	return strconv.FormatFloat(math.Round(v*10)/10+0, 'f', 1, 64)
}

// Median is the middle one of some values, the upper one of two.
func Median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}
