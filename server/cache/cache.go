// Package cache answers which score is the newest of a company, from memory if it
// can, else from Redis, else from ClickHouse, one lookup at a time for each
// company.
//
// What is in memory counts until this process hears that the company was scored
// again, or that it may have missed such news; and no longer than half a minute
// after it last knew that it misses none.
package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync/atomic"
	"time"

	"github.com/VictoriaMetrics/fastcache"
	"github.com/cespare/xxhash/v2"
	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/singleflight"

	"companyscore/internal/coalesce"
	"companyscore/internal/scorecache"
	"companyscore/scoring"
	"companyscore/server/api"
)

const (
	// freshFor bounds how long an entry counts after it was looked up, or after the
	// last sign that all news arrives, whichever was later.
	freshFor = 30 * time.Second
	// keptFor bounds how long it counts in any case, so that a score that was stored
	// without news of it is seen at last.
	keptFor = 10 * time.Minute
	// absentFor is the same for a company that was never scored.
	absentFor = 2 * time.Second
	// lookupMax bounds one lookup, which others may be waiting for.
	lookupMax = 5 * time.Second
	pageMax   = 10 * time.Second
	// gatherFor is how long misses of a crowd wait for each other. A query costs the
	// store some milliseconds of CPU whatever it asks for, and takes about as long.
	gatherFor = 8 * time.Millisecond
	// pagesShare is the part of the memory that is for pages.
	pagesShare = 8
	// stripes is over how many generations companies are spread. News of one company
	// ends the entries of all that share its stripe: of a million companies one.
	stripes = 1 << 20
)

// Store is where all records are.
type Store interface {
	// LatestHeads returns the newest records of companies, without their signals, by
	// domain. Those never scored are left out.
	LatestHeads(ctx context.Context, domains []string) (map[string]scoring.Record, error)
	// NewestAt returns when the newest records of companies were made, by domain.
	// Those never scored are left out.
	NewestAt(ctx context.Context, domains []string) (map[string]time.Time, error)
}

// Tier says where an answer came from.
type Tier int

// The tiers, nearest first.
const (
	Memory Tier = iota
	Redis
	ClickHouse
)

// Entry is what is kept of a company's newest score.
type Entry struct {
	ScoredAt  time.Time
	Composite float64
	// Version is the pipeline version of the score.
	Version []byte
	// Head is the part of the body that depends on the record alone; empty for a
	// company that was never scored.
	Head []byte
}

// Found reports whether the company was ever scored.
func (e Entry) Found() bool { return len(e.Head) > 0 }

// Cache is safe for concurrent use.
type Cache struct {
	memory  *fastcache.Cache
	pages   *fastcache.Cache
	redis   goredis.UniversalClient
	store   Store
	misses  *coalesce.Coalescer[string, scoring.Record]
	newest  *coalesce.Coalescer[string, time.Time]
	logger  *slog.Logger
	now     func() time.Time
	onAsked func(domain string)
	flights singleflight.Group
	// generations are raised by news of a company, and epoch by news that may have
	// been missed. An entry of an earlier generation does not count, so that a lookup
	// that began before the news cannot be kept after it.
	generations [stripes]atomic.Uint32
	epoch       atomic.Uint32
	alive       atomic.Int64 // unix ms of the last sign that all news arrives
	hits        [3]atomic.Int64
}

// New returns an empty cache that holds so many bytes of scores and pages, at
// least 32 MB of each. asked is told of every company with a score that was looked up
// beyond memory; as no entry counts for longer than ten minutes, a company that is
// always answered from memory is told of that often. It must return at once, and be
// safe for concurrent use.
func New(bytes int, rdb goredis.UniversalClient, store Store, asked func(domain string), logger *slog.Logger) *Cache {
	return &Cache{
		onAsked: asked,
		memory:  fastcache.New(bytes - bytes/pagesShare), pages: fastcache.New(bytes / pagesShare),
		redis: rdb, store: store, logger: logger, now: time.Now,
		misses: coalesce.New(coalesce.Config[string, scoring.Record]{Ask: store.LatestHeads, Pause: gatherFor, Timeout: lookupMax}),
		newest: coalesce.New(coalesce.Config[string, time.Time]{Ask: store.NewestAt, AtOnce: 1, Pause: gatherFor, Timeout: lookupMax}),
	}
}

// An entry in memory is its generation, deadline and time in unix milliseconds, and
// composite as IEEE 754; then, of a score, the length of the version in one byte, the
// version and the head.
const entryHeader = 32

// Lookup returns what is in memory of a company. It appends the entry to buf,
// which version and head of the entry then point into, and allocates nothing if buf has
// room. domain must be canonical.
func (c *Cache) Lookup(buf, domain []byte, now time.Time) (e Entry, grown []byte, ok bool) {
	start := len(buf)
	buf = c.memory.Get(buf, domain)
	b := buf[start:]
	if len(b) < entryHeader || binary.LittleEndian.Uint64(b) != c.generation(xxhash.Sum64(domain)) ||
		!c.counts(int64(binary.LittleEndian.Uint64(b[8:])), len(b) > entryHeader, now.UnixMilli()) {
		return Entry{}, buf, false
	}
	e = Entry{ScoredAt: time.UnixMilli(int64(binary.LittleEndian.Uint64(b[16:]))), Composite: math.Float64frombits(binary.LittleEndian.Uint64(b[24:]))}
	if b = b[entryHeader:]; len(b) > 0 {
		e.Version, e.Head = b[1:1+b[0]], b[1+b[0]:]
	}
	return e, buf, true
}

// counts reports whether an entry whose first deadline is given still counts. All
// times are unix ms.
func (c *Cache) counts(deadline int64, found bool, now int64) bool {
	if now < deadline {
		return true
	}
	const longer = int64((keptFor - freshFor) / time.Millisecond)
	return found && now < deadline+longer && now < c.alive.Load()+int64(freshFor/time.Millisecond)
}

// Alive notes that all news that there was until now has been heard of.
func (c *Cache) Alive() { c.alive.Store(c.now().UnixMilli()) }

// Get returns the newest score of a company as far as this process can know, and
// where it was found. An entry that is not Found is no error.
func (c *Cache) Get(ctx context.Context, domain string) (Entry, Tier, error) {
	if e, _, ok := c.Lookup(nil, []byte(domain), c.now()); ok {
		c.hits[Memory].Add(1)
		return e, Memory, nil
	}
	type found struct {
		entry Entry
		tier  Tier
	}
	ch := c.flights.DoChan(domain, func() (any, error) {
		// Others wait for it too, so it does not end with the first who goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupMax)
		defer cancel()
		e, tier, err := c.load(ctx, domain)
		return found{e, tier}, err
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return Entry{}, 0, r.Err
		}
		f := r.Val.(found)
		c.hits[f.tier].Add(1)
		return f.entry, f.tier, nil
	case <-ctx.Done():
		return Entry{}, 0, ctx.Err()
	}
}

// Near returns the newest score of a company as far as it is known without asking
// the store, and where it was found; ok is false when it is not. An entry that is
// not Found says that the company had no score a moment ago.
func (c *Cache) Near(ctx context.Context, domain string) (e Entry, t Tier, ok bool) {
	if e, _, ok := c.Lookup(nil, []byte(domain), c.now()); ok {
		c.hits[Memory].Add(1)
		return e, Memory, true
	}
	generation := c.generation(xxhash.Sum64String(domain))
	rec, err := scorecache.Get(ctx, c.redis, domain)
	if err != nil {
		return Entry{}, 0, false
	}
	c.hits[Redis].Add(1)
	return c.keep(domain, entryOf(rec), generation, freshFor), Redis, true
}

// NewestAt returns when the newest score of a company was made, as the store has
// it, the zero time if there is none. It takes half of what Fresh takes.
func (c *Cache) NewestAt(ctx context.Context, domain string) (time.Time, error) {
	at, _, err := c.newest.Get(ctx, domain)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the newest score of %s: %w", domain, err)
	}
	return at, nil
}

// Waiting is how many companies wait for a query of the store.
func (c *Cache) Waiting() int { return c.misses.Waiting() + c.newest.Waiting() }

// Fresh returns the newest score as the store has it, for when an older answer
// would cost the caller something.
func (c *Cache) Fresh(ctx context.Context, domain string) (Entry, error) {
	generation := c.generation(xxhash.Sum64String(domain))
	rec, found, err := c.misses.Get(ctx, domain)
	if err != nil {
		return Entry{}, fmt.Errorf("newest score of %s: %w", domain, err)
	}
	if !found {
		return c.keep(domain, Entry{}, generation, absentFor), nil
	}
	if err := scorecache.Put(ctx, c.redis, rec); err != nil {
		c.logger.Debug("score not kept in Redis", "domain", domain, "err", err)
	}
	return c.keep(domain, entryOf(rec), generation, freshFor), nil
}

// load looks a company up in Redis and then in the store.
func (c *Cache) load(ctx context.Context, domain string) (Entry, Tier, error) {
	generation := c.generation(xxhash.Sum64String(domain))
	rec, err := scorecache.Get(ctx, c.redis, domain)
	if err == nil {
		return c.keep(domain, entryOf(rec), generation, freshFor), Redis, nil
	}
	if !errors.Is(err, scoring.ErrNotFound) {
		c.logger.Debug("score not read from Redis", "domain", domain, "err", err)
	}
	e, err := c.Fresh(ctx, domain)
	return e, ClickHouse, err
}

// Many returns the newest scores of companies, those never scored included, and
// the farthest tier that was asked. The misses cost one exchange with Redis, and
// one query for what is not there.
func (c *Cache) Many(ctx context.Context, domains []string) (map[string]Entry, Tier, error) {
	entries, tier := make(map[string]Entry, len(domains)), Memory
	now := c.now()
	var missing []string
	generations := make(map[string]uint64)
	for _, domain := range domains {
		if e, _, ok := c.Lookup(nil, []byte(domain), now); ok {
			entries[domain] = e
			continue
		}
		missing = append(missing, domain)
		generations[domain] = c.generation(xxhash.Sum64String(domain))
	}
	if len(missing) == 0 {
		return entries, tier, nil
	}
	tier = Redis
	kept, err := scorecache.GetMany(ctx, c.redis, missing...)
	if err != nil {
		c.logger.Debug("scores not read from Redis", "domains", len(missing), "err", err)
	}
	var unknown []string
	for _, domain := range missing {
		if rec, ok := kept[domain]; ok {
			entries[domain] = c.keep(domain, entryOf(rec), generations[domain], freshFor)
		} else {
			unknown = append(unknown, domain)
		}
	}
	if len(unknown) == 0 {
		return entries, tier, nil
	}
	tier = ClickHouse
	records, err := c.store.LatestHeads(ctx, unknown)
	if err != nil {
		return nil, tier, err
	}
	for _, domain := range unknown {
		if rec, ok := records[domain]; ok {
			entries[domain] = c.keep(domain, entryOf(rec), generations[domain], freshFor)
		} else {
			entries[domain] = c.keep(domain, Entry{}, generations[domain], absentFor)
		}
	}
	return entries, tier, nil
}

func entryOf(rec scoring.Record) Entry {
	return Entry{ScoredAt: rec.ScoredAt, Composite: rec.Composite, Version: []byte(rec.PipelineVersion), Head: api.ScoreHead(rec)}
}

// keep puts an entry that somebody asked for into memory, under the generation from before it was looked up.
func (c *Cache) keep(domain string, e Entry, generation uint64, life time.Duration) Entry {
	b := make([]byte, 0, entryHeader+1+len(e.Version)+len(e.Head))
	b = binary.LittleEndian.AppendUint64(b, generation)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.now().Add(life).UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.ScoredAt.UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Composite))
	if e.Found() {
		c.onAsked(domain)
		b = append(append(append(b, byte(len(e.Version))), e.Version...), e.Head...)
	}
	c.memory.Set([]byte(domain), b)
	return e
}

// Drop has a company looked up anew, because it was scored.
func (c *Cache) Drop(domain string) { c.generations[xxhash.Sum64String(domain)%stripes].Add(1) }

// DropOlder is Drop unless what is in memory is of the given time or later.
func (c *Cache) DropOlder(domain string, at time.Time) {
	if e, _, ok := c.Lookup(nil, []byte(domain), c.now()); !ok || e.ScoredAt.Before(at) {
		c.Drop(domain)
	}
}

// DropAll has every company looked up anew, because news may have been missed.
func (c *Cache) DropAll() { c.epoch.Add(1) }

// generation is of the company whose name has the hash.
func (c *Cache) generation(hash uint64) uint64 {
	return uint64(c.epoch.Load())<<32 | uint64(c.generations[hash%stripes].Load())
}

// Hits returns how many lookups of Get were answered by a tier.
func (c *Cache) Hits(t Tier) int64 { return c.hits[t].Load() }

// Size returns the number of entries in memory and the bytes they take.
func (c *Cache) Size() (entries, bytes uint64) {
	var s fastcache.Stats
	c.memory.UpdateStats(&s)
	return s.EntriesCount, s.BytesSize
}
