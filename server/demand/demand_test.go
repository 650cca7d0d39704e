package demand

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// book is a store in memory, by day.
type book struct {
	mu   sync.Mutex
	days map[string][]string
	away bool
}

var errAway = errors.New("store is away")

func (b *book) NoteAsked(_ context.Context, domains []string, at time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return errAway
	}
	day := at.UTC().Format(time.DateOnly)
	b.days[day] = append(b.days[day], domains...)
	slices.Sort(b.days[day])
	return nil
}

func (b *book) setAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func (b *book) wants(t *testing.T, day string, domains ...string) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Equal(b.days[day], domains) {
		t.Errorf("of %s %v is noted, want %v", day, b.days[day], domains)
	}
}

func TestDemandIsNotedOnceADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		b := &book{days: make(map[string][]string)}
		r := Start(b, slog.New(slog.DiscardHandler))
		memory := []byte("abc.com")
		r.Asked(string(memory))
		r.Asked("b.com")
		r.Asked("b.com")
		time.Sleep(flushEvery - time.Second)
		b.wants(t, "2000-01-01")
		time.Sleep(2 * time.Second)
		b.wants(t, "2000-01-01", "abc.com", "b.com")
		for range 10 {
			r.Asked("b.com")
			time.Sleep(flushEvery)
		}
		b.wants(t, "2000-01-01", "abc.com", "b.com")
		time.Sleep(24 * time.Hour)
		r.Asked("b.com")
		time.Sleep(flushEvery)
		b.wants(t, "2000-01-02", "b.com")
		b.setAway(true)
		r.Asked("c.com")
		time.Sleep(5 * flushEvery)
		b.setAway(false)
		time.Sleep(flushEvery)
		b.wants(t, "2000-01-02", "b.com", "c.com")
		r.Asked("d.com")
		if err := r.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.wants(t, "2000-01-02", "b.com", "c.com", "d.com")
		if r.Dropped() != 0 {
			t.Errorf("%d dropped", r.Dropped())
		}
	})
}

func TestDemandIsBounded(t *testing.T) {
	t.Parallel()
	b := &book{days: make(map[string][]string), away: true}
	r := newRecorder(b)
	r.now = func() time.Time { return time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC) }
	for i := range domainsMax + 500 {
		r.Asked(fmt.Sprintf("c%d.com", i))
	}
	r.Asked("c7.com") // waits already
	if r.Dropped() != 500 || len(r.waiting) != domainsMax {
		t.Errorf("%d dropped and %d wait, want 500 and %d", r.Dropped(), len(r.waiting), domainsMax)
	}
	if err := r.flush(t.Context()); !errors.Is(err, errAway) || len(r.waiting) != domainsMax {
		t.Errorf("%v, and %d wait after the store was away", err, len(r.waiting))
	}
	b.away = false
	if err := r.flush(t.Context()); err != nil || len(r.waiting) != 0 || len(b.days["2026-05-01"]) != domainsMax {
		t.Errorf("%v, %d wait, %d are noted", err, len(r.waiting), len(b.days["2026-05-01"]))
	}
	for i := range 500 {
		r.Asked(fmt.Sprintf("d%d.com", i))
	}
	if err := r.flush(t.Context()); err != nil || len(r.noted) != 500 || len(b.days["2026-05-01"]) != domainsMax+500 {
		t.Errorf("%v, %d are remembered and %d noted", err, len(r.noted), len(b.days["2026-05-01"]))
	}
}
