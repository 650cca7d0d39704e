package report

import (
	"embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strconv"

	"companyscore/internal/chart"
)

//go:embed page.html
var pageFile embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"duration": Duration, "count": func(n any) string {
		switch n := n.(type) {
		case int64:
			return Count(float64(n))
		case int:
			return Count(float64(n))
		case float64:
			return Count(n)
		}
		return fmt.Sprint(n)
	},
	"percent": Percent, "size": Size, "slope": func(x float64) string { return Size(int64(x)) },
}).ParseFS(pageFile, "page.html"))

// HTML writes the report as one self-contained page.
func (r *Run) HTML(w io.Writer) error {
	return page.Execute(w, struct {
		*Run
		Summary string
		Charts  []template.HTML
	}{r, r.summary(), r.charts()})
}

// charts returns the charts that have points.
func (r *Run) charts() []template.HTML {
	seconds := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) + " s" }
	bytes := func(v float64) string { return Size(int64(v)) }
	byPercentile := lines{title: "Latency by percentile, from when a request was due", logY: true, xTicks: percentileTicks,
		yLabel: Duration}
	for _, c := range r.Classes {
		s := series{name: c.Name}
		for _, p := range c.Curve {
			if p.Percentile < 100 {
				s.points = append(s.points, [2]float64{nines(p.Percentile), p.Latency})
			}
		}
		byPercentile.series = append(byPercentile.series, s)
	}
	latency := lines{title: "Latency of " + first(r.Headline) + " per second", logY: true, xLabel: seconds, yLabel: Duration}
	answers := lines{title: "Requests per second", xLabel: seconds, yLabel: Count}
	p50, p99, slowest, pacing := series{name: "p50"}, series{name: "p99"}, series{name: "slowest"},
		series{name: "delay of the generator, p99"}
	sent, answered, failed, waiting := series{name: "sent"}, series{name: "answered"}, series{name: "failed"},
		series{name: "waiting for a connection"}
	for _, i := range r.Intervals {
		if i.At > r.Settings.Warmup+r.Settings.Duration {
			break // the rest is the wait for the last answers
		}
		add := func(s *series, v float64) { s.points = append(s.points, [2]float64{i.At, v}) }
		add(&p50, i.P50)
		add(&p99, i.P99)
		add(&slowest, i.Max)
		add(&pacing, i.PacingP99)
		add(&sent, float64(i.Sent))
		add(&answered, float64(i.Answered))
		add(&failed, float64(i.Failed))
		add(&waiting, float64(i.Waiting))
	}
	latency.series = []series{p50, p99, slowest, pacing}
	answers.series = []series{sent, answered, failed, waiting}
	memory := lines{title: "Memory of the server processes", xLabel: seconds, yLabel: bytes}
	cpu := lines{title: "CPU use of the server processes, in cores", xLabel: seconds, yLabel: func(v float64) string {
		return strconv.FormatFloat(v, 'f', 2, 64)
	}}
	for _, p := range r.processes() {
		held, used := series{name: p.Name}, series{name: p.Name}
		for i, s := range p.Samples {
			held.points = append(held.points, [2]float64{s.At, float64(s.RSS)})
			if i > 0 {
				used.points = append(used.points, [2]float64{s.At, s.CPU})
			}
		}
		memory.series, cpu.series = append(memory.series, held), append(cpu.series, used)
	}
	var drawn []template.HTML
	for _, c := range []lines{byPercentile, latency, answers, memory, cpu} {
		if svg := c.svg(); svg != "" {
			drawn = append(drawn, svg)
		}
	}
	return drawn
}

// nines returns the position of a percentile on an axis with equal distances between 90, 99 and 99.9.
func nines(percentile float64) float64 { return -math.Log10(1 - percentile/100) }

var percentileTicks = func() (ticks []chart.Tick) {
	for _, p := range []float64{0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999} {
		ticks = append(ticks, chart.Tick{At: nines(p), Label: strconv.FormatFloat(p, 'f', -1, 64)})
	}
	return ticks
}()

func first(names []string) string {
	if len(names) == 0 {
		return "all answers"
	}
	return names[0]
}
