// Package snapshot carries the snapshot from the batch jobs, which count, to the
// servers, which answer from memory. It is a hash in Redis with a part for each job and
// an epoch, a number that grows with each publication. Followers read the epoch every
// second, and keep what they have while Redis is away.
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

// ErrOvertaken says that a later leader has published already.
var ErrOvertaken = errors.New("a later leader has published")

//go:embed publish.lua
var publishLua string

var publishScript = goredis.NewScript(publishLua)

// The parts of a snapshot, as fields of the hash.
const (
	countsField = "counts"
	moversField = "movers"
	epochField  = "epoch"
)

// PublishCounts publishes the result of the count job. fence is the token of the leader, a
// number that is larger for each later leader of the job; the error is [ErrOvertaken]
// when a later one has published.
func PublishCounts(ctx context.Context, rdb goredis.UniversalClient, c universe.Counts, fence int64) error {
	if _, err := universe.New(universe.Snapshot{Counts: c}); err != nil {
		return fmt.Errorf("publish counts: %w", err)
	}
	return publish(ctx, rdb, countsField, c, fence)
}

// PublishMovers publishes the result of the movers job, as PublishCounts does that of the count job.
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
		return false, fmt.Errorf("look for published movers: %w", err)
	}
	return found, nil
}

// Read returns the published snapshot and its epoch, which is 0 when nothing was
// published. A part that was not published yet is zero.
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

// Follower keeps the tables of the newest epoch in memory. It may be used concurrently.
type Follower struct {
	rdb    goredis.UniversalClient
	logger *slog.Logger
	tables atomic.Pointer[universe.Tables]
	loaded chan struct{} // closed when there are tables
	epoch  int64
	stop   context.CancelFunc
	done   chan struct{}
}

// Follow returns a follower that has looked once already. Close it before the
// Redis client.
func Follow(ctx context.Context, rdb goredis.UniversalClient, logger *slog.Logger) *Follower {
	f := &Follower{rdb: rdb, logger: logger, loaded: make(chan struct{}), done: make(chan struct{})}
	if err := f.look(ctx); err != nil {
		logger.Warn("universe not loaded yet", "err", err)
	}
	ctx, f.stop = context.WithCancel(context.Background())
	go f.follow(ctx)
	return f
}

// Tables returns the newest tables, nil before the first were published.
func (f *Follower) Tables() *universe.Tables { return f.tables.Load() }

// Wait returns when there are tables, or when ctx ends.
func (f *Follower) Wait(ctx context.Context) {
	select {
	case <-f.loaded:
	case <-ctx.Done():
	}
}

// Close ends the follower's goroutine.
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

// look loads the published snapshot if its epoch is not the one in memory.
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
	if err != nil || s.Counts.PipelineVersion == "" { // the movers may be there first
		return err
	}
	if t := f.Tables(); t != nil && len(s.Movers.Lists) == 0 { // Redis was emptied, and the movers job did not run since
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
