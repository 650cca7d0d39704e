package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// lingerMax bounds the time between the deadline of a source and its return. The worker does not
// wait longer.
const lingerMax = 500 * time.Millisecond

// findings are the results of the sources of one run.
type findings struct {
	plan    *plan
	answers []sourceResult // parallel to plan.steps
	spreads *scoring.Spreads
	trust   []string
}

// sourceResult is the result of one source, its failure, or both.
type sourceResult struct {
	result  source.Result
	warning *scoring.Warning
	took    time.Duration
}

// registrars are the sources that can tell that a domain does not exist. Both must agree.
var registrars = []string{"dns", "rdap"}

// errUnregistered ends the sources of a run early.
var errUnregistered = fmt.Errorf("%w: neither the DNS nor the registry knows it", scoring.ErrUnregistered)

// ask runs all sources, each as soon as the sources that it waits for have ended. It returns when
// all have ended or the time for sources is over. It fails only if one of the service's own
// stores fails, or if the domain is not registered. count is the number of sources that have ended.
func (w *Worker) ask(ctx context.Context, req source.Request, count *atomic.Int32) (*findings, error) {
	began := time.Now()
	asking, stop := context.WithTimeout(ctx, timeForSources(ctx))
	defer stop()
	found := &findings{plan: w.plan, spreads: w.spreads.Load(), trust: w.trust, answers: make([]sourceResult, len(w.plan.steps))}
	ended := make([]chan struct{}, len(w.plan.steps))
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	var unregistered atomic.Int32 // number of registrars without the domain
	group, gctx := errgroup.WithContext(ctx)
	quit := context.AfterFunc(gctx, stop)
	defer quit()
	for i, st := range w.plan.steps {
		group.Go(func() error {
			for _, other := range st.after {
				select {
				case <-ended[other]:
				case <-gctx.Done():
					return nil // the error that ended the group is returned
				}
			}
			a, err := w.askOne(asking, gctx, st, found.request(req, st), began)
			if err != nil {
				return err
			}
			found.answers[i] = a
			close(ended[i])
			count.Add(1)
			if a.result.Unregistered && a.warning == nil && slices.Contains(registrars, st.name) &&
				int(unregistered.Add(1)) == len(registrars) {
				return errUnregistered
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return found, nil
}

// request returns the request of a source with the results of the sources that it waits for.
func (f *findings) request(req source.Request, st step) source.Request {
	var claims []scoring.Claim
	for _, i := range st.after {
		a := &f.answers[i]
		claims = append(claims, a.result.Claims...)
		req.Observed = append(req.Observed, a.result.Observations...)
		if req.Site == (scoring.SiteText{}) {
			req.Site = a.result.Site
		}
		if a.warning == nil {
			req.Answered = append(req.Answered, f.plan.steps[i].name)
		}
	}
	req.Company = source.NewCompany(claims...)
	return req
}

// askOne runs one source and converts its failure or panic to a warning. A failure of the
// service's own store is retried until whole ends, then it is an error.
func (w *Worker) askOne(ctx, whole context.Context, st step, req source.Request, began time.Time) (sourceResult, error) {
	started := time.Now()
	var a sourceResult
	var fault error
	ask := func() error {
		a.result, fault = w.fetch(ctx, st, req)
		if isOurs(fault) {
			return fault
		}
		return nil
	}
	if err := untilAnswered(whole, ask); err != nil {
		return sourceResult{}, err
	}
	a.took = time.Since(started)
	outcome := "answered"
	if fault != nil {
		outcome = source.WarningCode(fault)
		a.warning = &scoring.Warning{Source: st.name, Code: outcome, At: req.Now.Add(time.Since(began)).UTC().Truncate(time.Millisecond)}
		level := slog.LevelDebug
		if outcome == "internal_error" {
			level = slog.LevelError
		}
		a.keepClaims(st.name, req.Past)
		w.logger.Log(whole, level, "source failed", "source", st.name, "domain", req.Domain, "code", outcome, "err", fault)
	}
	w.metrics.asked(st.name, outcome, a.took)
	w.status.Note(st.name, fault == nil, time.Now())
	return a, nil
}

// keepClaims adds the claims that a failed source made in the newest earlier run, of kinds about
// which it said nothing now. So the sources that wait for it are asked about the same company.
func (a *sourceResult) keepClaims(name string, past []source.Past) {
	if len(past) == 0 {
		return
	}
	said := slices.Clone(a.result.Claims)
	for _, old := range past[0].Claims {
		if old.Source == name && !slices.ContainsFunc(said, func(c source.Claim) bool { return c.Kind == old.Kind }) {
			a.result.Claims = append(a.result.Claims, old)
		}
	}
}

// fetch runs a source under its deadline. If the source does not return soon after it, the result
// is dropped.
func (w *Worker) fetch(ctx context.Context, st step, req source.Request) (source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, st.deadline)
	defer cancel()
	type said struct {
		result source.Result
		err    error
	}
	out := make(chan said, 1)
	go func() { // returns when the source does
		var s said
		defer func() {
			if p := recover(); p != nil {
				s = said{err: fmt.Errorf("panic: %v", p)}
			}
			out <- s
		}()
		s.result, s.err = st.source.Fetch(ctx, req)
	}()
	select {
	case s := <-out:
		return s.result, s.err
	case <-ctx.Done():
	}
	select {
	case s := <-out:
		return s.result, s.err
	case <-time.After(lingerMax):
		return source.Result{}, fmt.Errorf("%s did not return after its deadline: %w", st.name, errors.Join(context.DeadlineExceeded,
			context.Cause(ctx)))
	}
}

// score makes the record of a run and returns it with its input.
func (f *findings) score(run scoring.Run, earlier scoring.Earlier) (scoring.Record, scoring.Input, error) {
	in := scoring.Input{Domain: run.Domain, RunID: run.ID, Now: run.StartedAt, Reference: earlier.Reference, Previous: earlier.Previous,
		Spreads: f.spreads, Trust: f.trust}
	f.fill(&in)
	rec, err := scoring.Score(in)
	if err != nil {
		return scoring.Record{}, in, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	return rec, in, nil
}

// fill adds the findings to the input of a scoring.
func (f *findings) fill(in *scoring.Input) {
	var parts []source.Part
	var site scoring.SiteText
	var regions float64
	in.Observations = append(in.Observations, f.plan.silent...)
	for i, a := range f.answers {
		in.Observations = append(in.Observations, a.result.Observations...)
		parts = append(parts, a.result.Parts...)
		regions = max(regions, a.result.Values[source.ValueHiringRegions])
		if site == (scoring.SiteText{}) {
			site = a.result.Site
		}
		name := f.plan.steps[i].name
		if a.warning != nil {
			in.Warnings = append(in.Warnings, *a.warning)
			in.Observations = append(in.Observations, unsaid(name, a)...)
		} else {
			in.Answered = append(in.Answered, name)
		}
		if a.result.Defunct {
			in.Warnings = append(in.Warnings, scoring.Warning{Source: name, Code: scoring.WarningDefunct,
				At: in.Now.UTC().Truncate(time.Millisecond)})
		}
	}
	in.Observations = append(in.Observations, source.Combine(parts, in.Observations, scoring.Preference{Now: in.Now, Trust: in.Trust})...)
	in.Identity = f.company().Identity(site, int(regions))
}

// unsaid returns missing observations for the signals that a failed source has not reported.
func unsaid(name string, a sourceResult) []scoring.Observation {
	return slices.DeleteFunc(source.Unanswered(name, a.warning.Code), func(o scoring.Observation) bool {
		return slices.ContainsFunc(a.result.Observations, func(said scoring.Observation) bool { return said.Signal == o.Signal }) ||
			slices.ContainsFunc(a.result.Parts, func(said source.Part) bool { return said.Signal == o.Signal })
	})
}

// company merges the claims of all sources.
func (f *findings) company() source.Company {
	var claims []scoring.Claim
	for _, a := range f.answers {
		claims = append(claims, a.result.Claims...)
	}
	return source.NewCompany(claims...)
}

// trace returns the trace of a record.
func (f *findings) trace(rec scoring.Record, in scoring.Input) scoring.Trace {
	t := scoring.Trace{
		Domain: rec.Domain, ScoredAt: rec.ScoredAt, RunID: rec.RunID,
		Observations: in.Observations[len(f.plan.silent):], Claims: f.company().Claims(), Values: make(map[string]float64),
	}
	for i, a := range f.answers {
		name, outcome := f.plan.steps[i].name, "answered"
		if a.warning != nil {
			outcome = a.warning.Code
		}
		t.Sources = append(t.Sources, scoring.SourceTrace{Source: name, Outcome: outcome, Took: a.took.Truncate(time.Millisecond)})
		for value, v := range a.result.Values {
			t.Values[name+"."+value] = v
		}
	}
	return t
}
