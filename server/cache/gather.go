package cache

import (
	"context"
	"errors"
	"sync"
	"time"

	"companyscore/scoring"
)

const (
	// gatherMost is how many companies one query asks for.
	gatherMost = 500
	// gatherQueries is how many queries are under way at once. More would not be
	// faster: they share the CPUs of one ClickHouse.
	gatherQueries = 4
	// gatherQueue bounds the companies that wait for a query.
	gatherQueue = 50_000
)

// errBusy says that too many lookups wait already.
var errBusy = errors.New("too many lookups wait for ClickHouse")

// gatherer looks companies up in the store. Those asked for while all queries are
// under way are gathered into the next one, so that a storm of misses costs a few
// queries and not one each.
type gatherer struct {
	store   Store
	timeout time.Duration

	mu      sync.Mutex
	waiting map[string]*lookup
	queries int
}

// lookup is one company that is being looked up. It is done when done is closed.
type lookup struct {
	done   chan struct{}
	record scoring.Record
	err    error
}

// head returns the newest record of a company, as the store had it after the
// call began, or scoring.ErrNotFound.
func (g *gatherer) head(ctx context.Context, domain string) (scoring.Record, error) {
	g.mu.Lock()
	l := g.waiting[domain]
	if l == nil {
		if len(g.waiting) >= gatherQueue {
			g.mu.Unlock()
			return scoring.Record{}, errBusy
		}
		l = &lookup{done: make(chan struct{})}
		g.waiting[domain] = l
	}
	if g.queries < gatherQueries {
		g.queries++
		go g.run()
	}
	g.mu.Unlock()
	select {
	case <-l.done:
		return l.record, l.err
	case <-ctx.Done():
		return scoring.Record{}, ctx.Err()
	}
}

// run makes queries until nobody waits.
func (g *gatherer) run() {
	for {
		g.mu.Lock()
		batch := make(map[string]*lookup, min(len(g.waiting), gatherMost))
		domains := make([]string, 0, min(len(g.waiting), gatherMost))
		for domain, l := range g.waiting {
			if len(batch) == gatherMost {
				break
			}
			batch[domain] = l
			domains = append(domains, domain)
			delete(g.waiting, domain)
		}
		if len(batch) == 0 {
			g.queries--
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		g.answer(batch, domains)
	}
}

// answer makes one query and tells all who wait for it.
func (g *gatherer) answer(batch map[string]*lookup, domains []string) {
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	records, err := g.store.LatestHeads(ctx, domains)
	for domain, l := range batch {
		rec, ok := records[domain]
		switch {
		case err != nil:
			l.err = err
		case !ok:
			l.err = scoring.ErrNotFound
		default:
			l.record = rec
		}
		close(l.done)
	}
}
