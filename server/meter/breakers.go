package meter

import (
	"context"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

// BreakerUse is how far the breakers of an account are used.
type BreakerUse struct {
	// Keys are the cold calls within KeyWindow by key id, of the keys that have any. Each key may have
	// up to KeyLimit.
	Keys      map[string]int64
	KeyLimit  int64
	KeyWindow time.Duration
	// Account is the cold calls of the account within AccountWindow; AccountLimit is nil if the tier
	// is unmetered.
	Account       int64
	AccountLimit  *int64
	AccountWindow time.Duration
}

// Breakers returns how far the breakers of an account and of some of its keys are used.
func (m *Meter) Breakers(ctx context.Context, acct account.Account, keyIDs []string, now time.Time) (BreakerUse, error) {
	b := m.limits.Breakers
	use := BreakerUse{Keys: make(map[string]int64), KeyLimit: b.ColdPerKey.Limit, KeyWindow: b.ColdPerKey.Window,
		AccountWindow: b.ColdPerAccount.Window}
	if cold := m.limits.Plans[acct.Plan].ColdCallsIncluded; cold != nil {
		limit := *cold * b.ColdPerAccount.BudgetMultiple
		use.AccountLimit = &limit
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pipe := m.redis.Pipeline()
	within := func(key string, window time.Duration) *goredis.IntCmd {
		return pipe.ZCount(ctx, key, "("+strconv.FormatInt(now.Add(-window).UnixMilli(), 10), "+inf")
	}
	all := within(redis.ColdAccountWindow(acct.ID), use.AccountWindow)
	counts := make([]*goredis.IntCmd, len(keyIDs))
	for i, id := range keyIDs {
		counts[i] = within(redis.ColdKeyWindow(id), use.KeyWindow)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return BreakerUse{}, fmt.Errorf("read breakers of account %s: %w", acct.ID, err)
	}
	use.Account = all.Val()
	for i, id := range keyIDs {
		if n := counts[i].Val(); n > 0 {
			use.Keys[id] = n
		}
	}
	return use, nil
}
