package console

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"time"

	"companyscore/internal/chart"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// Charts are as wide as a page or as half of one. Their texts have the same size. Each chart stands
// beside a table with the same numbers.
const (
	fullWidth = 960
	halfWidth = 460
)

// newBars begins a chart of bars over an axis.
func newBars(summary string, width float64, x chart.Axis, highest float64) *chart.Chart {
	class := "chart"
	if width == fullWidth {
		class += " full"
	}
	c := chart.New(class, summary, width, 170, chart.Frame{Top: 6, Right: width, Bottom: 148}, x, chart.Axis{High: max(highest, 1)})
	c.Line("axis", 0, c.Frame.Bottom, width, c.Frame.Bottom)
	return c
}

// drawBar draws a bar of a count between two values of the x axis.
func drawBar(c *chart.Chart, class string, from, to float64, n uint64, title string) {
	top := c.Y.At(float64(n))
	if n > 0 {
		top = min(top, c.Frame.Bottom-1)
	}
	c.Bar(class, c.X.At(from)+1, c.Frame.Bottom, c.X.At(to)-1, top, title)
}

// histogram is a chart of counts with the labels of its bins.
type histogram struct {
	SVG  template.HTML
	Bins []string
}

// newHistogram returns the chart of counts of equal bins from 0 to most. It marks the bin of a value,
// none if the value is negative.
func newHistogram(counts []int64, most, marked float64, what string, width float64) histogram {
	highest, step := max(slices.Max(counts), 1), most/float64(len(counts))
	var total int64
	for _, n := range counts {
		total += n
	}
	summary := fmt.Sprintf("Histogram of %s, %s companies in bins of %g points. The largest bin has %s.", what, count(total), step,
		count(highest))
	c := newBars(summary, width, chart.Axis{High: most}, float64(highest))
	var h histogram
	for i, n := range counts {
		from, to, class := float64(i)*step, float64(i+1)*step, "bar"
		if marked >= from && (marked < to || i == len(counts)-1 && marked <= to) {
			class += " marked"
		}
		h.Bins = append(h.Bins, fmt.Sprintf("%g to %g", from, to))
		drawBar(c, class, from, to, uint64(n), h.Bins[i]+": "+count(n))
	}
	for i, anchor := range []string{"start", "middle", "middle", "middle", "end"} { // so that no text is cut
		at := most * float64(i) / 4
		c.Text(anchor, c.X.At(at), c.Frame.Bottom+17, fmt.Sprintf("%g", at))
	}
	h.SVG = c.SVG()
	return h
}

// dailyChart returns the chart of the calls of each day of a month.
func dailyChart(days []table.RequestGroup, from, to time.Time) template.HTML {
	calls := make(map[string]uint64)
	var highest, total uint64
	for _, d := range days {
		calls[d.Group] = d.Calls
		highest, total = max(highest, d.Calls), total+d.Calls
	}
	n := int(to.Sub(from).Hours() / 24)
	summary := fmt.Sprintf("Requests per day of %s: %s in all, at most %s on one day.", from.Format("January 2006"), count(total),
		count(highest))
	c := newBars(summary, fullWidth, chart.Axis{High: float64(n)}, float64(highest))
	for i := range n {
		day := from.AddDate(0, 0, i)
		have := calls[day.Format(time.DateOnly)]
		drawBar(c, "bar", float64(i), float64(i+1), have, day.Format("2 January")+": "+count(have)+" requests")
		if i%7 == 0 && i < 28 {
			c.Text("middle", c.X.At(float64(i)+0.5), c.Frame.Bottom+17, day.Format("2 Jan"))
		}
	}
	return c.SVG()
}

// gradeBand is the range of composites of a grade.
type gradeBand struct {
	Grade           scoring.Rating
	From, To        float64
	X, Width, TextX float64 // in the gauge
}

// bands returns the ranges of the grades, lowest first.
func bands() []gradeBand {
	grades := scoring.Ratings()
	slices.Reverse(grades)
	all := make([]gradeBand, len(grades))
	for i, g := range grades {
		all[i] = gradeBand{Grade: g, From: scoring.RatingFrom(g), To: 100}
		if i+1 < len(grades) {
			all[i].To = scoring.RatingFrom(grades[i+1])
		}
	}
	return all
}

// historyChart returns the chart of records, which are newest first, over the bands of the grades. Its
// y axis covers the records with their intervals. It is empty without records.
func historyChart(records []scoring.Record) template.HTML {
	if len(records) == 0 {
		return ""
	}
	low, high := 100.0, 0.0
	for _, r := range records {
		low, high = min(low, r.Interval.Low, r.Composite), max(high, r.Interval.High, r.Composite)
	}
	oldest, newest := records[len(records)-1], records[0]
	const edge = fullWidth - 60 // the grades stand right of it
	c := chart.New("chart full", fmt.Sprintf("Composite of %d records from %s to %s: %.1f at first, %.1f now.",
		len(records), oldest.ScoredAt.Format(time.DateOnly), newest.ScoredAt.Format(time.DateOnly), oldest.Composite, newest.Composite),
		fullWidth, 240, chart.Frame{Left: 8, Top: 8, Right: edge - 8, Bottom: 216}, chart.Axis{High: 1},
		chart.Axis{Low: max(math.Floor(low/5)*5-5, 0), High: min(math.Ceil(high/5)*5+5, 100)})
	for _, b := range bands() {
		from, to := c.Y.At(max(b.From, c.Y.Low)), c.Y.At(min(b.To, c.Y.High))
		if from <= to {
			continue
		}
		c.Bar("band "+gradeClass(b.Grade), 0, from, edge, to, "")
		if from-to >= 12 {
			c.Text("start", edge+8, (from+to)/2+4, string(b.Grade))
		}
	}
	span := newest.ScoredAt.Sub(oldest.ScoredAt)
	var line, upper, lower [][2]float64
	for _, r := range slices.Backward(records) {
		x := c.X.At(0.5)
		if span > 0 {
			x = c.X.At(float64(r.ScoredAt.Sub(oldest.ScoredAt)) / float64(span))
		}
		line = append(line, [2]float64{x, c.Y.At(r.Composite)})
		upper = append(upper, [2]float64{x, c.Y.At(r.Interval.High)})
		lower = append(lower, [2]float64{x, c.Y.At(r.Interval.Low)})
	}
	slices.Reverse(lower)
	c.Area("area", append(upper, lower...))
	c.Curve("line", line, "")
	if len(records) <= 60 {
		for i, r := range slices.Backward(records) {
			at := line[len(records)-1-i]
			c.Point("dot", at[0], at[1], 3.5, fmt.Sprintf("%s: %.1f, %s", r.ScoredAt.Format(time.DateOnly), r.Composite, r.Rating))
		}
	}
	c.Text("start", 0, 234, oldest.ScoredAt.Format(time.DateOnly))
	if span > 0 {
		c.Text("end", edge, 234, newest.ScoredAt.Format(time.DateOnly))
	}
	return c.SVG()
}

// gauge is the composite with its interval on a scale of 0 to 100.
type gauge struct {
	Bands                   []gradeBand
	Low, High, At, Expected float64
	IntervalWidth           float64
}

func newGauge(rec scoring.Record) gauge {
	const scale = fullWidth / 100.0
	g := gauge{Low: rec.Interval.Low * scale, High: rec.Interval.High * scale, At: rec.Composite * scale,
		Expected: rec.ExpectedComposite * scale}
	g.IntervalWidth = max(g.High-g.Low, 1)
	for _, b := range bands() {
		b.X, b.Width = b.From*scale, (b.To-b.From)*scale
		b.TextX = b.X + b.Width/2
		g.Bands = append(g.Bands, b)
	}
	return g
}
