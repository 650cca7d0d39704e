package redis_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

func TestSubscribersLearnOfEventsAndBreaks(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	var alive atomic.Int64
	heard, missed, done := make(chan redis.Event, 100), make(chan struct{}, 100), make(chan struct{})
	go func() {
		defer close(done)
		redis.Subscribe(ctx, client, redis.Listener{Heard: func(e redis.Event) { heard <- e }, Missed: func() { missed <- struct{}{} },
			Alive: func() { alive.Add(1) }})
	}()
	await := func(what string, on <-chan struct{}) {
		t.Helper()
		select {
		case <-on:
		case <-time.After(wait.Max):
			t.Fatalf("it never came that %s", what)
		}
	}
	await("the subscription begins", missed)
	want := []redis.Event{{Kind: redis.KeyChanged, Name: "ab"}, {Kind: redis.ScoreStored, Name: "example.com"},
		{Kind: redis.ScoreStored, Name: "example.org"}}
	if err := errors.Join(
		redis.Announce(t.Context(), client, redis.KeyChanged, "ab"),
		redis.Announce(t.Context(), client, redis.ScoreStored, "example.com", "example.org"),
	); err != nil {
		t.Fatal(err)
	}
	for _, e := range want {
		select {
		case got := <-heard:
			if got != e {
				t.Errorf("heard %v, want %v", got, e)
			}
		case <-time.After(wait.Max):
			t.Fatalf("%v was not heard", e)
		}
	}
	if n := alive.Load(); n < 2 { // the subscription and the first event were before the last
		t.Errorf("the bus was said to be alive %d times", n)
	}
	server.Kill(t)
	await("the break is noticed", missed)
	if err := redis.Announce(t.Context(), client, want[0].Kind, want[0].Name); err != nil {
		t.Fatal(err)
	}
	select {
	case <-heard:
	case <-time.After(wait.Max):
		t.Fatal("nothing is heard after the break")
	}
	stop()
	await("the subscription ends", done)
}

// Events that never end must not keep a server from ending.
func TestSubscriptionEndsAmongEvents(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Each event brings the next, so that there is never a silence.
		next := func() {
			if err := redis.Announce(t.Context(), client, redis.ScoreStored, "example.com"); err != nil {
				t.Error(err)
			}
		}
		redis.Subscribe(ctx, client, redis.Listener{Heard: func(redis.Event) { stop(); next() }, Missed: next})
	}()
	select {
	case <-done:
	case <-time.After(wait.Max):
		t.Fatal("the subscription does not end")
	}
}

// TestSentinelClientsAreTold checks the address by which Subscribe recognises Sentinel clients.
func TestSentinelClientsAreTold(t *testing.T) {
	t.Parallel()
	client := goredis.NewFailoverClient(&goredis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"127.0.0.1:1"}})
	defer client.Close()
	if got := client.Options().Addr; got != "FailoverClient" {
		t.Errorf("the address is %q", got)
	}
}
