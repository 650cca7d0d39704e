// Package snapshot publishes the snapshot of the batch jobs in Redis and loads it in the
// servers. The snapshot is a hash with one field per job and an epoch, a number that grows
// with each publication. Followers read the epoch every second. During a Redis outage they
// keep the tables in memory.
package snapshot

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/gob"
	"errors"
	"fmt"
	"log/slog"
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
)

// ErrOvertaken is returned if a holder of a larger fence has published.
var ErrOvertaken = errors.New("a process with a larger fence has published")

//go:embed publish.lua
var publishLua string

var publishScript = goredis.NewScript(publishLua)

// The parts of a snapshot, as fields of the hash.
const (
	countsField = "counts"
	moversField = "movers"
	epochField  = "epoch"
)

// PublishCounts publishes the result of the count job. fence grows with each run of the
// job. PublishCounts returns [ErrOvertaken] if a run with a larger fence has published.
func PublishCounts(ctx context.Context, rdb goredis.UniversalClient, c universe.Counts, fence int64) error {
	if _, err := universe.New(universe.Snapshot{Counts: c}); err != nil {
		return fmt.Errorf("publish counts: %w", err)
	}
	return publish(ctx, rdb, countsField, c, fence)
}

// PublishMovers publishes the result of the movers job, like PublishCounts.
func PublishMovers(ctx context.Context, rdb goredis.UniversalClient, m universe.Movers, fence int64) error {
	return publish(ctx, rdb, moversField, m, fence)
}

func publish(ctx context.Context, rdb goredis.UniversalClient, field string, part any, fence int64) error {
	var blob bytes.Buffer
	if err := gob.NewEncoder(&blob).Encode(part); err != nil {
		return fmt.Errorf("publish %s: %w", field, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	epoch, err := publishScript.Run(ctx, rdb, []string{redis.Universe()}, field, blob.Bytes(), fence).Int64()
	if err != nil {
		return fmt.Errorf("publish %s: %w", field, err)
	}
	if epoch == 0 {
		return ErrOvertaken
	}
	return nil
}

// HasMovers reports whether movers are published.
func HasMovers(ctx context.Context, rdb goredis.UniversalClient) (bool, error) {
	found, err := rdb.HExists(ctx, redis.Universe(), moversField).Result()
	if err != nil {
		return false, fmt.Errorf("find published movers: %w", err)
	}
	return found, nil
}

// Read returns the published snapshot and its epoch, 0 if nothing is published. A part
// that is not published is zero.
func Read(ctx context.Context, rdb goredis.UniversalClient) (s universe.Snapshot, epoch int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var fields struct {
		Counts []byte `redis:"counts"`
		Movers []byte `redis:"movers"`
		Epoch  int64  `redis:"epoch"`
	}
	if err := rdb.HMGet(ctx, redis.Universe(), countsField, moversField, epochField).Scan(&fields); err != nil {
		return s, 0, fmt.Errorf("read the published snapshot: %w", err)
	}
	for field, part := range map[string]struct {
		blob []byte
		into any
	}{countsField: {fields.Counts, &s.Counts}, moversField: {fields.Movers, &s.Movers}} {
		if len(part.blob) == 0 {
			continue
		}
		if err := gob.NewDecoder(bytes.NewReader(part.blob)).Decode(part.into); err != nil {
			return universe.Snapshot{}, 0, fmt.Errorf("read the published %s: %w", field, err)
		}
	}
	return s, fields.Epoch, nil
}

// Follower keeps the tables of the newest epoch in memory. It is safe for concurrent use.
type Follower struct {
	rdb    goredis.UniversalClient
	logger *slog.Logger
	tables atomic.Pointer[universe.Tables]
	loaded chan struct{} // closed when there are tables
	epoch  int64
	stop   context.CancelFunc
	done   chan struct{}
}

// Follow reads the snapshot once and returns a follower. It logs an error of that read.
// The caller closes the follower before the Redis client.
func Follow(ctx context.Context, rdb goredis.UniversalClient, logger *slog.Logger) *Follower {
	f := &Follower{rdb: rdb, logger: logger, loaded: make(chan struct{}), done: make(chan struct{})}
	if err := f.look(ctx); err != nil {
		logger.Warn("universe not loaded yet", "err", err)
	}
	ctx, f.stop = context.WithCancel(context.Background())
	go f.follow(ctx)
	return f
}

// Tables returns the newest tables, nil before the first are loaded.
func (f *Follower) Tables() *universe.Tables { return f.tables.Load() }

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
		if f.Tables() == nil {
			pause = firstPoll
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		err := f.look(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			f.logger.Warn("universe may be out of date", "err", err)
		}
		failing = err != nil
	}
}

// look loads the published snapshot if its epoch differs from the one in memory.
func (f *Follower) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	epoch, err := f.rdb.HGet(ctx, redis.Universe(), epochField).Int64()
	if err != nil && !errors.Is(err, goredis.Nil) {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if epoch == 0 || epoch == f.epoch {
		return nil
	}
	s, epoch, err := Read(ctx, f.rdb)
	if err != nil || s.Counts.PipelineVersion == "" { // movers may be published before counts
		return err
	}
	if t := f.Tables(); t != nil && len(s.Movers.Lists) == 0 { // Redis lost its data, and the movers job has not run since
		s.Movers = t.Movers()
	}
	tables, err := universe.New(s)
	if err != nil {
		return err
	}
	if f.tables.Swap(tables) == nil {
		close(f.loaded)
	}
	f.epoch = epoch
	return nil
}
