// Package demand notes which companies callers ask for, so that the refresh job keeps
// their scores younger than those of others.
package demand

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// domainsMax bounds the companies that wait to be noted, and those remembered as noted.
	domainsMax = 100_000
	// flushEvery is how often companies are noted.
	flushEvery = time.Minute
	// flushTimeout bounds noting them.
	flushTimeout = 30 * time.Second
)

// Store is where demand is noted.
type Store interface {
	// NoteAsked notes that companies were asked for on the day of an instant in UTC.
	// Noting it again is harmless.
	NoteAsked(ctx context.Context, domains []string, at time.Time) error
}

// Recorder collects the companies that were asked for and notes them once a minute, each
// once a day as far as it remembers. It is safe for concurrent use.
type Recorder struct {
	store   Store
	now     func() time.Time
	most    int
	dropped atomic.Int64
	stop    chan struct{}
	ended   sync.WaitGroup

	mu      sync.Mutex
	day     int64               // since 1970, to which both sets belong
	waiting map[string]struct{} // at most most
	noted   map[string]struct{} // at most most
}

// Start returns a recorder that notes demand in the store until Close.
func Start(store Store, logger *slog.Logger) *Recorder {
	r := newRecorder(store)
	r.ended.Go(func() {
		tick := time.NewTicker(flushEvery)
		defer tick.Stop()
		for {
			select {
			case <-r.stop:
				return
			case <-tick.C:
			}
			ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
			if err := r.flush(ctx); err != nil {
				logger.Warn("demand for companies not noted yet", "err", err)
			}
			cancel()
		}
	})
	return r
}

func newRecorder(store Store) *Recorder {
	return &Recorder{
		store: store, now: time.Now, most: domainsMax, stop: make(chan struct{}),
		waiting: make(map[string]struct{}), noted: make(map[string]struct{}),
	}
}

// Asked notes that a company was asked for, now. It makes no network call. When very many
// companies wait it drops the company and counts that. domain may be memory that is used
// again.
func (r *Recorder) Asked(domain string) {
	day := dayOf(r.now())
	r.mu.Lock()
	defer r.mu.Unlock()
	if day != r.day { // those that wait were asked for a moment ago, and are noted for today
		r.day = day
		clear(r.noted)
	}
	if _, ok := r.noted[domain]; ok {
		return
	}
	if _, ok := r.waiting[domain]; ok {
		return
	}
	if len(r.waiting) >= r.most {
		r.dropped.Add(1)
		return
	}
	r.waiting[strings.Clone(domain)] = struct{}{}
}

// Dropped returns how many companies were not noted, as too many waited.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// flush notes the companies that wait. Those that could not be noted go on waiting.
func (r *Recorder) flush(ctx context.Context) error {
	now := r.now()
	r.mu.Lock()
	domains := make([]string, 0, len(r.waiting))
	for domain := range r.waiting {
		domains = append(domains, domain)
	}
	r.mu.Unlock()
	if len(domains) == 0 {
		return nil
	}
	if err := r.store.NoteAsked(ctx, domains, now); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.noted)+len(domains) > r.most {
		clear(r.noted)
	}
	for _, domain := range domains {
		delete(r.waiting, domain)
		if dayOf(now) == r.day {
			r.noted[domain] = struct{}{}
		}
	}
	return nil
}

// Close notes what waits, unless ctx ends before, and stops the recorder. Nothing may be
// asked for afterwards.
func (r *Recorder) Close(ctx context.Context) error {
	close(r.stop)
	r.ended.Wait()
	return r.flush(ctx)
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
