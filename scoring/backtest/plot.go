package backtest

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"

	"companyscore/internal/chart"
	"companyscore/scoring"
)

// Margins of plots in SVG units.
const (
	topMargin, rightMargin, bottomMargin = 18, 14, 26
	half, wide                           = 480, 980 // widths of plots
)

func newPlot(label string, width, height, left float64, x, y chart.Axis) *chart.Chart {
	frame := chart.Frame{Left: left, Top: topMargin, Right: width - rightMargin, Bottom: height - bottomMargin}
	return chart.New("", label, width, height, frame, x, y)
}

// around returns the multiples of 5 around composites.
func around(low, high float64) chart.Axis {
	low, high = math.Floor(low/5)*5, math.Ceil(high/5)*5
	if low == high {
		high += 5
	}
	return chart.Axis{Low: low, High: high}
}

// histogram draws companies per point with the bands of the grades.
func histogram(d Composites) template.HTML {
	bounds := around(d.Min, d.Max)
	most := slices.Max(d.Bins[:])
	c := newPlot("Histogram of composites with grades", wide, 300, 56, bounds, chart.Axis{High: 1.08 * float64(most)})
	for i, band := range gradeBands() {
		from, to := max(band.from, bounds.Low), min(band.to, bounds.High)
		if from >= to {
			continue
		}
		c.Bar("band"+strconv.Itoa(i%2), c.X.At(from), topMargin, c.X.At(to), c.Frame.Bottom, "")
		c.Text("middle", c.X.At((from+to)/2), topMargin-5, string(band.grade))
	}
	c.Grid(c.X.Ticks(12, nil), c.Y.Ticks(5, nil))
	for bin, n := range d.Bins {
		if n > 0 {
			c.Bar("bar", c.X.At(float64(bin))+0.5, c.Y.At(0), c.X.At(float64(bin+1))-0.5, c.Y.At(float64(n)),
				fmt.Sprintf("%d to %d: %d companies", bin, bin+1, n))
		}
	}
	return c.SVG()
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
	c := newPlot("Composite over the percentile of the outcome", half, 320, 40, chart.Axis{High: 100}, bounds)
	c.Grid(c.X.Ticks(5, nil), c.Y.Ticks(6, nil))
	n := min(len(sorted), scatterMax)
	for k := range n {
		i := k * len(sorted) / n
		c.Point("dot", c.X.At(100*rank[i]/float64(len(sorted))), c.Y.At(sorted[i].composite), 2.2, "")
	}
	return c.SVG()
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
	c := newPlot("Composites by class", half, 320, 40, chart.Axis{High: float64(len(names))}, bounds)
	c.Grid(nil, c.Y.Ticks(6, nil))
	for i, composites := range classes {
		centre := c.X.At(float64(i) + 0.5)
		c.Text("middle", centre, c.Frame.Bottom+12, names[i])
		c.Text("middle", centre, c.Frame.Bottom+24, strconv.Itoa(len(composites)))
		if len(composites) == 0 {
			continue
		}
		reach := min(28, 0.35*(c.X.At(1)-c.X.At(0)))
		q := func(share float64) float64 { return quantile(composites, share) }
		c.Line("whisker", centre, c.Y.At(q(0.05)), centre, c.Y.At(q(0.95)))
		c.Bar("box", centre-reach, c.Y.At(q(0.75)), centre+reach, c.Y.At(q(0.25)),
			fmt.Sprintf("%s: %.1f, %.1f, %.1f, %.1f, %.1f", names[i], q(0.05), q(0.25), q(0.5), q(0.75), q(0.95)))
		c.Line("median", centre-reach, c.Y.At(q(0.5)), centre+reach, c.Y.At(q(0.5)))
	}
	return c.SVG()
}

// rocPlot draws a ROC curve.
func rocPlot(curve [][2]float64) template.HTML {
	c := newPlot("ROC curve", half, 420, 40, chart.Axis{High: 1}, chart.Axis{High: 1})
	c.Grid(c.X.Ticks(5, nil), c.Y.Ticks(5, nil))
	c.Line("limit", c.X.At(0), c.Y.At(0), c.X.At(1), c.Y.At(1))
	points := make([][2]float64, len(curve))
	for i, p := range curve {
		points[i] = [2]float64{c.X.At(p[0]), c.Y.At(p[1])}
	}
	c.Curve("curve", points, "")
	return c.SVG()
}

// cliffPlot draws the effects by fact.
func cliffPlot(facts []FactCliffs) template.HTML {
	const step = 20
	most := 6.0
	for _, f := range facts {
		most = max(most, f.Max)
	}
	c := newPlot("Effect of one fact left out, in points", wide, topMargin+bottomMargin+step*float64(len(facts)), 210,
		chart.Axis{High: math.Ceil(most)}, chart.Axis{High: 1})
	c.Grid(c.X.Ticks(8, nil), nil)
	for _, v := range []float64{3, 5} {
		c.Line("limit", c.X.At(v), topMargin, c.X.At(v), c.Frame.Bottom)
	}
	for i, f := range facts {
		y := topMargin + step*(float64(i)+0.5)
		c.Text("end", c.Frame.Left-8, y+4, f.Fact)
		c.Line("whisker", c.X.At(0), y, c.X.At(f.Max), y)
		c.Bar("bar", c.X.At(0), y-5, c.X.At(f.P95), y+5, fmt.Sprintf("%s: median %.1f, p95 %.1f, largest %.1f, %d cases", f.Fact, f.Median,
			f.P95, f.Max, f.Cases))
		c.Line("median", c.X.At(f.Median), y-6, c.X.At(f.Median), y+6)
	}
	return c.SVG()
}

// coveragePlot draws the share of intervals that hold the score, by draw.
func coveragePlot(draws []Coverage) template.HTML {
	const step = 26
	low := 80.0
	for _, d := range draws {
		low = min(low, 5*math.Floor((d.SharePct-5)/5))
	}
	c := newPlot("Share of intervals that hold the score", wide, topMargin+bottomMargin+step*float64(len(draws)), 210,
		chart.Axis{Low: max(low, 0), High: 100}, chart.Axis{High: 1})
	c.Bar("band1", c.X.At(85), topMargin, c.X.At(95), c.Frame.Bottom, "")
	c.Grid(c.X.Ticks(8, nil), nil)
	c.Line("limit", c.X.At(scoring.IntervalLevel), topMargin, c.X.At(scoring.IntervalLevel), c.Frame.Bottom)
	for i, d := range draws {
		y := topMargin + step*(float64(i)+0.5)
		c.Text("end", c.Frame.Left-8, y+4, fmt.Sprintf("draw %d, width %.1f", i+1, d.Width))
		if d.Cases == 0 {
			continue
		}
		p := d.SharePct / 100
		bound := 100 * confidence * math.Sqrt(p*(1-p)/float64(d.Cases))
		c.Line("whisker", c.X.At(max(d.SharePct-bound, c.X.Low)), y, c.X.At(min(d.SharePct+bound, 100)), y)
		c.Point("dot", c.X.At(d.SharePct), y, 2.2, "")
	}
	return c.SVG()
}
