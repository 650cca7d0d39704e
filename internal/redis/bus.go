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

// The kinds of events, with what the event's name is. Names hold no spaces.
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

// Announce sends an event for each name to all subscribers, in one message.
func Announce(ctx context.Context, rdb goredis.UniversalClient, kind Kind, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	if err := rdb.Publish(ctx, Events, string(kind)+" "+strings.Join(names, " ")).Err(); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	return nil
}

const (
	busTimeout = 5 * time.Second
	// busSilence is after how long without any event the connection is tried.
	busSilence = 5 * time.Second
)

// Listener is told what comes over the bus, from one goroutine, one call at a time.
type Listener struct {
	// Heard is called for each event.
	Heard func(Event)
	// Missed is called before the first event and after every break of the
	// connection, since events may have been lost.
	Missed func()
	// Alive is called whenever every event that was announced before now has been
	// heard or is covered by Missed: with each message, and every few seconds of
	// silence. It may be nil. It is called for a single server only: in a
	// cluster an event can be lost between two nodes, and under Sentinel it can go to a
	// new master, while our connection to one that no longer counts still stands.
	Alive func()
}

// failoverAddr is the address of every client that go-redis made for Sentinel.
const failoverAddr = "FailoverClient"

// Subscribe tells a listener what comes over the bus until ctx ends.
func Subscribe(ctx context.Context, rdb goredis.UniversalClient, l Listener) {
	if client, single := rdb.(*goredis.Client); l.Alive == nil || !single || client.Options().Addr == failoverAddr {
		l.Alive = func() {}
	}
	for ctx.Err() == nil {
		listen(ctx, rdb, l)
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// listen hears events until the connection breaks.
func listen(ctx context.Context, rdb goredis.UniversalClient, l Listener) {
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
			l.Missed()
		case *goredis.Message:
			kind, names, _ := strings.Cut(m.Payload, " ")
			for name := range strings.FieldsSeq(names) {
				l.Heard(Event{Kind(kind), name})
			}
		}
		l.Alive()
	}
}
