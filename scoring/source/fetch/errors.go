package fetch

import (
	"errors"
	"net/http"
	"time"
)

// The warning codes of failures, as customers see them.
const (
	CodeTimeout     = "timeout"
	CodeRateLimited = "rate_limited" // by the provider, or by our own limit when the wait would outlast the deadline
	CodeHTTP        = "http_error"   // no connection, or a status that is no answer
	CodeParse       = "parse_error"  // an answer that is not what was asked for
	CodeTooLarge    = "too_large"
	CodeAddress     = "blocked_address"
	CodeRobots      = "blocked_by_robots"
	CodeDNS         = "dns_failure"
)

// Error is a request that did not lead to an answer.
type Error struct {
	// Code is one of the codes above.
	Code string
	// Status is the HTTP status, 0 when there was none.
	Status int
	// RetryAfter is how long the provider asked to be left alone, 0 if it did not say.
	RetryAfter time.Duration
	Err        error
}

// Error returns the text of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WarningCode returns the code.
func (e *Error) WarningCode() string { return e.Code }

// IsNotFound reports whether the provider answered that it has no such thing:
// status 404 or 410.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// IsRefused reports whether the provider answered with status 401 or 403.
func IsRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized)
}
