package report

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Text writes the report as text. A report that is not valid has no headline figures.
func (r *Run) Text(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	s := r.Settings
	line("%s", r.summary())
	line("")
	line("verdict %s", r.Verdict.Status)
	for _, reason := range r.Verdict.Reasons {
		line("  %s", reason)
	}
	if r.Verdict.Status == Valid {
		for _, name := range r.Headline {
			if c := r.ClassNamed(name); c != nil {
				line("%s: p50 %s, p99 %s, p99.9 %s at %s/s (%s of the answers to %s)", name, Duration(c.Latency.P50),
					Duration(c.Latency.P99),
					Duration(c.Latency.P999), Count(c.PerSecond), Percent(c.Share), c.Op)
			}
		}
	}
	for _, slo := range r.SLO {
		verdict := "met"
		if !slo.Met {
			verdict = "MISSED"
		}
		if slo.Why != "" {
			verdict += ": " + slo.Why
		}
		line("slo %s of %s: %s, %s", slo.Text, slo.Class, Duration(slo.Measured), verdict)
	}
	line("")
	line("\tanswers\tshare\tper second\tp50\tp90\tp99\tp99.9\tmax\tservice p50\tservice p99\t")
	for _, c := range r.Classes {
		name := c.Name
		if !c.Expected {
			name += " (!)"
		}
		line("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t", name, Count(float64(c.Count)), Percent(c.Share), Count(c.PerSecond),
			Duration(c.Latency.P50), Duration(c.Latency.P90),
			Duration(c.Latency.P99), Duration(c.Latency.P999), Duration(c.Latency.Max), Duration(c.Service.P50), Duration(c.Service.P99))
	}
	for _, name := range r.Headline {
		if c := r.ClassNamed(name); c != nil && c.Histogram != nil {
			line("")
			line("\t%s below\tanswers\tshare\t", name)
			for _, bin := range c.Histogram {
				share := float64(bin.Count) / float64(c.Count)
				bar := ""
				if n := int(math.Round(barWidth * share)); n > 0 {
					bar = "  " + strings.Repeat("#", n)
				}
				line("\t%s\t%s\t%s\t%s", Duration(bin.Below), Count(float64(bin.Count)), Percent(share), bar)
			}
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	line("")
	mark := ""
	if r.Load.Unexpected > 0 {
		mark = " (!)"
	}
	line("sent %s of %s due, answered %s, unexpected %s%s, %s reconnects", Count(float64(r.Load.Sent)), Count(float64(r.Load.Planned)),
		Count(float64(r.Load.Answered)), Count(float64(r.Load.Unexpected)), mark, Count(float64(r.Load.Reconnects)))
	g := r.Generator
	if s.Rate > 0 {
		line("generator: delay p50 %s, p99 %s, max %s; wait for a connection p99 %s; %s of a core per thread, priority %s",
			Duration(g.Pacing.P50), Duration(g.Pacing.P99), Duration(g.Pacing.Max),
			Duration(g.Waiting.P99), Percent(g.CPUShare), g.Priority)
	} else {
		line("generator: %s of a core per thread, priority %s", Percent(g.CPUShare), g.Priority)
	}
	if j := r.Jobs; j != nil {
		line("runs: %s started, %s complete, %s failed, %s pending at the end; time to score p50 %s, p99 %s", Count(float64(j.Started)),
			Count(float64(j.Complete)),
			Count(float64(j.Failed)), Count(float64(j.Unsettled)), Duration(j.ToScore.P50), Duration(j.ToScore.P99))
	}
	if f := r.Fill; f != nil {
		line("fill: %s companies requested, %s found, in %.1f s", Count(float64(f.Companies)), Count(float64(f.Found)), f.Seconds)
		for _, p := range r.processes() {
			if after, ok := f.RSSAfter[p.Name]; ok {
				line("  %s: %s before, %s after", p.Name, Size(f.RSSBefore[p.Name]), Size(after))
			}
		}
	}
	if r.Server != nil {
		line("server: %s of CPU time per answer; other processes used %s in the first third, %s in the last",
			Duration(r.Server.CPUPerRequest), Percent(r.Server.OtherFirst), Percent(r.Server.OtherLast))
		line("")
		line("\tcores\tCPU\tmemory at start\tat 1/3\tat 2/3\tat the end\tslope per minute\t")
		for _, p := range r.Server.Processes {
			line("%s\t%.2f\t%.1f s\t%s\t%s\t%s\t%s\t%s\t", p.Name, p.CPUShare, p.CPU, Size(p.RSSStart), Size(p.RSSThird), Size(p.RSSThirds),
				Size(p.RSSEnd), Size(int64(p.Slope)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	if m := r.FindMax; m != nil {
		line("")
		line("\trate\tachieved\tp99\tverdict\tmet\t")
		for _, step := range m.Steps {
			line("\t%s\t%s\t%s\t%s\t%v\t", Count(step.Rate), Count(step.Achieved), Duration(step.P99), step.Status, step.Met)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		switch {
		case m.Best == 0:
			line("no rate met the SLO")
		case m.Limit == "generator":
			line("highest rate that met the SLO: %s/s, limited by the generator", Count(m.Best))
		default:
			line("highest rate that met the SLO: %s/s", Count(m.Best))
		}
	}
	e := r.Environment
	line("")
	line("%s, %d cores, %s, Linux %s, %s, commit %s", e.CPU, e.Cores, Size(e.Memory), e.Kernel, e.Go, e.Commit)
	line("interruptions of the idle machine before: %s", e.Stops)
	return w.Flush()
}

// barWidth is the number of characters of a bar of all answers.
const barWidth = 60

func (s Stops) String() string {
	if s.Count == 0 {
		return "none of 0.1 ms"
	}
	return fmt.Sprintf("%s of the time on one processor, at most %s", Percent(s.Share), Duration(s.Longest))
}

func (r *Run) processes() []Process {
	if r.Server == nil {
		return nil
	}
	return r.Server.Processes
}

// summary returns the settings in one sentence.
func (r *Run) summary() string {
	s := r.Settings
	how := "closed loop"
	if s.Rate > 0 {
		how = fmt.Sprintf("%s/s, %s arrivals", Count(s.Rate), s.Arrivals)
	}
	return fmt.Sprintf("%s: %s, %g s after %g s of warm-up, %d connections, seed %d", s.Scenario, how, s.Duration, s.Warmup, s.Connections,
		s.Seed)
}

// Duration formats microseconds with three significant digits.
func Duration(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us < 1000:
		return figures(us) + " µs"
	case us < 1_000_000:
		return figures(us/1000) + " ms"
	}
	return figures(us/1_000_000) + " s"
}

// Count formats a number with separators.
func Count(n float64) string {
	if n != 0 && math.Abs(n) < 10 && n != math.Trunc(n) {
		return strconv.FormatFloat(n, 'f', 2, 64)
	}
	text := strconv.FormatInt(int64(math.Round(n)), 10)
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	var parts []string
	for len(text) > 3 {
		parts = append([]string{text[len(text)-3:]}, parts...)
		text = text[:len(text)-3]
	}
	return sign + strings.Join(append([]string{text}, parts...), ",")
}

// Percent formats a share of 0 to 1.
func Percent(share float64) string { return figures(100*share) + " %" }

// Size formats bytes.
func Size(bytes int64) string {
	n := math.Abs(float64(bytes))
	sign := ""
	if bytes < 0 {
		sign = "-"
	}
	switch {
	case n < 1<<20:
		return sign + figures(n/(1<<10)) + " KB"
	case n < 1<<30:
		return sign + figures(n/(1<<20)) + " MB"
	}
	return sign + figures(n/(1<<30)) + " GB"
}

// figures formats a number with three significant digits, without decimals from 100.
func figures(x float64) string {
	switch a := math.Abs(x); {
	case a >= 99.95:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case a >= 9.995:
		return strconv.FormatFloat(x, 'f', 1, 64)
	}
	return strconv.FormatFloat(x, 'f', 2, 64)
}
