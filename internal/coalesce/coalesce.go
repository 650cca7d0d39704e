// Package coalesce answers concurrent lookups with few queries. A ClickHouse query for
// a hundred companies costs little more than one for a single company.
package coalesce

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy is returned by Get when Config.WaitingMax keys already wait.
var ErrBusy = errors.New("too many waiting lookups")

// Config sets how lookups are coalesced. Query is required.
type Config[K comparable, V any] struct {
	// Query reads the values of the keys. The result has no entry for a key without a value.
	Query func(ctx context.Context, keys []K) (map[K]V, error)
	// KeysMax is the maximum number of keys per query; zero means 500.
	KeysMax int
	// QueriesMax is the maximum number of queries in flight; zero means 4. More are not
	// faster: they share the CPUs of one ClickHouse.
	QueriesMax int
	// Pause is the minimum time between the starts of two queries. A key that arrives
	// after it is queried at once. Keys that arrive within it share a query. With zero,
	// keys are coalesced only while QueriesMax queries are in flight.
	Pause time.Duration
	// Timeout bounds one query; zero means 5 s.
	Timeout time.Duration
	// WaitingMax bounds the keys that wait for a query; zero means 50,000.
	WaitingMax int
}

// Coalescer groups lookups of single keys into queries. It is safe for concurrent use
// and has no goroutines while idle.
type Coalescer[K comparable, V any] struct {
	cfg Config[K, V]

	mu       sync.Mutex
	waiting  map[K]*lookup[V]
	querying int       // queries in flight or about to start
	pausing  bool      // a query is about to start; it takes the keys that wait by then
	next     time.Time // earliest start of the next query
}

// lookup is one key whose value is read. done is closed when the result is set.
type lookup[V any] struct {
	done  chan struct{}
	value V
	found bool
	err   error
}

// New returns a coalescer.
func New[K comparable, V any](cfg Config[K, V]) *Coalescer[K, V] {
	if cfg.KeysMax == 0 {
		cfg.KeysMax = 500
	}
	if cfg.QueriesMax == 0 {
		cfg.QueriesMax = 4
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.WaitingMax == 0 {
		cfg.WaitingMax = 50_000
	}
	return &Coalescer[K, V]{cfg: cfg, waiting: make(map[K]*lookup[V])}
}

// Get returns the value of a key, read after the call began, and whether there is one.
// Callers may share the value and must not change it. Errors are ErrBusy, that of Query
// and that of ctx.
func (g *Coalescer[K, V]) Get(ctx context.Context, key K) (value V, found bool, err error) {
	g.mu.Lock()
	l := g.waiting[key]
	if l == nil {
		if len(g.waiting) >= g.cfg.WaitingMax {
			g.mu.Unlock()
			return value, false, ErrBusy
		}
		l = &lookup[V]{done: make(chan struct{})}
		g.waiting[key] = l
	}
	g.begin()
	g.mu.Unlock()
	select {
	case <-l.done:
		return l.value, l.found, l.err
	case <-ctx.Done():
		return value, false, ctx.Err()
	}
}

// Waiting returns the number of keys whose query has not started.
func (g *Coalescer[K, V]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// begin starts a query for the waiting keys, unless one is about to start or QueriesMax
// are in flight. The caller holds the lock.
func (g *Coalescer[K, V]) begin() {
	if len(g.waiting) > 0 && !g.pausing && g.querying < g.cfg.QueriesMax {
		g.querying++
		g.pausing = true
		go g.run()
	}
}

// run does one query and starts the next one while keys wait.
func (g *Coalescer[K, V]) run() {
	g.mu.Lock()
	wait := time.Until(g.next)
	g.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	g.mu.Lock()
	g.next = time.Now().Add(g.cfg.Pause)
	lookups := make(map[K]*lookup[V], min(len(g.waiting), g.cfg.KeysMax))
	keys := make([]K, 0, min(len(g.waiting), g.cfg.KeysMax))
	for key, l := range g.waiting {
		if len(keys) == g.cfg.KeysMax {
			break
		}
		lookups[key] = l
		keys = append(keys, key)
		delete(g.waiting, key)
	}
	g.pausing = false
	g.begin()
	g.mu.Unlock()

	g.answer(lookups, keys)

	g.mu.Lock()
	g.querying--
	g.begin()
	g.mu.Unlock()
}

// answer does one query and sets the result of each lookup in lookups.
func (g *Coalescer[K, V]) answer(lookups map[K]*lookup[V], keys []K) {
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.Timeout)
	defer cancel()
	values, err := g.cfg.Query(ctx, keys)
	for key, l := range lookups {
		l.err = err
		if err == nil {
			l.value, l.found = values[key]
		}
		close(l.done)
	}
}
