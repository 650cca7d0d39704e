package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"companyscore/internal/redis"
	"companyscore/internal/testenv"
	"companyscore/universe"
	"companyscore/universe/published"
)

// TestCountGoesOnFromWhatIsPublished plays days of a batch: what is counted, how,
// and what is told of it.
func TestCountGoesOnFromWhatIsPublished(t *testing.T) {
	t.Parallel()
	url := testenv.Redis(t).URL
	s := &store{compact: func(context.Context) error { return nil }, companies: 3}
	r := runnerOf(t, url, s)
	const count, movers, recount = 0, 1, 4
	broken := errors.New("broken")
	generation := uint64(0)
	for _, step := range []struct {
		name    string
		change  func()
		job     int
		kind    string
		outcome Outcome
		counts  int   // of everything, so far
		served  int64 // companies
		nothing bool  // is published before
	}{
		{"the first counts everything", func() {}, count, "full", OK, 1, 3, true},
		{"nothing came in", func() {}, count, "same", OK, 1, 3, false},
		{"movers are published though nothing came in", func() {}, movers, "incremental", OK, 1, 3, false},
		{"two came in", func() { s.companies = 5 }, count, "incremental", OK, 1, 5, false},
		{"the store is broken", func() { s.companies, s.broken = 6, broken }, count, "", Failed, 1, 5, false},
		{"it is well again", func() { s.broken = nil }, count, "incremental", OK, 1, 6, false},
		{"a new process", func() { s.companies = 7; r = runnerOf(t, url, s) }, count, "incremental", OK, 1, 7, false},
		{"the notes do not fit", func() { s.companies, s.lost = 8, fmt.Errorf("%w: gone", universe.ErrLost) }, count, "full", OK, 2, 8, false},
		{"it is time to count everything", func() { s.lost = nil }, recount, "full", OK, 3, 8, false},
		{"changes were counted wrongly", func() { s.companies, s.wrong = 9, 1 }, recount, "full", Partial, 4, 9, false},
		{"there are too many notes", func() { s.companies, s.wrong, s.notes = 10, 0, 1_000_000 }, count, "full", OK, 5, 10, false},
		{"very many came in", func() { s.companies, s.notes = 200_000, 0 }, count, "full", OK, 6, 200_000, false},
		{"Redis was emptied", func() {
			if err := r.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}, count, "full", OK, 7, 200_000, true},
	} {
		step.change()
		run, err := r.run(t.Context(), r.jobs[step.job])
		if failed := step.outcome == Failed; failed != (err != nil) || run.Outcome != step.outcome || !failed && run.Kind != step.kind || s.counts != step.counts {
			t.Fatalf("%s: %+v, %v, everything counted %d times; want %+v", step.name, run, err, s.counts, step)
		}
		served, err := published.Read(t.Context(), r.cfg.Redis)
		if err != nil || served == nil || served.Companies() != step.served || len(served.Shown) != len(universe.Windows) {
			t.Fatalf("%s: published is %+v, %v; want %d companies", step.name, served, err, step.served)
		}
		if served.Generation < generation {
			t.Fatalf("%s: generation %d is published after %d", step.name, served.Generation, generation)
		}
		before := generation
		if step.nothing {
			before = math.MaxUint64
		}
		if step.kind == "full" && s.forgot != before {
			t.Fatalf("%s: notes of generations before %d were dropped first, want %d", step.name, s.forgot, before)
		}
		generation = served.Generation
		all, err := ReadStatus(t.Context(), r.cfg.Redis)
		status := all[r.jobs[step.job].name]
		if err != nil || status.Outcome != step.outcome || status.Good.IsZero() || (status.Error == "") != (step.outcome == OK) {
			t.Fatalf("%s: status is %+v, %v", step.name, status, err)
		}
		if last := s.runs[len(s.runs)-1]; step.kind != "same" && (last.ID != run.ID || last.Job != r.jobs[step.job].name) {
			t.Fatalf("%s: the last run on record is %+v", step.name, last)
		}
	}
	if _, err := r.run(t.Context(), r.jobs[len(r.jobs)-1]); err != nil || s.forgot != generation {
		t.Fatalf("housekeeping: notes of generations before %d are dropped, and %d is published: %v", s.forgot, generation, err)
	}
}

func TestOvertakenLeaderPublishesNothing(t *testing.T) {
	t.Parallel()
	r := runnerOf(t, testenv.Redis(t).URL, &store{companies: 3})
	if _, err := r.run(t.Context(), r.jobs[0]); err != nil {
		t.Fatal(err)
	}
	if err := r.cfg.Redis.Set(t.Context(), redis.BatchFence("universe"), -5, 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.cfg.Store.(*store).companies = 4
	if _, err := r.run(t.Context(), r.jobs[0]); !errors.Is(err, published.ErrOvertaken) {
		t.Errorf("a leader of before: %v", err)
	}
}
