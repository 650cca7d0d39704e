// Package cache returns the newest score of a company from memory, Redis or ClickHouse,
// in this order. Concurrent lookups of one company share one query.
//
// An entry in memory is valid until an event announces a new score of the company, or
// until events may have been lost. It expires 30 seconds after its lookup or after the
// last confirmation that no event was lost, whichever is later, and at most ten minutes
// after its lookup.
package cache

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
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
	// freshFor is the lifetime of an entry after its lookup or after the last call of
	// Alive, whichever is later.
	freshFor = 30 * time.Second
	// keptFor is the maximum lifetime of an entry. It bounds the age of an entry whose
	// event was never sent.
	keptFor = 10 * time.Minute
	// absentFor is the lifetime of an entry for a company without a score.
	absentFor = 2 * time.Second
	// lookupMax bounds one lookup, which several callers may share.
	lookupMax = 5 * time.Second
	// pageMax bounds one call that makes a page.
	pageMax = 10 * time.Second
	// missPause is the time for which misses are coalesced. Each query costs the store some
	// milliseconds of CPU, almost independent of the number of companies.
	missPause = 8 * time.Millisecond
	// pagesShare is the divisor of the memory: one part in eight is for pages.
	pagesShare = 8
	// stripes is the number of generations. A new score invalidates all entries that
	// share its stripe: with a million companies, about one other.
	stripes = 1 << 20
)

// Store reads records.
type Store interface {
	// LatestHeads returns the newest summaries of companies by domain. It omits companies
	// without a score.
	LatestHeads(ctx context.Context, domains []string) (map[string]scoring.Record, error)
	// NewestAt returns the scored_at of the newest records of companies by domain. It
	// omits companies without a score.
	NewestAt(ctx context.Context, domains []string) (map[string]time.Time, error)
}

// Level is the level of the cache that answered.
type Level int

// The levels, nearest first.
const (
	Memory Level = iota
	Redis
	ClickHouse
)

// Entry is the cached part of the newest score of a company.
type Entry struct {
	ScoredAt  time.Time
	Composite float64
	// Version is the pipeline version of the score.
	Version []byte
	// evidence has the rest of the evidence, packed.
	evidence []byte
	// Head is the part of the body that depends on the record alone. It is empty for a
	// company without a score.
	Head []byte
}

// Found reports whether the company has a score.
func (e Entry) Found() bool { return len(e.Head) > 0 }

// NewEntry returns the entry of a record.
func NewEntry(rec scoring.Record) Entry {
	return Entry{
		ScoredAt: rec.ScoredAt, Composite: rec.Composite, Version: []byte(rec.PipelineVersion), evidence: packEvidence(rec),
		Head: api.ScoreHead(rec),
	}
}

// Packed evidence is the index of the band and the level of the interval, a byte each, the
// completeness and the ends of the interval in tenths, two bytes each, and the id of the run.
const evidenceHeader = 8

var bands = []scoring.Band{scoring.BandDirectional, scoring.BandLow, scoring.BandMedium, scoring.BandHigh}

func packEvidence(rec scoring.Record) []byte {
	tenths := func(x float64) uint16 { return uint16(math.Round(10 * x)) }
	b := make([]byte, 0, evidenceHeader+len(rec.RunID))
	b = append(b, byte(max(slices.Index(bands, rec.Confidence), 0)), byte(rec.Interval.Level))
	b = binary.LittleEndian.AppendUint16(b, tenths(rec.CompletenessPct))
	b = binary.LittleEndian.AppendUint16(b, tenths(rec.Interval.Low))
	b = binary.LittleEndian.AppendUint16(b, tenths(rec.Interval.High))
	return append(b, rec.RunID[:min(len(rec.RunID), math.MaxUint8-evidenceHeader)]...)
}

// Evidence returns the evidence of the score. It is zero for a company without a score.
func (e Entry) Evidence() api.Evidence {
	b := e.evidence
	if len(b) < evidenceHeader {
		return api.Evidence{}
	}
	points := func(at int) float64 { return float64(binary.LittleEndian.Uint16(b[at:])) / 10 }
	return api.NewEvidence(scoring.Record{
		PipelineVersion: string(e.Version), RunID: string(b[evidenceHeader:]), Confidence: bands[b[0]], CompletenessPct: points(2),
		Interval: scoring.Interval{Low: points(4), High: points(6), Level: int(b[1])},
	})
}

// CompletenessPct returns the share of the score that rests on data, 0 to 100, 0 for a company without a score.
func (e Entry) CompletenessPct() float64 {
	if len(e.evidence) < evidenceHeader {
		return 0
	}
	return float64(binary.LittleEndian.Uint16(e.evidence[2:])) / 10
}

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
	// Drop increments the generation of a stripe, DropAll increments allGeneration. An entry of
	// an earlier one of either is not valid. So a lookup that began before an event
	// cannot store its result after the event.
	generations   [stripes]atomic.Uint32
	allGeneration atomic.Uint32
	alive         atomic.Int64 // unix ms of the last call of Alive
	hits          [3]atomic.Int64
}

// New returns an empty cache of the given size in bytes. Scores and pages use at least
// 32 MB each. The cache calls asked for every company with a score that was not answered
// from memory, so at least once in ten minutes for a company in constant use. asked must
// not block and must be safe for concurrent use.
func New(bytes int, rdb goredis.UniversalClient, store Store, asked func(domain string), logger *slog.Logger) *Cache {
	return &Cache{
		onAsked: asked,
		memory:  fastcache.New(bytes - bytes/pagesShare), pages: fastcache.New(bytes / pagesShare),
		redis: rdb, store: store, logger: logger, now: time.Now,
		misses: coalesce.New(coalesce.Config[string, scoring.Record]{Query: store.LatestHeads, Pause: missPause, Timeout: lookupMax}),
		newest: coalesce.New(coalesce.Config[string, time.Time]{Query: store.NewestAt, QueriesMax: 1, Pause: missPause,
			Timeout: lookupMax}),
	}
}

// entryHeader is the size of the fixed fields of an entry in memory: generation, deadline
// and scored_at in unix ms, and the composite as IEEE 754, 8 bytes each. If there is a
// score, version and evidence follow, each after a byte with its length, and then the head.
const entryHeader = 32

// Lookup returns the entry of a company if a valid one is in memory. It appends the entry
// to buf; its slices point into the result grown. It allocates nothing if buf has
// room. domain must be canonical.
func (c *Cache) Lookup(buf, domain []byte, now time.Time) (e Entry, grown []byte, ok bool) {
	start := len(buf)
	buf = c.memory.Get(buf, domain)
	b := buf[start:]
	if len(b) < entryHeader || binary.LittleEndian.Uint64(b) != c.generation(xxhash.Sum64(domain)) ||
		!c.counts(int64(binary.LittleEndian.Uint64(b[8:])), len(b) > entryHeader, now.UnixMilli()) {
		return Entry{}, buf, false
	}
	e = Entry{ScoredAt: time.UnixMilli(int64(binary.LittleEndian.Uint64(b[16:]))),
		Composite: math.Float64frombits(binary.LittleEndian.Uint64(b[24:]))}
	if b = b[entryHeader:]; len(b) > 0 {
		e.Version, b = b[1:1+b[0]], b[1+b[0]:]
		e.evidence, e.Head = b[1:1+b[0]], b[1+b[0]:]
	}
	return e, buf, true
}

// counts reports whether an entry with the given first deadline is still valid. All times
// are unix ms.
func (c *Cache) counts(deadline int64, found bool, now int64) bool {
	if now < deadline {
		return true
	}
	const longer = int64((keptFor - freshFor) / time.Millisecond)
	return found && now < deadline+longer && now < c.alive.Load()+int64(freshFor/time.Millisecond)
}

// Alive records that no event was lost until now.
func (c *Cache) Alive() { c.alive.Store(c.now().UnixMilli()) }

// Get returns the newest score of a company and the level that answered. A company without
// a score is not an error: Found of its entry is false. Concurrent calls for one company
// share a lookup.
func (c *Cache) Get(ctx context.Context, domain string) (Entry, Level, error) {
	if e, _, ok := c.Lookup(nil, []byte(domain), c.now()); ok {
		c.hits[Memory].Add(1)
		return e, Memory, nil
	}
	type found struct {
		entry Entry
		level Level
	}
	ch := c.flights.DoChan(domain, func() (any, error) {
		// Other callers share this lookup, so it does not end with ctx.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookupMax)
		defer cancel()
		e, level, err := c.load(ctx, domain)
		return found{e, level}, err
	})
	select {
	case r := <-ch:
		if r.Err != nil {
			return Entry{}, 0, r.Err
		}
		f := r.Val.(found)
		c.hits[f.level].Add(1)
		return f.entry, f.level, nil
	case <-ctx.Done():
		return Entry{}, 0, ctx.Err()
	}
}

// Near returns the newest score of a company and its level from memory or Redis, without a
// query of the store. ok is false if neither has an entry. An entry that is not Found
// means that the company had no score at most absentFor ago.
func (c *Cache) Near(ctx context.Context, domain string) (e Entry, t Level, ok bool) {
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
	return c.keep(domain, NewEntry(rec), generation, freshFor), Redis, true
}

// NewestAt returns the scored_at of the newest record of a company in the store, the zero
// time if there is none. It costs about half of Fresh.
func (c *Cache) NewestAt(ctx context.Context, domain string) (time.Time, error) {
	at, _, err := c.newest.Get(ctx, domain)
	if err != nil {
		return time.Time{}, fmt.Errorf("time of the newest score of %s: %w", domain, err)
	}
	return at, nil
}

// Waiting returns the number of companies that wait for a query of the store.
func (c *Cache) Waiting() int { return c.misses.Waiting() + c.newest.Waiting() }

// Fresh returns the newest score of a company from the store, and writes it to Redis and
// to memory.
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
	return c.keep(domain, NewEntry(rec), generation, freshFor), nil
}

// load returns the newest score of a company from Redis, or from the store if Redis has
// none or does not answer.
func (c *Cache) load(ctx context.Context, domain string) (Entry, Level, error) {
	generation := c.generation(xxhash.Sum64String(domain))
	rec, err := scorecache.Get(ctx, c.redis, domain)
	if err == nil {
		return c.keep(domain, NewEntry(rec), generation, freshFor), Redis, nil
	}
	if !errors.Is(err, scoring.ErrNotFound) {
		c.logger.Debug("score not read from Redis", "domain", domain, "err", err)
	}
	e, err := c.Fresh(ctx, domain)
	return e, ClickHouse, err
}

// Many returns an entry for each company and the farthest level that it read. Entries of
// companies without a score are not Found. All misses cost one round trip to Redis and
// one query of the store.
func (c *Cache) Many(ctx context.Context, domains []string) (map[string]Entry, Level, error) {
	entries, level := make(map[string]Entry, len(domains)), Memory
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
		return entries, level, nil
	}
	level = Redis
	kept, err := scorecache.GetMany(ctx, c.redis, missing...)
	if err != nil {
		c.logger.Debug("scores not read from Redis", "domains", len(missing), "err", err)
	}
	var unknown []string
	for _, domain := range missing {
		if rec, ok := kept[domain]; ok {
			entries[domain] = c.keep(domain, NewEntry(rec), generations[domain], freshFor)
		} else {
			unknown = append(unknown, domain)
		}
	}
	if len(unknown) == 0 {
		return entries, level, nil
	}
	level = ClickHouse
	records, err := c.store.LatestHeads(ctx, unknown)
	if err != nil {
		return nil, level, err
	}
	for _, domain := range unknown {
		if rec, ok := records[domain]; ok {
			entries[domain] = c.keep(domain, NewEntry(rec), generations[domain], freshFor)
		} else {
			entries[domain] = c.keep(domain, Entry{}, generations[domain], absentFor)
		}
	}
	return entries, level, nil
}

// ManySince returns an entry for each company with a score that is not older than oldest, and the farthest
// level that it read. An entry in memory or Redis may be stale, so ManySince asks the store about the
// companies without such an entry: first for the times of their newest records, since nearly all such
// companies have no fresh score.
func (c *Cache) ManySince(ctx context.Context, domains []string, oldest time.Time) (map[string]Entry, Level, error) {
	near, level, err := c.Many(ctx, domains)
	if err != nil {
		return nil, level, err
	}
	fresh := make(map[string]Entry, len(domains))
	var stale []string
	for _, domain := range domains {
		if e := near[domain]; e.Found() && !e.ScoredAt.Before(oldest) {
			fresh[domain] = e
		} else {
			stale = append(stale, domain)
		}
	}
	if len(stale) == 0 {
		return fresh, level, nil
	}
	newest, err := c.store.NewestAt(ctx, stale)
	if err != nil {
		return nil, ClickHouse, fmt.Errorf("times of the newest scores of %d companies: %w", len(stale), err)
	}
	stale = slices.DeleteFunc(stale, func(domain string) bool {
		at, ok := newest[domain]
		return !ok || at.Before(oldest)
	})
	if len(stale) == 0 {
		return fresh, ClickHouse, nil
	}
	generations := make(map[string]uint64, len(stale))
	for _, domain := range stale {
		generations[domain] = c.generation(xxhash.Sum64String(domain))
	}
	records, err := c.store.LatestHeads(ctx, stale)
	if err != nil {
		return nil, ClickHouse, fmt.Errorf("newest scores of %d companies: %w", len(stale), err)
	}
	for domain, rec := range records {
		if e := c.keep(domain, NewEntry(rec), generations[domain], freshFor); !e.ScoredAt.Before(oldest) {
			fresh[domain] = e
		}
	}
	return fresh, ClickHouse, nil
}

// keep writes an entry to memory and returns it. generation is the one read before the
// lookup. If the company has a score, keep calls onAsked.
func (c *Cache) keep(domain string, e Entry, generation uint64, life time.Duration) Entry {
	b := make([]byte, 0, entryHeader+2+len(e.Version)+len(e.evidence)+len(e.Head))
	b = binary.LittleEndian.AppendUint64(b, generation)
	b = binary.LittleEndian.AppendUint64(b, uint64(c.now().Add(life).UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.ScoredAt.UnixMilli()))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(e.Composite))
	if e.Found() {
		c.onAsked(domain)
		b = append(append(b, byte(len(e.Version))), e.Version...)
		b = append(append(b, byte(len(e.evidence))), e.evidence...)
		b = append(b, e.Head...)
	}
	c.memory.Set([]byte(domain), b)
	return e
}

// Drop invalidates the entry of a company after a new score.
func (c *Cache) Drop(domain string) { c.generations[xxhash.Sum64String(domain)%stripes].Add(1) }

// DropOlder calls Drop unless the entry in memory was scored at the given time or later.
func (c *Cache) DropOlder(domain string, at time.Time) {
	if e, _, ok := c.Lookup(nil, []byte(domain), c.now()); !ok || e.ScoredAt.Before(at) {
		c.Drop(domain)
	}
}

// DropAll invalidates all entries, after events may have been lost.
func (c *Cache) DropAll() { c.allGeneration.Add(1) }

// generation returns both generations of the company whose domain has the hash.
func (c *Cache) generation(hash uint64) uint64 {
	return uint64(c.allGeneration.Load())<<32 | uint64(c.generations[hash%stripes].Load())
}

// Hits returns the number of lookups by Get and Near that a level answered.
func (c *Cache) Hits(t Level) int64 { return c.hits[t].Load() }

// Size returns the number of entries in memory and the bytes they take.
func (c *Cache) Size() (entries, bytes uint64) {
	var s fastcache.Stats
	c.memory.UpdateStats(&s)
	return s.EntriesCount, s.BytesSize
}
