package scoring

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
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

func TestScale(t *testing.T) {
	t.Parallel()
	f := func(name string, want float64, raws map[int]float64) {
		t.Helper()
		if got := scaleOf(known(raws)); !near(got, want, 5e-7) {
			t.Errorf("%s: scale %.7f, want %.7f", name, got, want)
		}
	}
	// ln(20,000/250) / ln(2,000,000/250) is 0.4875854755 of the headcount's range.
	f("nothing known", 0, nil)
	f("headcount", 2*0.4875854755/2.3, map[int]float64{employeeCount: 20_000})
	f("headcount of a listed company", (2*0.4875854755+0.1*0.3)/2.4, map[int]float64{employeeCount: 20_000, publicListing: 1})
	f("headcount of an unlisted company", 2*0.4875854755/2.3, map[int]float64{employeeCount: 20_000, publicListing: 0})
	f("too small to count", 0, map[int]float64{employeeCount: 250, revenue: 2.5e7, trafficRank: 300_000})
	f("middle of the traffic ranks", 0.75*0.5/1.05, map[int]float64{trafficRank: math.Sqrt(300_000 * 300)})
	// ln(2,000,000,000/50,000,000) / ln(4,000,000,000,000/50,000,000) is 0.3267450 of the range of assets.
	f("assets", 2*0.3267450/2.3, map[int]float64{totalAssets: 2e9})
	f("assets beside revenue", 0.3*0.3267450/3.1, map[int]float64{totalAssets: 2e9, revenue: 1})
	f("impossible values", 0.75/7.35, map[int]float64{
		employeeCount: -1, revenue: -1e308, totalAssets: 0, marketValue: -1, fundingTotal: -1, trafficRank: -5, wikipediaEditions: -1,
	})
	f("everything at its best", 7.05/7.35, map[int]float64{
		employeeCount: 3e6, revenue: 1e12, totalAssets: 1e13, marketValue: 1e13, fundingTotal: 1e10, trafficRank: 1, wikipediaEditions: 300,
	})
}

// A small step of a raw value is a small step of the premium, and a better value never lowers it.
func TestPremiumIsContinuous(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 67))
	for range rounds {
		raws := make(map[int]float64)
		for _, m := range measures {
			if r.IntN(2) == 0 {
				raws[m.signal] = m.from * math.Pow(m.to/m.from, 2*r.Float64()-0.5)
			}
		}
		for _, m := range measures {
			before := -1.0
			for step := range 401 {
				raws[m.signal] = m.from * math.Pow(m.to/m.from, float64(step-100)/200)
				got := premium(scaleOf(known(raws)))
				if before >= 0 && (got < before-1e-12 || got > before+0.06) || got > premiumMax {
					t.Fatalf("%s of %v: premium %v after %v", manifest[m.signal].ID, raws[m.signal], got, before)
				}
				before = got
			}
		}
	}
}

// Of two or more measures that agree, each raises the premium, and one that is left out lowers it by at most 3.5 points.
func TestPremiumWithoutOneMeasure(t *testing.T) {
	t.Parallel()
	for set := range 1 << len(measures) {
		for _, share := range []float64{0.1, 0.5, 0.9, 1} {
			all := make(map[int]float64)
			for i, m := range measures {
				if set&(1<<i) != 0 {
					all[m.signal] = m.from * math.Pow(m.to/m.from, share)
				}
			}
			for left := range all {
				raws := maps.Clone(all)
				delete(raws, left)
				with, without := premium(scaleOf(known(all))), premium(scaleOf(known(raws)))
				if with <= without || len(raws) > 0 && with-without > 3.5*share {
					t.Errorf("share %v of %v: premium %v, and %v without %s", share, all, with, without, manifest[left].ID)
				}
			}
		}
	}
}

// The premium of a company with statements hardly depends on revenue: if revenue and assets are within a third of the range of
// each other, it falls by at most 3.5 points without either.
func TestPremiumOfStatements(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 67))
	raw := func(signal int, share float64) float64 {
		m := measures[slices.IndexFunc(measures[:], func(m measure) bool { return m.signal == signal })]
		return m.from * math.Pow(m.to/m.from, share)
	}
	for range rounds {
		sold := r.Float64()
		owned := clamp(sold+(2*r.Float64()-1)/3, 0, 1)
		listed := float64(r.IntN(2))
		both := map[int]float64{revenue: raw(revenue, sold), totalAssets: raw(totalAssets, owned), publicListing: listed}
		full := premium(scaleOf(known(both)))
		for _, left := range []int{revenue, totalAssets} {
			less := maps.Clone(both)
			delete(less, left)
			if change := premium(scaleOf(known(less))) - full; math.Abs(change) > 3.5 {
				t.Errorf("shares %v of revenue and %v of assets: %+v points without %s", sold, owned, change, manifest[left].ID)
			}
		}
	}
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
	f("size alone", ProfileEstablished, map[int]float64{employeeCount: 1000})
	f("size too small", ProfileUnclassified, map[int]float64{employeeCount: 500})
	f("size of a young company", ProfileUnclassified, map[int]float64{employeeCount: 1000, organizationAge: 7.9, publicListing: 0})
	f("size at eight years", ProfileEstablished, map[int]float64{employeeCount: 1000, organizationAge: 8})
	f("large and young", ProfileEstablished, map[int]float64{employeeCount: 20_000, organizationAge: 2})
	f("listed", ProfileEstablished, map[int]float64{publicListing: 1})
	f("listed and young", ProfileUnclassified, map[int]float64{publicListing: 1, organizationAge: 3})
	f("young and hiring", ProfileGrowth, map[int]float64{organizationAge: 12, openRoles: 3})
	f("hiring much", ProfileGrowth, map[int]float64{openRoles: 25})
	f("hiring little", ProfileUnclassified, map[int]float64{openRoles: 24})
	f("a raise within three years", ProfileGrowth, map[int]float64{capitalRaise: 1095})
	f("a raise too long ago", ProfileUnclassified, map[int]float64{capitalRaise: 1096, hnMentions: 5})
	f("two rounds", ProfileGrowth, map[int]float64{fundingRounds: 2})
	f("one round", ProfileUnclassified, map[int]float64{fundingRounds: 1})
	f("five million", ProfileGrowth, map[int]float64{fundingTotal: 5e6})
	f("traffic and a product", ProfileGrowth, map[int]float64{trafficRank: 300_000, productSurface: 3})
	f("traffic too low", ProfileUnclassified, map[int]float64{trafficRank: 300_001, productSurface: 3})
	f("established comes before growth", ProfileEstablished, map[int]float64{employeeCount: 1000, organizationAge: 9, openRoles: 25})
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
