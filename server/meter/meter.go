package meter

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/server/account"
)

var (
	//go:embed admit.lua
	admitLua string
	//go:embed refund.lua
	refundLua string
	//go:embed add.lua
	addLua string

	admitScript  = goredis.NewScript(queue.OpenRunLua + admitLua)
	refundScript = goredis.NewScript(refundLua)
	addScript    = goredis.NewScript(addLua)
)

const (
	flushEvery  = 100 * time.Millisecond // cached calls to Redis
	ledgerEvery = time.Second            // counters and cold calls to ClickHouse
	storeWait   = 5 * time.Second
	// counterKept is how long a month's counters stay in Redis after the month.
	counterKept = 35 * 24 * time.Hour
	// coldPendingMax bounds the cold calls that wait for ClickHouse.
	coldPendingMax = 100_000
)

// Rejection says why a cold call was not admitted.
type Rejection string

// The reasons to reject, as callers see them.
const (
	MonthlyCap     Rejection = "monthly_cap"
	PerKeyCold1h   Rejection = "per_key_cold_1h"
	AccountCold24h Rejection = "account_cold_24h"
)

// Rejected is the error of a call that was not admitted. It was not charged.
type Rejected struct {
	Reason Rejection
	// RetryAfter is when the same call could be admitted, in whole seconds, at least one.
	RetryAfter time.Duration
}

// Error describes the rejection for a log.
func (r *Rejected) Error() string {
	return fmt.Sprintf("cold call rejected: %s, room in %s", r.Reason, r.RetryAfter)
}

// Admission is a cold call that was admitted and charged.
type Admission struct {
	JobID, RunID string
	// NewRun says that the run was opened by this call and must be enqueued.
	NewRun    bool
	CreatedAt time.Time
}

// Meter admits cold calls and counts calls. It is safe for concurrent use.
type Meter struct {
	rdb    goredis.UniversalClient
	ledger Ledger
	limits Limits
	logger *slog.Logger
	now    func() time.Time

	flushMu sync.Mutex // held while counts are on their way to Redis

	mu      sync.Mutex
	pending map[month]uint64       // cached calls not in Redis yet
	dirty   map[month]account.Tier // months whose totals are not in the ledger yet
	cold    []ColdCall             // not in the ledger yet

	stop chan struct{}
	done chan struct{}
}

// month is one calendar month of one account.
type month struct{ account, period string }

// New returns a meter. Close it to have the last counts written.
func New(rdb goredis.UniversalClient, ledger Ledger, limits Limits, logger *slog.Logger) *Meter {
	m := &Meter{
		rdb: rdb, ledger: ledger, limits: limits, logger: logger, now: time.Now,
		pending: make(map[month]uint64), dirty: make(map[month]account.Tier),
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	go m.write()
	return m
}

// Limits returns the limits of a tier.
func (m *Meter) Limits(tier account.Tier) Tier { return m.limits.Tiers[tier] }

// Admit charges a cold call for a domain and makes its job and, unless one is
// under way, its run. The error is a *Rejected when a limit is reached; after any
// error nothing is charged.
func (m *Meter) Admit(ctx context.Context, who account.Caller, domain string) (Admission, error) {
	now := m.now()
	a := Admission{JobID: uuid.NewString(), CreatedAt: now.Truncate(time.Millisecond).UTC()}
	keys := append(m.coldKeys(who, now), redis.Job(a.JobID), redis.InFlight(domain), redis.OpenRuns())
	budget, accountMax := int64(-1), int64(-1)
	if n := m.limits.Tiers[who.Account.Tier].ColdCallsIncluded; n != nil {
		budget, accountMax = *n, *n*m.limits.Breakers.ColdPerAccount.BudgetMultiple
	}
	perKey, perAccount := m.limits.Breakers.ColdPerKey, m.limits.Breakers.ColdPerAccount
	args := []any{
		now.UnixMilli(), budget, perKey.Limit, perKey.Window.Milliseconds(), accountMax, perAccount.Window.Milliseconds(),
		nextMonth(now).Add(counterKept).UnixMilli(), a.JobID, uuid.Must(uuid.NewV7()).String(), who.Account.ID, who.KeyID,
		domain, now.Add(m.limits.JobTTL).UnixMilli(), redis.Run(""),
	}
	reply, err := admitScript.Run(ctx, m.rdb, keys, args...).Slice()
	if err == nil && reply[0] == "unknown" {
		if err = m.rebuild(ctx, who, now); err == nil {
			reply, err = admitScript.Run(ctx, m.rdb, keys, args...).Slice()
		}
	}
	if err != nil {
		// The script may have run although its answer was lost.
		m.refund(ctx, keys[:4], a.JobID)
		return Admission{}, fmt.Errorf("admit cold call: %w", err)
	}
	switch outcome := Rejection(reply[0].(string)); outcome {
	case MonthlyCap:
		return Admission{}, &Rejected{outcome, wholeSeconds(nextMonth(now).Sub(now))}
	case PerKeyCold1h, AccountCold24h:
		return Admission{}, &Rejected{outcome, wholeSeconds(time.Duration(reply[1].(int64)) * time.Millisecond)}
	case "admitted":
	default:
		return Admission{}, fmt.Errorf("admit cold call: counters of account %s could not be rebuilt", who.Account.ID)
	}
	a.RunID, a.NewRun = reply[1].(string), reply[2].(int64) == 1
	m.noteCold(who, ColdCall{JobID: a.JobID, RunID: a.RunID, AccountID: who.Account.ID, KeyID: who.KeyID, Domain: domain, At: a.CreatedAt}, now)
	return a, nil
}

func (m *Meter) coldKeys(who account.Caller, now time.Time) []string {
	return []string{
		redis.ColdMonth(who.Account.ID, redis.Period(now)), redis.ColdKeyWindow(who.KeyID), redis.ColdAccountWindow(who.Account.ID),
	}
}

func (m *Meter) refund(ctx context.Context, keys []string, jobID string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeWait)
	defer cancel()
	if err := refundScript.Run(ctx, m.rdb, keys, jobID).Err(); err != nil {
		m.logger.Error("a call that failed to start may have been charged", "job", jobID, "err", err)
	}
}

// rebuild restores the cold counters of an account that Redis does not have, at
// the start of a month or after it lost its data.
func (m *Meter) rebuild(ctx context.Context, who account.Caller, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	row, err := m.ledger.Usage(ctx, who.Account.ID, redis.Period(now))
	if err != nil {
		return fmt.Errorf("rebuild counters: %w", err)
	}
	since := now.Add(-max(m.limits.Breakers.ColdPerAccount.Window, m.limits.Breakers.ColdPerKey.Window))
	calls, err := m.ledger.ColdCallsSince(ctx, who.Account.ID, since)
	if err != nil {
		return fmt.Errorf("rebuild counters: %w", err)
	}
	// The total may be a second older than the calls.
	recent := uint64(0)
	for _, c := range calls {
		if !c.At.Before(monthStart(now)) {
			recent++
		}
	}
	count := max(row.ColdCalls, recent)
	_, err = m.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		for _, c := range calls {
			entry := goredis.Z{Score: float64(c.At.UnixMilli()), Member: c.JobID}
			p.ZAdd(ctx, redis.ColdAccountWindow(c.AccountID), entry)
			p.PExpire(ctx, redis.ColdAccountWindow(c.AccountID), m.limits.Breakers.ColdPerAccount.Window)
			p.ZAdd(ctx, redis.ColdKeyWindow(c.KeyID), entry)
			p.PExpire(ctx, redis.ColdKeyWindow(c.KeyID), m.limits.Breakers.ColdPerKey.Window)
		}
		p.SetNX(ctx, redis.ColdMonth(who.Account.ID, redis.Period(now)), count, nextMonth(now).Add(counterKept).Sub(now))
		return nil
	})
	if err != nil {
		return fmt.Errorf("rebuild counters: %w", err)
	}
	return nil
}

func (m *Meter) noteCold(who account.Caller, call ColdCall, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirty[month{who.Account.ID, redis.Period(now)}] = who.Account.Tier
	if len(m.cold) >= coldPendingMax {
		m.logger.Error("ledger is too far behind, a cold call stays out of it", "job", call.JobID)
		return
	}
	m.cold = append(m.cold, call)
}

// CountCached counts one call answered with a stored score. It costs no network
// call; the count reaches Redis within 100 ms, or is lost if the process dies first.
func (m *Meter) CountCached(acct account.Account) {
	key := month{acct.ID, redis.Period(m.now())}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending[key]++
	m.dirty[key] = acct.Tier
}

// Usage is what an account consumed in the current month.
type Usage struct {
	Period                 string // YYYY-MM
	CachedCalls, ColdCalls uint64
	LastReset, NextReset   time.Time
}

// Usage returns the counters of the running month. Calls counted by this process
// before are included, those of others within 100 ms.
func (m *Meter) Usage(ctx context.Context, acct account.Account) (Usage, error) {
	now := m.now()
	if err := m.flush(ctx); err != nil {
		return Usage{}, err
	}
	key := month{acct.ID, redis.Period(now)}
	cached, cold, err := m.totals(ctx, key)
	if err != nil {
		return Usage{}, err
	}
	return Usage{Period: key.period, CachedCalls: cached, ColdCalls: cold, LastReset: monthStart(now), NextReset: nextMonth(now)}, nil
}

// totals reads both counters of a month from Redis, and from the ledger what
// Redis does not have.
func (m *Meter) totals(ctx context.Context, key month) (cached, cold uint64, err error) {
	var row UsageRow
	cached, cachedErr := m.rdb.Get(ctx, redis.CachedMonth(key.account, key.period)).Uint64()
	cold, coldErr := m.rdb.Get(ctx, redis.ColdMonth(key.account, key.period)).Uint64()
	if errors.Is(cachedErr, goredis.Nil) || errors.Is(coldErr, goredis.Nil) {
		if row, err = m.ledger.Usage(ctx, key.account, key.period); err != nil {
			return 0, 0, fmt.Errorf("read usage: %w", err)
		}
	}
	if errors.Is(cachedErr, goredis.Nil) {
		cached, cachedErr = row.CachedCalls, nil
	}
	if errors.Is(coldErr, goredis.Nil) {
		cold, coldErr = row.ColdCalls, nil
	}
	if err := errors.Join(cachedErr, coldErr); err != nil {
		return 0, 0, fmt.Errorf("read usage: %w", err)
	}
	return cached, cold, nil
}

// Close writes what is not written yet and ends the meter's goroutine.
func (m *Meter) Close() {
	close(m.stop)
	<-m.done
}

func (m *Meter) write() {
	defer close(m.done)
	toRedis, toLedger := time.NewTicker(flushEvery), time.NewTicker(ledgerEvery)
	defer toRedis.Stop()
	defer toLedger.Stop()
	report := func(what string, err error) {
		if err != nil {
			m.logger.Warn(what+" not written, will try again", "err", err)
		}
	}
	for {
		select {
		case <-toRedis.C:
			report("cached calls", m.flush(context.Background()))
		case <-toLedger.C:
			report("ledger", m.copyToLedger())
		case <-m.stop:
			report("cached calls", m.flush(context.Background()))
			report("ledger", m.copyToLedger())
			return
		}
	}
}

// flush moves the counts of cached calls to Redis. What cannot be moved is kept.
func (m *Meter) flush(ctx context.Context) error {
	m.flushMu.Lock()
	defer m.flushMu.Unlock()
	m.mu.Lock()
	counts := m.pending
	if len(counts) > 0 {
		m.pending = make(map[month]uint64)
	}
	m.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	var faults []error
	for key, n := range counts {
		if err := m.add(ctx, key, n); err != nil {
			faults = append(faults, err)
			m.mu.Lock()
			m.pending[key] += n
			m.mu.Unlock()
		}
	}
	return errors.Join(faults...)
}

func (m *Meter) add(ctx context.Context, key month, n uint64) error {
	start, err := time.Parse("2006-01", key.period)
	if err != nil {
		return err
	}
	keep := nextMonth(start).Add(counterKept)
	name := redis.CachedMonth(key.account, key.period)
	for range 2 {
		total, err := addScript.Run(ctx, m.rdb, []string{name}, n, keep.UnixMilli()).Int64()
		if err != nil {
			return fmt.Errorf("count cached calls: %w", err)
		}
		if total >= 0 {
			return nil
		}
		before, err := m.ledger.Usage(ctx, key.account, key.period)
		if err != nil {
			return fmt.Errorf("rebuild counter of cached calls: %w", err)
		}
		if err := m.rdb.SetNX(ctx, name, before.CachedCalls, keep.Sub(m.now())).Err(); err != nil {
			return fmt.Errorf("rebuild counter of cached calls: %w", err)
		}
	}
	return fmt.Errorf("counter of cached calls of account %s does not stay", key.account)
}

// copyToLedger writes new cold calls and changed totals to the ledger. What
// cannot be written is kept for the next time.
func (m *Meter) copyToLedger() error {
	m.mu.Lock()
	calls, dirty := m.cold, m.dirty
	m.cold, m.dirty = nil, make(map[month]account.Tier)
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), storeWait)
	defer cancel()
	var faults []error
	if len(calls) > 0 {
		if err := m.ledger.WriteColdCalls(ctx, calls); err != nil {
			faults = append(faults, err)
			m.mu.Lock()
			m.cold = append(calls, m.cold...)
			m.mu.Unlock()
		}
	}
	if err := m.copyTotals(ctx, dirty); err != nil {
		faults = append(faults, err)
		m.mu.Lock()
		maps.Copy(dirty, m.dirty) // a tier seen meanwhile is the newer one
		m.dirty = dirty
		m.mu.Unlock()
	}
	return errors.Join(faults...)
}

func (m *Meter) copyTotals(ctx context.Context, dirty map[month]account.Tier) error {
	var rows []UsageRow
	for key, tier := range dirty {
		cached, cold, err := m.totals(ctx, key)
		if err != nil {
			return err
		}
		rows = append(rows, UsageRow{AccountID: key.account, Period: key.period, Tier: string(tier), CachedCalls: cached, ColdCalls: cold, UpdatedAt: m.now()})
	}
	if len(rows) == 0 {
		return nil
	}
	return m.ledger.WriteUsage(ctx, rows)
}

func monthStart(t time.Time) time.Time {
	y, mon, _ := t.UTC().Date()
	return time.Date(y, mon, 1, 0, 0, 0, 0, time.UTC)
}

func nextMonth(t time.Time) time.Time { return monthStart(t).AddDate(0, 1, 0) }

// wholeSeconds rounds up, so that a caller who waits that long finds room.
func wholeSeconds(d time.Duration) time.Duration {
	return max((d + time.Second - 1).Truncate(time.Second), time.Second)
}
