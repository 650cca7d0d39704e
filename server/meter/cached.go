package meter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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
		t.count(1) // under the lock, so that the next flush includes this call
	}
	m.mu.RUnlock()
	if t == nil {
		m.mu.Lock()
		m.tally(key, acct.Plan).count(1)
		m.mu.Unlock()
	}
}

// count adds calls to the tally and to the quota of the account. The caller holds mu.
func (t *tally) count(calls int64) {
	t.calls.Add(calls)
	if t.quota != nil {
		t.quota.cached.Add(calls)
	}
}

// tally returns the tally of a month for the next flush. The caller holds mu for writing.
func (m *Meter) tally(key month, plan account.Plan) *tally {
	t := m.tallies[key]
	if t == nil {
		t = &tally{plan: plan, quota: m.quotas[key]}
		m.tallies[key] = t
	}
	return t
}

// flush adds the cached calls to Redis. It resends a flush that may have failed, with the
// same number, before it makes the next one. If Redis has no count of a month, flush moves its
// calls to the next flush and restores the count from the ledger.
func (m *Meter) flush(ctx context.Context) error {
	missing, err := m.send(ctx)
	faults := []error{err}
	for key, plan := range missing {
		faults = append(faults, m.refill(ctx, key, plan, m.now()))
	}
	return errors.Join(faults...)
}

// send is flush without the restoration. It returns the months of which Redis has no count.
func (m *Meter) send(ctx context.Context) (missing map[month]account.Plan, err error) {
	if err := m.moving.Acquire(ctx, readersMax); err != nil {
		return nil, err
	}
	defer m.moving.Release(readersMax)
	if len(m.pending) == 0 {
		m.mu.Lock()
		if len(m.tallies) > 0 {
			m.pending, m.tallies = m.tallies, make(map[month]*tally)
			m.flushCount++
		}
		m.mu.Unlock()
	}
	missing = make(map[month]account.Plan)
	var faults []error
	for page := range slices.Chunk(slices.Collect(maps.Keys(m.pending)), pageSize) {
		faults = append(faults, m.sendPage(ctx, page, missing))
	}
	return missing, errors.Join(faults...)
}

// sendPage adds the calls of the given months to Redis and removes them from pending. It adds the
// months of which Redis has no count to missing and moves their calls to the next flush. Calls
// whose write failed stay pending.
func (m *Meter) sendPage(ctx context.Context, page []month, missing map[month]account.Plan) error {
	now := m.now()
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pipe := m.redis.Pipeline()
	replies := make([]*goredis.Cmd, len(page))
	for i, key := range page {
		replies[i] = countScript.Eval(callCtx, pipe, []string{redis.CachedMonth(key.account, key.period())},
			m.pending[key].calls.Load(), m.server, m.flushCount, key.keep(now).Milliseconds())
	}
	_, err := pipe.Exec(callCtx)
	for i, key := range page {
		counted, replyErr := replies[i].Int()
		if replyErr != nil {
			continue // err is the first of these errors
		}
		t := m.pending[key]
		delete(m.pending, key)
		if counted == 1 {
			m.markDirty(key, t.plan)
			continue
		}
		m.mu.Lock()
		m.tally(key, t.plan).calls.Add(t.calls.Load()) // the quota has these calls
		m.mu.Unlock()
		missing[key] = t.plan
	}
	if err != nil {
		return fmt.Errorf("count cached calls: %w", err)
	}
	return nil
}
