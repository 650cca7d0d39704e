// Package coalesce turns many small questions to a store into few large ones. A
// query of ClickHouse for a hundred companies costs hardly more than one for a
// single company, so those who ask at about the same time share a query.
package coalesce

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrBusy says that too many wait already.
var ErrBusy = errors.New("too many lookups wait for ClickHouse")

// Config says how questions are coalesced. Ask is required.
type Config[K comparable, V any] struct {
	// Ask answers for the keys. Keys that have no answer are left out.
	Ask func(ctx context.Context, keys []K) (map[K]V, error)
	// Most is how many keys one question asks for; zero means 500.
	Most int
	// AtOnce is how many questions are in flight at once; zero means 4. More would
	// not be faster: they share the CPUs of one ClickHouse.
	AtOnce int
	// Pause is the least time between the beginnings of two questions. A lone key
	// that comes after it does not wait; of a stream of keys all that come within
	// it share a question. Zero coalesces only while AtOnce questions are in flight.
	Pause time.Duration
	// Timeout bounds one question; zero means 5 s.
	Timeout time.Duration
	// Waiting bounds the keys that wait for a question; zero means 50,000.
	Waiting int
}

// Coalescer asks for keys in one question that were asked for one by one. It may
// be used concurrently, and has no goroutines while nobody asks.
type Coalescer[K comparable, V any] struct {
	cfg Config[K, V]

	mu      sync.Mutex
	waiting map[K]*lookup[V]
	asking  int       // questions in flight, and those about to begin
	pausing bool      // one is about to begin, and will take what waits by then
	next    time.Time // when the next may begin
}

// lookup is one key that is being asked for. It is over when done is closed.
type lookup[V any] struct {
	done  chan struct{}
	value V
	found bool
	err   error
}

// New returns a coalescer.
func New[K comparable, V any](cfg Config[K, V]) *Coalescer[K, V] {
	if cfg.Most == 0 {
		cfg.Most = 500
	}
	if cfg.AtOnce == 0 {
		cfg.AtOnce = 4
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	if cfg.Waiting == 0 {
		cfg.Waiting = 50_000
	}
	return &Coalescer[K, V]{cfg: cfg, waiting: make(map[K]*lookup[V])}
}

// Get returns what the store has for a key, as it was after the call began, and
// whether it has anything. Several callers may get the same value, which must not
// be changed.
func (g *Coalescer[K, V]) Get(ctx context.Context, key K) (value V, found bool, err error) {
	g.mu.Lock()
	l := g.waiting[key]
	if l == nil {
		if len(g.waiting) >= g.cfg.Waiting {
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

// Waiting is how many keys wait for a question that has not begun.
func (g *Coalescer[K, V]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.waiting)
}

// begin has a question asked for what waits, unless one is about to begin or too
// many are in flight. The lock must be held.
func (g *Coalescer[K, V]) begin() {
	if len(g.waiting) > 0 && !g.pausing && g.asking < g.cfg.AtOnce {
		g.asking++
		g.pausing = true
		go g.run()
	}
}

// run asks one question, and sees to it that there is another while keys wait.
func (g *Coalescer[K, V]) run() {
	g.mu.Lock()
	wait := time.Until(g.next)
	g.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	g.mu.Lock()
	g.next = time.Now().Add(g.cfg.Pause)
	batch := make(map[K]*lookup[V], min(len(g.waiting), g.cfg.Most))
	keys := make([]K, 0, min(len(g.waiting), g.cfg.Most))
	for key, l := range g.waiting {
		if len(keys) == g.cfg.Most {
			break
		}
		batch[key] = l
		keys = append(keys, key)
		delete(g.waiting, key)
	}
	g.pausing = false
	g.begin()
	g.mu.Unlock()

	g.answer(batch, keys)

	g.mu.Lock()
	g.asking--
	g.begin()
	g.mu.Unlock()
}

// answer asks one question and tells all who wait for it.
func (g *Coalescer[K, V]) answer(batch map[K]*lookup[V], keys []K) {
	ctx, cancel := context.WithTimeout(context.Background(), g.cfg.Timeout)
	defer cancel()
	values, err := g.cfg.Ask(ctx, keys)
	for key, l := range batch {
		l.err = err
		if err == nil {
			l.value, l.found = values[key]
		}
		close(l.done)
	}
}
