package bench

import (
	"slices"
	"testing"
	"testing/quick"
	"time"

	"companyscore/bench/report"
)

// sound returns evidence of a valid run.
func sound() evidence {
	return evidence{
		achieved: 1, pacingP99: 100 * time.Microsecond, slo: 2 * time.Millisecond, busy: 0.3, first: 80 * time.Microsecond,
		last:     85 * time.Microsecond,
		headline: 1000, headlineNeeded: true,
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(e *evidence)
		want   report.Status
		rule   string
	}{
		"a sound run":                      {func(*evidence) {}, report.Valid, ""},
		"late by a quarter of the promise": {func(e *evidence) { e.pacingP99 = 500 * time.Microsecond }, report.Valid, ""},
		"late by more": {func(e *evidence) { e.pacingP99 = 501 * time.Microsecond },
			report.GeneratorSaturated, "pacing_p99_us"},
		"late beside a promise of microseconds": {func(e *evidence) {
			e.slo, e.pacingP99 = 100*time.Microsecond, 249*time.Microsecond
		}, report.Valid, ""},
		"late without a promise": {func(e *evidence) { e.slo, e.pacingP99 = 0, 1001*time.Microsecond },
			report.GeneratorSaturated, "pacing_p99_us"},
		"late in a closed loop, where nothing is due": {func(e *evidence) { e.closed, e.pacingP99 = true, time.Second }, report.Valid, ""},
		"a busy generator":                            {func(e *evidence) { e.busy = 0.91 }, report.GeneratorSaturated, "generator_busy"},
		"as busy in a closed loop":                    {func(e *evidence) { e.closed, e.busy = true, 0.91 }, report.Valid, ""},
		"a server that does not keep up":              {func(e *evidence) { e.achieved = 0.98 }, report.ConditionsDrifted, "achieved"},
		"a generator and a server that do not": {func(e *evidence) { e.achieved, e.busy = 0.5, 1 }, report.GeneratorSaturated,
			"generator_busy"},
		"slower in the end":               {func(e *evidence) { e.last = 200 * time.Microsecond }, report.ConditionsDrifted, "drift_p50"},
		"faster in the end":               {func(e *evidence) { e.first = 200 * time.Microsecond }, report.ConditionsDrifted, "drift_p50"},
		"slower by less than clocks tell": {func(e *evidence) { e.last = 150 * time.Microsecond }, report.Valid, ""},
		"a third without an answer":       {func(e *evidence) { e.last = 0 }, report.Valid, ""},
		"fewer answers in the end": {func(e *evidence) { e.closed, e.firstRate, e.lastRate = true, 1000, 800 },
			report.ConditionsDrifted, "drift_rate"},
		"others at work in one third":      {func(e *evidence) { e.lastOthers = 0.2 }, report.ConditionsDrifted, "drift_others"},
		"others at work all the time":      {func(e *evidence) { e.firstOthers, e.lastOthers = 0.5, 0.55 }, report.Valid, ""},
		"a hypervisor that takes its time": {func(e *evidence) { e.steal = 0.06 }, report.ConditionsDrifted, "steal"},
	} {
		e := sound()
		c.change(&e)
		v := judge(e)
		broken := slices.IndexFunc(v.Checks, func(check report.Check) bool { return !check.OK })
		rule := ""
		if broken >= 0 {
			rule = v.Checks[broken].Name
		}
		if v.Status != c.want || rule != c.rule || (len(v.Reasons) == 0) != (c.want == report.Valid) {
			t.Errorf("%s: %+v, want %s by %q", name, v, c.want, c.rule)
		}
	}
	nothing := sound()
	nothing.headline = 0
	if v := judge(nothing); v.Status == report.Valid || len(v.Reasons) != 1 {
		t.Errorf("a run without an answer of its class is %+v", v)
	}
}

// The wait for a connection is part of the server and must not change the verdict on the
// generator. A verdict other than VALID has a reason.
func TestVerdictsHaveReasons(t *testing.T) {
	t.Parallel()
	property := func(achieved, busy, steal, others float64, first, last, pacing uint32, closed bool) bool {
		e := evidence{
			closed: closed, achieved: achieved, busy: busy, steal: steal, firstOthers: others, first: time.Duration(first),
			last:      time.Duration(last),
			pacingP99: time.Duration(pacing), headline: 1, headlineNeeded: true,
		}
		v := judge(e)
		broken := 0
		for _, check := range v.Checks {
			if !check.OK {
				broken++
			}
		}
		return broken == len(v.Reasons) && (v.Status == report.Valid) == (broken == 0)
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
}

func TestSlopeIsThatOfALine(t *testing.T) {
	t.Parallel()
	property := func(start uint32, perSecond int16, n uint8) bool {
		var samples []processSample
		base := time.Unix(0, 0)
		for i := range int(n) + 2 {
			samples = append(samples, processSample{at: base.Add(time.Duration(i) * time.Second),
				rss: int64(start) + int64(i)*int64(perSecond)})
		}
		got, want := slope(samples), 60*float64(perSecond)
		return got-want < 1 && want-got < 1
	}
	if err := quick.Check(property, nil); err != nil {
		t.Error(err)
	}
	if got := slope([]processSample{{rss: 5}}); got != 0 {
		t.Errorf("one sample has the slope %g", got)
	}
}
