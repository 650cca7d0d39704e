// Package source learns about companies. Each source reads one place and says
// what it found as observations of signals and as facts of identity; scoring
// decides what to make of them.
package source

import (
	"context"
	"errors"
	"time"

	"companyscore/scoring"
)

// Request says what to learn about.
type Request struct {
	// Domain is the canonical host name.
	Domain string
	// Now is the instant of the run; ages are counted from it.
	Now time.Time
}

// Result is what a source found. The zero value says that it knows nothing.
type Result struct {
	Observations []scoring.Observation
	Identity     scoring.Identity
}

// Source reads one place. Fetch obeys the deadline of its context and may be
// called from many goroutines. Not knowing a company is no error; an error means
// that the source failed, and WarningCode says how.
type Source interface {
	Name() string
	Fetch(ctx context.Context, req Request) (Result, error)
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

// WarningCode is the code under which a failure is reported to customers.
func WarningCode(err error) string {
	var coded *Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "internal_error"
}
