package fetch

import (
	"fmt"
	"sync"
	"time"
)

// failuresMax is the number of consecutive failures that open the circuit breaker of a server.
const failuresMax = 5

// breaker is the circuit breaker of one server. It opens after failuresMax consecutive failures
// for Policy.BreakFor. Requests then pass again; the first that fails opens it again. It is safe
// for concurrent use.
type breaker struct {
	failuresMax int // consecutive failures that open it; 5 without overrides

	mu       sync.Mutex
	failures int
	until    time.Time
	code     string
}

// allow returns an error with the code of the last failure while the breaker is open.
func (b *breaker) allow(name string, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.until.Sub(now); wait > 0 {
		return &Error{Code: b.code, RetryAfter: wait, Err: fmt.Errorf("the circuit breaker of %s is open for another %s", name,
			wait.Round(time.Second))}
	}
	return nil
}

// record counts the end of a request. code is empty if the server answered.
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
