package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/universe"
)

// others are the further companies of the sandbox. With the canned ones there are twelve.
var others = []struct {
	name               string
	composite, premium float64
	profile            scoring.Profile
}{
	{"harbor", 24.6, 0, scoring.ProfileUnclassified},
	{"lantern", 38.0, 0, scoring.ProfileUnclassified},
	{"juniper", 41.3, 0, scoring.ProfileGrowth},
	{"meadow", 47.7, 1.2, scoring.ProfileGrowth},
	{"quarry", 52.5, 0, scoring.ProfileUnclassified},
	{"saddle", 55.1, 3.1, scoring.ProfileEstablished},
	{"tundra", 59.8, 4.4, scoring.ProfileEstablished},
	{"walnut", 70.4, 9.9, scoring.ProfileEstablished},
}

// changes are the deltas of companies by domain, the same in every window. Other companies
// have no delta.
var changes = map[string]float64{
	"unicorn.test": 6.3, "walnut.test": 4.8, "acme.test": 3.9, "saddle.test": 2.2, "meadow.test": 1.1,
	"struggling.test": -7.4, "harbor.test": -5.0, "cohort.test": -2.6, "lantern.test": -1.7, "quarry.test": -0.4,
}

// invent returns a record that follows the formulas of the scoring package: the weighted sum
// of its buckets is its base.
func invent(domain, name string, composite, premium float64, profile scoring.Profile, at time.Time) scoring.Record {
	base := tenths(composite - premium)
	return scoring.Record{
		Domain: domain, CompanyName: name, PipelineVersion: scoring.PipelineVersion, ScoredAt: midnight(at),
		Composite: composite, Base: base, ScalePremium: premium, Rating: scoring.RatingOf(composite), Profile: profile,
		Buckets: scoring.BucketScores{
			TeamStructure: tenths(base + 0.6), MarketPosition: tenths(base - 1), MomentumTailwinds: tenths(base + 0.6),
			FinancialHealth: base,
		},
		Sector: "software", GeoScope: "north_america",
	}
}

// everyone returns the records of the twelve companies.
func everyone(now time.Time) []scoring.Record {
	var records []scoring.Record
	for _, domain := range Domains {
		rec, _ := Score(domain, now)
		records = append(records, rec)
	}
	for _, o := range others {
		records = append(records, invent(o.name+".test", title(o.name), o.composite, o.premium, o.profile, now))
	}
	return records
}

func title(name string) string { return string(name[0]-'a'+'A') + name[1:] }

// tables returns the tables of the twelve companies. No endpoint returns a date of them.
var tables = sync.OnceValue(func() *universe.Tables { return tablesOf(everyone(time.Unix(0, 0))) })

// tablesOf returns tables that count the given canned records.
func tablesOf(records []scoring.Record) *universe.Tables {
	t, err := universe.New(universe.Snapshot{Counts: universe.Count(records, time.Unix(0, 0))})
	if err != nil {
		panic("sandbox: " + err.Error())
	}
	return t
}

// Rank returns the rank of a composite among the twelve companies.
func Rank(composite float64) api.Rank {
	percentile, size := tables().Rank(composite)
	return api.Rank{Percentile: percentile, CohortSize: size}
}

// Distribution returns the distribution of the twelve companies.
func Distribution() api.Distribution {
	body := api.NewDistribution(tables())
	body.Mode = api.Sandbox
	return body
}

// offsets are the differences between the composites of the peers and of a canned company.
var offsets = [12]float64{12.4, 9.1, 6.8, 4.5, 2.7, 0.9, -0.8, -2.3, -4.6, -6.2, -8.9, -11.5}

// Cohort returns the comparison of a canned company with twelve peers. It returns false for
// any other domain.
func Cohort(domain string, now time.Time) (api.Cohort, bool) {
	rec, ok := Score(domain, now)
	if !ok {
		return api.Cohort{}, false
	}
	peers := make([]scoring.Record, len(offsets))
	for i, offset := range offsets {
		peers[i] = invent(fmt.Sprintf("cohort-%02d.test", i+1), fmt.Sprintf("Cohort %02d", i+1), tenths(rec.Composite+offset), 0,
			rec.Profile, now)
	}
	body := api.NewCohort(rec, tablesOf(peers).Compare(rec, nil))
	body.Mode = api.Sandbox
	return body, true
}

// split returns a made-up split of a delta: a quarter of it is coverage.
func split(delta float64) *scoring.Attribution {
	coverage := tenths(delta / 4)
	return &scoring.Attribution{Delta: delta, Observation: tenths(delta - coverage), Coverage: coverage}
}

// Movers returns five gainers and five decliners, the same in every window, with or without
// evidence.
func Movers(window universe.Window, now time.Time, evidence bool) api.Movers {
	m := universe.MoverList{Start: midnight(now).Add(-window.Length()), End: midnight(now)}
	for _, rec := range everyone(now) {
		if change := changes[rec.Domain]; change != 0 {
			then := tenths(rec.Composite - change)
			mover := universe.Mover{Company: universe.Company{Domain: rec.Domain, Name: rec.CompanyName, Composite: rec.Composite},
				Then: then, Attribution: split(change)}
			if change > 0 {
				m.Gainers = append(m.Gainers, mover)
			} else {
				m.Decliners = append(m.Decliners, mover)
			}
		}
	}
	slices.SortFunc(m.Gainers, func(a, b universe.Mover) int { return cmp.Compare(b.Delta(), a.Delta()) })
	slices.SortFunc(m.Decliners, func(a, b universe.Mover) int { return cmp.Compare(a.Delta(), b.Delta()) })
	body := api.NewMovers(window, m, evidence)
	body.Mode = api.Sandbox
	return body
}
