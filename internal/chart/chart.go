// Package chart draws charts as SVG. The pages around them style the classes; there are no inline
// styles, which a Content-Security-Policy may forbid.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// Axis maps values to positions. High must be above Low, and Low above 0 if Log is set.
type Axis struct {
	Low, High float64
	Log       bool
	from, to  float64
}

// At returns the position of a value in SVG units.
func (a Axis) At(v float64) float64 {
	low, high := a.Low, a.High
	if a.Log {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	return a.from + (a.to-a.from)*(v-low)/(high-low)
}

// Tick is a labelled value of an axis.
type Tick struct {
	At    float64
	Label string
}

// Ticks returns about n ticks at round values, or one at each power of ten of a logarithmic axis. A
// nil label prints up to two decimals.
func (a Axis) Ticks(n int, label func(float64) string) (ticks []Tick) {
	if label == nil {
		label = func(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }
	}
	if a.Log {
		for e := math.Ceil(math.Log10(a.Low) - 1e-9); e <= math.Log10(a.High)+1e-9; e++ {
			v := math.Pow(10, e)
			ticks = append(ticks, Tick{v, label(v)})
		}
		return ticks
	}
	raw := (a.High - a.Low) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= raw {
			step *= factor
			break
		}
	}
	for i := math.Ceil(a.Low / step); i*step <= a.High+step/1e6; i++ {
		ticks = append(ticks, Tick{i * step, label(i * step)})
	}
	return ticks
}

// Frame is the area of the axes, in SVG units.
type Frame struct{ Left, Top, Right, Bottom float64 }

// Chart is a chart that is being drawn. Its methods take positions in SVG units, with y downwards,
// and classes of CSS. Texts and titles are escaped.
type Chart struct {
	svg   strings.Builder
	Frame Frame
	X, Y  Axis
}

// New begins a chart. The label is for readers who do not see it.
func New(class, label string, width, height float64, frame Frame, x, y Axis) *Chart {
	c := &Chart{Frame: frame, X: x, Y: y}
	c.X.from, c.X.to = frame.Left, frame.Right
	c.Y.from, c.Y.to = frame.Bottom, frame.Top
	fmt.Fprintf(&c.svg, `<svg class="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">`,
		class, pos(width), pos(height), html.EscapeString(label))
	return c
}

// SVG ends the chart and returns it.
func (c *Chart) SVG() template.HTML { return template.HTML(c.svg.String() + "</svg>") }

// Grid draws a line and a label at each tick.
func (c *Chart) Grid(xs, ys []Tick) {
	for _, t := range ys {
		at := c.Y.At(t.At)
		c.Line("grid", c.Frame.Left, at, c.Frame.Right, at)
		c.Text("end", c.Frame.Left-6, at+4, t.Label)
	}
	for _, t := range xs {
		at := c.X.At(t.At)
		c.Line("grid", at, c.Frame.Top, at, c.Frame.Bottom)
		c.Text("middle", at, c.Frame.Bottom+15, t.Label)
	}
}

// Line draws a straight line.
func (c *Chart) Line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.svg, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, pos(x1), pos(y1), pos(x2), pos(y2))
}

// Bar draws a rectangle between two corners.
func (c *Chart) Bar(class string, x1, y1, x2, y2 float64, name string) {
	fmt.Fprintf(&c.svg, `<rect class="%s" x="%s" y="%s" width="%s" height="%s">%s</rect>`,
		class, pos(min(x1, x2)), pos(min(y1, y2)), pos(math.Abs(x2-x1)), pos(math.Abs(y2-y1)), title(name))
}

// Point draws a circle.
func (c *Chart) Point(class string, x, y, radius float64, name string) {
	fmt.Fprintf(&c.svg, `<circle class="%s" cx="%s" cy="%s" r="%s">%s</circle>`, class, pos(x), pos(y), pos(radius), title(name))
}

// Curve draws a line through points.
func (c *Chart) Curve(class string, points [][2]float64, name string) {
	c.path("polyline", class, points, name)
}

// Area draws the area within points.
func (c *Chart) Area(class string, points [][2]float64) { c.path("polygon", class, points, "") }

func (c *Chart) path(element, class string, points [][2]float64, name string) {
	fmt.Fprintf(&c.svg, `<%s class="%s" points="`, element, class)
	for i, p := range points {
		if i > 0 {
			c.svg.WriteByte(' ')
		}
		c.svg.WriteString(pos(p[0]) + "," + pos(p[1]))
	}
	fmt.Fprintf(&c.svg, `">%s</%s>`, title(name), element)
}

// Text writes a text. The anchor is start, middle or end: the part of the text that is at x.
func (c *Chart) Text(anchor string, x, y float64, text string) {
	fmt.Fprintf(&c.svg, `<text class="tick" text-anchor="%s" x="%s" y="%s">%s</text>`, anchor, pos(x), pos(y), html.EscapeString(text))
}

func title(name string) string {
	if name == "" {
		return ""
	}
	return "<title>" + html.EscapeString(name) + "</title>"
}

func pos(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
