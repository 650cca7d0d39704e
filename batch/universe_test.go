package batch

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/testenv"
	"companyscore/scoring"
	"companyscore/universe"
	"companyscore/universe/published"
)

// counted is a store with so many companies; counting fails while it is broken.
type counted struct {
	store
	end    time.Time
	asked  int // for movers
	broken bool
}

func (c *counted) Groups(context.Context) (universe.Snapshot, error) {
	if c.broken {
		return universe.Snapshot{}, errors.New("broken")
	}
	return universe.Count(make([]scoring.Record, 0), c.end), nil
}

func (c *counted) Movers(_ context.Context, window universe.Window, end time.Time) (universe.Movers, error) {
	c.asked++
	return universe.Movers{Start: end.Add(-window.Length()), End: end}, nil
}

func TestUniverseIsPublishedAndSurvivesAFailure(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), testenv.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	c := &counted{store: store{func(context.Context) error { return nil }}, end: time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)}
	r, err := New(Config{Store: c, Redis: client, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	start := c.end
	for _, step := range []struct {
		after  time.Duration
		broken bool
		asked  int
	}{
		{0, false, 3},
		{4 * time.Minute, false, 3}, // a list of movers stands for five minutes
		{5 * time.Minute, false, 6},
		{6 * time.Minute, true, 6},
	} {
		c.end, c.broken = start.Add(step.after), step.broken
		if err := r.Once(t.Context(), silent); (err != nil) != step.broken {
			t.Fatalf("after %s: %v", step.after, err)
		}
		s, found, err := published.Read(t.Context(), client)
		if err != nil || !found || c.asked != step.asked {
			t.Fatalf("after %s: found %v, %v, movers asked for %d times, want %d", step.after, found, err, c.asked, step.asked)
		}
		if step.broken && !s.Cut.Equal(start.Add(5*time.Minute)) {
			t.Errorf("a failed run replaced the last good one by one of %v", s.Cut)
		}
	}
}
