package clickhouse_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/scoring"
	"companyscore/universe"
)

// anyRecord is a record with random scores in one of few groups.
func anyRecord(rng *rand.Rand, domain string, at time.Time) scoring.Record {
	tenth := func() float64 { return float64(rng.IntN(1001)) / 10 }
	profiles := []scoring.Profile{scoring.ProfileGrowth, scoring.ProfileEstablished, scoring.ProfileUnclassified}
	rec := scoring.Record{
		Domain: domain, CompanyName: "Company " + domain, PipelineVersion: scoring.PipelineVersion, ScoredAt: at,
		Composite: tenth(), ScalePremium: float64(rng.IntN(121)) / 10, Profile: profiles[rng.IntN(3)],
		Sector: fmt.Sprint("sector ", rng.IntN(2)), GeoScope: "global", Confidence: scoring.BandLow,
		Buckets: scoring.BucketScores{TeamStructure: tenth(), MarketPosition: tenth(), MomentumTailwinds: tenth(), FinancialHealth: tenth()},
	}
	rec.Rating = scoring.RatingOf(rec.Composite)
	return rec
}

func TestUniverseIsCountedAsOneWouldByHand(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	rng := rand.New(rand.NewPCG(1, 2))
	newest := make(map[string]scoring.Record)
	var all []scoring.Record
	for i := range 700 {
		rec := anyRecord(rng, fmt.Sprintf("c%d.com", rng.IntN(300)), noon.Add(-time.Duration(i)*time.Hour))
		all = append(all, rec)
		if newest[rec.Domain].ScoredAt.Before(rec.ScoredAt) {
			newest[rec.Domain] = rec
		}
	}
	other := anyRecord(rng, "old.com", noon)
	other.PipelineVersion = "v0"
	writeAll(t, s, append(all, other)...)

	got, err := db.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var records []scoring.Record
	for _, rec := range newest {
		records = append(records, rec)
	}
	want := universe.Count(records, noon)
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(universe.Snapshot{}, "At", "Cut"), cmpopts.SortSlices(func(a, b universe.Group) bool {
		return fmt.Sprint(a.GroupKey) < fmt.Sprint(b.GroupKey)
	})); diff != "" {
		t.Error(diff)
	}
	if _, err := universe.New(got); err != nil {
		t.Error(err)
	}
	for _, window := range universe.Windows {
		got, err := db.Movers(t.Context(), window, noon)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(slowMovers(all, window, noon), got); diff != "" {
			t.Errorf("%s: %s", window, diff)
		}
	}
}

// slowMovers finds movers company by company.
func slowMovers(records []scoring.Record, window universe.Window, end time.Time) universe.Movers {
	m := universe.Movers{Start: end.Add(-window.Length()), End: end}
	last, before := make(map[string]scoring.Record), make(map[string]scoring.Record)
	for _, rec := range records {
		side := last
		if rec.ScoredAt.Before(m.Start) {
			side = before
		}
		if side[rec.Domain].ScoredAt.Before(rec.ScoredAt) {
			side[rec.Domain] = rec
		}
	}
	var all []universe.Mover
	for domain, now := range last {
		if then, ok := before[domain]; ok {
			all = append(all, universe.Mover{Domain: domain, CompanyName: now.CompanyName,
				Now: now.Composite, Then: then.Composite, RatingNow: now.Rating, RatingThen: then.Rating})
		}
	}
	pick := func(sign float64) []universe.Mover {
		list := []universe.Mover{}
		for len(list) < universe.MoversShown {
			best := -1
			for i, c := range all {
				if c.Delta()*sign > 0 && (best < 0 || c.Delta()*sign > all[best].Delta()*sign || c.Delta() == all[best].Delta() && c.Domain < all[best].Domain) {
					best = i
				}
			}
			if best < 0 {
				break
			}
			list = append(list, all[best])
			all[best] = universe.Mover{}
		}
		return list
	}
	m.Gainers, m.Decliners = pick(1), pick(-1)
	return m
}

// writeAll writes records together and waits for all.
func writeAll(t *testing.T, s *clickhouse.Scores, records ...scoring.Record) {
	t.Helper()
	done := make(chan error, len(records))
	for _, rec := range records {
		go func() { done <- s.Write(t.Context(), rec) }()
	}
	for range records {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestEmptyUniverseIsCounted(t *testing.T) {
	t.Parallel()
	db := open(t)
	s, err := db.Groups(t.Context())
	if err != nil || len(s.Groups) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	m, err := db.Movers(t.Context(), universe.Month, noon)
	if err != nil || len(m.Gainers)+len(m.Decliners) != 0 || !m.End.Equal(noon) || m.End.Sub(m.Start) != 30*24*time.Hour {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestStandingTellsWhatWasCounted(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	rng := rand.New(rand.NewPCG(3, 4))
	if _, _, err := s.Standing(t.Context(), "example.com", noon); !errors.Is(err, scoring.ErrNotFound) {
		t.Fatalf("standing of an unknown company: %v", err)
	}
	old := anyRecord(rng, "example.com", noon.Add(-time.Hour))
	writeAll(t, s, old)
	counted, err := db.Groups(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for time.Now().UnixMilli() <= counted.Cut.UnixMilli() { // the next record is to be written in a later millisecond
	}
	fresh := anyRecord(rng, "example.com", noon)
	writeAll(t, s, fresh)
	latest, was, err := s.Standing(t.Context(), "example.com", counted.Cut)
	if err != nil || latest.Composite != fresh.Composite || was == nil || was.Composite != old.Composite {
		t.Errorf("standing: latest %v, counted %v, %v; want %v and %v", latest.Composite, was, err, fresh.Composite, old.Composite)
	}
	_, was, err = s.Standing(t.Context(), "example.com", time.Now().Add(time.Hour))
	if err != nil || was == nil || was.Composite != fresh.Composite {
		t.Errorf("counted later: %v, %v", was, err)
	}
	if _, was, err = s.Standing(t.Context(), "example.com", noon.Add(-1e6*time.Hour)); err != nil || was != nil {
		t.Errorf("counted long before: %v, %v", was, err)
	}
}
