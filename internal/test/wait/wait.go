// Package wait waits in tests for events. On a busy machine an event may be late, but it comes.
package wait

import (
	"testing"
	"time"
)

// Max bounds the wait for one event. It only ends tests that hang, so it has room for a machine on
// which a test gets a small part of a processor.
const Max = 5 * time.Minute

// Until polls a condition until it holds. After [Max] it fails the test.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(Max)
	defer limit.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("not within %s: %s", Max, what)
		}
	}
}
