package fakesources_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/clickhouse"
	"companyscore/internal/test/extent"
	"companyscore/internal/test/fakesources"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/worker"
)

func TestMain(m *testing.M) { stores.Main(m) }

// unpublished is a history whose records are not published.
type unpublished struct{ *clickhouse.Scores }

func (unpublished) Publish(context.Context, ...scoring.Record) error { return nil }

// away is a source that always fails.
type away struct{ source.Source }

func (away) Fetch(context.Context, source.Request) (source.Result, error) {
	return source.Result{}, &source.Error{Code: "http_error", Err: errors.New("away")}
}

// scored scores the same companies again and again, each time a minute later.
type scored struct {
	fakes  *fakesources.Fakes
	scores *clickhouse.Scores
	traces *clickhouse.Traces
	now    time.Time
}

func newScoring(t *testing.T, companies int) *scored {
	t.Helper()
	fakes, err := fakesources.Start(fakesources.Config{
		Companies: companies, Seed: *seed, Latency: time.Millisecond, Ranked: 2000, Dir: t.TempDir(), Scale: 10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fakes.Close() })
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: stores.ClickHouse(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := &scored{
		fakes: fakes, now: time.Now(),
		scores: clickhouse.NewScores(db, clickhouse.WriterConfig{}), traces: clickhouse.NewTraces(db, clickhouse.WriterConfig{}),
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
		defer cancel()
		if err := errors.Join(r.scores.Close(ctx), r.traces.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return r
}

// score scores all companies with a new client, in the given order and that many at a time, and
// returns the records by domain.
func (r *scored) score(t *testing.T, order []*fakesources.Company, concurrency int, allAway bool) map[string]scoring.Record {
	t.Helper()
	r.now = r.now.Add(time.Minute)
	overrides := r.fakes.Overrides()
	client, err := fetch.New(fetch.Config{Contact: "operator@example.com", Overrides: &overrides})
	if err != nil {
		t.Fatal(err)
	}
	sources := source.Live(client, "", slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	for i, s := range sources {
		if allAway {
			sources[i] = away{s}
		} else if b, ok := s.(source.Background); ok {
			background.Go(func() { b.Run(ctx) })
		}
	}
	w, err := worker.New(sources, unpublished{r.scores}, r.traces, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var running errgroup.Group
	running.SetLimit(concurrency)
	for _, c := range order {
		running.Go(func() error {
			run := scoring.Run{ID: c.Label, Domain: c.Domain, StartedAt: r.now, Lane: scoring.LaneBulk}
			return w.Run(ctx, []scoring.Run{run}, func(int) bool { return false })[0].Err
		})
	}
	if err := running.Wait(); err != nil {
		t.Fatal(err)
	}
	records := make(map[string]scoring.Record)
	for _, c := range order {
		rec, err := r.scores.Latest(t.Context(), c.Domain)
		if err != nil {
			t.Fatal(err)
		}
		records[c.Domain] = rec
	}
	return records
}

func failures(rec scoring.Record) (n int) {
	for _, w := range rec.Warnings {
		if w.Code != scoring.WarningStale && w.Code != scoring.WarningDefunct {
			n++
		}
	}
	return n
}

// A source that fails is no news: with 30 % of the answers failing, in any order and under any load,
// the composite of an unchanged company stays where it is.
func TestFailuresDoNotMoveScores(t *testing.T) {
	t.Parallel()
	const most = 0.5 // points between any two runs of a company
	r := newScoring(t, 10)
	order := slices.Clone(r.fakes.Companies)
	first := r.score(t, order, 3, false)
	lowest, highest := make(map[string]float64), make(map[string]float64)
	for domain, rec := range first {
		if n := failures(rec); n > 0 {
			t.Fatalf("%s: %d sources failed in the first run: %v", domain, n, rec.Warnings)
		}
		lowest[domain], highest[domain] = rec.Composite, rec.Composite
	}
	random := rand.New(rand.NewPCG(*seed, 2))
	injected := 0
	last := first
	rounds := extent.Of(10, 4)
	for round := range rounds {
		r.fakes.Fail(random.Uint64(), 0.3)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		before := last
		last = r.score(t, order, 4+3*(round%3), false)
		for domain, rec := range last {
			injected += len(r.fakes.Injected(domain))
			lowest[domain], highest[domain] = min(lowest[domain], rec.Composite), max(highest[domain], rec.Composite)
			if math.Abs(rec.Composite-before[domain].Composite) > 0.2 {
				t.Logf("round %d, %s: %v", round, domain, changes(before[domain], rec))
			}
		}
	}
	if all := rounds * len(order) * 14; injected < all/5 {
		t.Errorf("%d of %d answers failed: the test shows little", injected, all)
	}
	widest := 0.0
	for domain := range lowest {
		widest = max(widest, highest[domain]-lowest[domain])
		if spread := highest[domain] - lowest[domain]; spread > most+1e-9 {
			t.Errorf("%s: composites from %.1f to %.1f, at most %.1f apart", domain, lowest[domain], highest[domain], most)
		}
	}

	gone := r.score(t, order, 4, true)
	for domain, rec := range gone {
		old := last[domain]
		if rec.Composite != old.Composite || rec.ScalePremium != old.ScalePremium || rec.Buckets != old.Buckets ||
			rec.CompanyName != old.CompanyName || rec.Sector != old.Sector {
			t.Errorf("%s without any answer: %v", domain, changes(old, rec))
		}
		for i, s := range rec.Signals {
			if s.Known() != old.Signals[i].Known() || s.Known() && !s.Old(rec.ScoredAt) {
				t.Errorf("%s without any answer: %s is %s of %v, was %s", domain, s.ID, s.State, s.ObservedAt, old.Signals[i].State)
			}
		}
	}
	if !t.Failed() {
		t.Logf("ok    %d companies scored %d times with %d failures: composites differ by at most %.1f; without any answer they stay",
			len(order), rounds, injected, widest)
	}
}

// changes lists what differs between two records of a company.
func changes(old, rec scoring.Record) (all []any) {
	all = append(all, old.Composite, rec.Composite, old.ScalePremium, rec.ScalePremium, old.Sector, rec.Sector, old.Defunct(),
		rec.Defunct(), rec.Warnings)
	for i, s := range rec.Signals {
		if o := old.Signals[i]; o.State != s.State || math.Abs(o.Score-s.Score) > 0.5 {
			all = append(all, s.ID, o.State, o.Raw, o.Source, "->", s.State, s.Raw, s.Source, s.Reason)
		}
	}
	return all
}
