package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/sql"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)

// record returns a complete record as computed by package scoring.
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
		ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestLastScoredAtReadsNoRows(t *testing.T) {
	t.Parallel()
	db := open(t)
	if at, err := db.LastScoredAt(t.Context()); err != nil || !at.IsZero() {
		t.Errorf("LastScoredAt of nothing = %s, %v; want the zero time", at, err)
	}
	s := scores(t, db)
	for _, at := range []time.Time{noon, noon.AddDate(1, 0, 0), noon.AddDate(-1, 0, 0)} {
		if err := s.Write(t.Context(), record(t, "example.com", at)); err != nil {
			t.Fatal(err)
		}
	}
	if at, err := db.LastScoredAt(t.Context()); err != nil || !at.Equal(noon.AddDate(1, 0, 0)) {
		t.Errorf("LastScoredAt = %s, %v; want %s", at, err, noon.AddDate(1, 0, 0))
	}
	if plan := strings.Join(column(t, db, "EXPLAIN "+sql.Query("score_last")), "\n"); !strings.Contains(plan, "_minmax_count_projection") {
		t.Errorf("score_last reads rows:\n%s", plan)
	}
}

func TestRecordComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	want, err := scoring.Score(scoring.Input{
		Domain: "example.com", RunID: "run", Now: noon,
		Observations: []scoring.Observation{
			{Signal: "public_listing", State: scoring.StateOK, Raw: 1, Source: "sec"},
			{Signal: "revenue_latest_usd", State: scoring.StateOK, Raw: 2e9, Source: "sec", At: noon.AddDate(0, -2, 0)},
			{Signal: "open_roles", State: scoring.StateMissing, Source: "jobs", Reason: scoring.ReasonSourceTimeout},
			{Signal: "careers_page_present", State: scoring.StateAbsent, Source: "web"},
		},
		Identity: scoring.Identity{Name: "Example \"É\" Inc", Country: "US", Industries: []string{"software"}},
		Warnings: []scoring.Warning{{Source: "jobs", Code: "timeout", At: noon}, {Source: "sec", Code: scoring.WarningStale,
			At: noon.AddDate(0, -2, 0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	states := make(map[scoring.State]bool)
	for _, signal := range want.Signals {
		states[signal.State] = true
	}
	if len(states) != 4 || len(want.Warnings) != 2 || want.Interval.Low >= want.Interval.High || want.ExpectedComposite == 0 {
		t.Fatalf("the record shows little: states %v, warnings %v, interval %v, expected %v", states, want.Warnings, want.Interval,
			want.ExpectedComposite)
	}
	if err := s.Write(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := s.Latest(t.Context(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(scoring.SignalScore{})); diff != "" {
		t.Errorf("record changed in the store (-wrote +read):\n%s", diff)
	}
	head, err := s.LatestHead(t.Context(), "example.com")
	if err != nil || head.Composite != want.Composite || head.Interval != want.Interval ||
		head.ExpectedComposite != want.ExpectedComposite || !head.ScoredAt.Equal(want.ScoredAt) || head.Buckets != want.Buckets {
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
		earlier, err := s.Earlier(t.Context(), domain, noon)
		got := earlier.Reference
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

func TestPreviousIsTheNewestWithSignals(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	bare := func(at time.Time) scoring.Record {
		rec := record(t, "bare.com", at)
		rec.Signals = nil
		return rec
	}
	old := record(t, "example.com", noon.AddDate(0, 0, -3))
	old.PipelineVersion = "v0" // signals are comparable, scores are not
	newest := record(t, "example.com", noon.Add(-time.Hour))
	for _, rec := range []scoring.Record{
		old, newest, record(t, "example.com", noon), record(t, "example.com", noon.Add(time.Hour)),
		record(t, "bare.com", noon.AddDate(0, 0, -10)), bare(noon.AddDate(0, 0, -1)),
		record(t, "ancient.com", noon.Add(-scoring.PreviousMaxAge-time.Hour)), record(t, "itself.com", noon),
	} {
		if err := s.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	f := func(domain string, now time.Time, want *scoring.Record) {
		t.Helper()
		got, err := s.Earlier(t.Context(), domain, now)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.Previous, cmpopts.IgnoreUnexported(scoring.SignalScore{})); diff != "" {
			t.Errorf("previous record of %s at %s:\n%s", domain, now, diff)
		}
	}
	f("example.com", noon, &newest) // a repeated attempt at noon does not read its own record
	f("example.com", newest.ScoredAt, &old)
	f("example.com", old.ScoredAt, nil)
	f("itself.com", noon, nil)
	f("ancient.com", noon, nil)
	f("unknown.com", noon, nil)
	detailed := record(t, "bare.com", noon.AddDate(0, 0, -10))
	f("bare.com", noon, &detailed)
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

func TestBadRecordOfGroupFailsAlone(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	records := make([]scoring.Record, 20)
	for i := range records {
		records[i] = record(t, fmt.Sprintf("company-%d.com", i), noon)
	}
	records[7].Composite = 101
	for i, err := range s.WriteGroup(t.Context(), records) {
		if (err != nil) != (i == 7) {
			t.Errorf("record %d: %v", i, err)
		}
		if _, err := s.LatestHead(t.Context(), records[i].Domain); errors.Is(err, scoring.ErrNotFound) != (i == 7) {
			t.Errorf("record %d in the store: %v", i, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range s.WriteGroup(ended, records) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("record %d of a group nobody waits for: %v, want Canceled", i, err)
		}
	}
}

func TestEarlierRecordsAreThoseOfEachRun(t *testing.T) {
	t.Parallel()
	s := scores(t, open(t))
	var runs []scoring.Run
	for i := range 30 {
		domain := fmt.Sprintf("company-%d.com", i)
		if i%3 > 0 {
			if err := s.Write(t.Context(), record(t, domain, noon.AddDate(0, 0, -15-i))); err != nil {
				t.Fatal(err)
			}
		}
		runs = append(runs, scoring.Run{Domain: domain, StartedAt: noon.AddDate(0, 0, i%2)})
	}
	runs = append(runs, scoring.Run{Domain: "company-25.com", StartedAt: noon.AddDate(0, 0, 365)}) // once more, at another time
	group, err := s.EarlierOf(t.Context(), runs)
	if err != nil || len(group) != len(runs) {
		t.Fatalf("EarlierOf of %d runs = %d, %v", len(runs), len(group), err)
	}
	found, previous := 0, 0
	for i, run := range runs {
		want, err := s.Earlier(t.Context(), run.Domain, run.StartedAt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, group[i], cmpopts.IgnoreUnexported(scoring.SignalScore{})); diff != "" {
			t.Errorf("earlier records of %s at %s in a group differ from those alone:\n%s", run.Domain, run.StartedAt, diff)
		}
		if want.Reference != nil {
			found++
		}
		if want.Previous != nil {
			previous++
		}
	}
	if found < 10 || found > len(runs)-10 || previous != 20 {
		t.Errorf("%d of %d runs have a reference and %d a previous record: the test shows little", found, len(runs), previous)
	}
}

// The domains of a query are in the URL of the request.
func TestGroupOfLongDomains(t *testing.T) {
	t.Parallel()
	db := open(t)
	s, facts := scores(t, db), clickhouse.NewFacts(db)
	label := strings.Repeat("a", 61)
	var runs []scoring.Run
	var domains []string
	for i := range 1000 {
		domain := fmt.Sprintf("%s.%s.%s.%055d.com", label, label, label, i) // 245 bytes
		runs, domains = append(runs, scoring.Run{Domain: domain, StartedAt: noon}), append(domains, domain)
	}
	if _, err := s.EarlierOf(t.Context(), runs); err != nil {
		t.Error(err)
	}
	if _, err := facts.GetMany(t.Context(), domains); err != nil {
		t.Error(err)
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

// TestNewestRecordsAreReadTogether reads companies with several records, written in any order and
// twice, one company without a record, and all at once.
func TestNewestRecordsAreReadTogether(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	want := make(map[string]scoring.Record)
	for i := range 40 {
		domain := fmt.Sprintf("company-%d.com", i)
		for _, age := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour, time.Hour} {
			rec, err := scoring.Score(scoring.Input{Domain: domain, Now: noon.Add(-age), Observations: []scoring.Observation{
				{Signal: "open_roles", State: scoring.StateOK, Raw: float64(i + 1), Source: "facts"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Write(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if age == time.Hour {
				want[domain] = rec
			}
		}
	}
	var readers sync.WaitGroup
	for domain, rec := range want {
		readers.Go(func() {
			got, err := s.Latest(t.Context(), domain)
			if err != nil || !got.ScoredAt.Equal(rec.ScoredAt) || got.Composite != rec.Composite || len(got.Signals) != len(rec.Signals) {
				t.Errorf("%s: %s of %s, %d signals, %v", domain, got.Domain, got.ScoredAt, len(got.Signals), err)
			}
		})
	}
	readers.Go(func() {
		if _, err := s.Latest(t.Context(), "never.com"); !errors.Is(err, scoring.ErrNotFound) {
			t.Errorf("a company without a record: %v", err)
		}
	})
	readers.Wait()
}
