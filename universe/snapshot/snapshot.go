// Package snapshot publishes the snapshot of the batch jobs in Redis and loads it in the
// servers. The snapshot is a hash with one part per job and a revision, a number that grows
// with each publication. Followers read the revision every second. During a Redis outage they
// keep the tables in memory.
//
// Servers adopt a part of a large universe at the end of an epoch, an instant that is a multiple
// of the part's Epoch, and a part with an Epoch of 0 at once. A part is published some seconds
// before its instant, so all servers have it by then and change their answers at the same time.
package snapshot

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/universe"
)

const (
	pollInterval = time.Second
	firstPoll    = 50 * time.Millisecond // until there are tables
	callTimeout  = 10 * time.Second
	// notice is the minimum time between a publication and the instant at which servers adopt it.
	// It is longer than a follower takes to load it.
	notice = 5 * time.Second
)

// ErrOvertaken is returned if a holder of a larger fence has published.
var ErrOvertaken = errors.New("a process with a larger fence has published")

//go:embed publish.lua
var publishLua string

var publishScript = goredis.NewScript(publishLua)

// The parts of a snapshot and the revision, as fields of the hash. Each part has the further fields
// of publish.lua.
const (
	countsField   = "counts"
	moversField   = "movers"
	revisionField = "revision"
)

// Adoption says when servers adopt what is published.
type Adoption int

const (
	// NextEpoch is the end of the epoch. Servers adopt a part at once if its Epoch is 0 or if
	// no such part is published.
	NextEpoch Adoption = iota
	// AtOnce is within about a second.
	AtOnce
)

// PublishCounts publishes the result of the count job. fence grows with each run of the
// job. PublishCounts returns [ErrOvertaken] if a run with a larger fence has published. In the last
// seconds of an epoch it keeps counts that wait for its end and drops c.
func PublishCounts(ctx context.Context, rdb goredis.UniversalClient, c universe.Counts, fence int64, when Adoption) error {
	if _, err := universe.New(universe.Snapshot{Counts: c}); err != nil {
		return fmt.Errorf("publish counts: %w", err)
	}
	return publish(ctx, rdb, countsField, c, c.Epoch, fence, when)
}

// PublishMovers publishes the result of the movers job, like PublishCounts.
func PublishMovers(ctx context.Context, rdb goredis.UniversalClient, m universe.Movers, fence int64, when Adoption) error {
	return publish(ctx, rdb, moversField, m, m.Epoch, fence, when)
}

func publish(ctx context.Context, rdb goredis.UniversalClient, field string, part any, epoch time.Duration, fence int64,
	when Adoption) error {
	var blob bytes.Buffer
	if err := gob.NewEncoder(&blob).Encode(part); err != nil {
		return fmt.Errorf("publish %s: %w", field, err)
	}
	if when == AtOnce {
		epoch = 0
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	revision, err := publishScript.Run(ctx, rdb, []string{redis.Universe()}, field, blob.Bytes(), fence, epoch.Milliseconds(),
		notice.Milliseconds()).Int64()
	if err != nil {
		return fmt.Errorf("publish %s: %w", field, err)
	}
	if revision == 0 {
		return ErrOvertaken
	}
	return nil
}

// HasMovers reports whether movers are published and can be read.
func HasMovers(ctx context.Context, rdb goredis.UniversalClient) (bool, error) {
	blob, err := rdb.HGet(ctx, redis.Universe(), moversField).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return false, fmt.Errorf("find published movers: %w", err)
	}
	_, damage := decode[universe.Movers](blob)
	return blob != "" && damage == nil, nil
}

// part is a part of the published snapshot.
type part[T any] struct {
	newest T
	// from is when servers adopt newest, and before is what they use until then.
	from   time.Time
	before T
}

// at returns what servers use at an instant.
func (p part[T]) at(now time.Time) T {
	if now.Before(p.from) {
		return p.before
	}
	return p.newest
}

// parts is the published snapshot. A part that is not published or cannot be read is zero.
type parts struct {
	counts   part[universe.Counts]
	movers   part[universe.Movers]
	revision string // empty if nothing is published
	damage   error  // names what cannot be read
}

func (p *parts) at(now time.Time) universe.Snapshot {
	return universe.Snapshot{Counts: p.counts.at(now), Movers: p.movers.at(now)}
}

// readParts returns the published snapshot.
func readParts(ctx context.Context, rdb goredis.UniversalClient) (p parts, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := rdb.HGetAll(ctx, redis.Universe()).Result()
	if err != nil {
		return parts{}, fmt.Errorf("read the published snapshot: %w", err)
	}
	var counts, movers error
	p.counts, counts = readPart[universe.Counts](fields, countsField)
	p.movers, movers = readPart[universe.Movers](fields, moversField)
	p.revision, p.damage = fields[revisionField], errors.Join(counts, movers)
	return p, nil
}

// readPart returns a part and an error for what of it cannot be read. If newest or before cannot be
// read, or from, the part has the other one alone and servers use it at once.
func readPart[T any](fields map[string]string, name string) (part[T], error) {
	if fields[name] == "" {
		return part[T]{}, nil
	}
	newest, err := decode[T](fields[name])
	before, beforeErr := decode[T](fields[name+"_before"])
	from, fromErr := strconv.ParseInt(fields[name+"_from"], 10, 64)
	if err != nil {
		newest = before
	}
	p := part[T]{newest: newest}
	if err = errors.Join(err, beforeErr, fromErr); err != nil {
		return p, fmt.Errorf("read the published %s: %w", name, err)
	}
	if fields[name+"_before"] != "" {
		p.before, p.from = before, time.UnixMilli(from)
	}
	return p, nil
}

// decode returns what publish has encoded, and the zero value for an empty blob.
func decode[T any](blob string) (value T, err error) {
	if blob == "" {
		return value, nil
	}
	if err = gob.NewDecoder(strings.NewReader(blob)).Decode(&value); err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// Read returns the newest published snapshot, which servers may not have adopted yet, and its
// revision, 0 if nothing is published. A part that is not published or cannot be read is zero.
func Read(ctx context.Context, rdb goredis.UniversalClient) (s universe.Snapshot, revision int64, err error) {
	p, err := readParts(ctx, rdb)
	revision, _ = strconv.ParseInt(p.revision, 10, 64) // 0 if it is damaged
	return universe.Snapshot{Counts: p.counts.newest, Movers: p.movers.newest}, revision, err
}

// Follower keeps the tables of the newest revision in memory. It is safe for concurrent use.
type Follower struct {
	rdb      goredis.UniversalClient
	logger   *slog.Logger
	ahead    atomic.Pointer[[]adopted] // nil before the first tables are loaded
	loaded   chan struct{}             // closed when there are tables
	revision string
	stop     context.CancelFunc
	done     chan struct{}
}

// adopted are tables with the instant from which they are used, in unix ms. Lists of them are in
// the order of the instants and never empty.
type adopted struct {
	from   int64
	tables *universe.Tables
}

// Follow reads the snapshot once and returns a follower. It logs an error of that read.
// The caller closes the follower before the Redis client.
func Follow(ctx context.Context, rdb goredis.UniversalClient, logger *slog.Logger) *Follower {
	f := &Follower{rdb: rdb, logger: logger, loaded: make(chan struct{}), done: make(chan struct{})}
	if err := f.look(ctx, time.Now()); err != nil {
		logger.Warn("universe not loaded in full", "err", err)
	}
	ctx, f.stop = context.WithCancel(context.Background())
	go f.follow(ctx)
	return f
}

// Tables returns the tables that all servers use at an instant, which is about now. It returns nil
// before the first are loaded.
func (f *Follower) Tables(now time.Time) *universe.Tables {
	ahead := f.ahead.Load()
	if ahead == nil {
		return nil
	}
	i := len(*ahead) - 1
	for i > 0 && now.UnixMilli() < (*ahead)[i].from {
		i--
	}
	return (*ahead)[i].tables
}

// Wait returns when tables are loaded or ctx ends.
func (f *Follower) Wait(ctx context.Context) {
	select {
	case <-f.loaded:
	case <-ctx.Done():
	}
}

// Close ends the follower's goroutine and waits for it.
func (f *Follower) Close() {
	f.stop()
	<-f.done
}

func (f *Follower) follow(ctx context.Context) {
	defer close(f.done)
	failing := false
	for {
		pause := pollInterval
		if f.ahead.Load() == nil {
			pause = firstPoll
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		now := time.Now()
		f.forget(now)
		err := f.look(ctx, now)
		if err != nil && !failing && ctx.Err() == nil {
			f.logger.Warn("universe may be out of date", "err", err)
		}
		failing = err != nil
	}
}

// forget drops the tables that are no longer used.
func (f *Follower) forget(now time.Time) {
	if ahead := f.ahead.Load(); ahead != nil && len(*ahead) > 1 && (*ahead)[1].from <= now.UnixMilli() {
		rest := slices.Clone((*ahead)[1:])
		f.ahead.Store(&rest)
	}
}

// look loads the published snapshot if its revision differs from the one in memory. It loads what can be
// read, and returns an error for the rest.
func (f *Follower) look(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	revision, err := f.rdb.HGet(ctx, redis.Universe(), revisionField).Result()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("read the revision: %w", err)
	}
	if revision == "" || revision == f.revision {
		return nil
	}
	p, err := readParts(ctx, f.rdb)
	if err != nil || p.counts.newest.PipelineVersion == "" { // movers may be published before counts
		return errors.Join(err, p.damage)
	}
	if t := f.Tables(now); t != nil && len(p.movers.newest.Lists) == 0 { // Redis lost its data, and the movers job has not run since
		p.movers.newest = t.Movers()
	}
	ahead, err := p.ahead(now)
	if err != nil {
		return err
	}
	if f.ahead.Swap(&ahead) == nil {
		close(f.loaded)
	}
	f.revision = p.revision
	return p.damage
}

// ahead returns the tables that servers use from now on.
func (p *parts) ahead(now time.Time) ([]adopted, error) {
	instants := []time.Time{now}
	for _, from := range []time.Time{p.counts.from, p.movers.from} {
		if from.After(now) && !slices.ContainsFunc(instants, from.Equal) {
			instants = append(instants, from)
		}
	}
	slices.SortFunc(instants, time.Time.Compare)
	list := make([]adopted, 0, len(instants))
	for _, at := range instants {
		tables, err := universe.New(p.at(at))
		if err != nil {
			return nil, err
		}
		list = append(list, adopted{at.UnixMilli(), tables})
	}
	return list, nil
}
