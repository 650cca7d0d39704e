package console

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"companyscore/internal/account"
	"companyscore/scoring"
)

// Charts are SVG that templates draw from these values. Sizes are in units of the viewBox. Each chart
// stands beside a table with the same numbers.

// bar is one rectangle of a chart.
type bar struct {
	X, Y, Width, Height float64
	Label, Title        string
	Marked              bool
}

// barChart is a chart of bars over an axis.
type barChart struct {
	Width, Height, Base float64 // Base is the y of the axis
	Bars                []bar
	Ticks               []tick
	Summary             string // for readers who do not see the chart
}

// tick is a text at a place of an axis.
type tick struct {
	X, Y   float64
	Text   string
	Anchor string // start, middle or end: the part of the text that is at X
}

// Charts are as wide as a page or as half of one. Their texts have the same size.
const (
	fullWidth   = 960
	halfWidth   = 460
	chartHeight = 170
	chartBase   = 148
	chartTop    = 6
)

// ticks sets the anchors of the first and the last tick, so that no text is cut.
func ticks(all []tick) []tick {
	for i := range all {
		all[i].Anchor = "middle"
	}
	if n := len(all); n > 0 {
		all[n-1].Anchor, all[0].Anchor = "end", "start"
	}
	return all
}

// histogram returns the chart of counts of equal bins from 0 to most. It marks the bin of a value,
// none if the value is negative.
func histogram(counts []int64, most, marked float64, what string, chartWidth float64) barChart {
	c := barChart{Width: chartWidth, Height: chartHeight, Base: chartBase}
	highest := max(slices.Max(counts), 1)
	width := chartWidth / float64(len(counts))
	step := most / float64(len(counts))
	var total int64
	for i, n := range counts {
		total += n
		height := math.Round(100*(chartBase-chartTop)*float64(n)/float64(highest)) / 100
		if n > 0 {
			height = max(height, 1)
		}
		from, to := float64(i)*step, float64(i+1)*step
		c.Bars = append(c.Bars, bar{
			X: float64(i)*width + 1, Y: chartBase - height, Width: width - 2, Height: height, Label: fmt.Sprintf("%g to %g", from, to),
			Title: fmt.Sprintf("%g to %g: %s", from, to, count(n)), Marked: marked >= from && (marked < to || i == len(counts)-1 && marked <= to),
		})
	}
	for i := 0; i <= len(counts); i += len(counts) / 4 {
		c.Ticks = append(c.Ticks, tick{X: float64(i) * width, Y: chartHeight - 5, Text: fmt.Sprintf("%g", float64(i)*step)})
	}
	c.Ticks = ticks(c.Ticks)
	c.Summary = fmt.Sprintf("Histogram of %s, %s companies in bins of %g points. The largest bin has %s.", what, count(total), step, count(highest))
	return c
}

// dailyChart returns the chart of the calls of each day of a month.
func dailyChart(days []account.RequestGroup, from, to time.Time) barChart {
	c := barChart{Width: fullWidth, Height: chartHeight, Base: chartBase}
	calls := make(map[string]uint64)
	var highest, total uint64
	for _, d := range days {
		calls[d.Group] = d.Calls
		highest, total = max(highest, d.Calls), total+d.Calls
	}
	n := int(to.Sub(from).Hours() / 24)
	width := fullWidth / float64(n)
	for i := range n {
		day := from.AddDate(0, 0, i)
		have := calls[day.Format(time.DateOnly)]
		height := (chartBase - chartTop) * float64(have) / float64(max(highest, 1))
		if have > 0 {
			height = max(height, 1)
		}
		c.Bars = append(c.Bars, bar{X: float64(i)*width + 1, Y: chartBase - height, Width: width - 2, Height: height, Title: day.Format("2 January") + ": " + count(have) + " requests"})
		if i%7 == 0 && i < 28 {
			c.Ticks = append(c.Ticks, tick{X: float64(i)*width + width/2, Y: chartHeight - 5, Text: day.Format("2 Jan"), Anchor: "middle"})
		}
	}
	c.Summary = fmt.Sprintf("Requests per day of %s: %s in all, at most %s on one day.", from.Format("January 2006"), count(total), count(highest))
	return c
}

// gradeBand is the range of composites of a grade.
type gradeBand struct {
	Grade         scoring.Rating
	From, To      float64
	X, Y          float64
	Width, Height float64
	TextX, TextY  float64
	NarrowForText bool
}

// lineChart is the history of a composite over the bands of the grades.
type lineChart struct {
	Width, Height, Right float64 // Right is the x of the end of the lines
	Bands                []gradeBand
	Points               []bar // their middle is X and Y
	Line                 string
	Area                 string // between the ends of the intervals
	Ticks                []tick
	Summary              string
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

// historyChart returns the chart of records, which are newest first. Its y axis covers the records
// with their intervals.
func historyChart(records []scoring.Record) lineChart {
	const height, top, bottom, right = 240, 8, 216, fullWidth - 60
	c := lineChart{Width: fullWidth, Height: height, Right: right}
	if len(records) == 0 {
		return c
	}
	low, high := 100.0, 0.0
	for _, r := range records {
		low, high = min(low, r.Interval.Low, r.Composite), max(high, r.Interval.High, r.Composite)
	}
	low, high = max(math.Floor(low/5)*5-5, 0), min(math.Ceil(high/5)*5+5, 100)
	y := func(x float64) float64 { return math.Round(10*(bottom-(bottom-top)*(x-low)/(high-low))) / 10 }
	for _, b := range bands() {
		from, to := max(b.From, low), min(b.To, high)
		if from >= to {
			continue
		}
		b.Y, b.Height, b.Width = y(to), y(from)-y(to), right
		b.TextY, b.TextX = (y(from)+y(to))/2+4, right+8
		b.NarrowForText = b.Height < 12
		c.Bands = append(c.Bands, b)
	}
	oldest, newest := records[len(records)-1], records[0]
	span := newest.ScoredAt.Sub(oldest.ScoredAt)
	x := func(at time.Time) float64 {
		if span <= 0 {
			return right / 2
		}
		return math.Round(10*(8+(right-16)*float64(at.Sub(oldest.ScoredAt))/float64(span))) / 10
	}
	var line, upper, lower []string
	for _, r := range slices.Backward(records) {
		at := x(r.ScoredAt)
		line = append(line, fmt.Sprintf("%g,%g", at, y(r.Composite)))
		upper = append(upper, fmt.Sprintf("%g,%g", at, y(r.Interval.High)))
		lower = append(lower, fmt.Sprintf("%g,%g", at, y(r.Interval.Low)))
		if len(records) <= 60 {
			c.Points = append(c.Points, bar{X: at, Y: y(r.Composite), Title: fmt.Sprintf("%s: %.1f, %s", r.ScoredAt.Format(time.DateOnly), r.Composite, r.Rating)})
		}
	}
	slices.Reverse(lower)
	c.Line, c.Area = strings.Join(line, " "), strings.Join(append(upper, lower...), " ")
	c.Ticks = append(c.Ticks, tick{X: 0, Y: height - 6, Anchor: "start", Text: oldest.ScoredAt.Format(time.DateOnly)})
	if span > 0 {
		c.Ticks = append(c.Ticks, tick{X: right, Y: height - 6, Anchor: "end", Text: newest.ScoredAt.Format(time.DateOnly)})
	}
	c.Summary = fmt.Sprintf("Composite of %d records from %s to %s: %.1f at first, %.1f now.",
		len(records), oldest.ScoredAt.Format(time.DateOnly), newest.ScoredAt.Format(time.DateOnly), oldest.Composite, newest.Composite)
	return c
}

// gauge is the composite with its interval on a scale of 0 to 100.
type gauge struct {
	Bands                   []gradeBand
	Low, High, At, Expected float64
	IntervalWidth           float64
}

func newGauge(rec scoring.Record) gauge {
	const scale = fullWidth / 100.0
	g := gauge{Low: rec.Interval.Low * scale, High: rec.Interval.High * scale, At: rec.Composite * scale, Expected: rec.ExpectedComposite * scale}
	g.IntervalWidth = max(g.High-g.Low, 1)
	for _, b := range bands() {
		b.X, b.Width = b.From*scale, (b.To-b.From)*scale
		b.TextX = b.X + b.Width/2
		g.Bands = append(g.Bands, b)
	}
	return g
}
