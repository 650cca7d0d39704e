// Package worker makes the record of a cold run: it runs the sources, computes the score, and
// stores the record.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/domainname"
	"companyscore/internal/retry"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/status"
)

// RecordStore stores records.
type RecordStore interface {
	// Write returns only when the record is durable. A repeated write replaces it.
	Write(ctx context.Context, rec scoring.Record) error
	// WriteGroup is Write for several records, with an error for each.
	WriteGroup(ctx context.Context, recs []scoring.Record) []error
	// Publish sends written records to the readers that have scores in memory.
	Publish(ctx context.Context, recs ...scoring.Record) error
	// Earlier returns what a record made at now uses of the company's records before now.
	Earlier(ctx context.Context, domain string, now time.Time) (scoring.Earlier, error)
	// EarlierOf returns the result of Earlier for each run, with the run's StartedAt as now.
	EarlierOf(ctx context.Context, runs []scoring.Run) ([]scoring.Earlier, error)
	// Unchanged returns those of some companies of which imported facts alone can say
	// nothing that their newest record does not.
	Unchanged(ctx context.Context, domains []string) (map[string]bool, error)
}

// TraceStore stores what each run observed.
type TraceStore interface {
	// WriteTrace returns only when the trace is durable. A repeated write replaces it.
	WriteTrace(ctx context.Context, trace scoring.Trace) error
	// Past returns the values of the domain's runs before now, newest first, and the claims of the
	// newest, at most scoring.PastMaxAge old.
	Past(ctx context.Context, domain string, now time.Time) ([]scoring.Past, error)
}

// sourcesMax bounds all sources of a run together, so that time is left to score and to store
// before the run's own deadline.
const sourcesMax = 85 * time.Second

// Worker executes cold runs. It is safe for concurrent use.
type Worker struct {
	plan    *plan
	records RecordStore
	traces  TraceStore
	metrics *metrics
	logger  *slog.Logger
	spreads atomic.Pointer[scoring.Spreads]
	trust   []string
	status  *status.Board
	ended   sync.Map // *atomic.Int32 by run id: the sources that have ended, of runs in flight
}

// New returns a worker for the given sources. traces may be nil if there is no live source: a
// record contains all that imported facts say. New fails if sources wait for each other.
func New(sources []source.Source, records RecordStore, traces TraceStore, registry prometheus.Registerer, logger *slog.Logger) (*Worker,
	error) {
	p, err := newPlan(sources)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(p.steps))
	for i, st := range p.steps {
		names[i] = st.name
	}
	return &Worker{plan: p, records: records, traces: traces, metrics: newMetrics(registry), logger: logger,
		status: status.NewBoard(names)}, nil
}

// Run makes the records of runs and returns their outcomes in order. It is a queue.Handler. The
// ScoredAt of a record is the start of the run's first attempt, so a repeated attempt makes the
// same record. A source that fails becomes a warning in the record. A failure of the service's
// own stores is retried until ctx ends, then it is an error: a score is never made from
// incomplete data. An unregistered domain is an error that wraps scoring.ErrUnregistered. A run
// of the refresh lane that can learn nothing new succeeds without a record.
func (w *Worker) Run(ctx context.Context, runs []scoring.Run, lost func(i int) bool) []scoring.Outcome {
	if w.plan.group != nil {
		if runs[0].Lane == scoring.LaneRefresh { // those of a group are of one lane
			return w.refreshGroup(ctx, runs, lost)
		}
		return w.runGroup(ctx, runs, lost)
	}
	outcomes := make([]scoring.Outcome, len(runs))
	var group sync.WaitGroup
	for i, run := range runs {
		group.Go(func() { outcomes[i].ScoredAt, outcomes[i].Err = w.run(ctx, run) })
	}
	group.Wait()
	return outcomes
}

// SetSpreads sets the spreads for the intervals of later runs. Before the first call they are those
// of the reference population. The caller must not change them afterwards.
func (w *Worker) SetSpreads(spreads *scoring.Spreads) { w.spreads.Store(spreads) }

// SetTrust sets scoring.Preference.Trust of all runs. Call it before the first one.
func (w *Worker) SetTrust(trust []string) { w.trust = trust }

// Grouped reports whether Run handles all runs of a group with one query, so that large groups
// cost less per run.
func (w *Worker) Grouped() bool { return w.plan.group != nil }

// Progress returns the progress of a run in flight, zero if there is none.
func (w *Worker) Progress(runID string) scoring.Progress {
	ended, ok := w.ended.Load(runID)
	if !ok {
		return scoring.Progress{}
	}
	return scoring.Progress{Done: int(ended.(*atomic.Int32).Load()), Total: len(w.plan.steps)}
}

// run makes the record of one run.
func (w *Worker) run(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil { // a panic fails this run only
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		w.metrics.ran(time.Since(began), err)
	}()
	rec, trace, err := w.Score(ctx, run)
	if err != nil {
		return time.Time{}, err
	}
	if err := w.store(ctx, rec, trace); err != nil {
		return time.Time{}, err
	}
	w.logger.Debug("scored", "domain", rec.Domain, "run", run.ID, "composite", rec.Composite, "completeness", rec.CompletenessPct)
	return rec.ScoredAt, nil
}

// Score makes the record of a run and its trace, and stores neither.
func (w *Worker) Score(ctx context.Context, run scoring.Run) (scoring.Record, scoring.Trace, error) {
	ended := new(atomic.Int32)
	w.ended.Store(run.ID, ended)
	defer w.ended.Delete(run.ID)
	var earlier scoring.Earlier
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return untilAnswered(gctx, func() (err error) {
			earlier, err = w.records.Earlier(gctx, run.Domain, run.StartedAt)
			return err
		})
	})
	var found *findings
	group.Go(func() (err error) {
		req := source.Request{Domain: run.Domain, Registrable: domainname.Registrable(run.Domain), Now: run.StartedAt, Trust: w.trust}
		if w.traces != nil && w.plan.live {
			err = untilAnswered(gctx, func() (err error) {
				req.Past, err = w.traces.Past(gctx, run.Domain, run.StartedAt)
				return err
			})
		}
		if err == nil {
			found, err = w.ask(gctx, req, ended)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return scoring.Record{}, scoring.Trace{}, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	rec, in, err := found.score(run, earlier)
	if err != nil {
		return scoring.Record{}, scoring.Trace{}, err
	}
	return rec, found.trace(rec, in), nil
}

// store writes a record and its trace, then publishes the record. A repeated write replaces both,
// so the run can be repeated after a crash.
func (w *Worker) store(ctx context.Context, rec scoring.Record, trace scoring.Trace) error {
	writing, wctx := errgroup.WithContext(ctx)
	writing.Go(func() error { return w.records.Write(wctx, rec) })
	if w.traces != nil && w.plan.live {
		writing.Go(func() error { return w.traces.WriteTrace(wctx, trace) })
	}
	if err := writing.Wait(); err != nil {
		return fmt.Errorf("store score of %s: %w", rec.Domain, err)
	}
	if err := untilAnswered(ctx, func() error { return w.records.Publish(ctx, rec) }); err != nil {
		return fmt.Errorf("publish score of %s: %w", rec.Domain, err)
	}
	return nil
}

// untilAnswered retries a query to one of the service's own stores until it succeeds or ctx ends.
func untilAnswered(ctx context.Context, question func() error) error {
	pauses := retry.Backoff(100*time.Millisecond, 2*time.Second)
	for {
		err := question()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(pauses.NextBackOff()):
		}
	}
}

// timeForSources returns the share of the run's remaining time for its sources: 85 s of 90 s.
func timeForSources(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(sourcesMax, time.Until(deadline)*17/18)
	}
	return sourcesMax
}

// isOurs reports whether an error is one of the service's own stores. Such queries are retried.
func isOurs(err error) bool { return errors.Is(err, source.ErrUnavailable) }
