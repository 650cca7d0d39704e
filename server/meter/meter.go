// Package meter enforces the limits of accounts and counts their calls.
//
// It has the limits of plans and breakers. It admits cold calls with one atomic script. It
// counts cached calls in memory and adds them to Redis every 100 ms. It copies all counts
// to a [Ledger].
//
// Redis has the authoritative counts. If Redis has no counts for an account, the meter
// first restores them from the ledger. So a loss of Redis data does not reset a budget.
package meter

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"

	"companyscore/internal/account"
	"companyscore/internal/flush"
	"companyscore/internal/queue"
)

var (
	//go:embed charge.lua
	chargeLua string
	//go:embed admit.lua
	admitLua string
	//go:embed replay.lua
	replayLua string
	//go:embed refund.lua
	refundLua string
	//go:embed bulk.lua
	bulkLua string
	//go:embed bulk_admit.lua
	bulkAdmitLua string
	//go:embed bulk_open.lua
	bulkOpenLua string
	//go:embed bulk_replay.lua
	bulkReplayLua string
	//go:embed bulk_refund.lua
	bulkRefundLua string
	//go:embed refill.lua
	refillLua string
	//go:embed count.lua
	countLua string
	//go:embed copied.lua
	copiedLua string

	admitScript      = queue.Script(chargeLua + admitLua)
	replayScript     = queue.Script(chargeLua + replayLua)
	refundScript     = queue.Script(chargeLua + refundLua)
	bulkAdmitScript  = queue.Script(chargeLua + bulkLua + bulkAdmitLua)
	bulkOpenScript   = queue.Script(chargeLua + bulkLua + bulkOpenLua)
	bulkReplayScript = queue.Script(chargeLua + bulkLua + bulkReplayLua)
	bulkRefundScript = queue.Script(chargeLua + bulkLua + bulkRefundLua)

	refillScript = goredis.NewScript(refillLua)
	countScript  = goredis.NewScript(countLua)
	copiedScript = goredis.NewScript(copiedLua)
)

const (
	// flushInterval is the time between two writes of cached calls to Redis.
	flushInterval = 100 * time.Millisecond
	// refundInterval is the time between two rounds of refunds, and refundWaitMost the
	// longest backoff while Redis does not answer.
	refundInterval = 100 * time.Millisecond
	refundWaitMost = time.Second
	// bulksInterval is the time between two searches for calls whose server ended before their jobs were open.
	bulksInterval = 5 * time.Second
	// copyInterval is the time between two copies of changes to the ledger.
	copyInterval = 700 * time.Millisecond
	// copyWaitMost is the longest backoff while the ledger does not answer.
	copyWaitMost = 10 * time.Second
	// callTimeout bounds one exchange with Redis or one read of the ledger.
	callTimeout = 5 * time.Second
	// copyTimeout bounds one round of copying.
	copyTimeout = 30 * time.Second
	// closeTimeout bounds the last writes of Close.
	closeTimeout = 5 * time.Second
	// readersMax bounds the reads of counts at one time.
	readersMax = 1 << 30
	// pageSize bounds the accounts or calls of one exchange.
	pageSize = 1000
	// monthsKept is the number of months that counts stay in Redis after their month.
	monthsKept = 14
)

// Meter admits cold calls and counts calls. It may be used concurrently.
type Meter struct {
	redis  goredis.UniversalClient
	ledger Ledger
	limits Limits
	logger *slog.Logger
	now    func() time.Time
	// server names this process in the counts of cached calls.
	server string

	refills singleflight.Group

	// moving is held in full by a flush, which moves calls to Redis, and with a weight of 1 by a read of
	// counts. Unlike a mutex it is not waited for longer than a context lasts.
	moving *semaphore.Weighted
	// pending are the calls of a flush that is in flight or may have failed, flushCount its number.
	pending    map[month]*tally
	flushCount uint64

	mu      sync.RWMutex
	tallies map[month]*tally // cached calls of the next flush
	quotas  map[month]*quota
	dirty   map[month]account.Plan

	refunds *flush.Buffer[refund] // of calls whose outcome is unknown
	loops   []*flush.Loop
}

// month is one calendar month of one account.
type month struct {
	account string
	index   int // months since the year 0
}

// tally counts calls of one account and month.
type tally struct {
	calls atomic.Int64
	plan  account.Plan
	quota *quota // of the account, nil if it is not in memory
}

// New returns a meter and starts its goroutines. The caller owns rdb and must close it after
// the meter. limits must have every plan. Close writes the last counts.
func New(rdb goredis.UniversalClient, ledger Ledger, limits Limits, logger *slog.Logger) *Meter {
	m := newMeter(rdb, ledger, limits, logger)
	repeat := func(trouble string, interval, longest time.Duration, f func(context.Context) error) {
		m.loops = append(m.loops, flush.Start(flush.Config{Interval: interval, Longest: longest, Trouble: trouble, Logger: logger}, f))
	}
	repeat("cached calls not counted yet", flushInterval, 0, m.flush)
	repeat("calls not refunded yet", refundInterval, refundWaitMost, m.refunds.Flush)
	repeat("jobs of calls for many companies are not open yet", bulksInterval, copyWaitMost, m.openBulks)
	repeat("quotas may be out of date", quotaInterval, copyWaitMost, m.refreshQuotas)
	repeat("usage ledger is behind", copyInterval, copyWaitMost, m.copy)
	return m
}

func newMeter(rdb goredis.UniversalClient, ledger Ledger, limits Limits, logger *slog.Logger) *Meter {
	var id [8]byte
	rand.Read(id[:])
	m := &Meter{
		redis: rdb, ledger: ledger, limits: limits, logger: logger, now: time.Now,
		server: "server:" + hex.EncodeToString(id[:]), moving: semaphore.NewWeighted(readersMax),
		tallies: make(map[month]*tally), quotas: make(map[month]*quota), dirty: make(map[month]account.Plan),
	}
	m.refunds = &flush.Buffer[refund]{Max: refundsMost, PageMax: 1, Write: func(ctx context.Context, refunds []refund) error {
		return m.refund(ctx, refunds[0])
	}}
	return m
}

// Limits returns the limits of a plan.
func (m *Meter) Limits(plan account.Plan) PlanLimits { return m.limits.Plans[plan] }

// Close stops the meter and writes pending refunds and counts, within closeTimeout. It logs
// what it cannot write. The meter must not be used afterwards.
func (m *Meter) Close() {
	for _, l := range m.loops {
		l.Stop()
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := m.refunds.Flush(ctx); err != nil {
		for _, r := range m.refunds.Drain() {
			m.logLostRefund(r)
		}
	}
	// The first flush may only restore a missing count; the second one then adds the calls.
	if err := errors.Join(m.flush(ctx), m.flush(ctx), m.copy(ctx)); err != nil {
		m.logger.Error("last counts not written", "err", err)
	}
}

func monthOf(accountID string, t time.Time) month {
	year, m, _ := t.UTC().Date()
	return month{accountID, year*12 + int(m) - 1}
}

// start returns the first instant of the month, in UTC.
func (m month) start() time.Time {
	return time.Date(m.index/12, time.Month(m.index%12+1), 1, 0, 0, 0, 0, time.UTC)
}

func (m month) end() time.Time { return m.start().AddDate(0, 1, 0) }

// period returns the month as YYYY-MM.
func (m month) period() string { return m.start().Format("2006-01") }

// keep returns the time to live of the month's counts, from now, at least one hour.
func (m month) keep(now time.Time) time.Duration {
	return max(m.end().AddDate(0, monthsKept, 0).Sub(now), time.Hour)
}
