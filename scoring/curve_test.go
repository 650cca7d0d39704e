package scoring

import (
	"math"
	"strings"
	"testing"
)

func TestNormalizerGoldens(t *testing.T) {
	t.Parallel()
	f := func(signal string, raw, want float64) {
		t.Helper()
		s, ok := Lookup(signal)
		if !ok {
			t.Fatalf("no signal %q", signal)
		}
		if got := s.Normalizer.Score(raw); !near(got, want, 5e-5) {
			t.Errorf("%s of %v scores %.4f, want %v", signal, raw, got, want)
		}
	}
	f("employee_count", 250, 42.5264)
	f("employee_count", 5, 5)
	f("traffic_rank", 10_000, 65.3257)
	f("traffic_rank", 2_000_000, 4)
	f("news_tone_90d", 1.5, 65)
	f("email_auth_maturity", 3, 70)
	f("technical_role_share", 0.25, 67.5)
	f("hn_mentions_365d", 0, 20)
	f("revenue_latest_usd", 5e7, 50.4846)
	f("cash_runway_months", 14, 46.3333)
	f("liabilities_to_assets", 0.62, 58.4)
	f("current_ratio", 8, 80)
	f("domain_renewal_runway_days", 200, 46.8)
	f("content_freshness_days", 540, 20.6438)
	f("careers_page_present", 0, 15)
	f("careers_page_present", 1, 75)
	f("pageviews_trend_30d", 0, 50)
}

func TestParseNormalizer(t *testing.T) {
	t.Parallel()
	f := func(rule string, direction Direction, lo, hi, raw, want float64) {
		t.Helper()
		n, err := ParseNormalizer(rule, direction, lo, hi)
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			return
		}
		if got := n.Score(raw); !near(got, want, 1e-9) {
			t.Errorf("%s of %v scores %v, want %v", rule, raw, got, want)
		}
	}
	inf := math.Inf(1)

	f("log;absent=0", DirectionHigher, 1, 100, 10, 50)
	f("log;absent=0", DirectionHigher, 1, 100, 0, 0)
	f("log;absent=0", DirectionHigher, 1, 100, -3, 0)
	f("log;absent=0", DirectionHigher, 1, 100, inf, 100)
	f("log;absent=0", DirectionLower, 1, 100, 10, 50)
	f("log;absent=0", DirectionLower, 1, 100, 0, 100)
	f("log;floor=20;absent=0", DirectionHigher, 1, 100, 10, 60)
	f("log;floor=20;absent=0", DirectionLower, 1, 100, 1e9, 20)

	f("linear;absent=missing", DirectionHigher, -1, 1, 0.5, 75)
	f("linear;absent=missing", DirectionHigher, -1, 1, -inf, 0)
	f("linear;absent=missing", DirectionLower, -1, 1, 0.5, 25)
	f("linear;absent=missing;floor=50", DirectionHigher, 0, 4, 1, 62.5)

	f("pw:0=10|2=20|4=80;absent=0", DirectionHigher, 0, 4, 1, 15)
	f("pw:0=10|2=20|4=80;absent=0", DirectionHigher, 0, 4, 2, 20)
	f("pw:0=10|2=20|4=80;absent=0", DirectionHigher, 0, 4, -inf, 10)
	f("pw:0=10|2=20|4=80;absent=0", DirectionHigher, 0, 4, inf, 80)
	f("pw:-1=9e1|1.5=5;absent=0", DirectionLower, -1, 1.5, 1.5, 5)
	f("pw:0=1|1=9|2=3;absent=0", DirectionBand, 0, 2, 1.5, 6)

	f("bool:10|90;absent=0", DirectionHigher, 0, 1, 0.49, 10)
	f("bool:10|90;absent=0", DirectionHigher, 0, 1, 0.5, 90)
	f("bool:10|90;absent=0", DirectionHigher, 0, 1, math.NaN(), Neutral)
}

func TestParseNormalizerRefuses(t *testing.T) {
	t.Parallel()
	f := func(rule string, direction Direction, lo, hi float64, reason string) {
		t.Helper()
		_, err := ParseNormalizer(rule, direction, lo, hi)
		if err == nil {
			t.Errorf("%s with %s, %v, %v is accepted", rule, direction, lo, hi)
		} else if !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v, want it to say %q", rule, err, reason)
		}
	}
	f("", DirectionHigher, 0, 1, "unknown shape")
	f("cubic;absent=0", DirectionHigher, 0, 1, "unknown shape")
	f("log:1;absent=0", DirectionHigher, 1, 2, "unknown shape")
	f("log", DirectionHigher, 1, 2, "absent is required")
	f("log;", DirectionHigher, 1, 2, "option")
	f("log;absent", DirectionHigher, 1, 2, "not a number")
	f("log;absent=none", DirectionHigher, 1, 2, "not a number")
	f("log;absent=NaN", DirectionHigher, 1, 2, "not a number")
	f("log;absent=0;absent=missing", DirectionHigher, 1, 2, "twice")
	f("log;absent=0;roof=3", DirectionHigher, 1, 2, "unknown option")
	f("log;absent=0", DirectionHigher, 0, 2, "log needs")
	f("log;absent=0", DirectionHigher, 1e-300, 1e300, "log needs")
	f("log;absent=0", DirectionHigher, 2, 2, "not above")
	f("linear;absent=0", DirectionHigher, 2, 1, "not above")
	f("linear;absent=0", DirectionHigher, math.NaN(), 1, "not above")
	f("linear;absent=0", DirectionHigher, -1e308, 1e308, "not above")
	f("linear;absent=0", DirectionBand, 0, 1, "band")
	f("linear;absent=0", "sideways", 0, 1, "unknown direction")
	f("linear;floor=100;absent=0", DirectionHigher, 0, 1, "floor")
	f("linear;floor=-1;absent=0", DirectionHigher, 0, 1, "floor")
	f("bool:1|2;floor=1;absent=0", DirectionHigher, 0, 1, "floor")
	f("bool:1;absent=0", DirectionHigher, 0, 1, "not a number")
	f("bool:1|2|3;absent=0", DirectionHigher, 0, 1, "not a number")
	f("bool:20|10;absent=0", DirectionHigher, 0, 1, "against the direction")
	f("bool:10|20;absent=0", DirectionHigher, 0, 2, "outer corners")
	f("pw:;absent=0", DirectionHigher, 0, 1, "not a number")
	f("pw:0=1|;absent=0", DirectionHigher, 0, 1, "not a number")
	f("pw:0=1|1=inf;absent=0", DirectionHigher, 0, 1, "not a number")
	f("pw:0=1|1=101;absent=0", DirectionHigher, 0, 1, "outside")
	f("pw:0=1|1=2;absent=0", DirectionHigher, 0, 3, "outer corners")
	f("pw:0=1|2=2|1=3|3=4;absent=0", DirectionHigher, 0, 3, "does not follow")
	f("pw:0=1|1=3|2=2;absent=0", DirectionHigher, 0, 2, "against the direction")
	f("pw:0=1|1=3;absent=0", DirectionLower, 0, 1, "against the direction")
}

func TestNormalizerAbsent(t *testing.T) {
	t.Parallel()
	f := func(signal string, want float64, wantOK bool) {
		t.Helper()
		s, _ := Lookup(signal)
		if got, ok := s.Normalizer.Absent(); got != want || ok != wantOK {
			t.Errorf("absence of %s is %v, %v, want %v, %v", signal, got, ok, want, wantOK)
		}
	}
	f("traffic_rank", 2_000_000, true)
	f("traffic_rank_change_30d", -0.4, true)
	f("open_roles", 0, true)
	f("employee_count", 0, false)
}

func TestRound1(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64]float64{0: 0, 0.25: 0.3, 0.75: 0.8, 12.34: 12.3, 12.35: 12.4, -0.25: -0.3, 99.95: 100} {
		if got := round1(x); got != want {
			t.Errorf("round1(%v) = %v, want %v", x, got, want)
		}
	}
}

// FuzzParseNormalizer checks every accepted rule: scores are 0 to 100 and follow the direction.
func FuzzParseNormalizer(f *testing.F) {
	for _, s := range Manifest() {
		f.Add(s.Normalization, string(s.Direction), s.Lo, s.Hi, 0.0, 1.0)
	}
	f.Add("pw:0=0.1|1=100;absent=missing", "higher", 0.0, 1.0, math.Nextafter(1, 0), 1.0)
	f.Add("linear;floor=0.1;absent=-1e-300", "lower", -1.0, 1.0, math.Inf(-1), math.Inf(1))
	f.Fuzz(func(t *testing.T, rule, direction string, lo, hi, a, b float64) {
		n, err := ParseNormalizer(rule, Direction(direction), lo, hi)
		if err != nil {
			return
		}
		absent, _ := n.Absent()
		for _, x := range []float64{a, b, lo, hi, absent, 0, math.NaN(), math.Inf(1), math.Inf(-1)} {
			if score := n.Score(x); !(score >= 0 && score <= 100) {
				t.Fatalf("%v scores %v", x, score)
			}
		}
		checkDirection(t, n, Direction(direction), a, b)
	})
}

// checkDirection reports a pair of raw values whose scores are in the wrong order by more than a
// rounding error.
func checkDirection(t testing.TB, n Normalizer, direction Direction, a, b float64) {
	t.Helper()
	if direction == DirectionBand || math.IsNaN(a) || math.IsNaN(b) {
		return
	}
	if direction == DirectionLower {
		a, b = b, a
	}
	if (a <= b) == (direction == DirectionHigher) {
		if low, high := n.Score(a), n.Score(b); low > high+1e-9 {
			t.Errorf("%s is better, but %v scores %v and %v scores %v", direction, a, low, b, high)
		}
	}
}
