package batch

import (
	"errors"
	"testing"
	"time"

	"companyscore/batch/jobs"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

// TestFailedJobKeepsLastPublishedPart runs jobs in sequence and checks the
// published snapshot and the status of each job after each run.
func TestFailedJobKeepsLastPublishedPart(t *testing.T) {
	t.Parallel()
	url := stores.Redis(t).URL
	s := &store{companies: 3}
	r := runnerOf(t, url, s)
	const count, movers = 0, 1
	broken := errors.New("broken")
	for _, step := range []struct {
		name    string
		change  func()
		job     int
		outcome table.BatchOutcome
		served  uint64 // companies
		lists   int    // of movers
	}{
		{"movers first", func() {}, movers, table.BatchOK, 0, len(universe.Windows)},
		{"a count", func() {}, count, table.BatchOK, 3, len(universe.Windows)},
		{"two came in", func() { s.companies = 5 }, count, table.BatchOK, 5, len(universe.Windows)},
		{"the store is broken", func() { s.companies, s.broken = 6, broken }, count, table.BatchFailed, 5, len(universe.Windows)},
		{"the store is broken for movers", func() {}, movers, table.BatchFailed, 5, len(universe.Windows)},
		{"it works again", func() { s.broken = nil }, count, table.BatchOK, 6, len(universe.Windows)},
		{"a new process", func() { s.companies = 4; r = runnerOf(t, url, s) }, count, table.BatchOK, 4, len(universe.Windows)},
		{"Redis was emptied", func() {
			if err := r.cfg.Redis.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}, count, table.BatchOK, 4, 0},
	} {
		step.change()
		run, err := r.run(t.Context(), r.jobs[step.job])
		if failed := step.outcome == table.BatchFailed; failed != (err != nil) || run.Outcome != step.outcome {
			t.Fatalf("%s: %+v, %v; want %+v", step.name, run, err, step)
		}
		served, _, err := snapshot.Read(t.Context(), r.cfg.Redis)
		if err != nil || len(served.Movers.Lists) != step.lists {
			t.Fatalf("%s: published is %+v, %v; want %d lists of movers", step.name, served, err, step.lists)
		}
		tables, err := universe.New(served)
		if err != nil || uint64(tables.Distribution().Count) != step.served {
			t.Fatalf("%s: published is %+v, %v; want %d companies", step.name, served, err, step.served)
		}
		all, err := jobs.ReadStatus(t.Context(), r.cfg.Redis)
		status := all[r.jobs[step.job].name]
		if err != nil || status.Outcome != step.outcome || status.Good.IsZero() || (status.Error == "") != (step.outcome == table.BatchOK) {
			t.Fatalf("%s: status is %+v, %v", step.name, status, err)
		}
		last := s.runs[len(s.runs)-1]
		if last.ID != run.ID || last.Job != r.jobs[step.job].name || step.job == count && step.outcome == table.BatchOK &&
			last.Companies != step.served {
			t.Fatalf("%s: the last run on record is %+v", step.name, last)
		}
	}
}

func TestOvertakenLeaderPublishesNothing(t *testing.T) {
	t.Parallel()
	r := runnerOf(t, stores.Redis(t).URL, &store{companies: 3})
	for i, part := range []string{"counts", "movers"} {
		if _, err := r.run(t.Context(), r.jobs[i]); err != nil {
			t.Fatal(err)
		}
		const later = 1 << 50
		if err := r.cfg.Redis.HSet(t.Context(), redis.Universe(), part+"_fence", int64(later)).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := r.run(t.Context(), r.jobs[i]); !errors.Is(err, snapshot.ErrOvertaken) {
			t.Errorf("a leader of before at %s: %v", part, err)
		}
	}
}

func TestJobRestsTenTimesItsDuration(t *testing.T) {
	t.Parallel()
	s := &store{companies: 3}
	r := runnerOf(t, stores.Redis(t).URL, s)
	before := time.Now()
	r.attempt(r.jobs[0])
	rests := r.rest["count"].Add(-10 * s.runs[0].Took)
	if rests.Before(before) || rests.After(time.Now()) {
		t.Errorf("a job that took %s rests until %s", s.runs[0].Took, r.rest["count"])
	}
	r.rest["count"] = time.Now().Add(time.Hour)
	r.jobs[0].schedule = parsed("@every 1s")
	r.scheduled(r.jobs[0])
	if len(s.runs) != 1 {
		t.Errorf("%d runs while the job rests", len(s.runs))
	}
}

func TestNextCountRestoresLostMovers(t *testing.T) {
	t.Parallel()
	s := &store{companies: 3}
	r := runnerOf(t, stores.Redis(t).URL, s)
	count := r.job(jobs.Count)
	count.schedule = parsed("@every 1s")
	for _, want := range []int{2, 3} { // number of runs: movers are published from the second one
		clear(r.rest)
		r.scheduled(count)
		if len(s.runs) != want {
			t.Fatalf("%d runs, want %d: %+v", len(s.runs), want, s.runs)
		}
	}
	if found, err := snapshot.HasMovers(t.Context(), r.cfg.Redis); err != nil || !found {
		t.Errorf("movers are published: %v, %v", found, err)
	}
}

// TestDamagedPartsAreComputedAnew damages what is published, for a job that is called once and for the
// schedules.
func TestDamagedPartsAreComputedAnew(t *testing.T) {
	t.Parallel()
	s := &store{companies: 3}
	r := runnerOf(t, stores.Redis(t).URL, s)
	count := r.job(jobs.Count)
	count.schedule = parsed("@every 1s")
	for name, again := range map[string]func() error{
		"once":      func() error { return r.Once(t.Context(), []string{jobs.Count, jobs.Movers}, silent) },
		"schedules": func() error { clear(r.rest); r.scheduled(count); return nil },
	} {
		for _, field := range []string{"movers", "counts", "revision"} {
			if err := r.Once(t.Context(), []string{jobs.Count, jobs.Movers}, silent); err != nil {
				t.Fatal(err)
			}
			if err := r.cfg.Redis.HSet(t.Context(), redis.Universe(), field, "damaged").Err(); err != nil {
				t.Fatal(err)
			}
			if err := again(); err != nil {
				t.Errorf("%s, damaged %s: %v", name, field, err)
			}
			got, revision, err := snapshot.Read(t.Context(), r.cfg.Redis)
			if err != nil || revision == 0 || got.Counts.Companies() != 3 || len(got.Movers.Lists) != len(universe.Windows) {
				t.Errorf("%s, damaged %s: published is %+v of revision %d, %v", name, field, got, revision, err)
			}
		}
	}
}

// TestLargeUniversesAreAdoptedAtEpochs publishes counts of a small, a large and again a large universe.
func TestLargeUniversesAreAdoptedAtEpochs(t *testing.T) {
	t.Parallel()
	s := &store{}
	r := runnerOf(t, stores.Redis(t).URL, s)
	for _, step := range []struct {
		companies int64
		once      bool
		now, then uint64 // companies in use now and in the next epoch
	}{{9_999, false, 9_999, 9_999}, {9_998, false, 9_998, 9_998}, {10_000, false, 10_000, 10_000}, {10_001, true, 10_001, 10_001},
		{10_002, false, 10_001, 10_002}} {
		s.companies = step.companies
		if step.once {
			if err := r.Once(t.Context(), []string{jobs.Count, jobs.Movers}, silent); err != nil {
				t.Fatal(err)
			}
			r.adoption = snapshot.NextEpoch // as in the process of the schedules
		} else if _, err := r.run(t.Context(), r.job(jobs.Count)); err != nil {
			t.Fatal(err)
		}
		fresh := snapshot.Follow(t.Context(), r.cfg.Redis, r.cfg.Logger)
		now := time.Now()
		for at, want := range map[time.Time]uint64{now: step.now, now.Add(2 * r.cfg.Schedules.CountEpoch): step.then} {
			tables := fresh.Tables(at)
			if got := uint64(tables.Distribution().Count); got != want {
				t.Errorf("%+v: %d companies at %s", step, got, at)
			}
			if large := tables.Distribution().Count >= smallUniverse; large != (tables.Epoch() == r.cfg.Schedules.CountEpoch) {
				t.Errorf("%+v: an epoch of %s", step, tables.Epoch())
			}
			if step.once && tables.Movers().Epoch != r.cfg.Schedules.MoversEpoch {
				t.Errorf("%+v: an epoch of movers of %s", step, tables.Movers().Epoch)
			}
		}
		fresh.Close()
	}
}

func TestRunsToBeReplacedAreSkipped(t *testing.T) {
	t.Parallel()
	r := runnerOf(t, stores.Redis(t).URL, &store{})
	count := r.job(jobs.Count)
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		companies uint64
		schedule  string
		at        time.Duration // after noon, when an epoch begins
		premature bool
	}{
		{10_000, "@every 10s", 0, true},
		{10_000, "@every 10s", 8*time.Minute + 49*time.Second, true},
		{10_000, "@every 10s", 8*time.Minute + 51*time.Second, false},
		{10_000, "@every 10s", 10*time.Minute - time.Second, false},
		{10_000, "@every 10s", 10 * time.Minute, true},
		{10_000, "@every 5m", 3 * time.Minute, true},
		{10_000, "@every 5m", 5 * time.Minute, false},
		{10_000, "17 3 * * *", time.Minute, false},
		{9_999, "@every 10s", 0, false},
	} {
		r.companies.Store(c.companies)
		count.schedule = parsed(c.schedule)
		if got := r.premature(count, noon.Add(c.at)); got != c.premature {
			t.Errorf("%+v: premature is %v", c, got)
		}
	}
}
