package redis

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var (
	//go:embed take_lock.lua
	takeLua string
	//go:embed renew_lock.lua
	renewLua string
	//go:embed release_lock.lua
	releaseLua string

	takeScript    = goredis.NewScript(takeLua)
	renewScript   = goredis.NewScript(renewLua)
	releaseScript = goredis.NewScript(releaseLua)
)

var (
	// ErrLocked is returned if another holder has the lock.
	ErrLocked = errors.New("the lock is held")
	// ErrLockLost is returned if another holder has taken the lock or Redis has lost it.
	ErrLockLost = errors.New("the lock was lost: Redis did not answer or lost the key")
)

// Lock is a lock that this process has taken. A holder that pauses for longer than its lease does not know that it has lost the lock.
// So what the lock protects must reject a write with a fence smaller than the last one.
type Lock struct {
	rdb   goredis.UniversalClient
	key   string
	lease time.Duration
	fence int64
}

// TakeLock takes the lock of a key for a lease. It returns ErrLocked if it is held. All callers of a key must use the same lease.
func TakeLock(ctx context.Context, rdb goredis.UniversalClient, key string, lease time.Duration) (*Lock, error) {
	fence, err := takeScript.Run(ctx, rdb, []string{key}, lease.Milliseconds()).Int64()
	if err != nil {
		return nil, fmt.Errorf("take lock %s: %w", key, err)
	}
	if fence == 0 {
		return nil, ErrLocked
	}
	return &Lock{rdb: rdb, key: key, lease: lease, fence: fence}, nil
}

// Fence returns a number that is larger than those of all earlier holders.
func (l *Lock) Fence() int64 { return l.fence }

// Renew begins a new lease. It returns ErrLockLost if this process has the lock no longer. After another error it may still have it.
func (l *Lock) Renew(ctx context.Context) error {
	held, err := renewScript.Run(ctx, l.rdb, []string{l.key}, l.fence, l.lease.Milliseconds()).Bool()
	if err != nil {
		return fmt.Errorf("renew lock %s: %w", l.key, err)
	}
	if !held {
		return ErrLockLost
	}
	return nil
}

// Release releases the lock. It changes nothing if this process has it no longer.
func (l *Lock) Release(ctx context.Context) error {
	if err := releaseScript.Run(ctx, l.rdb, []string{l.key}, l.fence).Err(); err != nil {
		return fmt.Errorf("release lock %s: %w", l.key, err)
	}
	return nil
}
