package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Sentinels of refusals. errors.Is reports whether an [*Error] is one of them.
var (
	// ErrUnauthorized: the API key is missing, unknown or revoked.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrNotScored: the company was never scored. [Client.ScoreAndWait] scores it.
	ErrNotScored = errors.New("not scored")
	// ErrInvalidDomain: the text is no domain of a company.
	ErrInvalidDomain = errors.New("invalid domain")
	// ErrWrongMode: a test key was used for a real company, or a live key for one of the sandbox.
	ErrWrongMode = errors.New("domain of the other mode")
	// ErrFreeTier: the free tier scores companies of the sandbox only.
	ErrFreeTier = errors.New("free tier")
	// ErrMonthlyCap: the cold calls of the month are used up. It is never retried; Error.RetryAfter is the time to the next month.
	ErrMonthlyCap = errors.New("monthly cap")
	// ErrRateLimited: any other limit of calls is reached. Error.Reason names it.
	ErrRateLimited = errors.New("rate limited")
	// ErrForbidden: the job belongs to another account.
	ErrForbidden = errors.New("forbidden")
	// ErrJobNotFound: the job does not exist or has expired.
	ErrJobNotFound = errors.New("job not found")
	// ErrUnavailable: the service failed or is overloaded (a status of 500 or more).
	ErrUnavailable = errors.New("service unavailable")
)

// Error is a refusal by the service.
type Error struct {
	// Status is the HTTP status.
	Status int
	// Code is the `error` of the body, which never changes. It is empty if the body is not an error of the service.
	Code string
	// Reason is the limit that was exceeded, empty for other errors.
	Reason string
	// Message explains the error to people. It may change.
	Message string
	// Tier is the tier that does not permit the call, empty for other errors.
	Tier string
	// RequestID identifies the request in the logs of the service. In an item of a batch it is that of the batch.
	RequestID string
	// RetryAfter is the time to wait before a retry, zero if the answer has no Retry-After.
	RetryAfter time.Duration
	// Quotas are the limits that the answer reports, by name.
	Quotas map[string]Quota
}

// problem is the body of an error.
type problem struct {
	Error   string `json:"error"`
	Message string `json:"message"`
	Reason  string `json:"reason"`
	Tier    string `json:"tier"`
}

// of returns the error of an item of a list, nil if the item has none.
func (p problem) of(status int, requestID string) error {
	if p.Error == "" {
		return nil
	}
	return &Error{Status: status, Code: p.Error, Message: p.Message, Reason: p.Reason, Tier: p.Tier, RequestID: requestID}
}

// newError returns the error of an answer.
func newError(res *http.Response, a reply) *Error {
	e := &Error{Status: a.status, RequestID: a.RequestID, Quotas: a.Quotas, RetryAfter: retryAfter(res.Header)}
	var body problem
	if json.Unmarshal(a.Body, &body) == nil {
		e.Code, e.Message, e.Reason, e.Tier = body.Error, body.Message, body.Reason, body.Tier
	}
	return e
}

// retryAfter reads the header, which has seconds. A proxy may send a date.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return seconds(n)
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

// Error returns code, reason, message and RetryAfter, or the status if there is no code.
func (e *Error) Error() string {
	if e.Code == "" {
		text := fmt.Sprintf("the service answered %d %s", e.Status, http.StatusText(e.Status))
		if e.RequestID != "" {
			text += " to request " + e.RequestID
		}
		return text
	}
	text := e.Code
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf(" Retry in %s.", e.RetryAfter.Round(time.Second))
	}
	return text
}

// Is reports whether the error is one of the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrUnauthorized:
		return e.Status == http.StatusUnauthorized
	case ErrNotScored:
		return e.Code == "no score available for this domain" || e.Code == "no_history"
	case ErrInvalidDomain:
		return e.Code == "domain invalid" || e.Code == "body.domain invalid" || e.Code == "body.domain required"
	case ErrWrongMode:
		return strings.HasPrefix(e.Code, "sandbox: only ") || e.Code == "test domains require a svc_test_ key"
	case ErrFreeTier:
		return e.Code == "free_tier_sandbox_only"
	case ErrMonthlyCap:
		return e.Reason == "monthly_cap"
	case ErrRateLimited:
		return e.Status == http.StatusTooManyRequests && e.Reason != "monthly_cap"
	case ErrForbidden:
		return e.Code == "forbidden"
	case ErrJobNotFound:
		return e.Code == "job not found"
	case ErrUnavailable:
		return e.Status >= http.StatusInternalServerError
	}
	return false
}

// RunError is the error of a run that failed. The cold call remains charged.
type RunError struct {
	// Job has the reason in FailureReason.
	Job Job
}

// Error returns domain and reason.
func (e *RunError) Error() string {
	return fmt.Sprintf("the run of %s failed: %s", e.Job.Domain, e.Job.FailureReason)
}

// PendingError is the error of a wait that ended before its job. Wait for the job again with [Client.Wait]: it is not charged again.
type PendingError struct {
	Job Job
	// Err is the reason: ctx.Err(), an error of a poll, or nil after three minutes.
	Err error
}

// Error returns the reason and the id of the job.
func (e *PendingError) Error() string {
	reason := fmt.Sprintf("not scored within %s", waitMax)
	if e.Err != nil {
		reason = e.Err.Error()
	}
	return fmt.Sprintf("%s; the run of %s may still end, as job %s", reason, e.Job.Domain, e.Job.ID)
}

// Unwrap returns Err.
func (e *PendingError) Unwrap() error { return e.Err }

// networkError is an error without an answer.
type networkError struct{ error }

func (e *networkError) Unwrap() error { return e.error }

// mayPass reports whether a repeated call may succeed. Every call of this package may be repeated: it is a read, or it has an
// Idempotency-Key.
func mayPass(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	var refused *Error
	if errors.As(err, &refused) {
		switch refused.Status {
		case http.StatusTooManyRequests:
			return !errors.Is(err, ErrMonthlyCap)
		case http.StatusInternalServerError:
			return refused.Code != "sandbox_invariant_violated" // a defect, which would be repeated
		case http.StatusRequestTimeout, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	var network *networkError
	return errors.As(err, &network)
}
