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

// Kind is the kind of a change.
type Kind string

// The kinds of events and the meaning of Event.Name. Names contain no spaces.
const (
	KeyChanged     Kind = "key"     // hex of the SHA-256 of an API key
	AccountChanged Kind = "account" // id of an account
	ScoreStored    Kind = "score"   // canonical domain
)

// Event reports that cached values of Name are out of date. Events can be lost, so
// caches also need a maximum age.
type Event struct {
	Kind Kind
	Name string
}

// Announce publishes an event for each name, in one message. It ends after busTimeout.
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
	// busSilence is the silence after which the connection is tested with a PING.
	busSilence = 5 * time.Second
)

// Listener receives events. Its functions are called from one goroutine, one at a time.
type Listener struct {
	// Heard is called for each event.
	Heard func(Event)
	// Missed is called before the first event and after each reconnect, since events
	// may have been lost.
	Missed func()
	// Alive is called when all earlier events were received or are covered by Missed:
	// with each message, and every few seconds of silence. It may be nil. It is called
	// for a single server only. A cluster can lose an event between two nodes. With
	// Sentinel, an event can go to a new master while the connection to the old one
	// is still open.
	Alive func()
}

// failoverAddr is the address that go-redis gives to clients that use Sentinel.
const failoverAddr = "FailoverClient"

// Subscribe passes events to a listener until ctx ends. It reconnects after 200 ms.
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

// listen receives events until the connection breaks or ctx ends.
func listen(ctx context.Context, rdb goredis.UniversalClient, l Listener) {
	pubsub := rdb.Subscribe(ctx, Events)
	// A read ignores ctx. Without this, it would end only at the next read timeout.
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
			quiet = true // the reply must arrive before the next timeout
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
