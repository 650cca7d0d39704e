package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/scoring"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)

// record is a whole record as scoring makes it.
func record(t testing.TB, domain string, at time.Time) scoring.Record {
	t.Helper()
	rec, err := scoring.Score(scoring.Input{
		Domain: domain, RunID: "run-" + domain, Now: at,
		Observations: []scoring.Observation{
			{Signal: "employee_count", State: scoring.StateOK, Raw: 250, Source: "facts"},
			{Signal: "open_roles", State: scoring.StateMissing, Source: "jobs", Reason: scoring.ReasonSourceTimeout},
		},
		Identity: scoring.Identity{Name: "Example \"É\" Inc", Country: "US", Industries: []string{"software"}},
		Warnings: []scoring.Warning{{Source: "jobs", Code: "timeout", At: at}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

func scores(t testing.TB, db *clickhouse.DB) *clickhouse.Scores {
	s := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestRecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	want := record(t, "example.com", noon)
	if err := s.Write(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Latest(t.Context(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("record changed in the store (-wrote +read):\n%s", diff)
	}
	head, err := s.LatestHead(t.Context(), "example.com")
	if err != nil || head.Composite != want.Composite || !head.ScoredAt.Equal(want.ScoredAt) || head.Buckets != want.Buckets {
		t.Errorf("head = %+v, %v", head, err)
	}
	if _, err := s.LatestHead(t.Context(), "other.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("head of an unknown company: %v, want ErrNotFound", err)
	}
	if _, err := s.Latest(t.Context(), "other.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("record of an unknown company: %v, want ErrNotFound", err)
	}
}

func TestNewestRecordWinsInAnyOrder(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	for _, at := range []time.Time{noon, noon.Add(time.Hour), noon.Add(-time.Hour), noon.Add(time.Hour)} {
		if err := s.Write(t.Context(), record(t, "example.com", at)); err != nil {
			t.Fatal(err)
		}
	}
	head, err := s.LatestHead(t.Context(), "example.com")
	if err != nil || !head.ScoredAt.Equal(noon.Add(time.Hour)) {
		t.Errorf("newest = %v, %v; want %v", head.ScoredAt, err, noon.Add(time.Hour))
	}
	fresh, err := s.FreshSince(t.Context(), []string{"example.com", "other.com"}, noon)
	if err != nil || len(fresh) != 1 || !fresh["example.com"].Equal(noon.Add(time.Hour)) {
		t.Errorf("FreshSince = %v, %v", fresh, err)
	}
	fresh, err = s.FreshSince(t.Context(), []string{"example.com"}, noon.Add(2*time.Hour))
	if err != nil || len(fresh) != 0 {
		t.Errorf("FreshSince later = %v, %v; want none", fresh, err)
	}
}

func TestReferenceIsNearestToAMonth(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	day := func(n int) time.Time { return noon.AddDate(0, 0, -n) }
	f := func(domain string, want int, ages ...int) {
		t.Helper()
		for _, age := range ages {
			if err := s.Write(t.Context(), record(t, domain, day(age))); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.Reference(t.Context(), domain, noon)
		switch {
		case err != nil:
			t.Errorf("%s: %v", domain, err)
		case want == 0 && got != nil:
			t.Errorf("%s: reference of %v, want none", domain, got.ScoredAt)
		case want != 0 && (got == nil || !got.ScoredAt.Equal(day(want))):
			t.Errorf("%s: reference = %+v, want that of %d days ago", domain, got, want)
		}
	}
	f("none.com", 0)
	f("young.com", 0, 1, 19)
	f("old.com", 0, 121, 400)
	f("near.com", 33, 20, 33, 60)
	f("tie.com", 35, 25, 35)
	f("edges.com", 20, 20, 120)
}

func TestConcurrentWritersShareInserts(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	var wg sync.WaitGroup
	errs := make([]error, 300)
	for i := range errs {
		wg.Go(func() { errs[i] = s.Write(t.Context(), record(t, fmt.Sprintf("company-%d.com", i), noon)) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if _, err := s.LatestHead(t.Context(), fmt.Sprintf("company-%d.com", i)); err != nil {
			t.Fatalf("record %d was acknowledged and is not there: %v", i, err)
		}
	}
}

func TestABadRecordFailsAlone(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	var wg sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		rec := record(t, fmt.Sprintf("company-%d.com", i), noon)
		if i == 7 {
			rec.Composite = 101
		}
		wg.Go(func() { errs[i] = s.Write(t.Context(), rec) })
	}
	wg.Wait()
	for i, err := range errs {
		if (err != nil) != (i == 7) {
			t.Errorf("write %d: %v", i, err)
		}
	}
}

func TestWriteAfterCloseIsRefused(t *testing.T) {
	t.Parallel()
	s := clickhouse.NewScores(open(t), clickhouse.WriterConfig{})
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Write(t.Context(), record(t, "example.com", noon)); !errors.Is(err, clickhouse.ErrClosed) {
		t.Errorf("Write after Close = %v, want ErrClosed", err)
	}
}
