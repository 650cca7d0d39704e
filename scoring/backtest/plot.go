package backtest

import (
	"cmp"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"companyscore/scoring"
)

// canvas draws one plot as SVG.
type canvas struct {
	strings.Builder
	width, height, left float64
	x, y                axis
}

// axis maps values to positions.
type axis struct{ low, high, from, to float64 }

func (a axis) at(v float64) float64 { return a.from + (a.to-a.from)*(v-a.low)/(a.high-a.low) }

// Margins of plots in SVG units.
const (
	topMargin, rightMargin, bottomMargin = 18, 14, 26
	half, wide                           = 480, 980 // widths of plots
)

func newCanvas(label string, width, height, left float64, x, y [2]float64) *canvas {
	c := &canvas{width: width, height: height, left: left}
	c.x = axis{x[0], x[1], left, width - rightMargin}
	c.y = axis{y[0], y[1], height - bottomMargin, topMargin}
	fmt.Fprintf(c, `<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, pos(width), pos(height), html.EscapeString(label))
	return c
}

func (c *canvas) svg() template.HTML {
	c.WriteString("</svg>")
	return template.HTML(c.String())
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(c, `<line class="%s" x1="%s" y1="%s" x2="%s" y2="%s"/>`, class, pos(x1), pos(y1), pos(x2), pos(y2))
}

func (c *canvas) rect(class string, x1, y1, x2, y2 float64, title string) {
	fmt.Fprintf(c, `<rect class="%s" x="%s" y="%s" width="%s" height="%s">`, class, pos(min(x1, x2)), pos(min(y1, y2)), pos(math.Abs(x2-x1)), pos(math.Abs(y2-y1)))
	if title != "" {
		fmt.Fprintf(c, "<title>%s</title>", html.EscapeString(title))
	}
	c.WriteString("</rect>")
}

func (c *canvas) dot(x, y float64) {
	fmt.Fprintf(c, `<circle class="dot" cx="%s" cy="%s" r="2.2"/>`, pos(x), pos(y))
}

func (c *canvas) text(class string, x, y float64, text string) {
	fmt.Fprintf(c, `<text class="%s" x="%s" y="%s">%s</text>`, class, pos(x), pos(y), html.EscapeString(text))
}

// grid draws the lines and labels of both axes. nil leaves one out.
func (c *canvas) grid(xs, ys []float64) {
	for _, v := range ys {
		c.line("grid", c.left, c.y.at(v), c.width-rightMargin, c.y.at(v))
		c.text("end", c.left-6, c.y.at(v)+4, short(v))
	}
	for _, v := range xs {
		c.line("grid", c.x.at(v), topMargin, c.x.at(v), c.height-bottomMargin)
		c.text("middle", c.x.at(v), c.height-bottomMargin+15, short(v))
	}
}

func pos(v float64) string   { return strconv.FormatFloat(v, 'f', 1, 64) }
func short(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// ticks returns about n round values from low to high.
func ticks(low, high float64, n int) []float64 {
	raw := (high - low) / float64(n)
	step := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if step*factor >= raw {
			step *= factor
			break
		}
	}
	var all []float64
	for i := math.Ceil(low / step); i*step <= high+step/1e6; i++ {
		all = append(all, i*step)
	}
	return all
}

// around returns the multiples of 5 around composites.
func around(low, high float64) [2]float64 {
	low, high = math.Floor(low/5)*5, math.Ceil(high/5)*5
	if low == high {
		high += 5
	}
	return [2]float64{low, high}
}

// histogram draws companies per point with the bands of the grades.
func histogram(d Composites) template.HTML {
	bounds := around(d.Min, d.Max)
	most := slices.Max(d.Bins[:])
	c := newCanvas("Histogram of composites with grades", wide, 300, 56, bounds, [2]float64{0, 1.08 * float64(most)})
	for i, band := range gradeBands() {
		from, to := max(band.from, bounds[0]), min(band.to, bounds[1])
		if from >= to {
			continue
		}
		c.rect("band"+strconv.Itoa(i%2), c.x.at(from), topMargin, c.x.at(to), c.height-bottomMargin, "")
		c.text("middle", c.x.at((from+to)/2), topMargin-5, string(band.grade))
	}
	c.grid(ticks(bounds[0], bounds[1], 12), ticks(0, c.y.high, 5))
	for bin, n := range d.Bins {
		if n > 0 {
			c.rect("bar", c.x.at(float64(bin))+0.5, c.y.at(0), c.x.at(float64(bin+1))-0.5, c.y.at(float64(n)), fmt.Sprintf("%d to %d: %d companies", bin, bin+1, n))
		}
	}
	return c.svg()
}

type gradeBand struct {
	grade    scoring.Rating
	from, to float64
}

// gradeBands returns the composites of each grade, lowest first.
func gradeBands() []gradeBand {
	var bands []gradeBand
	for tenths := range 1001 {
		composite := float64(tenths) / 10
		if n := len(bands); n > 0 {
			bands[n-1].to = composite
		}
		if grade := scoring.RatingOf(composite); len(bands) == 0 || bands[len(bands)-1].grade != grade {
			bands = append(bands, gradeBand{grade, composite, composite})
		}
	}
	return bands
}

// scatterMax is the number of points in a scatter plot.
const scatterMax = 1500

// scatter draws composites over the percentiles of outcomes, of evenly chosen companies.
func scatter(pairs []pair) template.HTML {
	sorted := slices.Clone(pairs)
	slices.SortFunc(sorted, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.outcome, b.outcome), cmp.Compare(a.composite, b.composite))
	})
	outcomes, low, high := make([]float64, len(sorted)), math.Inf(1), math.Inf(-1)
	for i, p := range sorted {
		outcomes[i], low, high = p.outcome, min(low, p.composite), max(high, p.composite)
	}
	bounds, rank := around(low, high), ranks(outcomes)
	c := newCanvas("Composite over the percentile of the outcome", half, 320, 40, [2]float64{0, 100}, bounds)
	c.grid(ticks(0, 100, 5), ticks(bounds[0], bounds[1], 6))
	n := min(len(sorted), scatterMax)
	for k := range n {
		i := k * len(sorted) / n
		c.dot(c.x.at(100*rank[i]/float64(len(sorted))), c.y.at(sorted[i].composite))
	}
	return c.svg()
}

// boxes draws the quantiles of composites by class. A class may be empty.
func boxes(names []string, classes [][]float64) template.HTML {
	low, high := math.Inf(1), math.Inf(-1)
	for _, composites := range classes {
		slices.Sort(composites)
		if len(composites) > 0 {
			low, high = min(low, composites[0]), max(high, composites[len(composites)-1])
		}
	}
	bounds := around(low, high)
	c := newCanvas("Composites by class", half, 320, 40, [2]float64{0, float64(len(names))}, bounds)
	c.grid(nil, ticks(bounds[0], bounds[1], 6))
	for i, composites := range classes {
		centre := c.x.at(float64(i) + 0.5)
		c.text("middle", centre, c.height-bottomMargin+12, names[i])
		c.text("middle", centre, c.height-bottomMargin+24, strconv.Itoa(len(composites)))
		if len(composites) == 0 {
			continue
		}
		reach := min(28, 0.35*(c.x.at(1)-c.x.at(0)))
		q := func(share float64) float64 { return quantile(composites, share) }
		c.line("whisker", centre, c.y.at(q(0.05)), centre, c.y.at(q(0.95)))
		c.rect("box", centre-reach, c.y.at(q(0.75)), centre+reach, c.y.at(q(0.25)),
			fmt.Sprintf("%s: %.1f, %.1f, %.1f, %.1f, %.1f", names[i], q(0.05), q(0.25), q(0.5), q(0.75), q(0.95)))
		c.line("median", centre-reach, c.y.at(q(0.5)), centre+reach, c.y.at(q(0.5)))
	}
	return c.svg()
}

// rocPlot draws a ROC curve.
func rocPlot(curve [][2]float64) template.HTML {
	c := newCanvas("ROC curve", half, 420, 40, [2]float64{0, 1}, [2]float64{0, 1})
	c.grid(ticks(0, 1, 5), ticks(0, 1, 5))
	c.line("limit", c.x.at(0), c.y.at(0), c.x.at(1), c.y.at(1))
	c.WriteString(`<polyline class="curve" points="`)
	for _, p := range curve {
		fmt.Fprintf(c, "%s,%s ", pos(c.x.at(p[0])), pos(c.y.at(p[1])))
	}
	c.WriteString(`"/>`)
	return c.svg()
}

// cliffPlot draws the effects by fact.
func cliffPlot(facts []FactCliffs) template.HTML {
	const step = 20
	most := 6.0
	for _, f := range facts {
		most = max(most, f.Max)
	}
	c := newCanvas("Effect of one fact left out, in points", wide, topMargin+bottomMargin+step*float64(len(facts)), 210, [2]float64{0, math.Ceil(most)}, [2]float64{float64(len(facts)), 0})
	c.grid(ticks(0, c.x.high, 8), nil)
	for _, v := range []float64{3, 5} {
		c.line("limit", c.x.at(v), topMargin, c.x.at(v), c.height-bottomMargin)
	}
	for i, f := range facts {
		y := topMargin + step*(float64(i)+0.5)
		c.text("end", c.left-8, y+4, f.Fact)
		c.line("whisker", c.x.at(0), y, c.x.at(f.Max), y)
		c.rect("bar", c.x.at(0), y-5, c.x.at(f.P95), y+5, fmt.Sprintf("%s: median %.1f, p95 %.1f, largest %.1f, %d cases", f.Fact, f.Median, f.P95, f.Max, f.Cases))
		c.line("median", c.x.at(f.Median), y-6, c.x.at(f.Median), y+6)
	}
	return c.svg()
}

// coveragePlot draws the share of intervals that hold the score, by draw.
func coveragePlot(draws []Coverage) template.HTML {
	const step = 26
	low := 80.0
	for _, d := range draws {
		low = min(low, 5*math.Floor((d.SharePct-5)/5))
	}
	c := newCanvas("Share of intervals that hold the score", wide, topMargin+bottomMargin+step*float64(len(draws)), 210, [2]float64{max(low, 0), 100}, [2]float64{0, 1})
	c.rect("band1", c.x.at(85), topMargin, c.x.at(95), c.height-bottomMargin, "")
	c.grid(ticks(c.x.low, 100, 8), nil)
	c.line("limit", c.x.at(scoring.IntervalLevel), topMargin, c.x.at(scoring.IntervalLevel), c.height-bottomMargin)
	for i, d := range draws {
		y := topMargin + step*(float64(i)+0.5)
		c.text("end", c.left-8, y+4, fmt.Sprintf("draw %d, width %.1f", i+1, d.Width))
		if d.Cases == 0 {
			continue
		}
		p := d.SharePct / 100
		bound := 100 * confidence * math.Sqrt(p*(1-p)/float64(d.Cases))
		c.line("whisker", c.x.at(max(d.SharePct-bound, c.x.low)), y, c.x.at(min(d.SharePct+bound, 100)), y)
		c.dot(c.x.at(d.SharePct), y)
	}
	return c.svg()
}
