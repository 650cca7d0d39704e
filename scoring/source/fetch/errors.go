package fetch

import (
	"errors"
	"net/http"
	"time"
)

// The warning codes of failures. They are part of the API.
const (
	CodeTimeout     = "timeout"
	CodeRateLimited = "rate_limited" // by the provider, or because the wait for a turn would outlast the deadline
	CodeHTTP        = "http_error"   // no connection, or an unusable status
	CodeParse       = "parse_error"  // not the expected format
	CodeTooLarge    = "too_large"
	CodeAddress     = "blocked_address"
	CodeRobots      = "blocked_by_robots"
	CodeDNS         = "dns_failure"
)

// Error is a failed request.
type Error struct {
	// Code is one of the codes above.
	Code string
	// Status is the HTTP status, 0 when there was none.
	Status int
	// RetryAfter is the pause that the provider asked for, 0 if none.
	RetryAfter time.Duration
	// Refusal is the beginning of the body of a status 401 or 403, at most 1 KiB: it can tell why.
	Refusal string
	Err     error
}

// Error returns the message of the cause.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// WarningCode returns the code.
func (e *Error) WarningCode() string { return e.Code }

// IsNotFound reports whether the provider answered with status 404 or 410.
func IsNotFound(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusGone)
}

// IsRefused reports whether the provider answered with status 401 or 403.
func IsRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusForbidden || e.Status == http.StatusUnauthorized)
}
