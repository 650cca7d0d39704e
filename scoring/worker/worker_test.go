package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/worker"
)

// history has records in memory and fails its first calls if fails is set.
type history struct {
	mu       sync.Mutex
	fails    int // calls of Earlier that still fail
	writeErr error
	earlier  scoring.Earlier
	records  []scoring.Record
	past     []scoring.Past
	traces   []scoring.Trace

	refuses   string   // domain whose record WriteGroup refuses
	earlierOf string   // domain of a group that has the earlier records
	published []string // domains
	unchanged []string // domains of which there is nothing new
}

func (h *history) WriteTrace(_ context.Context, trace scoring.Trace) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traces = append(h.traces, trace)
	return nil
}

func (h *history) Past(context.Context, string, time.Time) ([]scoring.Past, error) {
	return h.past, nil
}

var (
	errAway    = errors.New("store is away")
	errRefused = errors.New("the row is bad")
)

func (h *history) Write(_ context.Context, rec scoring.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.writeErr != nil {
		return h.writeErr
	}
	h.records = append(h.records, rec)
	return nil
}

func (h *history) WriteGroup(ctx context.Context, recs []scoring.Record) []error {
	errs := make([]error, len(recs))
	for i, rec := range recs {
		if rec.Domain == h.refuses {
			errs[i] = errRefused
			continue
		}
		errs[i] = h.Write(ctx, rec)
	}
	return errs
}

func (h *history) Publish(_ context.Context, recs ...scoring.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails > 0 {
		h.fails--
		return errAway
	}
	for _, rec := range recs {
		if !slices.ContainsFunc(h.records, func(written scoring.Record) bool { return written.Domain == rec.Domain }) {
			return errors.New("published before it was written")
		}
		h.published = append(h.published, rec.Domain)
	}
	return nil
}

func (h *history) EarlierOf(ctx context.Context, runs []scoring.Run) ([]scoring.Earlier, error) {
	group := make([]scoring.Earlier, len(runs))
	for i, run := range runs {
		earlier, err := h.Earlier(ctx, run.Domain, run.StartedAt)
		if err != nil {
			return nil, err
		}
		if run.Domain == h.earlierOf {
			group[i] = earlier
		}
	}
	return group, nil
}

func (h *history) Unchanged(_ context.Context, domains []string) (map[string]bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails > 0 {
		h.fails--
		return nil, errAway
	}
	unchanged := make(map[string]bool)
	for _, domain := range domains {
		unchanged[domain] = slices.Contains(h.unchanged, domain)
	}
	return unchanged, nil
}

func (h *history) Earlier(context.Context, string, time.Time) (scoring.Earlier, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fails > 0 {
		h.fails--
		return scoring.Earlier{}, errAway
	}
	return h.earlier, nil
}

// fake is a source with given results.
type fake struct {
	name  string
	fetch func(ctx context.Context) (source.Result, error)
}

func (f fake) Name() string      { return f.name }
func (f fake) Plan() source.Plan { return source.Plan{} }
func (f fake) Fetch(ctx context.Context, _ source.Request) (source.Result, error) {
	return f.fetch(ctx)
}

func says(name string, claims []source.Claim, signal string, raw float64) fake {
	return fake{name, func(context.Context) (source.Result, error) {
		return source.Result{Claims: claims, Observations: []scoring.Observation{{Signal: signal, State: scoring.StateOK, Raw: raw,
			Source: name}}}, nil
	}}
}

func claim(kind source.Kind, value, from string) source.Claim {
	return source.Claim{Kind: kind, Value: value, Source: from}
}

func fails(name string, err error) fake {
	return fake{name, func(context.Context) (source.Result, error) { return source.Result{}, err }}
}

var run = scoring.Run{ID: "r", Domain: "example.com", StartedAt: time.Date(2026, 5, 1, 12, 0, 0, 123_456_789, time.UTC)}

// noneLost is for groups without aborted or lost runs.
func noneLost(int) bool { return false }

// only returns the outcome of a group of one run.
func only(outcomes []scoring.Outcome) scoring.Outcome {
	if len(outcomes) != 1 {
		panic(len(outcomes))
	}
	return outcomes[0]
}

func tryWorker(sources ...source.Source) (*worker.Worker, error) {
	h := &history{}
	return worker.New(sources, h, h, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
}

func newWorker(t *testing.T, h *history, sources ...source.Source) *worker.Worker {
	t.Helper()
	w, err := worker.New(sources, h, h, prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func work(t *testing.T, h *history, sources ...source.Source) (scoring.Record, time.Time, error) {
	t.Helper()
	out := only(newWorker(t, h, sources...).Run(t.Context(), []scoring.Run{run}, noneLost))
	if len(h.records) == 0 {
		return scoring.Record{}, out.ScoredAt, out.Err
	}
	return h.records[len(h.records)-1], out.ScoredAt, out.Err
}

func signal(rec scoring.Record, id string) scoring.SignalScore {
	for _, s := range rec.Signals {
		if s.ID == id {
			return s
		}
	}
	return scoring.SignalScore{}
}

func TestRunGathersAllSources(t *testing.T) {
	t.Parallel()
	rec, scoredAt, err := work(t, &history{},
		says("wikidata", []source.Claim{claim(source.Name, "Example", "wikidata"), claim(source.Country, "US", "wikidata"),
			claim(source.Industry, "software", "wikidata")}, "employee_count", 250),
		says("jobs", []source.Claim{claim(source.Name, "Other", "jobs")}, "open_roles", 12))
	if err != nil {
		t.Fatal(err)
	}
	if !scoredAt.Equal(run.StartedAt.Truncate(time.Millisecond)) || !rec.ScoredAt.Equal(scoredAt) || rec.RunID != "r" {
		t.Errorf("scored at %v, record %v by %q; want the start of the run", scoredAt, rec.ScoredAt, rec.RunID)
	}
	if rec.CompanyName != "Example" || rec.Country != "US" || rec.Sector != "software" {
		t.Errorf("identity: %q, %q, %q", rec.CompanyName, rec.Country, rec.Sector)
	}
	if signal(rec, "employee_count").Raw != 250 || signal(rec, "open_roles").Raw != 12 {
		t.Errorf("signals: %+v", rec.Signals[:2])
	}
}

// asking is a source that answers once answer is closed.
type asking struct {
	fake
	answer chan struct{}
}

func (a asking) Fetch(ctx context.Context, req source.Request) (source.Result, error) {
	<-a.answer
	return a.fake.Fetch(ctx, req)
}

func TestProgressCountsEndedSources(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := asking{says("slow", nil, "news_volume_90d", 20), make(chan struct{})}
		w := newWorker(t, new(history), slow, says("b", nil, "open_roles", 12), fails("c", errors.New("broken")))
		run := scoring.Run{ID: "run", Domain: "acme.com", StartedAt: time.Now()}
		if p := w.Progress("run"); p != (scoring.Progress{}) {
			t.Errorf("progress before the run = %+v", p)
		}
		ended := make(chan scoring.Outcome, 1)
		go func() { ended <- only(w.Run(t.Context(), []scoring.Run{run}, noneLost)) }()
		synctest.Wait()
		if p := w.Progress("run"); p != (scoring.Progress{Done: 2, Total: 3}) {
			t.Errorf("progress while one of three sources is asked = %+v", p)
		}
		close(slow.answer)
		if outcome := <-ended; outcome.Err != nil {
			t.Fatal(outcome.Err)
		}
		if p := w.Progress("run"); p != (scoring.Progress{}) {
			t.Errorf("progress after the run = %+v", p)
		}
	})
}

func TestRepeatedRunMakesTheSameRecord(t *testing.T) {
	t.Parallel()
	h := &history{}
	src := says("wikidata", nil, "employee_count", 250)
	for range 2 {
		if _, _, err := work(t, h, src); err != nil {
			t.Fatal(err)
		}
	}
	if h.records[0].ScoredAt != h.records[1].ScoredAt || h.records[0].Composite != h.records[1].Composite {
		t.Error("the second attempt made another record")
	}
}

func TestFailedSourceIsAWarning(t *testing.T) {
	t.Parallel()
	panics := fake{"tls", func(context.Context) (source.Result, error) { panic("boom") }}
	rec, _, err := work(t, &history{}, fails("jobs", context.DeadlineExceeded),
		fails("dns", &source.Error{Code: "dns_failure", Err: errAway}), panics,
		says("wikidata", nil, "employee_count", 250))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for _, w := range rec.Warnings {
		codes[w.Source] = w.Code
	}
	if len(codes) != 3 || codes["jobs"] != "timeout" || codes["dns"] != "dns_failure" || codes["tls"] != "internal_error" {
		t.Errorf("warnings = %v", codes)
	}
	s := signal(rec, "open_roles")
	if s.State != scoring.StateMissing || s.Score != scoring.Neutral || s.Reason != scoring.ReasonSourceTimeout {
		t.Errorf("signal of the failed source = %+v", s)
	}
}

func TestStoreOutageIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		away := 2
		facts := fake{"facts", func(context.Context) (source.Result, error) {
			if away > 0 {
				away--
				return source.Result{}, errors.Join(source.ErrUnavailable, errAway)
			}
			return source.Result{Observations: []scoring.Observation{{Signal: "employee_count", State: scoring.StateOK, Raw: 250,
				Source: "facts"}}}, nil
		}}
		rec, _, err := work(t, &history{fails: 3}, facts)
		if err != nil || signal(rec, "employee_count").Raw != 250 || len(rec.Warnings) != 0 {
			t.Errorf("record %+v, %v; want one with the facts and no warning", signal(rec, "employee_count"), err)
		}
	})
}

func TestStoreOutageMakesNoRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &history{}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		facts := fails("facts", errors.Join(source.ErrUnavailable, errAway))
		err := only(newWorker(t, h, facts).Run(ctx, []scoring.Run{run}, noneLost)).Err
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), errAway.Error()) || len(h.records) != 0 {
			t.Errorf("Run = %v with %d records; want the deadline, its cause and none", err, len(h.records))
		}
	})
	h := &history{writeErr: errAway}
	if _, scoredAt, err := work(t, h); !errors.Is(err, errAway) || !scoredAt.IsZero() {
		t.Errorf("Run with a store that refuses = %v, %v", scoredAt, err)
	}
}
