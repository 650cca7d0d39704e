package meter

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/table"
)

// quotaOf returns the quota of an account in memory, which must be there.
func (w *world) quotaOf(t *testing.T, acct account.Account) Quota {
	t.Helper()
	q, known := w.Quota(acct, noon)
	if !known {
		t.Fatalf("the quota of %s is not in memory", acct.ID)
	}
	return q
}

func TestQuotaCountsEveryCallAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(3, 1000, 2))
	acct := account.Account{ID: "acct", Plan: account.Starter}
	w.CountCached(acct, noon) // before anyone asks
	if _, known := w.Quota(acct, noon); known {
		t.Fatal("a quota is known before it was read")
	}
	if q, err := w.LoadQuota(t.Context(), acct, noon); err != nil || q != (Quota{0, 1}) {
		t.Fatalf("loaded %+v, %v", q, err)
	}
	want := Quota{0, 1}
	for i := range 20 {
		switch i % 5 {
		case 0, 1:
			w.CountCached(acct, noon)
			want.Cached++
		case 2:
			if err := w.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 3:
			if err := w.refreshQuotas(t.Context()); err != nil {
				t.Fatal(err)
			}
		case 4:
			if want.Cold < 3 {
				w.mustAdmit(t, AdmitRequest{Account: acct, Domain: strconv.Itoa(i) + ".com"})
				want.Cold++
			} else {
				w.mustReject(t, AdmitRequest{Account: acct}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
			}
		}
		if got := w.quotaOf(t, acct); got != want {
			t.Fatalf("step %d: %+v, want %+v", i, got, want)
		}
		if u := w.usage(t, acct, noon); u.CachedCalls != want.Cached || u.ColdCalls != want.Cold {
			t.Fatalf("step %d: usage is %+v, want %+v", i, u, want)
		}
	}
}

func TestQuotaIncludesOtherServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 1000, 2))
	other := newMeter(w.client, w.ledger, w.limits, quiet)
	other.now = w.now
	acct := account.Account{ID: "acct", Plan: account.Starter}
	if _, err := w.LoadQuota(t.Context(), acct, noon); err != nil {
		t.Fatal(err)
	}
	w.CountCached(acct, noon)
	for range 7 {
		other.CountCached(acct, noon)
	}
	if err := other.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.quotaOf(t, acct); got.Cached != 1 {
		t.Errorf("%+v before the next read", got)
	}
	if err := w.refreshQuotas(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.quotaOf(t, acct); got.Cached != 8 {
		t.Errorf("%+v after it", got)
	}
}

// TestQuotaSurvivesRedis stops Redis before the first read. Callers get an error at once, except the
// first, and the next round reads the counts.
func TestQuotaSurvivesRedis(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 1000, 2))
	acct := account.Account{ID: "acct", Plan: account.Starter}
	w.ledger.usage["acct2026-05"] = table.MonthUsage{AccountID: "acct", Period: "2026-05", CachedCalls: 40, ColdCalls: 3}
	w.server.Kill(t)
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			if q, err := w.LoadQuota(t.Context(), acct, noon); err == nil && q.Cached != 40 { // the fake restarts Redis
				t.Errorf("%+v without Redis", q)
			}
		})
	}
	callers.Wait()
	for err := w.refreshQuotas(t.Context()); err != nil; err = w.refreshQuotas(t.Context()) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	if got := w.quotaOf(t, acct); got != (Quota{3, 40}) {
		t.Errorf("%+v after Redis is back and empty", got)
	}
}

func TestUnusedQuotasAreDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 1000, 2))
	used, unused := account.Account{ID: "used", Plan: account.Starter}, account.Account{ID: "unused", Plan: account.Starter}
	for _, acct := range []account.Account{used, unused} {
		if _, err := w.LoadQuota(t.Context(), acct, noon); err != nil {
			t.Fatal(err)
		}
	}
	for range quotaIdle + 2 {
		w.quotaOf(t, used)
		if err := w.refreshQuotas(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, known := w.Quota(unused, noon); known {
		t.Error("an unused quota is still in memory")
	}
	w.now = func() time.Time { return noon.AddDate(0, 1, 0) }
	if err := w.refreshQuotas(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.quotas) != 0 {
		t.Errorf("%d quotas of a past month", len(w.quotas))
	}
}

// TestQuotaIsExactUnderLoad counts calls from several goroutines while flushes and reads run.
func TestQuotaIsExactUnderLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 1000, 2))
	acct := account.Account{ID: "acct", Plan: account.Starter}
	if _, err := w.LoadQuota(t.Context(), acct, noon); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 2000 {
				w.CountCached(acct, noon)
				w.Quota(acct, noon)
			}
		})
	}
	for range 50 {
		if err := w.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.refreshQuotas(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	callers.Wait()
	if got := w.quotaOf(t, acct); got.Cached != 8000 {
		t.Errorf("%+v, want 8000", got)
	}
}
