package report

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// chart is a line chart. svg renders it.
type chart struct {
	title  string
	series []series
	logY   bool
	xTicks []tick // nil for even ticks
	xLabel func(float64) string
	yLabel func(float64) string
}

type series struct {
	name   string
	points [][2]float64
}

type tick struct {
	at    float64
	label string
}

// Sizes in SVG units.
const (
	chartWidth, chartHeight = 760, 300
	chartLeft, chartRight   = 74, 12
	chartTop, chartBottom   = 10, 34
	plotWidth, plotHeight   = chartWidth - chartLeft - chartRight, chartHeight - chartTop - chartBottom
	seriesMax               = 8 // number of distinct colours
)

// svg returns the chart with a legend. It is empty without points.
func (c chart) svg() template.HTML {
	if len(c.series) > seriesMax {
		c.series = c.series[:seriesMax]
	}
	minX, maxX, minY, maxY := c.bounds()
	if minX > maxX {
		return ""
	}
	if minX == maxX {
		maxX++
	}
	x := func(v float64) float64 { return chartLeft + plotWidth*(v-minX)/(maxX-minX) }
	y := func(v float64) float64 {
		share := 0.0
		if c.logY {
			share = (math.Log10(v) - math.Log10(minY)) / (math.Log10(maxY) - math.Log10(minY))
		} else {
			share = (v - minY) / (maxY - minY)
		}
		return chartTop + plotHeight*(1-share)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><figcaption>%s</figcaption><svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, html.EscapeString(c.title), chartWidth, chartHeight, html.EscapeString(c.title))
	for _, v := range c.yTicks(minY, maxY) {
		fmt.Fprintf(&b, `<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/><text class="y" x="%d" y="%s">%s</text>`, chartLeft, chartWidth-chartRight, number(y(v)), number(y(v)),
			chartLeft-6, number(y(v)+4), html.EscapeString(c.yLabel(v)))
	}
	ticks := c.xTicks
	if ticks == nil {
		for _, v := range even(minX, maxX, 8) {
			ticks = append(ticks, tick{v, c.xLabel(v)})
		}
	}
	for _, t := range ticks {
		if t.at >= minX && t.at <= maxX {
			fmt.Fprintf(&b, `<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/><text class="x" x="%s" y="%d">%s</text>`, number(x(t.at)), number(x(t.at)), chartTop, chartTop+plotHeight,
				number(x(t.at)), chartHeight-14, html.EscapeString(t.label))
		}
	}
	for i, s := range c.series {
		var path []string
		for _, p := range s.points {
			if !c.logY || p[1] > 0 {
				path = append(path, number(x(p[0]))+","+number(y(p[1])))
			}
		}
		if len(path) == 1 {
			path = append(path, path[0])
		}
		fmt.Fprintf(&b, `<polyline class="s%d" points="%s"><title>%s</title></polyline>`, i, strings.Join(path, " "), html.EscapeString(s.name))
	}
	b.WriteString(`</svg><ul class="legend">`)
	for i, s := range c.series {
		fmt.Fprintf(&b, `<li class="s%d">%s</li>`, i, html.EscapeString(s.name))
	}
	b.WriteString(`</ul></figure>`)
	return template.HTML(b.String())
}

// bounds returns the bounds of all points. Without points minX is above maxX.
func (c chart) bounds() (minX, maxX, minY, maxY float64) {
	minX, maxX, minY, maxY = math.Inf(1), math.Inf(-1), math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, p := range s.points {
			if c.logY && p[1] <= 0 {
				continue
			}
			minX, maxX, minY, maxY = min(minX, p[0]), max(maxX, p[0]), min(minY, p[1]), max(maxY, p[1])
		}
	}
	switch {
	case minX > maxX:
	case c.logY:
		minY, maxY = math.Pow(10, math.Floor(math.Log10(minY))), math.Pow(10, math.Ceil(math.Log10(maxY)))
		if minY == maxY {
			maxY *= 10
		}
	default:
		minY = 0
		if maxY <= 0 {
			maxY = 1
		}
		maxY *= 1.05
	}
	return minX, maxX, minY, maxY
}

func (c chart) yTicks(low, high float64) []float64 {
	if !c.logY {
		return even(low, high, 5)
	}
	var ticks []float64
	for v := low; v <= high*1.0001; v *= 10 {
		ticks = append(ticks, v)
	}
	return ticks
}

// even returns about n round numbers between two bounds.
func even(low, high float64, n int) []float64 {
	raw := (high - low) / float64(n)
	if raw <= 0 {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= raw {
			step *= factor
			break
		}
	}
	var ticks []float64
	for v := math.Ceil(low/step) * step; v <= high+step/1e6; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
