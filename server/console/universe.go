package console

import (
	"cmp"
	"slices"
	"time"

	"companyscore/scoring"
	"companyscore/universe"
)

type universeBody struct {
	Counted   bool
	At        time.Time
	Version   string
	D         universe.Distribution
	Composite histogram
	Premium   histogram
	Ratings   []ratingShare
	Profiles  []profileShare
	Sectors   []sector
	Window    universe.Window
	Windows   []universe.Window
	MinData   float64             // completeness in percent below which no company is counted
	Movers    *universe.MoverList // nil before the first movers job
	NoData    int                 // movers without data, which are not in Movers
}

type ratingShare struct {
	Rating   scoring.Rating
	From, To float64
	Count    int64
}

type profileShare struct {
	Profile scoring.Profile
	Count   int64
}

// sector is the companies of one sector.
type sector struct {
	Name  string
	Count int64
	Mean  float64
	Low   float64 // smallest
	P50   float64
	High  float64 // ninetieth percentile
}

func (c *Console) universe(v *visit) error {
	body := universeBody{Windows: universe.Windows, Window: universe.Month}
	if w := universe.Window(v.r.URL.Query().Get("window")); w.Length() > 0 {
		body.Window = w
	}
	tables := c.Universe.Tables(c.now())
	if tables == nil || tables.Distribution().Count == 0 {
		return v.render("universe", "Universe", "universe", body)
	}
	body.Counted, body.At, body.Version, body.D = true, tables.At(), tables.PipelineVersion(), tables.Distribution()
	body.Composite = newHistogram(body.D.CompositeHist[:], 100, -1, "the composite", fullWidth)
	body.Premium = newHistogram(body.D.PremiumHist[:], 12, -1, "the premium", halfWidth)
	ranges := bands()
	slices.Reverse(ranges)
	for _, b := range ranges {
		body.Ratings = append(body.Ratings, ratingShare{b.Grade, b.From, b.To, body.D.Ratings[b.Grade]})
	}
	for _, p := range []scoring.Profile{scoring.ProfileEstablished, scoring.ProfileGrowth, scoring.ProfileUnclassified} {
		body.Profiles = append(body.Profiles, profileShare{p, body.D.Profiles[p]})
	}
	body.Sectors = sectors(tables.Cohorts())
	body.MinData = tables.MinDataPct()
	if list, ok := tables.Movers().Lists[body.Window]; ok {
		var gainers, decliners int
		list.Gainers, gainers = withData(list.Gainers, hasData)
		list.Decliners, decliners = withData(list.Decliners, hasData)
		body.Movers, body.NoData = &list, gainers+decliners
	}
	return v.render("universe", "Universe", "universe", body)
}

func hasData(m universe.Mover) bool { return m.HasData() }

// sectors returns the statistics of each sector, the largest first.
func sectors(cohorts []universe.Cohort) []sector {
	steps := make(map[string]map[int]int64)
	for _, cohort := range cohorts {
		of := steps[cohort.Sector]
		if of == nil {
			of = make(map[int]int64)
			steps[cohort.Sector] = of
		}
		for _, s := range cohort.Steps {
			of[s.Step] += s.Count
		}
	}
	var all []sector
	for name, counts := range steps {
		d := universe.Describe(counts)
		all = append(all, sector{Name: name, Count: d.Count, Mean: d.Mean, P50: d.P50, High: d.P90, Low: d.Min})
	}
	slices.SortFunc(all, func(a, b sector) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name)) })
	return all
}
