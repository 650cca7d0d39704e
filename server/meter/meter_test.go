package meter

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

func TestMain(m *testing.M) {
	goredis.SetLogger(noLog{}) // tests kill servers; go-redis would tell of every dial
	os.Exit(m.Run())
}

type noLog struct{}

func (noLog) Printf(context.Context, string, ...any) {}

var quiet = slog.New(slog.DiscardHandler)

// noon is the time of most tests: a month that is neither beginning nor ending.
var noon = time.Date(2026, 5, 12, 12, 0, 0, 0, time.UTC)

var starter = account.Account{ID: "starter-account", Plan: account.Starter}

// memoryLedger keeps what it is told, and refuses on command.
type memoryLedger struct {
	mu    sync.Mutex
	down  error
	usage map[string]table.MonthUsage
	calls map[string]table.ColdCall
	reads int
}

func newLedger() *memoryLedger {
	return &memoryLedger{usage: make(map[string]table.MonthUsage), calls: make(map[string]table.ColdCall)}
}

func (l *memoryLedger) WriteUsage(_ context.Context, rows []table.MonthUsage) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, row := range rows {
		if l.down == nil {
			l.usage[row.AccountID+row.Period] = row
		}
	}
	return l.down
}

func (l *memoryLedger) WriteColdCalls(_ context.Context, calls []table.ColdCall) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, call := range calls {
		if l.down == nil && !l.calls[call.JobID].Refunded {
			l.calls[call.JobID] = call
		}
	}
	return l.down
}

func (l *memoryLedger) Usage(_ context.Context, accountID, period string) (table.MonthUsage, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	return l.usage[accountID+period], l.down
}

func (l *memoryLedger) ColdCallsSince(_ context.Context, accountID string, since time.Time) ([]table.ColdCall, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []table.ColdCall
	for _, call := range l.calls {
		if call.AccountID == accountID && call.At.After(since) && !call.Refunded {
			found = append(found, call)
		}
	}
	return found, l.down
}

func (l *memoryLedger) setDown(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = err
}

func (l *memoryLedger) row(accountID, period string) table.MonthUsage {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.usage[accountID+period]
}

func (l *memoryLedger) call(jobID string) (table.ColdCall, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	call, ok := l.calls[jobID]
	return call, ok
}

// world is a meter on a Redis of its own.
type world struct {
	*Meter
	client goredis.UniversalClient
	server *stores.RedisServer
	ledger *memoryLedger
}

// newWorld returns a meter that writes nothing by itself: tests call flush and
// copy, and the time is noon.
func newWorld(t testing.TB, limits Limits) *world {
	t.Helper()
	server := stores.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ledger := newLedger()
	m := newMeter(client, ledger, limits, quiet)
	m.now = func() time.Time { return noon }
	return &world{m, client, server, ledger}
}

func (w *world) admit(t *testing.T, req AdmitRequest) (Admission, error) {
	t.Helper()
	if req.Account.ID == "" {
		req.Account = starter
	}
	if req.KeyID == "" {
		req.KeyID = "key"
	}
	if req.Domain == "" {
		req.Domain = "acme.com"
	}
	if req.Now.IsZero() {
		req.Now = noon
	}
	return w.Admit(t.Context(), req)
}

func (w *world) mustAdmit(t *testing.T, req AdmitRequest) Admission {
	t.Helper()
	a, err := w.admit(t, req)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (w *world) mustReject(t *testing.T, req AdmitRequest, reason Reason, retryAfter time.Duration) {
	t.Helper()
	_, err := w.admit(t, req)
	var rejected *Rejected
	if !errors.As(err, &rejected) || rejected.Reason != reason || rejected.RetryAfter != retryAfter {
		t.Errorf("Admit = %v; want rejection %s, room in %s", err, reason, retryAfter)
	}
}

func (w *world) usage(t *testing.T, acct account.Account, now time.Time) Usage {
	t.Helper()
	u, err := w.Usage(t.Context(), acct, now)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// with returns the default limits with a starter's budget and both breakers set.
func with(budget, perKey, multiple int64) Limits {
	l := DefaultLimits()
	limits := l.Plans[account.Starter]
	limits.ColdCallsIncluded = &budget
	l.Plans[account.Starter] = limits
	l.Breakers.ColdPerKey.Limit = perKey
	l.Breakers.ColdPerAccount.BudgetMultiple = multiple
	return l
}

// killRedis kills the server with all it has acknowledged in its file. Under
// "everysec" a write acknowledged while an fsync is in flight is not there yet,
// and what the meter makes of lost writes is the subject of other tests.
func (w *world) killRedis(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(wait.Max)
	for w.client.ConfigSet(t.Context(), "appendfsync", "always").Err() != nil || w.client.Incr(t.Context(), "durable").Err() != nil {
		if time.Now().After(deadline) {
			t.Fatal("Redis did not come back")
		}
	}
	w.server.Kill(t)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
