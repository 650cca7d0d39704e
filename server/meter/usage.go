package meter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

// Usage is the usage of an account in one month, with its limits.
type Usage struct {
	AccountID   string
	Period      string // YYYY-MM
	Plan        account.Plan
	TotalCalls  int64
	ColdCalls   int64
	CachedCalls int64
	LastReset   time.Time
	NextReset   time.Time
	Limits      PlanLimits
}

// Usage returns the counts of the month of now. They include all calls of this process, and
// those of other servers after about 100 ms.
func (m *Meter) Usage(ctx context.Context, acct account.Account, now time.Time) (Usage, error) {
	key := monthOf(acct.ID, now)
	var cached, cold int64
	err := m.current(ctx, []month{key}, func(month) account.Plan { return acct.Plan }, now, func(_ month, found counts) {
		m.mu.RLock()
		defer m.mu.RUnlock()
		cached, cold = found.cached+m.unflushed(key, found.lastFlush), found.cold
	})
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of account %s: %w", acct.ID, err)
	}
	return Usage{
		AccountID: acct.ID, Period: key.period(), Plan: acct.Plan,
		TotalCalls: cached + cold, ColdCalls: cold, CachedCalls: cached,
		LastReset: key.start(), NextReset: key.end(),
		Limits: m.limits.Plans[acct.Plan],
	}, nil
}

// counts are the counts of an account and month in Redis.
type counts struct {
	cached, cold int64
	// lastFlush is the number of the last flush of this process that cached includes.
	lastFlush uint64
	// missing means that Redis lacks at least one of the counts.
	missing bool
}

// current reads the counts of months and calls use with each, while no flush moves calls to Redis. It
// restores counts that Redis has lost and then reads them again.
func (m *Meter) current(ctx context.Context, months []month, plan func(month) account.Plan, now time.Time, use func(month, counts)) error {
	for _, again := range []bool{false, true} {
		if err := m.moving.Acquire(ctx, 1); err != nil {
			return err
		}
		found, err := m.read(ctx, months)
		var missing []month
		for i, counts := range found {
			if counts.missing && !again {
				missing = append(missing, months[i])
			} else {
				use(months[i], counts)
			}
		}
		m.moving.Release(1)
		if err != nil {
			return err
		}
		for _, key := range missing { // which takes longer, and needs no hold of moving
			if err := m.refill(ctx, key, plan(key), now); err != nil {
				return err
			}
		}
		if months = missing; len(months) == 0 {
			break
		}
	}
	return nil
}

// read returns the counts of the months, in their order.
func (m *Meter) read(ctx context.Context, months []month) ([]counts, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pipe := m.redis.Pipeline()
	cached := make([]*goredis.SliceCmd, len(months))
	cold := make([]*goredis.StringCmd, len(months))
	for i, key := range months {
		cached[i] = pipe.HMGet(ctx, redis.CachedMonth(key.account, key.period()), "count", m.server)
		cold[i] = pipe.Get(ctx, redis.ColdMonth(key.account, key.period()))
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, goredis.Nil) {
		return nil, err
	}
	found := make([]counts, len(months))
	for i := range months {
		count, hasCached := cached[i].Val()[0].(string)
		flush, _ := cached[i].Val()[1].(string)
		if !hasCached || errors.Is(cold[i].Err(), goredis.Nil) {
			found[i].missing = true
			continue
		}
		var err, coldErr, flushErr error
		found[i].cached, err = strconv.ParseInt(count, 10, 64)
		found[i].cold, coldErr = cold[i].Int64()
		if flush != "" {
			found[i].lastFlush, flushErr = strconv.ParseUint(flush, 10, 64)
		}
		if err := errors.Join(err, coldErr, flushErr); err != nil {
			return nil, err
		}
	}
	return found, nil
}
