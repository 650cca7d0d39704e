package meter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

// markDirty has the counts of a month copied to the ledger.
func (m *Meter) markDirty(key month, tier account.Tier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty[key] = tier
}

// copy brings the ledger up to date: the cold calls that wait in Redis, of all
// servers, and the counts that this process has changed.
func (m *Meter) copy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	return errors.Join(m.copyColdCalls(ctx), m.copyUsage(ctx))
}

// copyColdCalls copies what admissions and refunds have left in Redis. They are
// struck off the list only when the ledger has them, so that neither a crash of
// this process nor an outage of the ledger loses a call.
func (m *Meter) copyColdCalls(ctx context.Context) error {
	for {
		waiting, err := m.redis.HRandFieldWithValues(ctx, redis.ColdLedger(), pageSize).Result()
		if err != nil {
			return fmt.Errorf("read cold calls to copy: %w", err)
		}
		if len(waiting) == 0 {
			return nil
		}
		calls := make([]account.ColdCall, 0, len(waiting))
		struck := make([]any, 0, 2*len(waiting))
		for _, entry := range waiting {
			struck = append(struck, entry.Key, entry.Value)
			call, err := decodeCall(entry)
			if err != nil {
				m.logger.Error("cold call cannot be copied", "job", entry.Key, "error", err)
				continue
			}
			calls = append(calls, call)
		}
		if len(calls) > 0 {
			if err := m.ledger.WriteColdCalls(ctx, calls); err != nil {
				return fmt.Errorf("copy cold calls: %w", err)
			}
		}
		if err := copiedScript.Run(ctx, m.redis, []string{redis.ColdLedger()}, struck...).Err(); err != nil {
			return fmt.Errorf("strike copied cold calls: %w", err)
		}
		// Those that came meanwhile are for the next round: under load there are
		// always some, and an insert for each handful would cost more than the calls.
		if len(waiting) < pageSize {
			return nil
		}
	}
}

func decodeCall(entry goredis.KeyValue) (account.ColdCall, error) {
	var v struct {
		Account, Key, Domain, Run, At string
		Refunded                      bool
	}
	if err := json.Unmarshal([]byte(entry.Value), &v); err != nil {
		return account.ColdCall{}, err
	}
	ms, err := strconv.ParseInt(v.At, 10, 64)
	if err != nil {
		return account.ColdCall{}, err
	}
	return account.ColdCall{
		JobID: entry.Key, RunID: v.Run, AccountID: v.Account, KeyID: v.Key, Domain: v.Domain,
		At: time.UnixMilli(ms).UTC(), Refunded: v.Refunded,
	}, nil
}

// copyUsage copies the counts that have changed. A count that Redis has lost is
// not copied, or the ledger would lose it too.
func (m *Meter) copyUsage(ctx context.Context) error {
	m.mu.Lock()
	dirty := m.dirty
	m.dirty = make(map[month]account.Tier)
	m.mu.Unlock()
	months := make([]month, 0, len(dirty))
	for key := range dirty {
		months = append(months, key)
	}
	for len(months) > 0 {
		page := months[:min(pageSize, len(months))]
		if err := m.copyUsagePage(ctx, page, dirty); err != nil {
			for _, key := range months {
				m.markDirtyAgain(key, dirty[key])
			}
			return err
		}
		months = months[len(page):]
	}
	return nil
}

func (m *Meter) copyUsagePage(ctx context.Context, page []month, tiers map[month]account.Tier) error {
	// The time is taken before the counts are read, so that of two servers the
	// one that read later has the later row, as far as their clocks agree.
	now := m.now()
	read, err := m.read(ctx, page)
	if err != nil {
		return fmt.Errorf("read usage to copy: %w", err)
	}
	rows := make([]account.MonthUsage, 0, len(page))
	for i, key := range page {
		if read[i].missing {
			continue
		}
		rows = append(rows, account.MonthUsage{
			AccountID: key.account, Period: key.period(), Tier: string(tiers[key]),
			CachedCalls: uint64(read[i].cached), ColdCalls: uint64(read[i].cold), UpdatedAt: now,
		})
	}
	if len(rows) == 0 {
		return nil
	}
	if err := m.ledger.WriteUsage(ctx, rows); err != nil {
		return fmt.Errorf("copy usage: %w", err)
	}
	return nil
}

// markDirtyAgain puts a month back whose copying failed; a tier seen since wins.
func (m *Meter) markDirtyAgain(key month, tier account.Tier) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty[key] == "" {
		m.dirty[key] = tier
	}
}
