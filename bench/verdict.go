package bench

import (
	"fmt"
	"time"

	"companyscore/bench/report"
)

// Limits of the checks. docs/bench.md gives the reasons.
const (
	pacingShareOfSLO = 0.25                   // limit of the generator's p99 delay, as a share of the tightest SLO
	pacingMax        = time.Millisecond       // the same limit without an SLO
	pacingMin        = 250 * time.Microsecond // smallest such limit
	busyOpen         = 0.9                    // of a core per thread, in an open loop
	busyClosed       = 0.95                   // the same in a closed loop
	achievedMin      = 0.99                   // share of due requests that were answered
	driftRatio       = 1.25                   // of the medians of the first and the last third
	driftMin         = 100 * time.Microsecond // smaller differences of the medians are ignored in an open loop
	driftRate        = 0.15                   // relative difference of their rates
	driftOthers      = 0.15                   // difference of the shares of CPU time of other processes
	stealMax         = 0.05
)

// evidence is the input of a verdict.
type evidence struct {
	closed         bool
	achieved       float64       // share of due requests that were answered
	pacingP99      time.Duration // delay of the generator
	slo            time.Duration // the tightest SLO, 0 for none
	busy           float64       // share of a core for each thread of the generator
	first, last    time.Duration // medians of the headline class in the first and the last third
	firstRate      float64       // answers per second in them
	lastRate       float64
	firstOthers    float64 // share of CPU time of other processes in them
	lastOthers     float64
	steal          float64
	headline       int64 // answers of the headline class
	headlineNeeded bool
}

// judge returns the verdict. A saturated generator takes precedence over drifted
// conditions, because it can cause them.
func judge(e evidence) report.Verdict {
	v := report.Verdict{Status: report.Valid, Reasons: []string{}}
	check := func(status report.Status, name string, value, limit float64, ok bool, format string, args ...any) bool {
		v.Checks = append(v.Checks, report.Check{Name: name, Value: value, Limit: limit, OK: ok})
		if ok {
			return true
		}
		v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...))
		if v.Status == report.Valid {
			v.Status = status
		}
		return false
	}
	us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
	limit := busyOpen
	if e.closed {
		limit = busyClosed
	}
	check(report.GeneratorSaturated, "generator_busy", e.busy, limit, e.busy <= limit,
		"the generator used %s of a core per thread: the figures measure it and not the server", report.Percent(e.busy))
	if !e.closed {
		limit := pacingMax
		if e.slo > 0 {
			limit = max(time.Duration(pacingShareOfSLO*float64(e.slo)), pacingMin)
		}
		check(report.GeneratorSaturated, "pacing_p99_us", us(e.pacingP99), us(limit), e.pacingP99 <= limit,
			"the generator was %s late (p99; limit %s): it got too little CPU time, and all figures include the delay",
			report.Duration(us(e.pacingP99)), report.Duration(us(limit)))
		check(report.ConditionsDrifted, "achieved", e.achieved, achievedMin, e.achieved >= achievedMin,
			"%s of the due requests were answered in time: the server does not keep up", report.Percent(e.achieved))
	}
	ratio, apart := drift(e.first, e.last)
	check(report.ConditionsDrifted, "drift_p50", ratio, driftRatio, ratio <= driftRatio || apart <= driftMin && !e.closed,
		"the median went from %s in the first third to %s in the last", report.Duration(us(e.first)), report.Duration(us(e.last)))
	if e.firstRate > 0 {
		change := max(e.firstRate, e.lastRate)/max(min(e.firstRate, e.lastRate), 1e-9) - 1
		check(report.ConditionsDrifted, "drift_rate", change, driftRate, change <= driftRate,
			"answers per second went from %s in the first third to %s in the last", report.Count(e.firstRate), report.Count(e.lastRate))
	}
	others := max(e.firstOthers, e.lastOthers) - min(e.firstOthers, e.lastOthers)
	check(report.ConditionsDrifted, "drift_others", others, driftOthers, others <= driftOthers,
		"other processes used %s of the CPU time in the first third and %s in the last", report.Percent(e.firstOthers),
		report.Percent(e.lastOthers))
	check(report.ConditionsDrifted, "steal", e.steal, stealMax, e.steal <= stealMax,
		"the hypervisor took %s of the CPU time", report.Percent(e.steal))
	if e.headlineNeeded && e.headline == 0 {
		v.Reasons = append(v.Reasons, "no answer of a headline class")
		v.Status = report.ConditionsDrifted
	}
	return v
}

// drift returns the ratio and the difference of two durations, both from larger to smaller.
func drift(a, b time.Duration) (ratio float64, apart time.Duration) {
	low, high := min(a, b), max(a, b)
	if low <= 0 {
		return 1, 0 // a third without answers fails other checks
	}
	return float64(high) / float64(low), high - low
}
