package redis_test

import (
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
)

func TestTakeLock(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	take := func(token string, want bool, holder string) {
		t.Helper()
		taken, err := redis.TakeLock(t.Context(), client, "lock", token, time.Minute)
		if err != nil || taken != want {
			t.Errorf("TakeLock(%s) = %v, %v; want %v", token, taken, err, want)
		}
		if got := client.Get(t.Context(), "lock").Val(); got != holder {
			t.Errorf("the lock is held by %q, want %q", got, holder)
		}
		if left := client.PTTL(t.Context(), "lock").Val(); left <= 0 || left > time.Minute {
			t.Errorf("the lock is held for %s, want at most a minute", left)
		}
	}
	take("a", true, "a")
	take("b", false, "a")
	// The clock of Redis goes back by an hour: the expiry stays where it was.
	if !client.PExpire(t.Context(), "lock", time.Hour+time.Minute).Val() {
		t.Fatal("there is no lock")
	}
	take("c", true, "c")
	take("d", false, "c")
}
