package meter

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

// CountCached counts one call that was answered with a stored score, at now. It makes no
// network call. The count reaches Redis within about 100 ms, or after an outage of Redis.
// CountCached keeps acct.ID, so the caller must not reuse its memory.
func (m *Meter) CountCached(acct account.Account, now time.Time) {
	key := monthOf(acct.ID, now)
	m.mu.RLock()
	t := m.tallies[key]
	if t != nil {
		t.calls.Add(1) // under the lock, so that the next batch includes this call
	}
	m.mu.RUnlock()
	if t == nil {
		m.addTally(key, acct.Tier, 1)
	}
}

func (m *Meter) addTally(key month, tier account.Tier, calls int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.tallies[key]
	if t == nil {
		t = &tally{tier: tier}
		m.tallies[key] = t
	}
	t.calls.Add(calls)
}

// flush adds the cached calls to Redis. It resends a batch that may have failed, with the
// same number, before it makes the next one.
func (m *Meter) flush(ctx context.Context) error {
	m.batchMu.Lock()
	defer m.batchMu.Unlock()
	if len(m.batch) == 0 {
		m.mu.Lock()
		if len(m.tallies) > 0 {
			m.batch, m.tallies = m.tallies, make(map[month]*tally)
			m.batchCount++
		}
		m.mu.Unlock()
	}
	var faults []error
	page := make([]month, 0, min(len(m.batch), pageSize))
	for key := range m.batch {
		if page = append(page, key); len(page) == pageSize {
			faults = append(faults, m.flushPage(ctx, page))
			page = page[:0]
		}
	}
	if len(page) > 0 {
		faults = append(faults, m.flushPage(ctx, page))
	}
	return errors.Join(faults...)
}

// flushPage adds the calls of the given months to Redis and removes them from the batch. If
// Redis has no count of a month, flushPage restores the count from the ledger and moves the
// calls to the next batch. Calls whose write failed stay in the batch.
func (m *Meter) flushPage(ctx context.Context, page []month) error {
	now := m.now()
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pipe := m.redis.Pipeline()
	replies := make([]*goredis.Cmd, len(page))
	for i, key := range page {
		replies[i] = countScript.Eval(callCtx, pipe, []string{redis.CachedMonth(key.account, key.period())},
			m.batch[key].calls.Load(), m.server, m.batchCount, key.keep(now).Milliseconds())
	}
	_, err := pipe.Exec(callCtx)
	var faults []error
	for i, key := range page {
		counted, replyErr := replies[i].Int()
		if replyErr != nil {
			continue // err is the first of these errors
		}
		t := m.batch[key]
		delete(m.batch, key)
		if counted == 1 {
			m.markDirty(key, t.tier)
			continue
		}
		m.addTally(key, t.tier, t.calls.Load())
		faults = append(faults, m.refill(ctx, key, t.tier, now))
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("count cached calls: %w", err))
	}
	return errors.Join(faults...)
}
