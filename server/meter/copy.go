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
	"companyscore/internal/table"
)

// markDirty queues the counts of a month for the next copy to the ledger.
func (m *Meter) markDirty(key month, plan account.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty[key] = plan
}

// copy writes to the ledger the cold calls that wait in Redis, of all servers, and the
// counts that this process changed.
func (m *Meter) copy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	return errors.Join(m.copyColdCalls(ctx), m.copyUsage(ctx))
}

// copyColdCalls copies the charged and refunded cold calls that wait in Redis. It removes
// them from Redis only after the write to the ledger, so a crash or an outage of the ledger
// loses no call. It logs and removes a call that it cannot decode.
func (m *Meter) copyColdCalls(ctx context.Context) error {
	for {
		waiting, err := m.redis.HRandFieldWithValues(ctx, redis.ColdLedger(), pageSize).Result()
		if err != nil {
			return fmt.Errorf("read cold calls to copy: %w", err)
		}
		if len(waiting) == 0 {
			return nil
		}
		calls := make([]table.ColdCall, 0, len(waiting))
		struck := make([]any, 0, 2*len(waiting))
		for _, entry := range waiting {
			struck = append(struck, entry.Key, entry.Value)
			call, err := decodeCall(entry)
			if err != nil {
				m.logger.Error("cold call cannot be copied", "job", entry.Key, "err", err)
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
			return fmt.Errorf("remove copied cold calls: %w", err)
		}
		// Newer calls wait for the next round. Under load there are always some, and many
		// small inserts are expensive.
		if len(waiting) < pageSize {
			return nil
		}
	}
}

func decodeCall(entry goredis.KeyValue) (table.ColdCall, error) {
	var v struct {
		Account, Key, Domain, Run, At string
		Refunded                      bool
	}
	if err := json.Unmarshal([]byte(entry.Value), &v); err != nil {
		return table.ColdCall{}, err
	}
	ms, err := strconv.ParseInt(v.At, 10, 64)
	if err != nil {
		return table.ColdCall{}, err
	}
	return table.ColdCall{
		JobID: entry.Key, RunID: v.Run, AccountID: v.Account, KeyID: v.Key, Domain: v.Domain,
		At: time.UnixMilli(ms).UTC(), Refunded: v.Refunded,
	}, nil
}

// copyUsage copies the changed counts. It skips a count that Redis has lost, since a zero
// would replace the count in the ledger.
func (m *Meter) copyUsage(ctx context.Context) error {
	m.mu.Lock()
	dirty := m.dirty
	m.dirty = make(map[month]account.Plan)
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

func (m *Meter) copyUsagePage(ctx context.Context, page []month, plans map[month]account.Plan) error {
	// now is read before the counts. So, if clocks agree, the row with the later
	// UpdatedAt does not have older counts.
	now := m.now()
	read, err := m.read(ctx, page)
	if err != nil {
		return fmt.Errorf("read usage to copy: %w", err)
	}
	rows := make([]table.MonthUsage, 0, len(page))
	for i, key := range page {
		if read[i].missing {
			continue
		}
		rows = append(rows, table.MonthUsage{
			AccountID: key.account, Period: key.period(), Plan: string(plans[key]),
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

// markDirtyAgain queues a month again after a failed copy. It keeps a plan that was set
// since.
func (m *Meter) markDirtyAgain(key month, plan account.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty[key] == "" {
		m.dirty[key] = plan
	}
}
