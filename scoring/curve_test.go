package scoring

import (
	"math"
	"strings"
	"testing"
)

func TestCurvesOfSignals(t *testing.T) {
	t.Parallel()
	f := func(signal string, raw, want float64) {
		t.Helper()
		s, ok := Lookup(signal)
		if !ok {
			t.Fatalf("no signal %q", signal)
		}
		if got := s.Curve.Score(raw); !near(got, want, 5e-5) {
			t.Errorf("%s of %v scores %.4f, want %v", signal, raw, got, want)
		}
	}
	// Computed by hand: 50 + 30*ln(51/13)/ln(151/13) and so on.
	f("employee_count", 12, 50)
	f("employee_count", 50, 66.7214)
	f("employee_count", 0, 0)
	f("employee_count", 1e9, 100)
	f("traffic_rank", 350_000, 50)
	f("traffic_rank", 60_000, 80)
	f("traffic_rank", 3_000_000, 0)
	f("net_margin", 0.165, 65)
	f("net_margin", -0.65, 20)
	f("net_margin", -3.5, 0)
	f("liabilities_to_assets", 0.72, 35)
	f("distress_events_24m", 0, 57.5)
	f("careers_page_present", 0, 33.125)
	f("careers_page_present", 1, 70.625)
	f("pageviews_trend_30d", 0, 50)
}

func TestParseCurve(t *testing.T) {
	t.Parallel()
	f := func(rule string, direction Direction, raw, want float64) {
		t.Helper()
		c, err := ParseCurve(rule, direction)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			return
		}
		if got := c.Score(raw); !near(got, want, 1e-9) {
			t.Errorf("%s of %v scores %v, want %v", rule, raw, got, want)
		}
	}
	inf := math.Inf(1)

	const linear = "linear:0|10|20|40|80;absent=missing"
	f(linear, DirectionHigher, 0, 0)
	f(linear, DirectionHigher, 5, 10)
	f(linear, DirectionHigher, 10, 20)
	f(linear, DirectionHigher, 30, 65)
	f(linear, DirectionHigher, 60, 90)
	f(linear, DirectionHigher, 80, 100)
	f(linear, DirectionHigher, -inf, 0)
	f(linear, DirectionHigher, inf, 100)
	f(linear, DirectionHigher, math.NaN(), Neutral)

	const falling = "linear:80|40|20|10|0;absent=0"
	f(falling, DirectionLower, 80, 0)
	f(falling, DirectionLower, 30, 35)
	f(falling, DirectionLower, 0, 100)
	f(falling, DirectionLower, inf, 0)
	f(falling, DirectionLower, -inf, 100)

	const log = "log:0|1|3|7|15;absent=100" // ln(1+x) is ln 2 times 0, 1, 2, 3, 4
	f(log, DirectionHigher, 0, 0)
	f(log, DirectionHigher, 1, 20)
	f(log, DirectionHigher, math.Sqrt2*2-1, 35)
	f(log, DirectionHigher, 7, 80)
	f(log, DirectionHigher, 1e300, 100)
	f(log, DirectionHigher, -1, 0)
	f(log, DirectionHigher, -inf, 0)
	f("log:15|7|3|1|0;absent=0", DirectionLower, math.Sqrt2*2-1, 65)

	f("share:0.2;absent=0", DirectionHigher, 0, 42.5)
	f("share:0.2;absent=0", DirectionHigher, 0.49, 42.5)
	f("share:0.2;absent=0", DirectionHigher, 0.5, 80)
	f("share:0.6;absent=0", DirectionHigher, 0, 27.5)
	f("share:0.6;absent=0", DirectionHigher, 1, 65)
	f("share:0.2;absent=0", DirectionHigher, math.NaN(), Neutral)
}

func TestParseCurveRefuses(t *testing.T) {
	t.Parallel()
	f := func(rule string, direction Direction, reason string) {
		t.Helper()
		_, err := ParseCurve(rule, direction)
		if err == nil {
			t.Errorf("%s with %s is accepted", rule, direction)
		} else if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want it to say %q", rule, err, reason)
		}
	}
	f("", DirectionHigher, "absent is required")
	f("linear:0|1|2|3|4", DirectionHigher, "absent is required")
	f("linear:0|1|2|3|4;absent=", DirectionHigher, "neither missing nor a score")
	f("linear:0|1|2|3|4;absent=none", DirectionHigher, "neither missing nor a score")
	f("linear:0|1|2|3|4;absent=NaN", DirectionHigher, "neither missing nor a score")
	f("linear:0|1|2|3|4;absent=101", DirectionHigher, "neither missing nor a score")
	f("linear:0|1|2|3|4;absent=-1", DirectionHigher, "neither missing nor a score")
	f("linear:0|1|2|3|4;absent=1;absent=1", DirectionHigher, "neither missing nor a score")
	f("cubic:0|1|2|3|4;absent=0", DirectionHigher, "unknown shape")
	f("linear;absent=0", DirectionHigher, "not a number")
	f("linear:0|1|2|3;absent=0", DirectionHigher, "4 values, want 5")
	f("linear:0|1|2|3|4|5;absent=0", DirectionHigher, "6 values, want 5")
	f("linear:0|1|x|3|4;absent=0", DirectionHigher, "not a number")
	f("linear:0|1|2|3|Inf;absent=0", DirectionHigher, "not a number")
	f("linear:0|1|1|3|4;absent=0", DirectionHigher, "against the direction")
	f("linear:0|1|2|3|4;absent=0", DirectionLower, "against the direction")
	f("linear:4|3|2|1|0;absent=0", DirectionHigher, "against the direction")
	f("linear:-1e308|-1|0|1|1e308;absent=0", "sideways", "unknown direction")
	f("linear:-1.7e308|1.7e308|1.75e308|1.76e308|1.77e308;absent=0", DirectionHigher, "against the direction")
	f("log:-1|0|1|2|3;absent=0", DirectionHigher, "not above -1")
	f("share:0;absent=0", DirectionHigher, "share")
	f("share:1;absent=0", DirectionHigher, "share")
	f("share:x;absent=0", DirectionHigher, "share")
	f("share:0.5;absent=0", DirectionLower, "share")
}

func TestCurveAbsent(t *testing.T) {
	t.Parallel()
	f := func(signal string, want float64, wantOK bool) {
		t.Helper()
		s, _ := Lookup(signal)
		if got, ok := s.Curve.Absent(); got != want || ok != wantOK {
			t.Errorf("absence of %s is %v, %v, want %v, %v", signal, got, ok, want, wantOK)
		}
	}
	f("traffic_rank", 42, true)
	f("traffic_rank_change_30d", 48, true)
	f("email_auth_maturity", 10, true)
	f("employee_count", 0, false)
}

func TestRawIsInverseOfScore(t *testing.T) {
	t.Parallel()
	for _, s := range Manifest() {
		for score := 0.0; score <= 100; score += 2.5 {
			raw := s.Curve.Raw(score)
			if s.Curve.Share() {
				if want := score >= Neutral; (raw == 1) != want || (raw == 0) == want {
					t.Errorf("%s: raw value of score %v is %v", s.ID, score, raw)
				}
				continue
			}
			if got := s.Curve.Score(raw); !near(got, score, 1e-6) {
				t.Errorf("%s: raw value of score %v is %v, which scores %v", s.ID, score, raw, got)
			}
		}
		if got, want := s.Curve.Raw(-5), s.Curve.Raw(0); got != want {
			t.Errorf("%s: raw value of score -5 is %v, want %v", s.ID, got, want)
		}
		if got, want := s.Curve.Raw(105), s.Curve.Raw(100); got != want {
			t.Errorf("%s: raw value of score 105 is %v, want %v", s.ID, got, want)
		}
	}
}

func TestRound1(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{0: 0, 0.25: 0.3, 0.75: 0.8, 12.34: 12.3, 12.35: 12.4, -0.25: -0.3, 99.95: 100} {
		if got := round1(x); got != want {
			t.Errorf("round1(%v) = %v, want %v", x, got, want)
		}
	}
}

// FuzzParseCurve checks every accepted rule: scores are 0 to 100 and follow the direction.
func FuzzParseCurve(f *testing.F) {
	for _, s := range Manifest() {
		f.Add(s.Normalization, string(s.Direction), 0.0, 1.0)
	}
	f.Add("linear:0|5e-324|1e-323|1|1e308;absent=missing", "higher", math.Nextafter(0, 1), 1.0)
	f.Add("log:1e300|1e200|1e100|0|-0.9999999999999999;absent=0", "lower", math.Inf(-1), math.Inf(1))
	f.Fuzz(func(t *testing.T, rule, direction string, a, b float64) {
		c, err := ParseCurve(rule, Direction(direction))
		if err != nil {
			return
		}
		if absent, counts := c.Absent(); counts && !(absent >= 0 && absent <= 100) {
			t.Fatalf("an absence scores %v", absent)
		}
		for _, x := range []float64{a, b, 0, math.NaN(), math.Inf(1), math.Inf(-1)} {
			if score := c.Score(x); !(score >= 0 && score <= 100) {
				t.Fatalf("%v scores %v", x, score)
			}
		}
		checkDirection(t, c, Direction(direction), a, b)
	})
}

// checkDirection reports a pair of raw values whose scores are in the wrong order by more than a
// rounding error.
func checkDirection(t testing.TB, c Curve, direction Direction, a, b float64) {
	t.Helper()
	if math.IsNaN(a) || math.IsNaN(b) {
		return
	}
	if (a <= b) != (direction == DirectionHigher) {
		a, b = b, a
	}
	if low, high := c.Score(a), c.Score(b); low > high+1e-9 {
		t.Errorf("%s is better, but %v scores %v and %v scores %v", direction, a, low, b, high)
	}
}
