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

// CountCached counts one call that was answered with a stored score, at now. It makes
// no network call and does not fail; the count reaches Redis within a tenth of a
// second when Redis is there, and as soon as it is back when it is not. The
// account's id is kept: it must not be memory that is used again.
func (m *Meter) CountCached(acct account.Account, now time.Time) {
	key := monthOf(acct.ID, now)
	m.mu.RLock()
	t := m.tallies[key]
	if t != nil {
		t.calls.Add(1) // under the lock, so that no batch is made without this call
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

// flush adds the cached calls counted so far to Redis. A batch that may or may
// not have arrived is sent again, under its old number, before the next is made.
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

// flushPage adds the calls of some months and strikes those that arrived off the
// batch. Those whose count is not in Redis did not: the count is filled in, and
// they join the next batch.
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
			continue // err holds the first of these
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
