package scoring

import (
	"math"
	"testing"
	"time"
)

// known returns the signals of a record in which only the given raw values are known.
func known(raws map[int]float64) signalScores {
	signals := make(signalScores, SignalCount)
	for i := range signals {
		signals[i] = SignalScore{ID: manifest[i].ID, State: StateMissing, Score: Neutral}
	}
	for i, raw := range raws {
		signals[i].State, signals[i].Raw = StateOK, raw
	}
	return signals
}

func TestRatingOf(t *testing.T) {
	t.Parallel()
	f := func(composite float64, want Rating) {
		t.Helper()
		if got := RatingOf(composite); got != want {
			t.Errorf("RatingOf(%v) = %s, want %s", composite, got, want)
		}
	}
	f(100, RatingElite)
	f(75.0, RatingElite)
	f(74.9, Rating1)
	f(65.0, Rating1)
	f(64.9, Rating2Plus)
	f(58.0, Rating2Plus)
	f(57.9, Rating2)
	f(51.0, Rating2)
	f(50.9, Rating3)
	f(44.0, Rating3)
	f(43.9, Rating4)
	f(32.0, Rating4)
	f(31.9, Rating5)
	f(0, Rating5)
}

func TestScalePremium(t *testing.T) {
	t.Parallel()
	f := func(name string, p Profile, raws map[int]float64, scale, coverage, want float64) {
		t.Helper()
		signals := known(raws)
		if s, v := scaleOf(signals); !near(s, scale, 5e-7) || !near(v, coverage, 1e-9) {
			t.Errorf("%s: scale %.6f at coverage %.2f, want %.6f at %.2f", name, s, v, scale, coverage)
		}
		if got := scalePremium(p, signals); got != want {
			t.Errorf("%s: premium %v, want %v", name, got, want)
		}
	}
	middling := map[int]float64{
		employeeCount: 5200, revenue: 1.4e9, totalAssets: 2.1e9, trafficRank: 14_000, wikipediaEditions: 14, publicListing: 1,
	}
	f("middling and listed", ProfileEstablished, middling, 0.527985, 1, 6.3)
	f("the same, unclassified", ProfileUnclassified, middling, 0.527985, 1, 0)
	f("growing", ProfileGrowth, map[int]float64{
		employeeCount: 900, trafficRank: 9000, wikipediaEditions: 6, publicListing: 0,
	}, 0.272366, 0.60, 1.6)
	f("large and listed", ProfileEstablished, map[int]float64{
		employeeCount: 48_000, revenue: 2.1e10, totalAssets: 5.4e10, trafficRank: 850, wikipediaEditions: 62, publicListing: 1,
	}, 0.898288, 1, 10.8)
	f("small and growing", ProfileGrowth, map[int]float64{
		employeeCount: 180, trafficRank: 96_000, wikipediaEditions: 0, publicListing: 0,
	}, 0.041238, 0.60, 0.2)
	f("nothing known", ProfileEstablished, nil, 0, 0, 0)
	f("one strong fact earns its part", ProfileEstablished, map[int]float64{trafficRank: 1}, 1, 0.15, 3)
	f("impossible values", ProfileEstablished, map[int]float64{
		employeeCount: -1, revenue: -1e308, totalAssets: 0, trafficRank: -5, wikipediaEditions: -1,
	}, 0.15/0.95, 0.95, 1.9)
	f("everything at its best", ProfileEstablished, map[int]float64{
		employeeCount: 1e6, revenue: 1e12, totalAssets: 1e13, trafficRank: 1, wikipediaEditions: 300, publicListing: 1,
	}, 1, 1, 12)
}

func TestProfile(t *testing.T) {
	t.Parallel()
	f := func(name string, want Profile, raws map[int]float64) {
		t.Helper()
		if got := profile(known(raws)); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	f("nothing known", ProfileUnclassified, nil)
	f("four points and eight years", ProfileEstablished,
		map[int]float64{publicListing: 1, employeeCount: 1000, organizationAge: 8})
	f("four points, too young", ProfileUnclassified,
		map[int]float64{publicListing: 1, employeeCount: 1000, organizationAge: 7.9})
	f("four points, age unknown", ProfileUnclassified,
		map[int]float64{publicListing: 1, employeeCount: 1000})
	f("five points, age unknown", ProfileEstablished,
		map[int]float64{publicListing: 1, employeeCount: 1000, wikipediaEditions: 10})
	f("three points", ProfileUnclassified,
		map[int]float64{employeeCount: 250, revenue: 2.5e7, organizationAge: 19.9})
	f("age of twenty years makes the fourth point", ProfileEstablished,
		map[int]float64{employeeCount: 250, revenue: 2.5e7, organizationAge: 20})
	f("revenue of a hundred million makes the fourth point", ProfileEstablished,
		map[int]float64{employeeCount: 250, revenue: 1e8, organizationAge: 10})
	f("young, hiring, with a product", ProfileGrowth,
		map[int]float64{organizationAge: 12, openRoles: 3, productSurface: 3})
	f("young and hiring", ProfileUnclassified,
		map[int]float64{organizationAge: 12, openRoles: 24})
	f("young and hiring much", ProfileGrowth,
		map[int]float64{organizationAge: 12, openRoles: 25})
	f("a raise within three years and traffic", ProfileGrowth,
		map[int]float64{capitalRaise: 1095, trafficRank: 300_000})
	f("a raise too long ago", ProfileUnclassified,
		map[int]float64{capitalRaise: 1096, trafficRank: 300_000, hnMentions: 5})
	f("traffic too low", ProfileUnclassified,
		map[int]float64{trafficRank: 300_001, hnMentions: 5, organizationAge: 3})
	f("established comes before growth", ProfileEstablished,
		map[int]float64{publicListing: 1, employeeCount: 1000, organizationAge: 9, openRoles: 25, capitalRaise: 1})
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	f := func(pct float64, want Band, failed ...string) {
		t.Helper()
		var warnings []Warning
		for _, source := range failed {
			warnings = append(warnings, Warning{Source: source, Code: "timeout"})
		}
		if got := BandOf(pct, warnings); got != want {
			t.Errorf("%v %% with %v failed is %s, want %s", pct, failed, got, want)
		}
	}
	f(100, BandHigh)
	f(85, BandHigh)
	f(84.9, BandMedium)
	f(65, BandMedium)
	f(64.9, BandLow)
	f(40, BandLow)
	f(39.9, BandDirectional)
	f(0, BandDirectional)

	f(88.4, BandHigh)
	f(71, BandMedium)
	f(34.6, BandDirectional)

	// Failed core sources lower the band by one, however many they are.
	f(90, BandHigh, "ct", "gdelt", "facts")
	f(90, BandMedium, "web")
	f(90, BandMedium, "dns", "tranco", "wikidata")
	f(50, BandDirectional, "web")
	f(10, BandDirectional, "web")

	// With four failed sources the band is low at best.
	f(90, BandLow, "ct", "gdelt", "hn", "jobs")
	f(90, BandHigh, "ct", "ct", "ct", "ct", "gdelt")
	f(90, BandLow, "web", "gdelt", "hn", "jobs")
	f(50, BandDirectional, "web", "gdelt", "hn", "jobs")
	f(10, BandDirectional, "ct", "gdelt", "hn", "jobs")
}

func TestMomentumIndex(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	f := func(name string, momentum, base float64, ref *Reference, want float64) {
		t.Helper()
		if got := momentumIndex(momentum, base, exampleNow, ref); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	ago := func(age time.Duration, base float64) *Reference {
		return &Reference{ScoredAt: exampleNow.Add(-age), Base: base}
	}
	f("no reference", 65.8273, 58.0824, nil, 65.8)
	f("rising", 65.8273, 58.0824, ago(33*day, 56.1), 66.8)
	f("falling", 50, 40, ago(30*day, 50), 45)
	f("a leap counts as 20 points", 50, 90, ago(30*day, 10), 60)
	f("a crash counts as 20 points", 50, 10, ago(30*day, 90), 40)
	f("never above 100", 98, 90, ago(30*day, 10), 100)
	f("never below 0", 3, 10, ago(30*day, 90), 0)
	f("20 days old", 50, 60, ago(20*day, 50), 55)
	f("120 days old", 50, 60, ago(120*day, 50), 55)
	f("too young", 50, 60, ago(20*day-1, 50), 50)
	f("too old", 50, 60, ago(120*day+1, 50), 50)
	f("from the future", 50, 60, ago(-30*day, 50), 50)
	f("without a base", 50, 60, ago(30*day, math.NaN()), 50)
}
