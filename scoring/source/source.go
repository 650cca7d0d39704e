// Package source collects data about companies. Each source reads one place and returns
// observations of signals, claims about the company's identity, and values to store. Package
// scoring makes the score.
//
// The sources of a run form a graph. A source begins when those in its Plan.After have ended, has
// its own deadline, and reads their results from its Request. It sees no results of others, so
// its result does not depend on their speed. Every source uses the network through a
// fetch.Client, which enforces limits and guards against hostile hosts.
package source

import (
	"context"
	"errors"
	"time"

	"companyscore/scoring"
)

// Source reads one place. Fetch obeys the deadline of its context and is safe for concurrent use.
// An unknown company is not an error. An error is a failure of the source; WarningCode returns
// its code. A Result that comes with an error is used: its observations stand, and the source's
// other signals are missing with the reason of the error.
//
// A successful source reports every signal that the manifest lists for it, or its Part if Combine
// makes the signal: StateOK with a value, StateAbsent if there is none, StateMissing with a
// reason if it cannot be known. Other signals become missing with ReasonNotFound.
type Source interface {
	// Name is the key of the source, as in the manifest.
	Name() string
	Plan() Plan
	Fetch(ctx context.Context, req Request) (Result, error)
}

// GroupSource is a source that reads many companies with one query.
type GroupSource interface {
	Source
	// FetchGroup is Fetch for several requests, with results in their order. An error fails all
	// of them.
	FetchGroup(ctx context.Context, reqs []Request) ([]Result, error)
}

// Plan is when a source runs.
type Plan struct {
	// After names the sources that must end before this one begins. Sources that are not part of
	// the run count as ended. A source with a non-empty After also waits for the facts.
	After []string
	// Deadline bounds Fetch; zero means 30 s. Live sources use fetch.PolicyOf(name).Deadline.
	Deadline time.Duration
	// Off is why the source cannot run, for example a missing token; empty if it can. A source
	// that is off is not called, and its signals are missing with ReasonSourceDisabled.
	Off string
}

// Request is the company and the instant of a run, with the results of earlier sources.
type Request struct {
	// Domain is the canonical host name.
	Domain string
	// Registrable is the registrable domain of Domain: the public suffix and one label.
	Registrable string
	// Now is the start of the run; ages count from it.
	Now time.Time
	// Trust is that of scoring.Preference.
	Trust []string
	// Company is the identity found by the sources in Plan.After.
	Company Company
	// Site is text of the company's own pages, if web is in Plan.After.
	Site scoring.SiteText
	// Observed are the observations of the sources in Plan.After; see Raw.
	Observed []scoring.Observation
	// Answered names those of them that ran and did not fail.
	Answered []string
	// Past are values of earlier runs of the domain, newest first, for trends.
	Past []Past
}

// Result is what a source found. The zero value is an unknown company.
type Result struct {
	Observations []scoring.Observation
	// Claims are statements about the company's identity.
	Claims []Claim
	// Parts are the source's shares of signals that need several sources; see Combine.
	Parts []Part
	// Site is text of the company's own pages, for the sector vote.
	Site scoring.SiteText
	// Values are stored with the run under the name of the source. Later runs read them for
	// trends.
	Values map[string]float64
	// Defunct is set if the source found the company dissolved, dead or its domain parked.
	Defunct bool
	// Unregistered is set by dns if neither the host nor the registrable domain exists, and by
	// rdap if the registry does not have the domain. If both set it the run fails.
	Unregistered bool
}

// Past is the values of one earlier run.
type Past = scoring.Past

// Preference returns the rule by which observations are chosen.
func (r Request) Preference() scoring.Preference {
	return scoring.Preference{Now: r.Now, Trust: r.Trust}
}

// Raw returns the value that counts for a signal in Observed, false if there is none. For an
// absence that counts as a value it returns 0.
func (r Request) Raw(signal string) (raw float64, ok bool) {
	o, _ := r.Preference().Choose(signal, r.Observed)
	switch o.State {
	case scoring.StateOK:
		return o.Raw, true
	case scoring.StateAbsent:
		s, _ := scoring.Lookup(signal)
		_, counts := s.Curve.Absent()
		return 0, counts
	}
	return 0, false
}

// Sector returns the sector from the results of the sources in Plan.After.
func (r Request) Sector() string { return scoring.SectorOf(r.Company.Identity(r.Site, 0)) }

// HasAnswered reports whether a source in Plan.After ran and did not fail.
func (r Request) HasAnswered(source string) bool {
	for _, name := range r.Answered {
		if name == source {
			return true
		}
	}
	return false
}

// Before returns the value "source.name" of an earlier run that is between least and most old,
// the one nearest to the middle. ok is false if there is none.
func (r Request) Before(name string, least, most time.Duration) (value float64, at time.Time, ok bool) {
	middle := r.Now.Add(-(least + most) / 2)
	for _, past := range r.Past {
		age := r.Now.Sub(past.At)
		v, has := past.Values[name]
		if !has || age < least || age > most {
			continue
		}
		if !ok || past.At.Sub(middle).Abs() < at.Sub(middle).Abs() {
			value, at, ok = v, past.At, true
		}
	}
	return value, at, ok
}

// ErrUnavailable means that one of the service's own stores did not answer. The fetch must be
// retried; no score is made without it.
var ErrUnavailable = errors.New("store unavailable")

// Error is a failure of a source with a warning code.
type Error struct {
	Code string // one of the codes of scoring.Warning
	Err  error
}

// Error returns the message of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WarningCode returns the code.
func (e *Error) WarningCode() string { return e.Code }

// WarningCode returns the code of a failure that customers see.
func WarningCode(err error) string {
	var coded interface{ WarningCode() string }
	switch {
	case errors.As(err, &coded):
		return coded.WarningCode()
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "internal_error"
}
