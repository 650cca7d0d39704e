package sandbox

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/golden"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/universe"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func obeysFormulas(t *testing.T, rec scoring.Record) {
	t.Helper()
	if got := base(rec.Buckets); math.Abs(got-rec.Base) > 0.051 || math.Abs(rec.Base+rec.ScalePremium-rec.Composite) > 1e-9 {
		t.Errorf("%s: base %v (from buckets %v), premium %v, composite %v", rec.Domain, rec.Base, got, rec.ScalePremium, rec.Composite)
	}
	if got := scoring.RatingOf(rec.Composite); got != rec.Rating {
		t.Errorf("%s: rating %s, want %s", rec.Domain, rec.Rating, got)
	}
	limit := map[scoring.Profile]float64{scoring.ProfileEstablished: 12, scoring.ProfileGrowth: 6}[rec.Profile]
	if rec.ScalePremium > limit {
		t.Errorf("%s: premium %v beyond %v of a %s profile", rec.Domain, rec.ScalePremium, limit, rec.Profile)
	}
	if rec.ScoredAt.After(now) {
		t.Errorf("%s: scored at %v, seen from %v", rec.Domain, rec.ScoredAt, now)
	}
}

// confidence is what each canned company is said to rest on.
var confidence = map[string]struct {
	completeness float64
	band         scoring.Band
}{
	"acme.test":       {89.1, scoring.BandHigh},
	"unicorn.test":    {92.9, scoring.BandHigh},
	"struggling.test": {36.4, scoring.BandDirectional},
	"cohort.test":     {73.0, scoring.BandMedium},
}

func TestCannedRecordsObeyTheFormulas(t *testing.T) {
	t.Parallel()
	if !slices.IsSorted(Domains) || len(Domains) != len(companies) {
		t.Errorf("Domains = %v for %d companies", Domains, len(companies))
	}
	for _, rec := range everyone(now) {
		obeysFormulas(t, rec)
	}
	for _, domain := range Domains {
		rec, ok := Score(domain, now)
		if !ok || !Has(domain) || now.Sub(rec.ScoredAt) > 24*time.Hour {
			t.Fatalf("Score(%s) = %v, %v", domain, rec.ScoredAt, ok)
		}
		for i, signal := range scoring.Manifest() {
			s := rec.Signals[i]
			if s.ID != signal.ID || s.State == scoring.StateMissing && (s.Reason == "" || s.Source != "") || s.State == scoring.StateOK &&
				!slices.Contains(signal.Sources, s.Source) {
				t.Errorf("%s: signal %+v", domain, s)
			}
		}
		want := confidence[domain]
		if rec.CompletenessPct != want.completeness || rec.Confidence != want.band {
			t.Errorf("%s: %v %% %s, want %v %% %s", domain, rec.CompletenessPct, rec.Confidence, want.completeness, want.band)
		}
	}
	if rec, _ := Score("struggling.test", now); rec.Confidence != scoring.BandDirectional || len(rec.Warnings) == 0 {
		t.Errorf("struggling.test is %s with %d warnings", rec.Confidence, len(rec.Warnings))
	}
	if _, ok := Score("example.com", now); ok || Has("example.com") {
		t.Error("the sandbox knows a real domain")
	}
}

func TestLessDataWidensTheInterval(t *testing.T) {
	t.Parallel()
	widths := make(map[string]float64)
	for _, domain := range Domains {
		rec, _ := Score(domain, now)
		if i := rec.Interval; i.Low > rec.Composite || i.High < rec.Composite || i.Level != scoring.IntervalLevel {
			t.Errorf("%s: composite %v, interval %+v", domain, rec.Composite, i)
		}
		widths[domain] = rec.Interval.High - rec.Interval.Low
	}
	if !(0 < widths["unicorn.test"] && widths["unicorn.test"] < widths["acme.test"] && widths["acme.test"] < widths["cohort.test"] &&
		widths["cohort.test"] < widths["struggling.test"]) {
		t.Errorf("widths %v do not grow with what is missing", widths)
	}
}

func TestHistoryPagesLikeLive(t *testing.T) {
	t.Parallel()
	for _, domain := range Domains {
		all, _ := History(domain, api.Page{Limit: 100}, now)
		if len(all) < 4 || len(all) > 12 {
			t.Errorf("%s has %d records", domain, len(all))
		}
		newest, _ := Score(domain, now)
		if all[0].Composite != newest.Composite || !all[0].ScoredAt.Equal(newest.ScoredAt) {
			t.Errorf("%s: the newest record is not the score", domain)
		}
		var paged []scoring.Record
		page := api.Page{Limit: 3}
		for {
			records, _ := History(domain, page, now)
			body := api.NewHistory(domain, page, records)
			paged = append(paged, records[:len(body.Records)]...)
			if body.NextCursor == "" {
				break
			}
			last, err := api.DecodeCursor(domain, false, body.NextCursor)
			if err != nil {
				t.Fatal(err)
			}
			page.After(last)
		}
		if len(paged) != len(all) {
			t.Errorf("%s: pages hold %d of %d records", domain, len(paged), len(all))
		}
		for i, rec := range all {
			obeysFormulas(t, rec)
			if i > 0 && !rec.ScoredAt.Equal(all[i-1].ScoredAt.AddDate(0, 0, -1)) {
				t.Errorf("%s: record %d is of %v", domain, i, rec.ScoredAt)
			}
			if !paged[i].ScoredAt.Equal(rec.ScoredAt) {
				t.Errorf("%s: page record %d is of %v, want %v", domain, i, paged[i].ScoredAt, rec.ScoredAt)
			}
		}
	}
	if _, ok := History("example.com", api.Page{Limit: 1}, now); ok {
		t.Error("a real domain has a history")
	}
}

func TestUniverseHasTwelveListedCompanies(t *testing.T) {
	t.Parallel()
	d := Distribution().Universe
	var composites, premiums, ratings, profiles int64
	for _, b := range d.CompositeHist {
		composites += b.Count
	}
	for _, b := range d.PremiumHist {
		premiums += b.Count
	}
	for _, n := range d.Ratings {
		ratings += n
	}
	for _, n := range d.Profiles {
		profiles += n
	}
	if d.Count != 12 || composites != 12 || premiums != 12 || ratings != 12 || profiles != 12 {
		t.Errorf("counts are %d, %d, %d, %d, %d", d.Count, composites, premiums, ratings, profiles)
	}
	known := make(map[string]float64)
	for _, rec := range everyone(now) {
		known[rec.Domain] = rec.Composite
	}
	for _, window := range universe.Windows {
		m := Movers(window, now, false)
		if len(m.Gainers) != 5 || len(m.Decliners) != 5 || time.Time(m.WindowEnd).Sub(time.Time(m.WindowStart)) != window.Length() {
			t.Errorf("%s: %d gainers, %d decliners", window, len(m.Gainers), len(m.Decliners))
		}
		for sign, list := range map[float64][]api.Mover{1: m.Gainers, -1: m.Decliners} {
			last := math.Inf(1)
			for _, mover := range list {
				if mover.CompositeNow != known[mover.Domain] || mover.Delta*sign <= 0 || mover.Delta*sign > last {
					t.Errorf("%s: mover %+v", window, mover)
				}
				last = mover.Delta * sign
			}
		}
	}
}

func TestCohortHasTwelvePeers(t *testing.T) {
	t.Parallel()
	for _, domain := range Domains {
		c, ok := Cohort(domain, now)
		if !ok || c.Cohort.Count != 12 || len(c.Members) != 12 || c.Cohort.Rank != 7 || c.Cohort.Percentile != 50 {
			t.Errorf("%s: %+v", domain, c.Cohort)
		}
		for i, m := range c.Members {
			if !strings.HasPrefix(m.Domain, "cohort-") || i > 0 && m.Composite > c.Members[i-1].Composite {
				t.Errorf("%s: member %d is %+v", domain, i, m)
			}
		}
	}
	if _, ok := Cohort("example.com", now); ok {
		t.Error("a real domain has a cohort")
	}
}

func TestUsageHistorySumsAreEqual(t *testing.T) {
	t.Parallel()
	sums := make(map[api.UsageGroup]bool)
	for _, by := range []string{"day", "key", "route", "status"} {
		var sum api.UsageGroup
		for _, row := range UsageHistory("account", by, now.Add(-50*time.Hour), now).Rows {
			sum.Calls += row.Calls
			sum.ColdCalls += row.ColdCalls
			sum.Errors += row.Errors
			sum.Bytes += row.Bytes
		}
		sums[sum] = true
	}
	if len(sums) != 1 || sums[api.UsageGroup{}] {
		t.Errorf("sums of the groupings differ: %v", sums)
	}
	if rows := UsageHistory("account", "day", now, now).Rows; rows == nil || len(rows) != 0 {
		t.Errorf("an empty range has rows %v", rows)
	}
}

// TestBodies holds every canned answer against a file that people read.
func TestBodies(t *testing.T) {
	t.Parallel()
	included := func(n int64) *int64 { return &n }
	bodies := func(at time.Time) map[string]any {
		all := map[string]any{
			"distribution": Distribution(), "movers": Movers(universe.Month, at, false), "movers with evidence": Movers(universe.Month, at,
				true),
			"usage starter": Usage("account", "starter", api.TierLimits{CachedCallsIncluded: included(10_000),
				ColdCallsIncluded: included(100), FreshnessWindowHours: 24}, at),
			"usage enterprise": Usage("account", "enterprise", api.TierLimits{FreshnessWindowHours: 0.25}, at),
			"usage free": Usage("account", "free", api.TierLimits{CachedCallsIncluded: included(1_000),
				ColdCallsIncluded: included(0), FreshnessWindowHours: 168}, at),
		}
		for _, by := range []string{"day", "key", "route", "status"} {
			all["usage by "+by] = UsageHistory("account", by, midnight(at).AddDate(0, 0, -2), midnight(at))
		}
		for _, domain := range Domains {
			rec, _ := Score(domain, at)
			records, _ := History(domain, api.Page{Limit: 100}, at)
			cohort, _ := Cohort(domain, at)
			all[domain+" rank"] = Rank(rec.Composite)
			all[domain+" confidence"] = api.NewConfidence(rec)
			all[domain+" history"] = api.NewHistory(domain, api.Page{Limit: 100}, records)
			all[domain+" cohort"] = cohort
		}
		return all
	}
	got, err := json.MarshalIndent(bodies(now), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	again, err := json.MarshalIndent(bodies(now.Add(3*time.Hour)), "", "  ")
	if err != nil || string(again) != string(got) {
		t.Errorf("the same day, other answers (%v)", err)
	}
	golden.Compare(t, "testdata/bodies.golden.json", string(got))
}
