// Package worker makes the record of one cold run, end to end: it asks the
// sources, scores what they say, and stores the record.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/domainname"
	"companyscore/internal/retry"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// History is where records are kept.
type History interface {
	// Write returns only when the record is durable. Writing it again replaces it.
	Write(ctx context.Context, rec scoring.Record) error
	// WriteGroup is Write for several records, with an error for each.
	WriteGroup(ctx context.Context, recs []scoring.Record) []error
	// Publish gives written records to those who read scores from memory.
	Publish(ctx context.Context, recs ...scoring.Record) error
	// Reference returns the record the momentum index compares with, nil if none.
	Reference(ctx context.Context, domain string, now time.Time) (*scoring.Reference, error)
	// References is Reference for each of several runs, with the runs' StartedAt as now.
	References(ctx context.Context, runs []scoring.Run) ([]*scoring.Reference, error)
	// Unchanged returns those of some companies of which imported facts alone can say
	// nothing that their newest record does not.
	Unchanged(ctx context.Context, domains []string) (map[string]bool, error)
}

// TraceStore is where it is kept what runs learnt on their way.
type TraceStore interface {
	// WriteTrace returns only when the trace is durable. Writing it again replaces it.
	WriteTrace(ctx context.Context, trace scoring.Trace) error
	// Past returns the values of the runs of a domain before now, newest first, none
	// of them older than scoring.PastMaxAge.
	Past(ctx context.Context, domain string, now time.Time) ([]scoring.Past, error)
}

// sourcesMax is how long all sources of a run may take together. What has not
// answered by then is given up, so that there is time to score and to store
// before the run's own deadline.
const sourcesMax = 85 * time.Second

// Worker runs cold runs. It is safe for concurrent use.
type Worker struct {
	plan    *plan
	history History
	traces  TraceStore
	metrics *metrics
	logger  *slog.Logger
}

// New returns a worker that asks the given sources and counts what it does. The
// archive may be nil when no source needs one: imported facts alone do not, since
// a record says all about them. It fails when the sources wait for each other.
func New(sources []source.Source, history History, traces TraceStore, registry prometheus.Registerer, logger *slog.Logger) (*Worker, error) {
	p, err := newPlan(sources)
	if err != nil {
		return nil, err
	}
	return &Worker{plan: p, history: history, traces: traces, metrics: newMetrics(registry), logger: logger}, nil
}

// Run makes the records of runs and returns what became of each, in their order. It
// is a queue.Handler. The ScoredAt of a record is the start of the run's first attempt,
// so that a repeated attempt makes the same record. A source that fails becomes a
// warning in the record. A store of our own that fails is asked again until ctx ends,
// and only then is an error: a score is never made from less than what we know. A
// domain that nobody has registered is an error that wraps scoring.ErrUnregistered. A
// run of the refresh lane that can learn nothing new ends well without a record.
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

// Grouped reports whether Run asks for all runs of a group at once, so that large
// groups cost less than small ones.
func (w *Worker) Grouped() bool { return w.plan.group != nil }

// run makes the record of one run.
func (w *Worker) run(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error) {
	began := time.Now()
	defer func() {
		if p := recover(); p != nil { // it must not end the other runs
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

// Score makes the record of a run without storing it, with the trace of how it
// came about.
func (w *Worker) Score(ctx context.Context, run scoring.Run) (scoring.Record, scoring.Trace, error) {
	var reference *scoring.Reference
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return untilAnswered(gctx, func() (err error) {
			reference, err = w.history.Reference(gctx, run.Domain, run.StartedAt)
			return err
		})
	})
	var found *findings
	group.Go(func() (err error) {
		req := source.Request{Domain: run.Domain, Registrable: domainname.Registrable(run.Domain), Now: run.StartedAt}
		if w.traces != nil && w.plan.live {
			err = untilAnswered(gctx, func() (err error) {
				req.Past, err = w.traces.Past(gctx, run.Domain, run.StartedAt)
				return err
			})
		}
		if err == nil {
			found, err = w.ask(gctx, req)
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return scoring.Record{}, scoring.Trace{}, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	rec, in, err := found.score(run, reference)
	if err != nil {
		return scoring.Record{}, scoring.Trace{}, err
	}
	return rec, found.trace(rec, in), nil
}

// store keeps a record and its trace, and then publishes the record. Both are
// replaced when they are written again, so a crash in between does no harm: the
// run is worked on once more.
func (w *Worker) store(ctx context.Context, rec scoring.Record, trace scoring.Trace) error {
	writing, wctx := errgroup.WithContext(ctx)
	writing.Go(func() error { return w.history.Write(wctx, rec) })
	if w.traces != nil && w.plan.live {
		writing.Go(func() error { return w.traces.WriteTrace(wctx, trace) })
	}
	if err := writing.Wait(); err != nil {
		return fmt.Errorf("store score of %s: %w", rec.Domain, err)
	}
	if err := untilAnswered(ctx, func() error { return w.history.Publish(ctx, rec) }); err != nil {
		return fmt.Errorf("publish score of %s: %w", rec.Domain, err)
	}
	return nil
}

// untilAnswered repeats a question to a store of ours until it is answered or
// ctx ends.
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

// timeForSources is how much of what is left of a run its sources may take: of
// the usual 90 s, 85.
func timeForSources(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(sourcesMax, time.Until(deadline)*17/18)
	}
	return sourcesMax
}

// isOurs reports whether an error is one of our own stores, which is waited for.
func isOurs(err error) bool { return errors.Is(err, source.ErrUnavailable) }
