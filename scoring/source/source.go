// Package source learns about companies. Each source reads one place and says
// what it found: observations of signals, claims about who the company is, and
// values worth keeping. scoring decides what to make of them.
//
// The sources of a run form a small graph. A source begins when those named in
// its Plan have ended, has its own deadline, and sees what they found through
// its Request; it never sees anything of the others, so what it says does not
// depend on who was faster. Everything a source reads over a network it reads
// through a fetch.Client, which holds the limits, the manners and the guard.
package source

import (
	"context"
	"errors"
	"time"

	"companyscore/scoring"
)

// Source reads one place. Fetch obeys the deadline of its context and may be
// called from many goroutines. Not knowing a company is no error; an error means
// that the source failed, and WarningCode says how. A Result that comes with an
// error is used as far as it goes: its observations stand, and signals of the
// source that it does not speak about are missing for the reason of the error.
//
// A source that answered speaks about every signal it is listed for in the
// manifest, unless Combine makes the signal (then it gives its Part): StateOK with a value, StateAbsent
// when there is none, StateMissing with a reason when it cannot know. What it
// leaves out becomes missing with ReasonNotFound.
type Source interface {
	// Name is the key of the source, as in the manifest.
	Name() string
	Plan() Plan
	Fetch(ctx context.Context, req Request) (Result, error)
}

// GroupSource is a source that answers for many companies at once.
type GroupSource interface {
	Source
	// FetchGroup is Fetch for several requests, in their order. An error is about all
	// of them.
	FetchGroup(ctx context.Context, reqs []Request) ([]Result, error)
}

// Plan says when a source runs.
type Plan struct {
	// After names the sources that must have ended before this one begins. Those
	// that do not take part in the run count as ended. A source that waits for
	// any other also waits for the facts.
	After []string
	// Deadline is how long the source may take once it has begun; zero means 30 s.
	// Live sources give fetch.PolicyOf(name).Deadline.
	Deadline time.Duration
	// Off says why the source cannot work, such as a token it needs; it is empty
	// for a source that can. A source that is off is never asked, and its signals
	// are missing with ReasonSourceDisabled.
	Off string
}

// Request says what to learn about, and what is known already.
type Request struct {
	// Domain is the canonical host name.
	Domain string
	// Registrable is the domain one registers to own Domain: the public suffix
	// and one label.
	Registrable string
	// Now is the instant of the run; ages are counted from it.
	Now time.Time
	// Company is what the sources of the plan's After found out about who the
	// company is.
	Company Company
	// Site is text of the company's own pages, when web is among them.
	Site scoring.SiteText
	// Observed are the observations of the same sources, for Raw.
	Observed []scoring.Observation
	// Answered names those of them that took part and did not fail.
	Answered []string
	// Past are values of earlier runs of the same domain, newest first, for trends.
	Past []Past
}

// Result is what a source found. The zero value says that it knows nothing.
type Result struct {
	Observations []scoring.Observation
	// Claims say who the company is.
	Claims []Claim
	// Parts are the source's share of signals that need several sources; see Combine.
	Parts []Part
	// Site is text of the company's own pages, for the sector vote.
	Site scoring.SiteText
	// Values are kept with the run under the name of the source, so that later
	// runs see how they have changed.
	Values map[string]float64
	// Unregistered is set by dns when neither the host nor the registrable domain
	// exists, and by rdap when the registry has no such domain. When both say so
	// the run fails.
	Unregistered bool
}

// Past are the values of one earlier run.
type Past = scoring.Past

// Raw returns the value of a signal as the sources before this one observed it,
// the most trusted first, false when none did. An absence that counts as a value
// is returned as that value.
func (r Request) Raw(signal string) (raw float64, ok bool) {
	o, _ := scoring.Believed(signal, r.Observed)
	switch o.State {
	case scoring.StateOK:
		return o.Raw, true
	case scoring.StateAbsent:
		s, _ := scoring.Lookup(signal)
		return s.Normalizer.Absent()
	}
	return 0, false
}

// Sector returns the sector as far as the sources before this one tell it.
func (r Request) Sector() string { return scoring.SectorOf(r.Company.Identity(r.Site, 0)) }

// HasAnswered reports whether a source of the plan's After took part and did not fail.
func (r Request) HasAnswered(source string) bool {
	for _, name := range r.Answered {
		if name == source {
			return true
		}
	}
	return false
}

// Before returns the value "source.name" of the earlier run between min and max
// ago that is nearest to the middle of the two, false when there is none.
func (r Request) Before(name string, min, max time.Duration) (value float64, at time.Time, ok bool) {
	middle := r.Now.Add(-(min + max) / 2)
	for _, past := range r.Past {
		age := r.Now.Sub(past.At)
		v, has := past.Values[name]
		if !has || age < min || age > max {
			continue
		}
		if !ok || past.At.Sub(middle).Abs() < at.Sub(middle).Abs() {
			value, at, ok = v, past.At, true
		}
	}
	return value, at, ok
}

// ErrUnavailable says that a store of our own did not answer. It is no property
// of the company: the fetch must be repeated, and no score be made without it.
var ErrUnavailable = errors.New("store unavailable")

// Error is a failure of a source that has a warning code of its own.
type Error struct {
	Code string // one of the codes of scoring.Warning
	Err  error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WarningCode returns the code.
func (e *Error) WarningCode() string { return e.Code }

// WarningCode is the code under which a failure is reported to customers.
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
