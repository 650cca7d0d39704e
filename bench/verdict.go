package bench

import (
	"fmt"
	"time"

	"companyscore/bench/report"
)

// What a verdict rests on. docs/bench.md gives the reasons.
const (
	pacingShareOfSLO = 0.25                   // of the tightest promise, for the p99 of the generator's delay
	pacingMax        = time.Millisecond       // of that delay, where nothing is promised
	pacingMin        = 250 * time.Microsecond // less is not asked of any machine
	busyOpen         = 0.9                    // of a core, for each thread
	busyClosed       = 0.95
	achievedMin      = 0.99 // of what was due
	driftRatio       = 1.25 // between the medians of the first and the last third
	driftMin         = 100 * time.Microsecond
	driftRate        = 0.15 // between the answers of the two
	driftOthers      = 0.15 // of the machine, between what others used in the two
	stealMax         = 0.05
)

// evidence is what a verdict is made of.
type evidence struct {
	closed         bool
	achieved       float64       // answers of what was due
	pacingP99      time.Duration // how late the generator took up what was due
	slo            time.Duration // the tightest promise, 0 for none
	busy           float64       // share of a core for each thread of the generator
	first, last    time.Duration // medians of the headline class in two thirds
	firstRate      float64       // answers a second in them
	lastRate       float64
	firstOthers    float64 // share of the machine that others used in them
	lastOthers     float64
	steal          float64
	headline       int64 // answers of that class
	headlineNeeded bool
}

// judge says whether figures may be used. What the generator did wrong counts
// before what the surroundings did, since the former may cause the latter.
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
		"the generator used %s of a core for each of its threads: it is measured, not the server", report.Percent(e.busy))
	if !e.closed {
		limit := pacingMax
		if e.slo > 0 {
			limit = max(time.Duration(pacingShareOfSLO*float64(e.slo)), pacingMin)
		}
		check(report.GeneratorSaturated, "pacing_p99_us", us(e.pacingP99), us(limit), e.pacingP99 <= limit,
			"the generator took up requests %s late (p99; at most %s): it got too little of the processor, and the delay is in all figures", report.Duration(us(e.pacingP99)), report.Duration(us(limit)))
		check(report.ConditionsDrifted, "achieved", e.achieved, achievedMin, e.achieved >= achievedMin,
			"%s of what was due was answered in time: the server does not keep up, so no figure holds for long", report.Percent(e.achieved))
	}
	ratio, apart := drift(e.first, e.last)
	check(report.ConditionsDrifted, "drift_p50", ratio, driftRatio, ratio <= driftRatio || apart <= driftMin && !e.closed,
		"the median went from %s in the first third to %s in the last", report.Duration(us(e.first)), report.Duration(us(e.last)))
	if e.firstRate > 0 {
		change := max(e.firstRate, e.lastRate)/max(min(e.firstRate, e.lastRate), 1e-9) - 1
		check(report.ConditionsDrifted, "drift_rate", change, driftRate, change <= driftRate,
			"the answers a second went from %s in the first third to %s in the last", report.Count(e.firstRate), report.Count(e.lastRate))
	}
	others := max(e.firstOthers, e.lastOthers) - min(e.firstOthers, e.lastOthers)
	check(report.ConditionsDrifted, "drift_others", others, driftOthers, others <= driftOthers,
		"other processes used %s of the machine in the first third and %s in the last", report.Percent(e.firstOthers), report.Percent(e.lastOthers))
	check(report.ConditionsDrifted, "steal", e.steal, stealMax, e.steal <= stealMax,
		"the hypervisor took %s of the time", report.Percent(e.steal))
	if e.headlineNeeded && e.headline == 0 {
		v.Reasons = append(v.Reasons, "no answer was of the class the scenario is about")
		v.Status = report.ConditionsDrifted
	}
	return v
}

// drift returns how many times the larger duration is the smaller, and how far they are apart.
func drift(a, b time.Duration) (ratio float64, apart time.Duration) {
	low, high := min(a, b), max(a, b)
	if low <= 0 {
		return 1, 0 // one third has no answer, which other rules see
	}
	return float64(high) / float64(low), high - low
}
