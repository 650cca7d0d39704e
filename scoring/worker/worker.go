// Package worker makes the record of one cold run, end to end: it asks the
// sources, scores what they say, and stores the record.
package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// History is where records are kept.
type History interface {
	// Write returns only when the record is durable. Writing it again replaces it.
	Write(ctx context.Context, rec scoring.Record) error
	// Publish gives a written record to those who read scores from memory.
	Publish(ctx context.Context, rec scoring.Record) error
	// Reference returns the record the momentum index compares with, nil if none.
	Reference(ctx context.Context, domain string, now time.Time) (*scoring.Reference, error)
}

// sourceMax bounds what one source may take of a run.
const sourceMax = 30 * time.Second

// Worker runs cold runs. It is safe for concurrent use.
type Worker struct {
	sources []source.Source
	history History
	metrics *metrics
	logger  *slog.Logger
}

// New returns a worker that asks the given sources and counts what it does.
func New(sources []source.Source, history History, registry prometheus.Registerer, logger *slog.Logger) *Worker {
	return &Worker{sources: sources, history: history, metrics: newMetrics(registry), logger: logger}
}

// Run makes the record of a run and returns its ScoredAt, which is the start of
// the run's first attempt, so that a repeated attempt makes the same record. A
// source that fails becomes a warning in the record. A store of our own that
// fails is asked again until the run's deadline, and only then is an error: a
// score is never made from less than what we know.
func (w *Worker) Run(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error) {
	began := time.Now()
	defer func() { w.metrics.ran(time.Since(began), err) }()
	return w.run(ctx, run)
}

func (w *Worker) run(ctx context.Context, run scoring.Run) (time.Time, error) {
	in := scoring.Input{Domain: run.Domain, RunID: run.ID, Now: run.StartedAt}
	req := source.Request{Domain: run.Domain, Now: run.StartedAt}
	answers := make([]answer, len(w.sources))
	group, gctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return untilAnswered(gctx, func() (err error) {
			in.Reference, err = w.history.Reference(gctx, req.Domain, req.Now)
			return err
		})
	})
	for i, src := range w.sources {
		group.Go(func() error {
			return untilAnswered(gctx, func() (err error) {
				answers[i], err = w.ask(gctx, src, req)
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return time.Time{}, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	for i, a := range answers {
		in.Observations = append(in.Observations, a.result.Observations...)
		in.Identity = merge(in.Identity, a.result.Identity)
		if a.warning != nil {
			in.Warnings = append(in.Warnings, *a.warning)
			in.Observations = append(in.Observations, unanswered(w.sources[i].Name(), a.warning.Code)...)
		}
	}
	rec, err := scoring.Score(in)
	if err != nil {
		return time.Time{}, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	if err := w.history.Write(ctx, rec); err != nil {
		return time.Time{}, fmt.Errorf("store score of %s: %w", run.Domain, err)
	}
	if err := untilAnswered(ctx, func() error { return w.history.Publish(ctx, rec) }); err != nil {
		return time.Time{}, fmt.Errorf("publish score of %s: %w", run.Domain, err)
	}
	w.logger.Debug("scored", "domain", rec.Domain, "run", run.ID, "composite", rec.Composite, "completeness", rec.CompletenessPct)
	return rec.ScoredAt, nil
}

// untilAnswered repeats a question to a store of ours until it is answered or
// ctx ends.
func untilAnswered(ctx context.Context, question func() error) error {
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := question()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

// answer is what one source said, or how it failed.
type answer struct {
	result  source.Result
	warning *scoring.Warning
}

// ask asks one source and turns its failure, or its panic, into a warning. Only
// a store of ours that does not answer is an error.
func (w *Worker) ask(ctx context.Context, src source.Source, req source.Request) (a answer, err error) {
	began := time.Now()
	warn := func(code string, cause any) *scoring.Warning {
		w.metrics.sources.WithLabelValues(src.Name(), code).Inc()
		w.logger.Warn("source failed", "source", src.Name(), "domain", req.Domain, "code", code, "err", cause)
		return &scoring.Warning{Source: src.Name(), Code: code, At: req.Now.Add(time.Since(began)).UTC().Truncate(time.Millisecond)}
	}
	defer func() {
		if p := recover(); p != nil {
			a, err = answer{warning: warn("internal_error", p)}, nil
		}
	}()
	ctx, cancel := context.WithTimeout(ctx, sourceMax)
	defer cancel()
	result, err := src.Fetch(ctx, req)
	switch {
	case errors.Is(err, source.ErrUnavailable):
		return answer{}, err
	case err != nil:
		return answer{warning: warn(source.WarningCode(err), err)}, nil
	}
	w.metrics.sources.WithLabelValues(src.Name(), "answered").Inc()
	return answer{result: result}, nil
}

// unanswered says of every signal a failed source could have known why it is missing.
func unanswered(name, code string) []scoring.Observation {
	reason := scoring.ReasonSourceError
	switch code {
	case "timeout":
		reason = scoring.ReasonSourceTimeout
	case "rate_limited":
		reason = scoring.ReasonSourceRateLimited
	case "blocked_by_robots":
		reason = scoring.ReasonBlockedByRobots
	}
	var missing []scoring.Observation
	for _, signal := range scoring.Manifest() {
		if slices.Contains(signal.Sources, name) {
			missing = append(missing, scoring.Observation{Signal: signal.ID, State: scoring.StateMissing, Source: name, Reason: reason})
		}
	}
	return missing
}

// merge fills what is not known yet from a source asked later.
func merge(known, more scoring.Identity) scoring.Identity {
	if known.Name == "" {
		known.Name = more.Name
	}
	if known.Country == "" {
		known.Country = more.Country
	}
	if known.SIC == 0 {
		known.SIC = more.SIC
	}
	if known.Site == (scoring.SiteText{}) {
		known.Site = more.Site
	}
	known.Industries = append(known.Industries, more.Industries...)
	known.HiringRegions = max(known.HiringRegions, more.HiringRegions)
	return known
}
