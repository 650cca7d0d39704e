package meter

import (
	"context"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

// refill restores the counts of an account and month in Redis from the ledger. It does not
// change counts that exist. Concurrent calls for one account and month share the work.
func (m *Meter) refill(ctx context.Context, of month, plan account.Plan, now time.Time) error {
	done := m.refills.DoChan(of.account+of.period(), func() (any, error) {
		// Other callers may share this, so it does not end with ctx.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		return nil, m.refillNow(ctx, of, plan, now)
	})
	select {
	case result := <-done:
		return result.Err
	case <-ctx.Done():
		return fmt.Errorf("fill in the counts of account %s: %w", of.account, ctx.Err())
	}
}

func (m *Meter) refillNow(ctx context.Context, of month, plan account.Plan, now time.Time) error {
	row, err := m.ledger.Usage(ctx, of.account, of.period())
	if err != nil {
		return fmt.Errorf("read usage of account %s: %w", of.account, err)
	}
	perKey, perAccount := m.limits.Breakers.ColdPerKey.Window, m.limits.Breakers.ColdPerAccount.Window
	window := perKey
	if m.limits.Plans[plan].ColdCallsIncluded != nil {
		window = max(perKey, perAccount)
	}
	calls, err := m.ledger.ColdCallsSince(ctx, of.account, now.Add(-window))
	if err != nil {
		return fmt.Errorf("read cold calls of account %s: %w", of.account, err)
	}
	args := []any{uint64(0), of.keep(now).Milliseconds(), perAccount.Milliseconds(), perKey.Milliseconds()}
	inMonth := uint64(0)
	for _, call := range calls {
		if !call.At.Before(of.start()) && call.At.Before(of.end()) {
			inMonth++
		}
		args = append(args, call.JobID, call.KeyID, call.At.UnixMilli())
	}
	// The row may not include the newest calls.
	args[0] = max(row.ColdCalls, inMonth)
	err = refillScript.Run(ctx, m.redis, []string{
		redis.ColdMonth(of.account, of.period()), redis.ColdAccountWindow(of.account), redis.ColdKeyWindow(""),
	}, args...).Err()
	if err != nil {
		return fmt.Errorf("fill in the cold calls of account %s: %w", of.account, err)
	}
	name := redis.CachedMonth(of.account, of.period())
	_, err = m.redis.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		p.HSetNX(ctx, name, "count", row.CachedCalls)
		p.PExpire(ctx, name, of.keep(now))
		return nil
	})
	if err != nil {
		return fmt.Errorf("fill in the cached calls of account %s: %w", of.account, err)
	}
	return nil
}
