// Package meter decides what a customer may do and counts what they did.
//
// It holds the table of tiers and breakers, admits cold calls with one atomic
// script, counts cached calls in the process and adds them to Redis every tenth
// of a second, and keeps a lasting copy of all counts in a [Ledger].
//
// Redis is where the counts live. When it has no counters for an account, they
// are filled in from the ledger before anything is counted or admitted, so that
// emptying Redis gives nobody a new budget.
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
	"golang.org/x/sync/singleflight"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/retry"
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
	//go:embed refill.lua
	refillLua string
	//go:embed count.lua
	countLua string
	//go:embed copied.lua
	copiedLua string

	admitScript  = queue.Script(chargeLua + admitLua)
	replayScript = queue.Script(chargeLua + replayLua)
	refundScript = queue.Script(chargeLua + refundLua)
	refillScript = goredis.NewScript(refillLua)
	countScript  = goredis.NewScript(countLua)
	copiedScript = goredis.NewScript(copiedLua)
)

const (
	// flushInterval is how often cached calls are added to Redis.
	flushInterval = 100 * time.Millisecond
	// refundInterval is how often calls whose outcome is unknown are refunded, and
	// refundWaitMost the longest wait between attempts while Redis is away.
	refundInterval = 100 * time.Millisecond
	refundWaitMost = time.Second
	// copyInterval is how often changes are copied to the ledger.
	copyInterval = 700 * time.Millisecond
	// copyWaitMost is the longest wait between attempts while the ledger is away.
	copyWaitMost = 10 * time.Second
	// callTimeout bounds one exchange with Redis or one read of the ledger.
	callTimeout = 5 * time.Second
	// copyTimeout bounds one round of copying.
	copyTimeout = 30 * time.Second
	// closeTimeout bounds the writing of the last counts.
	closeTimeout = 5 * time.Second
	// pageSize is how many accounts or calls one exchange handles.
	pageSize = 1000
	// monthsKept is how long counts are kept after their month.
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

	// batchMu is held for writing while a batch is on its way to Redis.
	batchMu sync.RWMutex
	// batch holds calls that are being added, or whose adding may have failed.
	batch      map[month]*tally
	batchCount uint64

	mu      sync.RWMutex
	tallies map[month]*tally // cached calls not yet in a batch
	dirty   map[month]account.Tier
	refunds []Admission // calls whose outcome is unknown, at most refundsMost

	stop  context.CancelFunc
	loops sync.WaitGroup
}

// month is one calendar month of one account.
type month struct {
	account string
	index   int // months since the year 0
}

// tally counts calls of one account and month.
type tally struct {
	calls atomic.Int64
	tier  account.Tier
}

// New returns a meter over a Redis connection, which stays the caller's and must
// outlive the meter. Limits must have every tier. Close the meter to have the
// last counts written.
func New(rdb goredis.UniversalClient, ledger Ledger, limits Limits, logger *slog.Logger) *Meter {
	m := newMeter(rdb, ledger, limits, logger)
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	m.loops.Go(func() { m.repeat(ctx, "cached calls not counted yet", flushInterval, flushInterval, m.flush) })
	m.loops.Go(func() { m.repeat(ctx, "calls not refunded yet", refundInterval, refundWaitMost, m.refundAll) })
	m.loops.Go(func() { m.repeat(ctx, "usage ledger is behind", copyInterval, copyWaitMost, m.copy) })
	return m
}

func newMeter(rdb goredis.UniversalClient, ledger Ledger, limits Limits, logger *slog.Logger) *Meter {
	var id [8]byte
	rand.Read(id[:])
	return &Meter{
		redis: rdb, ledger: ledger, limits: limits, logger: logger, now: time.Now,
		server:  "server:" + hex.EncodeToString(id[:]),
		tallies: make(map[month]*tally), dirty: make(map[month]account.Tier), stop: func() {},
	}
}

// Limits returns the limits of a tier.
func (m *Meter) Limits(tier account.Tier) Tier { return m.limits.Tiers[tier] }

// Close writes what is not written yet, within a few seconds. What could not be
// written is logged. The meter must not be used any more.
func (m *Meter) Close() {
	m.stop()
	m.loops.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if err := m.refundAll(ctx); err != nil {
		for _, a := range m.refunds {
			m.logLostRefund(a)
		}
	}
	// Twice, since a count that must first be filled in is added the second time.
	if err := errors.Join(m.flush(ctx), m.flush(ctx), m.copy(ctx)); err != nil {
		m.logger.Error("last counts not written", "error", err)
	}
}

// repeat calls f until ctx ends; the wait grows to waitMost while f fails.
func (m *Meter) repeat(ctx context.Context, trouble string, interval, waitMost time.Duration, f func(context.Context) error) {
	wait, pauses := interval, retry.Backoff(2*interval, waitMost)
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		err := f(ctx)
		switch {
		case err == nil:
			wait = interval
			pauses.Reset()
			continue
		case ctx.Err() != nil:
			return
		}
		wait = pauses.NextBackOff()
		if time.Since(logged) > 5*time.Second {
			m.logger.Warn(trouble, "error", err)
			logged = time.Now()
		}
	}
}

func monthOf(accountID string, t time.Time) month {
	year, m, _ := t.UTC().Date()
	return month{accountID, year*12 + int(m) - 1}
}

// start is the first instant of the month.
func (m month) start() time.Time {
	return time.Date(m.index/12, time.Month(m.index%12+1), 1, 0, 0, 0, 0, time.UTC)
}

func (m month) end() time.Time { return m.start().AddDate(0, 1, 0) }

// period is the month's name, YYYY-MM.
func (m month) period() string { return m.start().Format("2006-01") }

// keep is how long, seen from now, the counts of the month are kept.
func (m month) keep(now time.Time) time.Duration {
	return max(m.end().AddDate(0, monthsKept, 0).Sub(now), time.Hour)
}
