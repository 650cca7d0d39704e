package worker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/scoring/source"
)

// errLost is the outcome of a run that was aborted, or claimed by another worker, before its
// record was written.
var errLost = errors.New("the run was aborted or taken over")

// refreshGroup is runGroup for those of the runs that can learn something new. The others
// end without a record.
func (w *Worker) refreshGroup(ctx context.Context, runs []scoring.Run, lost func(i int) bool) []scoring.Outcome {
	began := time.Now()
	outcomes := make([]scoring.Outcome, len(runs))
	domains := make([]string, len(runs))
	for i, run := range runs {
		domains[i] = run.Domain
	}
	var unchanged map[string]bool
	err := untilAnswered(ctx, func() (err error) {
		unchanged, err = w.records.Unchanged(ctx, domains)
		return err
	})
	if err != nil {
		for i := range outcomes {
			outcomes[i].Err = fmt.Errorf("refresh %d companies: %w", len(runs), err)
			w.metrics.ran(time.Since(began), err)
		}
		return outcomes
	}
	var rest []scoring.Run
	var places []int // in runs, parallel to rest
	for i, run := range runs {
		if unchanged[run.Domain] {
			w.metrics.nothingNew(time.Since(began))
			continue
		}
		rest, places = append(rest, run), append(places, i)
	}
	if len(rest) == 0 {
		return outcomes
	}
	for j, out := range w.runGroup(ctx, rest, func(j int) bool { return lost(places[j]) }) {
		outcomes[places[j]] = out
	}
	return outcomes
}

// runGroup makes the records of runs whose only source is a GroupSource: one query for facts, one
// or two for earlier records, one insert, one publication.
func (w *Worker) runGroup(ctx context.Context, runs []scoring.Run, lost func(i int) bool) []scoring.Outcome {
	began := time.Now()
	outcomes := make([]scoring.Outcome, len(runs))
	results, earlier, err := w.askGroup(ctx, runs)
	took := time.Since(began)
	var records []scoring.Record
	var places []int // index in runs, parallel to records
	for i, run := range runs {
		switch {
		case err != nil:
			outcomes[i].Err = err
		case lost(i):
			outcomes[i].Err = errLost
		default:
			found := &findings{plan: w.plan, spreads: w.spreads.Load(), trust: w.trust,
				answers: []sourceResult{{result: results[i], took: took}}}
			rec, err := found.scoreInGroup(run, earlier[i])
			if err != nil {
				outcomes[i].Err = err
				continue
			}
			records, places = append(records, rec), append(places, i)
		}
	}
	for j, err := range w.storeGroup(ctx, records) {
		if err != nil {
			outcomes[places[j]].Err = err
			continue
		}
		outcomes[places[j]].ScoredAt = records[j].ScoredAt
	}
	for _, out := range outcomes {
		w.metrics.ran(time.Since(began), out.Err)
	}
	w.logger.Debug("scored", "runs", len(runs), "lane", runs[0].Lane, "records", len(records), "took", time.Since(began))
	return outcomes
}

// scoreInGroup is score for one run of a group. A panic fails this run only.
func (f *findings) scoreInGroup(run scoring.Run, earlier scoring.Earlier) (rec scoring.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("score %s: panic: %v\n%s", run.Domain, p, debug.Stack())
		}
	}()
	rec, _, err = f.score(run, earlier)
	return rec, err
}

// askGroup returns the source's result and the earlier records of each run.
func (w *Worker) askGroup(ctx context.Context, runs []scoring.Run) (results []source.Result, earlier []scoring.Earlier, err error) {
	reqs := make([]source.Request, len(runs))
	for i, run := range runs {
		reqs[i] = source.Request{Domain: run.Domain, Registrable: domainname.Registrable(run.Domain), Now: run.StartedAt, Trust: w.trust}
	}
	began := time.Now()
	asking, actx := errgroup.WithContext(ctx)
	asking.Go(func() error {
		err := untilAnswered(actx, func() (err error) {
			results, err = w.plan.group.FetchGroup(actx, reqs)
			return err
		})
		if err == nil {
			for range runs {
				w.metrics.asked(w.plan.group.Name(), "answered", time.Since(began))
			}
		}
		return err
	})
	asking.Go(func() error {
		return untilAnswered(actx, func() (err error) {
			earlier, err = w.records.EarlierOf(actx, runs)
			return err
		})
	})
	if err := asking.Wait(); err != nil {
		return nil, nil, fmt.Errorf("score %d companies: %w", len(runs), err)
	}
	return results, earlier, nil
}

// storeGroup writes records, publishes those that were written, and returns an error for each.
func (w *Worker) storeGroup(ctx context.Context, records []scoring.Record) []error {
	if len(records) == 0 {
		return nil
	}
	errs := w.records.WriteGroup(ctx, records)
	var written []scoring.Record
	for i, rec := range records {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("store score of %s: %w", rec.Domain, errs[i])
			continue
		}
		written = append(written, rec)
	}
	if len(written) == 0 {
		return errs
	}
	err := untilAnswered(ctx, func() error { return w.records.Publish(ctx, written...) })
	for i := range records {
		if err != nil && errs[i] == nil {
			errs[i] = fmt.Errorf("publish score of %s: %w", records[i].Domain, err)
		}
	}
	return errs
}
