// Package retry is the one backoff of the program.
package retry

import (
	"time"

	"github.com/cenkalti/backoff/v5"
)

// Jitter is the share by which a pause is randomly shorter or longer.
const Jitter = 0.3

// Backoff returns an exponential backoff: the first pause is about first, each next one
// twice as long, up to about longest. Jitter applies to every pause. It never gives up:
// the caller bounds the retries by a context. It is not safe for concurrent use.
func Backoff(first, longest time.Duration) *backoff.ExponentialBackOff {
	return &backoff.ExponentialBackOff{InitialInterval: first, MaxInterval: longest, Multiplier: 2, RandomizationFactor: Jitter}
}
