// Package published carries the statistics of the universe from the batch jobs,
// which count, to the servers, which answer from memory. It lies in Redis as one
// blob under an epoch that no other has; followers look at the epoch every
// second or two, and go on with what they have while Redis is away.
package published

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
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
var ErrOvertaken = errors.New("a later leader has published the universe")

//go:embed publish.lua
var publishLua string

var publishScript = goredis.NewScript(publishLua)

// Publish replaces what is published. fence is the token of the leader, a
// number that is larger for each later leader; the error is [ErrOvertaken] when a
// later one has published.
func Publish(ctx context.Context, rdb goredis.UniversalClient, t *universe.Tally, fence int64) error {
	if _, err := universe.New(t.Snapshot()); err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	blob := universe.Encode(t)
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	done, err := publishScript.Run(ctx, rdb, []string{redis.Universe()}, blob, fence, uuid.NewString(), fmt.Sprintf("%d %d", t.Generation, t.Note)).Int()
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	if done == 0 {
		return ErrOvertaken
	}
	return nil
}

// Read returns what is published, nil when nothing is.
func Read(ctx context.Context, rdb goredis.UniversalClient) (*universe.Tally, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	blob, err := rdb.HGet(ctx, redis.Universe(), "blob").Bytes()
	if errors.Is(err, goredis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the published universe: %w", err)
	}
	return universe.Decode(blob)
}

// Count returns which count is published: see [universe.Tally]. It is 0, 0 when
// nothing is.
func Count(ctx context.Context, rdb goredis.UniversalClient) (generation, note uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	text, err := rdb.HGet(ctx, redis.Universe(), "count").Result()
	if errors.Is(err, goredis.Nil) {
		return 0, 0, nil
	}
	if err == nil {
		_, err = fmt.Sscanf(text, "%d %d", &generation, &note)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the published count: %w", err)
	}
	return generation, note, nil
}

// Follower keeps the newest published tables in memory. It may be used concurrently.
type Follower struct {
	rdb    goredis.UniversalClient
	logger *slog.Logger
	tables atomic.Pointer[universe.Tables]
	loaded chan struct{} // closed when there are tables
	epoch  string
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

// look loads the published tables if they are others than those at hand.
func (f *Follower) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	epoch, err := f.rdb.HGet(ctx, redis.Universe(), "epoch").Result()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the epoch: %w", err)
	}
	if epoch == f.epoch {
		return nil
	}
	tally, err := Read(ctx, f.rdb)
	if err != nil || tally == nil {
		return err
	}
	tables, err := universe.New(tally.Snapshot())
	if err != nil {
		return err
	}
	if f.tables.Swap(tables) == nil {
		close(f.loaded)
	}
	f.epoch = epoch
	return nil
}
