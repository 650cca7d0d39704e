package report

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// Difference is one figure in two bench runs.
type Difference struct {
	What   string // class and figure
	Before float64
	After  float64
	Change float64 // relative, 0.1 is 10 % more
	Worse  bool    // by more than the tolerance
	Unit   Unit
}

// Unit is the unit in which a figure is written.
type Unit uint8

const (
	Microseconds Unit = iota
	PerSecond
)

func (u Unit) write(x float64) string {
	if u == PerSecond {
		return Count(x) + "/s"
	}
	return Duration(x)
}

// Comparison is the result of comparing two bench runs.
type Comparison struct {
	// Unusable are reasons why the two cannot be compared. If set, Differences is empty.
	Unusable []string
	// Invalid are the verdicts other than VALID of two runs that are compared anyway.
	Invalid []string
	// Notes are differences in settings, environment or classes.
	Notes       []string
	Differences []Difference
}

// noise is the difference of latencies below which nothing is worse: the resolution of
// timers and schedulers.
const noise = 50 // microseconds

// Compare compares run b with run a. A latency is worse if it rose by more than the
// tolerance and by more than 50 µs. Throughput and CPU per answer are worse if they fell
// or rose by more than the tolerance. Any rise of unexpected answers is worse. Runs that are not valid are not compared
// unless anyway is set.
func Compare(a, b *Run, tolerance float64, anyway bool) Comparison {
	var c Comparison
	for _, side := range []struct {
		name string
		run  *Run
	}{{"first", a}, {"second", b}} {
		if side.run.Verdict.Status != Valid {
			c.Invalid = append(c.Invalid, fmt.Sprintf("the %s run is %s", side.name, side.run.Verdict.Status))
		}
	}
	if !anyway {
		c.Unusable, c.Invalid = c.Invalid, nil
	}
	if a.Settings.Scenario != b.Settings.Scenario {
		c.Unusable = append(c.Unusable, fmt.Sprintf("the scenarios are %s and %s", a.Settings.Scenario, b.Settings.Scenario))
	}
	if (a.Settings.Rate == 0) != (b.Settings.Rate == 0) {
		c.Unusable = append(c.Unusable, "one is an open loop and the other a closed one")
	}
	if c.Unusable != nil {
		return c
	}
	note := func(what string, before, after any) {
		if before != after {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: %v, then %v", what, before, after))
		}
	}
	note("rate", a.Settings.Rate, b.Settings.Rate)
	note("connections", a.Settings.Connections, b.Settings.Connections)
	note("companies", a.Settings.Universe, b.Settings.Universe)
	note("seed", a.Settings.Seed, b.Settings.Seed)
	note("CPU", a.Environment.CPU, b.Environment.CPU)
	note("cores", a.Environment.Cores, b.Environment.Cores)
	note("kernel", a.Environment.Kernel, b.Environment.Kernel)
	note("commit", a.Environment.Commit, b.Environment.Commit)
	note("priority of the generator", a.Environment.Priority, b.Environment.Priority)
	for _, before := range a.Classes {
		after := b.ClassNamed(before.Name)
		if after == nil {
			c.Notes = append(c.Notes, "the second run has no "+before.Name)
			continue
		}
		if a.Settings.Rate > 0 { // in a closed loop latency follows from throughput
			c.latency(before.Name+" p50", before.Latency.P50, after.Latency.P50, tolerance)
			c.latency(before.Name+" p99", before.Latency.P99, after.Latency.P99, tolerance)
			c.latency(before.Name+" p99.9", before.Latency.P999, after.Latency.P999, tolerance)
		}
	}
	for _, after := range b.Classes {
		if a.ClassNamed(after.Name) == nil {
			c.Notes = append(c.Notes, "the first run has no "+after.Name)
		}
	}
	change := relative(a.Load.Achieved, b.Load.Achieved)
	c.Differences = append(c.Differences, Difference{What: "answers", Before: a.Load.Achieved, After: b.Load.Achieved, Change: change,
		Worse: change < -tolerance, Unit: PerSecond})
	if a.Server != nil && b.Server != nil {
		change := relative(a.Server.CPUPerRequest, b.Server.CPUPerRequest)
		c.Differences = append(c.Differences, Difference{
			What: "server CPU for each answer", Before: a.Server.CPUPerRequest, After: b.Server.CPUPerRequest, Change: change,
			Worse: change > tolerance,
		})
	}
	if before, after := unexpected(a), unexpected(b); after > before {
		c.Differences = append(c.Differences, Difference{What: "unexpected answers", Before: before, After: after,
			Change: relative(before, after), Worse: true, Unit: PerSecond})
	}
	return c
}

func unexpected(r *Run) float64 { return float64(r.Load.Unexpected) / r.Load.Elapsed }

func (c *Comparison) latency(what string, before, after, tolerance float64) {
	change := relative(before, after)
	c.Differences = append(c.Differences, Difference{What: what, Before: before, After: after, Change: change, Worse: change > tolerance &&
		after-before > noise})
}

func relative(before, after float64) float64 {
	switch {
	case before == after:
		return 0
	case before == 0:
		return math.Inf(1)
	}
	return after/before - 1
}

// Worse reports whether a figure is worse, or the reports are not comparable or not valid.
func (c Comparison) Worse() bool {
	if len(c.Unusable)+len(c.Invalid) > 0 {
		return true
	}
	for _, d := range c.Differences {
		if d.Worse {
			return true
		}
	}
	return false
}

// Text writes the comparison as text. Figures of runs that are not valid are ratios, and none of them is worse.
func (c Comparison) Text(out io.Writer) error {
	for _, reason := range c.Unusable {
		fmt.Fprintln(out, "not comparable:", reason)
	}
	for _, reason := range c.Invalid {
		fmt.Fprintln(out, "not valid:", reason)
	}
	for _, note := range c.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	if len(c.Differences) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	how := "change"
	if c.Invalid != nil {
		how = "ratio"
	}
	fmt.Fprintf(w, "\tfirst\tsecond\t%s\t\t\n", how)
	for _, d := range c.Differences {
		mark, change := "", fmt.Sprintf("%+.1f %%", 100*d.Change)
		switch {
		case c.Invalid != nil:
			mark, change = "not valid", fmt.Sprintf("%.2f x", 1+d.Change)
		case d.Worse:
			mark = "WORSE"
		}
		if math.IsInf(d.Change, 1) {
			change = "new"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n", d.What, d.Unit.write(d.Before), d.Unit.write(d.After), change, mark)
	}
	return w.Flush()
}
