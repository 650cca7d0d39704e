package meter

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/wait"
)

func (w *world) emptyRedis(t *testing.T) {
	t.Helper()
	must(t, w.client.FlushAll(t.Context()).Err())
}

func TestEmptyRedisGivesNoNewBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(3, 2, 1))
	w.mustAdmit(t, AdmitRequest{Now: noon.Add(-30 * time.Minute)})
	w.mustAdmit(t, AdmitRequest{Now: noon.Add(-20 * time.Minute)})
	refunded := w.mustAdmit(t, AdmitRequest{Now: noon.Add(-10 * time.Minute), KeyID: "other"})
	must(t, w.refund(t.Context(), refundOf(refunded)))
	for range 4 {
		w.CountCached(starter, noon)
	}
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context()), w.copy(t.Context())))
	want := w.usage(t, starter, noon)

	w.emptyRedis(t)
	if got := w.usage(t, starter, noon); got.CachedCalls != want.CachedCalls || got.ColdCalls != want.ColdCalls {
		t.Errorf("usage from the ledger = %+v, want %+v", got, want)
	}
	w.emptyRedis(t)
	w.mustReject(t, AdmitRequest{}, PerKeyCold1h, 30*time.Minute)
	w.emptyRedis(t)
	w.mustAdmit(t, AdmitRequest{KeyID: "other"})
	w.mustReject(t, AdmitRequest{KeyID: "third"}, MonthlyCap, 19*24*time.Hour+12*time.Hour)

	must(t, w.copy(t.Context()))
	w.emptyRedis(t)
	w.CountCached(starter, noon) // added to what the ledger knows, not to nothing
	must(t, errors.Join(w.flush(t.Context()), w.flush(t.Context()), w.copy(t.Context())))
	if row := w.ledger.row(starter.ID, "2026-05"); row.CachedCalls != 5 || row.ColdCalls != 3 {
		t.Errorf("ledger after the loss = %+v, want 5 cached and 3 cold", row)
	}
}

func TestAccountWindowIsRefilledAcrossMonths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(2, 100, 1))
	end := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	w.mustAdmit(t, AdmitRequest{Now: end.Add(-2 * time.Hour)})
	w.mustAdmit(t, AdmitRequest{Now: end.Add(-time.Hour)})
	must(t, w.copy(t.Context()))
	w.emptyRedis(t)
	w.mustReject(t, AdmitRequest{Now: end}, AccountCold24h, 22*time.Hour)
}

// The row of totals may be older than the last calls.
func TestRefillCountsCallsMissingFromTotal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(3, 100, 2))
	w.mustAdmit(t, AdmitRequest{})
	must(t, w.copy(t.Context()))
	w.mustAdmit(t, AdmitRequest{})
	must(t, w.copyColdCalls(t.Context()))
	w.emptyRedis(t)
	if got := w.usage(t, starter, noon).ColdCalls; got != 2 {
		t.Errorf("cold calls from the ledger = %d, want 2", got)
	}
}

func TestLedgerOutageDelaysNoCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	w.mustAdmit(t, AdmitRequest{}) // so that Redis has the counts
	away := errors.New("away")
	w.ledger.setDown(away)
	a := w.mustAdmit(t, AdmitRequest{Domain: "other.com"})
	w.CountCached(starter, noon)
	must(t, w.flush(t.Context()))
	if err := w.copy(t.Context()); !errors.Is(err, away) {
		t.Errorf("copy = %v, want %v", err, away)
	}
	if got := w.usage(t, starter, noon); got.ColdCalls != 2 || got.CachedCalls != 1 {
		t.Errorf("usage = %+v, want 2 cold and 1 cached", got)
	}
	w.ledger.setDown(nil)
	must(t, w.copy(t.Context()))
	want := table.ColdCall{JobID: a.JobID, RunID: a.RunID, AccountID: starter.ID, KeyID: "key", Domain: "other.com", At: noon}
	if call, _ := w.ledger.call(a.JobID); call != want {
		t.Errorf("ledger has %+v, want %+v", call, want)
	}
	if row := w.ledger.row(starter.ID, "2026-05"); row.ColdCalls != 2 || row.CachedCalls != 1 || !row.UpdatedAt.Equal(noon) {
		t.Errorf("ledger has %+v, want 2 cold and 1 cached", row)
	}
	if n := w.client.HLen(t.Context(), redis.ColdLedger()).Val(); n != 0 {
		t.Errorf("%d copied calls still wait", n)
	}
}

// Without the counts and without the ledger nobody can say whether there is budget.
func TestUnknownCountsAreNotZero(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	away := errors.New("away")
	w.ledger.setDown(away)
	if _, err := w.admit(t, AdmitRequest{}); !errors.Is(err, away) {
		t.Errorf("Admit = %v, want %v", err, away)
	}
	other := account.Account{ID: "other", Plan: account.Growth}
	w.CountCached(other, noon)
	if err := w.flush(t.Context()); !errors.Is(err, away) {
		t.Errorf("flush = %v, want %v", err, away)
	}
	w.ledger.setDown(nil)
	if got := w.usage(t, other, noon).CachedCalls; got != 1 {
		t.Errorf("cached calls = %d, want the 1 that was kept", got)
	}
	if got := w.usage(t, starter, noon).ColdCalls; got != 0 {
		t.Errorf("the call that was not admitted cost %d", got)
	}
}

// TestLedgerFollows checks that a call is in the ledger after the pauses of the meter, which are
// shorter than a second together.
func TestLedgerFollows(t *testing.T) {
	t.Parallel()
	if pauses := flushInterval + copyInterval; pauses >= time.Second {
		t.Errorf("a call waits for %s", pauses)
	}
	w := newWorld(t, DefaultLimits())
	m := New(w.client, w.ledger, DefaultLimits(), quiet)
	defer m.Close()
	a, err := m.Admit(t.Context(), AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: time.Now()})
	must(t, err)
	m.CountCached(starter, time.Now())
	wait.Until(t, "the ledger has the calls", func() bool {
		_, ok := w.ledger.call(a.JobID)
		row := w.ledger.row(starter.ID, redis.Period(time.Now()))
		return ok && row.ColdCalls == 1 && row.CachedCalls == 1
	})
}

func TestManyCallsAreCopied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(10_000, 10_000, 2))
	for i := range 2500 {
		w.mustAdmit(t, AdmitRequest{Domain: fmt.Sprintf("d%d.com", i)})
	}
	must(t, w.copy(t.Context()))
	if len(w.ledger.calls) != 2500 {
		t.Errorf("ledger has %d calls, want 2500", len(w.ledger.calls))
	}
	w.emptyRedis(t)
	if got := w.usage(t, starter, noon).ColdCalls; got != 2500 {
		t.Errorf("cold calls from the ledger = %d, want 2500", got)
	}
}

// A refund can be all that happens to an account between two copies.
func TestRefundKeepsTheTier(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(3, 2, 1))
	a := w.mustAdmit(t, AdmitRequest{})
	must(t, w.copy(t.Context()))
	must(t, w.refund(t.Context(), refundOf(a)))
	must(t, w.copy(t.Context()))
	if row := w.ledger.row(starter.ID, "2026-05"); row.Plan != string(account.Starter) || row.ColdCalls != 0 {
		t.Errorf("ledger after a refund = %+v, want tier starter and no calls", row)
	}
}
