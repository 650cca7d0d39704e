package meter

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"companyscore/internal/account"
)

const (
	// quotaInterval is the time between two reads of the counts of accounts in use.
	quotaInterval = time.Second
	// quotaIdle is the number of reads after which the counts of an unused account are dropped.
	quotaIdle = 600
)

// Quota is the number of calls of an account in a month. It includes all calls of this process, and
// those of other servers after about a second.
type Quota struct{ Cold, Cached int64 }

// quota is a Quota in memory.
type quota struct {
	plan         account.Plan
	cold, cached atomic.Int64
	known        atomic.Bool   // read at least once
	used         atomic.Bool   // asked for since the last read
	idle         int           // reads since it was asked for; only for the goroutine that reads
	tried        chan struct{} // closed after the first read, whether it failed or not
}

// Quota returns the calls of the month of now from memory. known is false if LoadQuota must read
// them first.
func (m *Meter) Quota(acct account.Account, now time.Time) (q Quota, known bool) {
	m.mu.RLock()
	kept := m.quotas[monthOf(acct.ID, now)]
	m.mu.RUnlock()
	if kept == nil || !kept.known.Load() {
		return Quota{}, false
	}
	if !kept.used.Load() { // a write by every request would slow down the others
		kept.used.Store(true)
	}
	return Quota{Cold: kept.cold.Load(), Cached: kept.cached.Load()}, true
}

// LoadQuota reads the calls of the month of now and keeps them for Quota. The first call for an account
// reads them and the others wait for it. After an error the meter reads them in the background, and
// LoadQuota returns an error at once until then.
func (m *Meter) LoadQuota(ctx context.Context, acct account.Account, now time.Time) (Quota, error) {
	key := monthOf(acct.ID, now)
	m.mu.Lock()
	kept := m.quotas[key]
	first := kept == nil
	if first {
		kept = &quota{plan: acct.Plan, tried: make(chan struct{})}
		m.quotas[key] = kept
		if t := m.tallies[key]; t != nil {
			t.quota = kept
		}
	}
	kept.used.Store(true)
	m.mu.Unlock()
	if first {
		err := m.readQuotas(ctx, []month{key}, now)
		close(kept.tried)
		if err != nil {
			return Quota{}, fmt.Errorf("read usage of account %s: %w", acct.ID, err)
		}
	}
	select {
	case <-kept.tried:
	case <-ctx.Done():
		return Quota{}, ctx.Err()
	}
	q, known := m.Quota(acct, now)
	if !known {
		return Quota{}, fmt.Errorf("usage of account %s is not read yet", acct.ID)
	}
	return q, nil
}

// setCold sets the cold calls of an account after an exchange with Redis.
func (m *Meter) setCold(key month, cold int64) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if kept := m.quotas[key]; kept != nil {
		kept.cold.Store(cold)
	}
}

// refreshQuotas reads the counts of the accounts that were asked for since the last call, and drops
// those of other accounts and of past months.
func (m *Meter) refreshQuotas(ctx context.Context) error {
	now := m.now()
	var keys []month
	m.mu.Lock()
	for key, kept := range m.quotas {
		if kept.idle++; kept.used.Swap(false) {
			kept.idle = 0
			keys = append(keys, key)
		}
		if kept.idle > quotaIdle || kept.idle > 0 && key.end().Before(now) {
			delete(m.quotas, key)
		}
	}
	m.mu.Unlock()
	var faults []error
	for len(keys) > 0 {
		page := keys[:min(pageSize, len(keys))]
		keys = keys[len(page):]
		if err := m.readQuotas(ctx, page, now); err != nil {
			for _, key := range page { // the next call reads them again
				m.mu.RLock()
				if kept := m.quotas[key]; kept != nil {
					kept.used.Store(true)
				}
				m.mu.RUnlock()
			}
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// readQuotas reads counts from Redis into memory. It restores counts that Redis has lost.
func (m *Meter) readQuotas(ctx context.Context, keys []month, now time.Time) error {
	quotas := make(map[month]*quota, len(keys))
	m.mu.RLock()
	for _, key := range keys {
		if kept := m.quotas[key]; kept != nil {
			quotas[key] = kept
		}
	}
	m.mu.RUnlock()
	plan := func(key month) account.Plan { return quotas[key].plan }
	return m.current(ctx, slices.Collect(maps.Keys(quotas)), plan, now, func(key month, found counts) {
		m.mu.Lock() // so that no call is counted between the sum and its use
		defer m.mu.Unlock()
		kept := quotas[key]
		kept.cold.Store(found.cold)
		kept.cached.Store(found.cached + m.unflushed(key, found.lastFlush))
		kept.known.Store(true)
	})
}

// unflushed returns the cached calls of this process that a count in Redis does not include.
// lastFlush is the number of the last flush that it includes. The caller holds moving and mu.
func (m *Meter) unflushed(key month, lastFlush uint64) (calls int64) {
	if t := m.pending[key]; t != nil && lastFlush < m.flushCount {
		calls += t.calls.Load()
	}
	if t := m.tallies[key]; t != nil {
		calls += t.calls.Load()
	}
	return calls
}
