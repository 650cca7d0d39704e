package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strings"

	"companyscore/internal/chart"
)

// lines is a line chart.
type lines struct {
	title  string
	series []series
	logY   bool
	xTicks []chart.Tick // nil for even ticks
	xLabel func(float64) string
	yLabel func(float64) string
}

type series struct {
	name   string
	points [][2]float64
}

const seriesMax = 8 // number of distinct colours

// svg returns the chart with a legend. It is empty without points.
func (l lines) svg() template.HTML {
	if len(l.series) > seriesMax {
		l.series = l.series[:seriesMax]
	}
	x, y := l.bounds()
	if x.Low > x.High {
		return ""
	}
	if x.Low == x.High {
		x.High++
	}
	c := chart.New("", l.title, 760, 300, chart.Frame{Left: 74, Top: 10, Right: 736, Bottom: 266}, x, y)
	ticks := slices.DeleteFunc(slices.Clone(l.xTicks), func(t chart.Tick) bool { return t.At < x.Low || t.At > x.High })
	if l.xTicks == nil {
		ticks = c.X.Ticks(8, l.xLabel)
	}
	c.Grid(ticks, c.Y.Ticks(5, l.yLabel))
	var legend strings.Builder
	for i, s := range l.series {
		var points [][2]float64
		for _, p := range s.points {
			if !l.logY || p[1] > 0 {
				points = append(points, [2]float64{c.X.At(p[0]), c.Y.At(p[1])})
			}
		}
		if len(points) == 1 {
			points = append(points, points[0])
		}
		c.Curve(fmt.Sprintf("s%d", i), points, s.name)
		fmt.Fprintf(&legend, `<li class="s%d">%s</li>`, i, html.EscapeString(s.name))
	}
	return template.HTML(fmt.Sprintf(`<figure><figcaption>%s</figcaption>%s<ul class="legend">%s</ul></figure>`,
		html.EscapeString(l.title), c.SVG(), legend.String()))
}

// bounds returns the axes of all points. Without points x.Low is above x.High.
func (l lines) bounds() (x, y chart.Axis) {
	x, y = chart.Axis{Low: math.Inf(1), High: math.Inf(-1)}, chart.Axis{Low: math.Inf(1), High: math.Inf(-1), Log: l.logY}
	for _, s := range l.series {
		for _, p := range s.points {
			if l.logY && p[1] <= 0 {
				continue
			}
			x.Low, x.High, y.Low, y.High = min(x.Low, p[0]), max(x.High, p[0]), min(y.Low, p[1]), max(y.High, p[1])
		}
	}
	switch {
	case x.Low > x.High:
	case l.logY:
		y.Low, y.High = math.Pow(10, math.Floor(math.Log10(y.Low))), math.Pow(10, math.Ceil(math.Log10(y.High)))
		if y.Low == y.High {
			y.High *= 10
		}
	default:
		y.Low = 0
		if y.High <= 0 {
			y.High = 1
		}
		y.High *= 1.05
	}
	return x, y
}
