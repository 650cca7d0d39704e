package redis_test

import (
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
)

const lease = time.Minute

func lockClient(t *testing.T) goredis.UniversalClient {
	t.Helper()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// take takes the lock and checks that its fence is larger than before.
func take(t *testing.T, client goredis.UniversalClient, before *redis.Lock) *redis.Lock {
	t.Helper()
	l, err := redis.TakeLock(t.Context(), client, "lock", lease)
	if err != nil {
		t.Fatalf("TakeLock: %v", err)
	}
	if before != nil && l.Fence() <= before.Fence() {
		t.Errorf("fence %d after %d", l.Fence(), before.Fence())
	}
	return l
}

func isHeld(t *testing.T, client goredis.UniversalClient, by *redis.Lock) {
	t.Helper()
	if _, err := redis.TakeLock(t.Context(), client, "lock", lease); !errors.Is(err, redis.ErrLocked) {
		t.Errorf("TakeLock of a held lock = %v, want %v", err, redis.ErrLocked)
	}
	if err := by.Renew(t.Context()); err != nil {
		t.Errorf("Renew by the holder = %v", err)
	}
}

func isLost(t *testing.T, l *redis.Lock) {
	t.Helper()
	if err := l.Renew(t.Context()); !errors.Is(err, redis.ErrLockLost) {
		t.Errorf("Renew of a lost lock = %v, want %v", err, redis.ErrLockLost)
	}
}

// setEnd sets the end of the lease, from now.
func setEnd(t *testing.T, client goredis.UniversalClient, after time.Duration) {
	t.Helper()
	now, err := client.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), "lock", "ends", now.Add(after).UnixMilli()).Err(); err != nil {
		t.Fatal(err)
	}
}

func TestReleasedLockIsFree(t *testing.T) {
	t.Parallel()
	client := lockClient(t)
	var last *redis.Lock
	for range 3 {
		l := take(t, client, last)
		isHeld(t, client, l)
		if last != nil { // a release or a renewal that comes late
			if err := last.Release(t.Context()); err != nil {
				t.Error(err)
			}
			isLost(t, last)
			isHeld(t, client, l)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Error(err)
		}
		isLost(t, l)
		last = l
	}
}

func TestExpiredLockIsFree(t *testing.T) {
	t.Parallel()
	client := lockClient(t)
	first := take(t, client, nil)
	setEnd(t, client, -time.Millisecond)
	if err := first.Renew(t.Context()); err != nil { // no other holder took it
		t.Error(err)
	}
	isHeld(t, client, first)
	setEnd(t, client, -time.Millisecond)
	second := take(t, client, first)
	isLost(t, first)
	isHeld(t, client, second)
}

func TestLockIsFreeAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	client := lockClient(t)
	first := take(t, client, nil)
	setEnd(t, client, lease+time.Hour)
	const ahead = 1 << 50 // a fence from before the clock went back
	if err := client.HSet(t.Context(), "lock", "fence", int64(ahead)).Err(); err != nil {
		t.Fatal(err)
	}
	isLost(t, first)
	second := take(t, client, first)
	if second.Fence() != ahead+1 {
		t.Errorf("fence %d, want %d", second.Fence(), int64(ahead+1))
	}
	isHeld(t, client, second)
}

func TestEmptiedRedisRepeatsNoFence(t *testing.T) {
	t.Parallel()
	client := lockClient(t)
	first := take(t, client, nil)
	for { // a fence is a time in ms
		if now, err := client.Time(t.Context()).Result(); err != nil || now.UnixMilli() > first.Fence() {
			break
		}
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	isLost(t, first)
	second := take(t, client, first)
	isLost(t, first)
	isHeld(t, client, second)
}
