package fetch

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/cenkalti/backoff/v5"

	"companyscore/internal/retry"
)

// exchange makes a call with the retries that its policy and the deadline allow.
func (c *Client) exchange(ctx context.Context, call *call, handle func(*http.Response) error) error {
	pauses := newPauses()
	for tries := 0; ; tries++ {
		err := c.send(ctx, call, handle)
		if err == nil || tries >= call.policy.Retries || !retryable(err) || !c.waitRetry(ctx, pauses, err) {
			return err
		}
	}
}

// retryAfter parses the Retry-After header: seconds or a date.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := header.Get("Retry-After")
	if text == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseUint(text, 10, 32); err == nil {
		return min(time.Duration(seconds)*time.Second, pauseMax), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, at.Sub(now)), pauseMax), true
	}
	return 0, false
}

// retryable reports whether a failed call may be retried: the server did not accept the
// connection, or its status is transient.
func retryable(err error) bool {
	var e *Error
	var op *net.OpError
	if !errors.As(err, &e) {
		return false
	}
	switch e.Status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return e.Status == 0 && (e.Code == CodeHTTP || e.Code == CodeTimeout) && errors.As(err, &op) && op.Op == "dial"
}

// newPauses returns the backoff of a request: about 1 s, then 4 s, then 16 s.
func newPauses() *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: time.Second, MaxInterval: time.Minute, Multiplier: 4,
		RandomizationFactor: retry.Jitter}
}

// waitRetry waits before the next try, at least for the Retry-After of err. It returns
// false if the deadline comes first.
func (c *Client) waitRetry(ctx context.Context, pauses *backoff.ExponentialBackOff, err error) bool {
	wait := pauses.NextBackOff()
	var e *Error
	if errors.As(err, &e) {
		wait = max(wait, e.RetryAfter)
	}
	return c.wire.Pause(ctx, wait)
}
