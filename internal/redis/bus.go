package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Kind says what changed.
type Kind string

// The kinds of events, with what the event's name is.
const (
	KeyChanged     Kind = "key"     // hex of the SHA-256 of an API key
	AccountChanged Kind = "account" // id of an account
	ScoreStored    Kind = "score"   // canonical domain
)

// Event tells other processes that what they remember of something is out of
// date. Events can be lost; whoever remembers bounds for how long.
type Event struct {
	Kind Kind
	Name string
}

// Announce sends events to all subscribers.
func Announce(ctx context.Context, rdb goredis.UniversalClient, events ...Event) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	_, err := rdb.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, e := range events {
			pipe.Publish(ctx, Events, string(e.Kind)+" "+e.Name)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}

const (
	busTimeout = 5 * time.Second
	// busSilence is after how long without any event the connection is tried.
	busSilence = 5 * time.Second
)

// Subscribe calls heard for each event until ctx ends. Before the first and after
// every break of the connection it calls missed, since events may have been lost.
// Both are called from one goroutine, one at a time.
func Subscribe(ctx context.Context, rdb goredis.UniversalClient, heard func(Event), missed func()) {
	for ctx.Err() == nil {
		listen(ctx, rdb, heard, missed)
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// listen hears events until the connection breaks.
func listen(ctx context.Context, rdb goredis.UniversalClient, heard func(Event), missed func()) {
	pubsub := rdb.Subscribe(ctx, Events)
	// Reading does not look at ctx: without this it would end with the next silence only.
	stop := context.AfterFunc(ctx, func() { pubsub.Close() })
	defer stop()
	defer pubsub.Close()
	quiet := false
	for {
		message, err := pubsub.ReceiveTimeout(ctx, busSilence)
		var timeout net.Error
		switch {
		case err == nil:
			quiet = false
		case errors.As(err, &timeout) && timeout.Timeout() && !quiet && ctx.Err() == nil:
			if pubsub.Ping(ctx) != nil {
				return
			}
			quiet = true // an answer must come before the next silence
			continue
		default:
			return
		}
		switch m := message.(type) {
		case *goredis.Subscription:
			missed()
		case *goredis.Message:
			if kind, name, ok := strings.Cut(m.Payload, " "); ok {
				heard(Event{Kind(kind), name})
			}
		}
	}
}
