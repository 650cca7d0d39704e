// Package cli has what the commands of all rooms share: how they fail, show progress and print results.
package cli

import (
	"errors"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
)

// ErrReported is returned by a command that failed and has printed why.
var ErrReported = errors.New("reported")

// UsageError is a wrong call of a command: it exits 2.
type UsageError struct{ Err error }

// Error returns the text of the error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *UsageError) Unwrap() error { return e.Err }

// Usage returns err as a UsageError, and nil for nil.
func Usage(err error) error {
	if err == nil {
		return nil
	}
	return &UsageError{err}
}

// NewBar returns a progress bar on w. It draws nothing when w is no terminal or quiet
// is set.
func NewBar(w io.Writer, quiet bool, what string, bytes bool) *progressbar.ProgressBar {
	if quiet || !IsTerminal(w) {
		w = io.Discard
	}
	return progressbar.NewOptions64(1, progressbar.OptionSetWriter(Control(w)), progressbar.OptionSetDescription(what),
		progressbar.OptionShowCount(), progressbar.OptionShowBytes(bytes), progressbar.OptionSetPredictTime(true),
		progressbar.OptionFullWidth(), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
