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

// lingerMax is how long a source may take to return after its deadline. One that
// does not is left behind.
const lingerMax = 500 * time.Millisecond

// findings are what the sources of one run said.
type findings struct {
	plan    *plan
	answers []answer // parallel to the steps of the plan
}

// answer is what one source said, or how it failed, or both.
type answer struct {
	result  source.Result
	warning *scoring.Warning
	took    time.Duration
}

// registrars are the sources that can tell whether a domain exists, and must agree
// that it does not.
var registrars = []string{"dns", "rdap"}

// errUnregistered ends the questions of a run early.
var errUnregistered = fmt.Errorf("%w: neither the DNS nor the registry knows it", scoring.ErrUnregistered)

// ask asks all sources, each as soon as those it waits for have ended. It returns
// when the last has, or when the time for sources is over. It fails only when a
// store of our own does, or the domain is not registered.
func (w *Worker) ask(ctx context.Context, req source.Request) (*findings, error) {
	began := time.Now()
	asking, stop := context.WithTimeout(ctx, timeForSources(ctx))
	defer stop()
	found := &findings{plan: w.plan, answers: make([]answer, len(w.plan.steps))}
	ended := make([]chan struct{}, len(w.plan.steps))
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	var unregistered atomic.Int32 // how many of the registrars say so
	group, gctx := errgroup.WithContext(ctx)
	quit := context.AfterFunc(gctx, stop)
	defer quit()
	for i, st := range w.plan.steps {
		group.Go(func() error {
			for _, other := range st.after {
				select {
				case <-ended[other]:
				case <-gctx.Done():
					return nil // what ended the group says why
				}
			}
			a, err := w.askOne(asking, gctx, st, found.request(req, st), began)
			if err != nil {
				return err
			}
			found.answers[i] = a
			close(ended[i])
			if a.result.Unregistered && a.warning == nil && slices.Contains(registrars, st.name) && int(unregistered.Add(1)) == len(registrars) {
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

// request adds to a request what those have found that a source waits for.
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

// askOne asks one source and turns its failure, or its panic, into a warning.
// Only a store of ours that does not answer is an error: it is asked again until
// whole ends.
func (w *Worker) askOne(ctx, whole context.Context, st step, req source.Request, began time.Time) (answer, error) {
	started := time.Now()
	var a answer
	var fault error
	ask := func() error {
		a.result, fault = w.fetch(ctx, st, req)
		if isOurs(fault) {
			return fault
		}
		return nil
	}
	if err := untilAnswered(whole, ask); err != nil {
		return answer{}, err
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
		w.logger.Log(whole, level, "source failed", "source", st.name, "domain", req.Domain, "code", outcome, "error", fault)
	}
	w.metrics.asked(st.name, outcome, a.took)
	return a, nil
}

// fetch asks a source under its deadline. A source that does not return soon
// after it is left behind, and what it says then is not heard.
func (w *Worker) fetch(ctx context.Context, st step, req source.Request) (source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, st.deadline)
	defer cancel()
	type said struct {
		result source.Result
		err    error
	}
	out := make(chan said, 1)
	go func() { // ends when the source returns
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
		return source.Result{}, fmt.Errorf("%s does not heed its deadline: %w", st.name, errors.Join(context.DeadlineExceeded, context.Cause(ctx)))
	}
}

// score makes the record of a run and returns it with the input that it was made of.
func (f *findings) score(run scoring.Run, reference *scoring.Reference) (scoring.Record, scoring.Input, error) {
	in := scoring.Input{Domain: run.Domain, RunID: run.ID, Now: run.StartedAt, Reference: reference}
	f.fill(&in)
	rec, err := scoring.Score(in)
	if err != nil {
		return scoring.Record{}, in, fmt.Errorf("score %s: %w", run.Domain, err)
	}
	return rec, in, nil
}

// fill puts what was found into the input of a scoring.
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
		if a.warning != nil {
			in.Warnings = append(in.Warnings, *a.warning)
			in.Observations = append(in.Observations, unsaid(f.plan.steps[i].name, a)...)
		}
	}
	in.Observations = append(in.Observations, source.Combine(parts, in.Observations)...)
	in.Identity = f.company().Identity(site, int(regions))
}

// unsaid says why the signals are missing that a source which failed had not
// spoken about by then.
func unsaid(name string, a answer) []scoring.Observation {
	return slices.DeleteFunc(source.Unanswered(name, a.warning.Code), func(o scoring.Observation) bool {
		return slices.ContainsFunc(a.result.Observations, func(said scoring.Observation) bool { return said.Signal == o.Signal }) ||
			slices.ContainsFunc(a.result.Parts, func(said source.Part) bool { return said.Signal == o.Signal })
	})
}

// company merges what all sources claim.
func (f *findings) company() source.Company {
	var claims []scoring.Claim
	for _, a := range f.answers {
		claims = append(claims, a.result.Claims...)
	}
	return source.NewCompany(claims...)
}

// trace says how a record came about.
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
