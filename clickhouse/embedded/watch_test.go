package embedded

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchEndsTheEngine has statements that end when asked and some that do not, with and without too much memory.
func TestWatchEndsTheEngine(t *testing.T) {
	t.Parallel()
	const limit = 1000
	for name, c := range map[string]struct {
		bytes     uint64
		stuck     []string // analysts whose statements do not end
		cancelled bool     // their statements are cancelled before
		after     time.Duration
		blamed    []string
	}{
		"nothing is wrong": {bytes: limit},
		"a long statement": {bytes: limit, stuck: []string{"a"}},
		"a statement that does not end": {bytes: limit, stuck: []string{"a"}, cancelled: true, after: statementGrace,
			blamed: []string{"a"}},
		"memory of a statement":                   {bytes: limit + 1, stuck: []string{"a"}, after: memoryGrace, blamed: []string{"a"}},
		"memory of one of several statements":     {bytes: limit + 1, stuck: []string{"b"}, after: memoryGrace, blamed: []string{"b"}},
		"memory that no statement has":            {bytes: limit + 1, after: memoryPatience},
		"so much memory that there is less grace": {bytes: 2 * limit, stuck: []string{"a"}, after: memoryShort, blamed: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "running")
			synctest.Test(t, func(t *testing.T) {
				now, _, err := newRunning(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, analyst := range []string{"a", "b", "c"} {
					ctx, cancel := context.WithCancelCause(t.Context())
					ended, err := now.add(ctx, analyst, "SELECT 1", cancel)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Contains(c.stuck, analyst) {
						context.AfterFunc(ctx, ended)
					}
					if c.cancelled {
						cancel(errors.New("the client is gone"))
					}
				}
				began := time.Now()
				var after time.Duration
				var blamed []string
				w := &watch{running: now, memory: limit, most: limit + limit/2, resident: func() (uint64, error) { return c.bytes, nil },
					logger: slog.New(slog.DiscardHandler)}
				w.end = func(_ string, statements map[string]string) {
					after, blamed = time.Since(began), slices.Sorted(maps.Keys(statements))
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				w.run(ctx)
				if tolerance := 4 * watchInterval; after < c.after || after > c.after+tolerance || !slices.Equal(blamed, c.blamed) {
					t.Errorf("ended after %s, blamed %v; want %s to %s and %v", after, blamed, c.after, c.after+tolerance, c.blamed)
				}
			})
		})
	}
}

// TestMemoryComesBack has too much memory until the statements of analysts end.
func TestMemoryComesBack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "running")
	synctest.Test(t, func(t *testing.T) {
		now, _, err := newRunning(dir)
		if err != nil {
			t.Fatal(err)
		}
		var bytes atomic.Uint64
		bytes.Store(1100)
		ctx, cancel := context.WithCancelCause(t.Context())
		ended, err := now.add(ctx, "a", "SELECT 1", cancel)
		if err != nil {
			t.Fatal(err)
		}
		context.AfterFunc(ctx, func() {
			ended()
			time.Sleep(memoryPatience / 2) // of the bubble's clock: the allocator gives memory back late
			bytes.Store(900)
		})
		w := &watch{running: now, memory: 1000, most: 1500, resident: func() (uint64, error) { return bytes.Load(), nil },
			logger: slog.New(slog.DiscardHandler)}
		w.end = func(reason string, _ map[string]string) { t.Errorf("ended: %s", reason) }
		watching, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		w.run(watching)
		if cause := context.Cause(ctx); !errors.Is(cause, errMemory) {
			t.Errorf("the statement ended with %v", cause)
		}
	})
}
