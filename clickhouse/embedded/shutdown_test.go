package embedded

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestShutdownWaitsForEngine has an engine that takes its time to close, as on a busy machine, and one that takes too long.
func TestShutdownWaitsForEngine(t *testing.T) {
	t.Parallel()
	const limit = 20 * time.Second
	for name, c := range map[string]struct {
		closes, returns time.Duration
		ok              bool
	}{
		"at once":              {0, 0, true},
		"within the limit":     {limit - time.Second, limit - time.Second, true},
		"soon after the limit": {limit + closeMax - time.Second, limit + closeMax - time.Second, true},
		"too late":             {limit + closeMax + time.Second, limit + closeMax, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now, _, err := newRunning(filepath.Join(t.TempDir(), "running"))
			if err != nil {
				t.Fatal(err)
			}
			watched := make(chan struct{})
			close(watched)
			synctest.Test(t, func(t *testing.T) {
				var closing sync.WaitGroup
				defer closing.Wait()
				closing.Add(1)
				s := &Server{
					http: &http.Server{}, now: now, watched: watched, stop: func(error) {}, stopAnalysts: func() {},
					close: func(context.Context) error { defer closing.Done(); time.Sleep(c.closes); return nil },
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				began := time.Now()
				if err := s.Shutdown(ctx); (err == nil) != c.ok || time.Since(began) != c.returns {
					t.Errorf("Shutdown = %v after %s, want it after %s, without error: %v", err, time.Since(began), c.returns, c.ok)
				}
			})
		})
	}
}
