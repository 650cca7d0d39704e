// Package demand records which companies callers ask for. The refresh job keeps the
// scores of these companies younger than others.
package demand

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"companyscore/internal/flush"
)

const (
	// domainsMax bounds the companies that wait to be written, and separately the
	// companies known to be written.
	domainsMax = 100_000
	// flushEvery is the time between two writes.
	flushEvery = time.Minute
	// flushTimeout bounds one write.
	flushTimeout = 30 * time.Second
)

// Store writes demand.
type Store interface {
	// NoteAsked writes that companies were asked for on the UTC day of an instant. It is
	// idempotent.
	NoteAsked(ctx context.Context, domains []string, at time.Time) error
}

// Recorder collects the companies that were asked for and writes them once a minute. It
// normally writes a company once a day; more often after it has cleared a full set. It is
// safe for concurrent use.
type Recorder struct {
	store   Store
	now     func() time.Time
	most    int
	dropped atomic.Int64
	loop    *flush.Loop

	mu      sync.Mutex
	day     int64               // days since 1970 in UTC; the day of noted
	waiting map[string]struct{} // at most most
	noted   map[string]struct{} // at most most
}

// Start returns a recorder that writes demand to the store until Close.
func Start(store Store, logger *slog.Logger) *Recorder {
	r := newRecorder(store)
	r.loop = flush.Start(flush.Config{
		Interval: flushEvery, Timeout: flushTimeout, Trouble: "demand for companies not written yet", Logger: logger,
	}, r.flush)
	return r
}

func newRecorder(store Store) *Recorder {
	return &Recorder{
		store: store, now: time.Now, most: domainsMax,
		waiting: make(map[string]struct{}), noted: make(map[string]struct{}),
	}
}

// Asked records that a company is asked for now. It makes no network call. If domainsMax
// companies wait, it drops the company and counts it. It copies domain, so the caller may
// reuse the memory.
func (r *Recorder) Asked(domain string) {
	day := dayOf(r.now())
	r.mu.Lock()
	defer r.mu.Unlock()
	if day != r.day { // companies that still wait are written for the new day
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

// Dropped returns the number of companies dropped because too many waited.
func (r *Recorder) Dropped() int64 { return r.dropped.Load() }

// flush writes the waiting companies. If the write fails, they stay in the queue.
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

// Close stops the recorder and writes the waiting companies, unless ctx ends first. Asked
// must not be called afterwards.
func (r *Recorder) Close(ctx context.Context) error { return r.loop.Close(ctx) }

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
