package redis

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed take_lock.lua
	takeLua    string
	takeScript = goredis.NewScript(takeLua)
)

// TakeLock takes a lock for a time, and reports whether it did. It returns false if the
// lock is held. All callers must use the same length: a lock with a later expiry was
// taken before the clock of Redis went back, and counts as free.
func TakeLock(ctx context.Context, rdb goredis.UniversalClient, key, token string, length time.Duration) (bool, error) {
	taken, err := takeScript.Run(ctx, rdb, []string{key}, token, length.Milliseconds()).Bool()
	if err != nil {
		return false, fmt.Errorf("acquire lock %s: %w", key, err)
	}
	return taken, nil
}
