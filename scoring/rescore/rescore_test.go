package rescore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/scoring/rescore"
)

func TestMain(m *testing.M) { stores.Main(m) }

// next is a version without records.
const next = "v2-test"

// exported leaves out the doubt of signals, which is not stored.
var exported = cmpopts.IgnoreUnexported(scoring.SignalScore{})

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// halved are the formulas of another version.
func halved(old scoring.Record, ref *scoring.Reference) (scoring.Record, error) {
	rec, err := scoring.Rescore(old, ref)
	rec.Composite, rec.Base = math.Round(5*rec.Composite)/10, rec.Base/2
	rec.Rating = scoring.RatingOf(rec.Composite)
	return rec, err
}

func open(t testing.TB) *clickhouse.DB {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: stores.ClickHouse(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

func domain(n int) string { return fmt.Sprintf("company-%03d.com", n) }

// fill writes records of companies under a version, one per month each.
func fill(t testing.TB, db *clickhouse.DB, version string, companies, months int) (all []scoring.Record) {
	t.Helper()
	for n := range companies {
		for month := range months {
			rec, err := scoring.Score(scoring.Input{
				Domain: domain(n), RunID: "run", Now: noon.AddDate(0, month, 0),
				Identity: scoring.Identity{Name: "Company", Country: "US", Industries: []string{"software"}},
				Observations: []scoring.Observation{
					{Signal: "traffic_rank", State: scoring.StateOK, Raw: float64(1000 * (n + 1) * (month + 1)), Source: "tranco"},
					{Signal: "open_roles", State: scoring.StateAbsent, Source: "jobs"},
					{Signal: "employee_count", State: scoring.StateMissing, Source: "wikidata", Reason: scoring.ReasonSourceTimeout},
				},
				Warnings: []scoring.Warning{{Source: "wikidata", Code: "timeout", At: noon}},
			})
			if err != nil {
				t.Fatal(err)
			}
			rec.PipelineVersion = version
			all = append(all, rec)
		}
	}
	if err := db.PutRecords(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	return all
}

// stored returns the records of a version by domain and time.
func stored(t *testing.T, db *clickhouse.DB, version string) (all []scoring.Record) {
	t.Helper()
	const never = "no such version" // so that all of the version are pending
	page, err := db.RescorePage(t.Context(), "", version, never, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

func TestOldRecordsStay(t *testing.T) {
	t.Parallel()
	db := open(t)
	before := fill(t, db, "v1", 30, 3)
	var told atomic.Uint64
	report, err := rescore.Run(t.Context(), rescore.Config{
		Store: db, To: next, Score: halved, Page: 20,
		Progress: func(done, total uint64) {
			if total != 90 {
				t.Errorf("%d records in all, want 90", total)
			}
			told.Store(done)
		},
	})
	if err != nil || report.Rescored != 90 || report.Failed != 0 || report.Pending != 90 || told.Load() != 90 {
		t.Fatalf("%+v, %v; told of %d", report, err, told.Load())
	}
	if diff := cmp.Diff(before, stored(t, db, "v1"), exported); diff != "" {
		t.Errorf("records of the old version: %s", diff)
	}
	var want []scoring.Record
	var earlier []scoring.Reference
	for i, old := range before {
		if i%3 == 0 {
			earlier = nil
		}
		rec, err := halved(old, scoring.ReferenceAmong(earlier, old.ScoredAt))
		if err != nil {
			t.Fatal(err)
		}
		if i%3 > 0 && rec.MomentumIndex == before[i-i%3].MomentumIndex {
			t.Fatalf("%s: the momentum index does not know of the month before", rec.Domain)
		}
		rec.PipelineVersion = next
		earlier = append(earlier, scoring.Reference{ScoredAt: rec.ScoredAt, Base: rec.Base})
		want = append(want, rec)
	}
	if diff := cmp.Diff(want, stored(t, db, next), exported); diff != "" {
		t.Errorf("records of the new version: %s", diff)
	}
	again, err := rescore.Run(t.Context(), rescore.Config{Store: db, To: next, Score: halved})
	if err != nil || again.Rescored != 0 || again.Pending != 0 {
		t.Errorf("once more: %+v, %v", again, err)
	}
}

// counting counts written records, and fails after a number of pages.
type counting struct {
	rescore.Store
	pages atomic.Int64 // that may be written
	mu    sync.Mutex
	seen  map[string]int
}

var errGone = errors.New("store is gone")

func (c *counting) PutRecords(ctx context.Context, records []scoring.Record) error {
	if c.pages.Add(-1) < 0 {
		return errGone
	}
	if err := c.Store.PutRecords(ctx, records); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rec := range records {
		c.seen[rec.Domain+rec.ScoredAt.String()]++
	}
	return nil
}

func TestInterruptedRescoreResumes(t *testing.T) {
	t.Parallel()
	db := open(t)
	fill(t, db, "v1", 40, 2)
	store := &counting{Store: db, seen: make(map[string]int)}
	store.pages.Store(2)
	// With one worker: an insert that the failure of another worker cancels can still succeed
	// without being counted.
	report, err := rescore.Run(t.Context(), rescore.Config{Store: store, To: next, Score: halved, Page: 10, Workers: 1})
	if !errors.Is(err, errGone) || report.Rescored != 20 {
		t.Fatalf("interrupted: %+v, %v", report, err)
	}
	store.pages.Store(1000)
	rest, err := rescore.Run(t.Context(), rescore.Config{Store: store, To: next, Score: halved, Page: 10})
	if err != nil || rest.Pending != 80-report.Rescored || rest.Rescored != rest.Pending {
		t.Errorf("the rest: %+v, %v; %d had been done", rest, err, report.Rescored)
	}
	if len(store.seen) != 80 || slices.Max(slices.Collect(maps.Values(store.seen))) != 1 {
		t.Errorf("%d of 80 records were written, one of them %d times", len(store.seen),
			slices.Max(slices.Collect(maps.Values(store.seen))))
	}
}

func TestRescoresGivenVersionWithSignals(t *testing.T) {
	t.Parallel()
	db := open(t)
	fill(t, db, "v0", 3, 1)
	newer := fill(t, db, "v1", 5, 1) // the first three at the same time as those of v0
	bare := newer[4]
	bare.Domain, bare.Signals = "bare.com", nil
	if err := db.PutRecords(t.Context(), []scoring.Record{bare}); err != nil {
		t.Fatal(err)
	}
	report, err := rescore.Run(t.Context(), rescore.Config{Store: db, From: "v0", To: next, Score: halved})
	if err != nil || report.Rescored != 3 || report.Bare != 0 {
		t.Fatalf("of v0: %+v, %v", report, err)
	}
	report, err = rescore.Run(t.Context(), rescore.Config{Store: db, To: next, Score: halved})
	if err != nil || report.Rescored != 2 || report.Bare != 1 {
		t.Fatalf("of all: %+v, %v", report, err)
	}
}

func TestFailedRecordStopsNoOther(t *testing.T) {
	t.Parallel()
	db := open(t)
	fill(t, db, "v1", 30, 1)
	report, err := rescore.Run(t.Context(), rescore.Config{Store: db, To: next, Page: 5,
		Score: func(old scoring.Record, ref *scoring.Reference) (scoring.Record, error) {
			if old.Domain < domain(25) {
				return scoring.Record{}, errors.New("odd")
			}
			return halved(old, ref)
		}})
	if err != nil || report.Failed != 25 || report.Rescored != 5 || len(report.Faults) != 20 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestConfigReportsAllErrors(t *testing.T) {
	t.Parallel()
	db := &clickhouse.DB{}
	for name, cfg := range map[string]rescore.Config{
		"nothing":      {},
		"same version": {Store: db, From: next, To: next, Score: halved},
		"negative":     {Store: db, To: next, Score: halved, Page: -1},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// BenchmarkRun measures rescored records per second.
func BenchmarkRun(b *testing.B) {
	const companies, months = 1000, 5
	db := open(b)
	fill(b, db, "v1", companies, months)
	for n := 0; b.Loop(); n++ {
		report, err := rescore.Run(b.Context(), rescore.Config{Store: db, From: "v1", To: fmt.Sprint("bench ", n), Score: halved})
		if err != nil || report.Rescored != companies*months {
			b.Fatalf("%+v, %v", report, err)
		}
	}
	b.ReportMetric(float64(b.N*companies*months)/b.Elapsed().Seconds(), "records/s")
}

// Records of v1 get the curves and the premium of the current version, and stay as they were.
func TestRecordsOfVersion1GetCurrentFormulas(t *testing.T) {
	t.Parallel()
	db := open(t)
	want, err := scoring.Score(scoring.Input{
		Domain: "statements.com", RunID: "run", Now: noon, Identity: scoring.Identity{Name: "Company", Country: "US", SIC: 2834},
		Observations: []scoring.Observation{
			{Signal: "total_assets_usd", State: scoring.StateOK, Raw: 2e10, Source: "sec"},
			{Signal: "net_margin", State: scoring.StateOK, Raw: 0.12, Source: "sec"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	old := want
	old.PipelineVersion, old.ScalePremium, old.Base, old.Composite = "v1", 3.2, 50.24, 53.4
	old.Signals = slices.Clone(want.Signals)
	margin := slices.IndexFunc(old.Signals, func(s scoring.SignalScore) bool { return s.ID == "net_margin" })
	old.Signals[margin].Score = 65
	if want.ScalePremium <= old.ScalePremium || want.Signals[margin].Score >= old.Signals[margin].Score {
		t.Fatalf("premium %v, score of the margin %v: the formulas are those of v1", want.ScalePremium, want.Signals[margin].Score)
	}
	if err := db.PutRecords(t.Context(), []scoring.Record{old}); err != nil {
		t.Fatal(err)
	}
	for _, rescored := range []uint64{1, 0} { // the second run has nothing to do
		report, err := rescore.Run(t.Context(), rescore.Config{Store: db, To: scoring.PipelineVersion, Score: scoring.Rescore})
		if err != nil || report.Rescored != rescored || report.Failed != 0 {
			t.Fatalf("%+v, %v; want %d rescored", report, err, rescored)
		}
	}
	for _, rec := range []scoring.Record{old, want} {
		if diff := cmp.Diff([]scoring.Record{rec}, stored(t, db, rec.PipelineVersion), exported, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("records of %s: %s", rec.PipelineVersion, diff)
		}
	}
}
