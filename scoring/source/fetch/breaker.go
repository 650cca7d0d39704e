package fetch

import (
	"fmt"
	"sync"
	"time"
)

// failuresMax is how many failures in a row make a provider be left alone.
const failuresMax = 5

// breaker leaves a server alone for a while after failures in a row. After the
// while one request is let through; if it fails too, the next while begins. It
// is safe for concurrent use.
type breaker struct {
	failuresMax int // failures in a row that are too many; failuresMax in earnest

	mu       sync.Mutex
	failures int
	until    time.Time
	code     string
}

// allow returns an error with the code of the last failure while the server is
// left alone.
func (b *breaker) allow(name string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.until.Sub(now); wait > 0 {
		return &Error{Code: b.code, RetryAfter: wait, Err: fmt.Errorf("%s has failed and is left alone for another %s", name, wait.Round(time.Second))}
	}
	return nil
}

// record counts the end of a request; code is empty for one that was answered.
func (b *breaker) record(code string, p Policy, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if code == "" {
		b.failures = 0
		return
	}
	b.failures++
	if b.failures >= b.failuresMax || code == CodeRateLimited && p.BreakOnRefusal {
		b.until, b.code = now.Add(p.BreakFor), code
		b.failures = b.failuresMax - 1
	}
}
