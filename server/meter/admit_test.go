package meter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/test/wait"
)

// Issue: 500 concurrent calls against a budget of 100 give exactly 100 and 400.
func TestConcurrentAdmissionsKeepTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 1000, 2))
	for round := range 20 {
		acct := account.Account{ID: fmt.Sprint("account", round), Plan: account.Starter}
		var admitted, capped atomic.Int64
		var wg sync.WaitGroup
		for i := range 500 {
			wg.Go(func() {
				_, err := w.admit(t, AdmitRequest{Account: acct, KeyID: acct.ID, Domain: fmt.Sprintf("d%d.com", i%250)})
				var rejected *Rejected
				switch {
				case err == nil:
					admitted.Add(1)
				case errors.As(err, &rejected) && rejected.Reason == MonthlyCap:
					capped.Add(1)
				default:
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 100 || capped.Load() != 400 {
			t.Fatalf("round %d: %d admitted, %d capped; want 100 and 400", round, admitted.Load(), capped.Load())
		}
		if got := w.usage(t, acct, noon).ColdCalls; got != 100 {
			t.Fatalf("round %d: cost %d cold calls, want 100", round, got)
		}
	}
}

func TestMonthlyCapLastsUntilNextMonth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(2, 1000, 2))
	w.mustAdmit(t, AdmitRequest{})
	w.mustAdmit(t, AdmitRequest{})
	w.mustReject(t, AdmitRequest{}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
	end := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	w.mustReject(t, AdmitRequest{Now: end.Add(-1500 * time.Millisecond)}, MonthlyCap, 2*time.Second)
	w.mustReject(t, AdmitRequest{Now: end.Add(-time.Nanosecond)}, MonthlyCap, time.Second)
	w.mustAdmit(t, AdmitRequest{Now: end})
	// The month is the one in UTC, wherever the caller's clock is.
	w.mustReject(t, AdmitRequest{Now: end.Add(-time.Second).In(time.FixedZone("", 5*3600))}, MonthlyCap, time.Second)
}

func TestKeyWindowSlides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(1000, 3, 2))
	at := func(s float64) AdmitRequest {
		return AdmitRequest{Now: noon.Add(time.Duration(s * float64(time.Second)))}
	}
	w.mustAdmit(t, at(0))
	w.mustAdmit(t, at(10))
	w.mustAdmit(t, at(20.5))
	w.mustReject(t, at(20.5), PerKeyCold1h, 3580*time.Second) // 3579.5 s, rounded up
	w.mustReject(t, at(30), PerKeyCold1h, 3570*time.Second)
	w.mustReject(t, at(3599.999), PerKeyCold1h, time.Second)
	other := at(3599.999)
	other.KeyID = "other"
	w.mustAdmit(t, other)
	w.mustAdmit(t, at(3600)) // the first has just left
	w.mustReject(t, at(3600), PerKeyCold1h, 10*time.Second)
	w.mustAdmit(t, at(3610))
	w.mustReject(t, at(3610), PerKeyCold1h, 11*time.Second) // 10.5 s
}

// The clock of a server was ahead and goes back: calls that it counted lie ahead.
func TestWindowsAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(6, 2, 1))
	ahead := noon.Add(30 * time.Hour)
	for range 2 {
		w.mustAdmit(t, AdmitRequest{Now: ahead, IdempotencyKey: "ahead", BodyHash: [32]byte{1}})
		w.mustAdmit(t, AdmitRequest{Now: ahead, KeyID: "other"})
	}
	// Within one window they count as calls of now, and no longer than that.
	w.mustReject(t, AdmitRequest{Now: ahead.Add(-30 * time.Minute), KeyID: "other"}, PerKeyCold1h, 90*time.Minute)
	w.mustReject(t, AdmitRequest{Now: ahead.Add(-time.Hour), KeyID: "other"}, PerKeyCold1h, 2*time.Hour)
	// Further ahead they do not count, and the Idempotency-Key is free again.
	for range 2 {
		w.mustAdmit(t, AdmitRequest{KeyID: "other"})
	}
	w.mustReject(t, AdmitRequest{KeyID: "other"}, PerKeyCold1h, time.Hour)
	a := w.mustAdmit(t, AdmitRequest{IdempotencyKey: "ahead"})
	if a.Replayed || !a.CreatedAt.Equal(noon) {
		t.Errorf("admission = %+v, want a new one", a)
	}
	w.mustReject(t, AdmitRequest{}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
}

func TestAccountWindowSlidesAcrossMonths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(4, 1000, 1)) // the window holds one month's budget
	end := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)
	before := func(d time.Duration) AdmitRequest { return AdmitRequest{Now: end.Add(-d)} }
	w.mustAdmit(t, before(10*time.Hour))
	w.mustAdmit(t, before(9*time.Hour))
	w.mustAdmit(t, before(8*time.Hour))
	w.mustAdmit(t, before(7*time.Hour))
	w.mustReject(t, before(6*time.Hour), MonthlyCap, 6*time.Hour)
	w.mustReject(t, before(0), AccountCold24h, 14*time.Hour)
	w.mustReject(t, before(-14*time.Hour+time.Second), AccountCold24h, time.Second)
	w.mustAdmit(t, before(-14*time.Hour))
	w.mustReject(t, before(-14*time.Hour), AccountCold24h, time.Hour)
	other := before(0)
	other.Account = account.Account{ID: "other", Plan: account.Starter}
	w.mustAdmit(t, other)
}

func TestMonthlyCapIsNamedBeforeBreakers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(1, 1, 1))
	w.mustAdmit(t, AdmitRequest{})
	w.mustReject(t, AdmitRequest{}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
	w.mustReject(t, AdmitRequest{Account: account.Account{ID: "second", Plan: account.Starter}}, PerKeyCold1h, time.Hour)
}

func TestUnmeteredTierHasOnlyKeyBreaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(1, 3, 1))
	enterprise := account.Account{ID: "big", Plan: account.Enterprise}
	for range 3 {
		w.mustAdmit(t, AdmitRequest{Account: enterprise})
	}
	w.mustReject(t, AdmitRequest{Account: enterprise}, PerKeyCold1h, time.Hour)
	w.mustAdmit(t, AdmitRequest{Account: enterprise, KeyID: "second"})
	if got := w.usage(t, enterprise, noon); got.ColdCalls != 4 || got.Limits.ColdCallsIncluded != nil {
		t.Errorf("usage = %+v, want 4 cold calls of an unmetered budget", got)
	}
}

func TestFreeTierStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	w.mustReject(t, AdmitRequest{Account: account.Account{ID: "free", Plan: account.Free}}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
}

func TestRejectedCallCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(1, 1, 2))
	w.mustAdmit(t, AdmitRequest{})
	before := dump(t, w)
	for range 5 {
		w.mustReject(t, AdmitRequest{Domain: "other.com"}, MonthlyCap, 19*24*time.Hour+12*time.Hour)
	}
	if after := dump(t, w); !slices.Equal(before, after) {
		t.Errorf("keys after rejections = %v, want %v", after, before)
	}
}

func TestCallsForOneDomainShareRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(1000, 1000, 2))
	first := w.mustAdmit(t, AdmitRequest{})
	second := w.mustAdmit(t, AdmitRequest{Account: account.Account{ID: "second", Plan: account.Starter}})
	if first.RunID != second.RunID || first.JobID == second.JobID {
		t.Errorf("admissions = %+v and %+v; want two jobs of one run", first, second)
	}
	for _, acct := range []account.Account{starter, {ID: "second", Plan: account.Starter}} {
		if got := w.usage(t, acct, noon).ColdCalls; got != 1 {
			t.Errorf("account %s was charged %d calls, want 1", acct.ID, got)
		}
	}
	must(t, w.client.HSet(t.Context(), redis.Run(first.RunID), "state", "succeeded").Err())
	if third := w.mustAdmit(t, AdmitRequest{}); third.RunID == first.RunID {
		t.Errorf("admission after the run ended = %+v, want a new run", third)
	}
}

func TestJobLivesForItsTTL(t *testing.T) {
	t.Parallel()
	w := newWorld(t, DefaultLimits())
	a := w.mustAdmit(t, AdmitRequest{})
	for _, key := range []string{redis.Job(a.JobID), redis.Run(a.RunID)} {
		if ttl := w.client.TTL(t.Context(), key).Val(); ttl < 30*24*time.Hour-time.Minute || ttl > 30*24*time.Hour {
			t.Errorf("%s lives for %s, want 30 days", key, ttl)
		}
	}
}

func TestRefundLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	w.mustAdmit(t, AdmitRequest{Domain: "other.com"})
	must(t, w.copyColdCalls(t.Context()))
	before := dump(t, w)
	a := w.mustAdmit(t, AdmitRequest{IdempotencyKey: "once", BodyHash: [32]byte{1}})
	for range 2 {
		must(t, w.refund(t.Context(), refundOf(a)))
	}
	must(t, w.copyColdCalls(t.Context()))
	refunded := redis.Job(a.JobID)
	if ttl := w.client.PTTL(t.Context(), refunded).Val(); ttl <= 0 || ttl > refundMemory || w.client.Del(t.Context(), refunded).Val() != 1 {
		t.Errorf("the refund is remembered for %s, want at most %s", ttl, refundMemory)
	}
	if after := dump(t, w); !slices.Equal(before, after) {
		t.Errorf("after the refund Redis holds\n%q, want\n%q", after, before)
	}
	if call, ok := w.ledger.call(a.JobID); !ok || !call.Refunded {
		t.Errorf("ledger has %+v, want the call as refunded", call)
	}
	if got := w.usage(t, starter, noon).ColdCalls; got != 1 {
		t.Errorf("cost after the refund = %d, want 1", got)
	}
}

func TestRefundLeavesSharedRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	first := w.mustAdmit(t, AdmitRequest{})
	second := w.mustAdmit(t, AdmitRequest{})
	must(t, w.refund(t.Context(), refundOf(first)))
	if w.client.HGet(t.Context(), redis.Run(second.RunID), "state").Val() != "queued" ||
		w.client.Get(t.Context(), redis.InFlight("acme.com")).Val() != second.RunID ||
		w.client.Exists(t.Context(), redis.Job(second.JobID)).Val() != 1 {
		t.Error("refunding one job took the run away from the other")
	}
	must(t, w.refund(t.Context(), refundOf(second)))
	if w.client.Exists(t.Context(), redis.Run(second.RunID), redis.InFlight("acme.com")).Val() != 0 {
		t.Error("the run nobody waits for is still there")
	}
	running := w.mustAdmit(t, AdmitRequest{})
	must(t, w.client.HSet(t.Context(), redis.Run(running.RunID), "state", "running").Err())
	must(t, w.refund(t.Context(), refundOf(running)))
	if w.client.Exists(t.Context(), redis.Run(running.RunID)).Val() != 1 {
		t.Error("a run that is worked on was taken away")
	}
}

func TestIdempotencyKeyReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	req := AdmitRequest{IdempotencyKey: "once", BodyHash: sha256.Sum256([]byte("body")), Account: starter, KeyID: "key", Domain: "acme.com",
		Now: noon}
	if _, found, err := w.Replay(t.Context(), req); found || err != nil {
		t.Errorf("Replay before the call = %v, %v", found, err)
	}
	first := w.mustAdmit(t, req)
	f := func(change func(*AdmitRequest), replayed bool, want error) {
		t.Helper()
		again := req
		change(&again)
		early, found, err := w.Replay(t.Context(), again)
		if found != replayed || !errors.Is(err, want) || (found && early.JobID != first.JobID) {
			t.Errorf("Replay = %+v, %v, %v; want replayed %v, error %v", early, found, err, replayed, want)
		}
		a, err := w.admit(t, again)
		if !errors.Is(err, want) || a.Replayed != replayed {
			t.Errorf("Admit = %+v, %v; want replayed %v, error %v", a, err, replayed, want)
		}
		if replayed && (a.JobID != first.JobID || a.RunID != first.RunID || !a.CreatedAt.Equal(first.CreatedAt)) {
			t.Errorf("replay = %+v, want %+v", a, first)
		}
		if replayed {
			must(t, w.refund(t.Context(), refundOf(a))) // takes nothing back
		}
	}
	f(func(*AdmitRequest) {}, true, nil)
	f(func(r *AdmitRequest) { r.Now = noon.Add(24*time.Hour - time.Millisecond) }, true, nil)
	f(func(r *AdmitRequest) { r.BodyHash[0]++ }, false, ErrIdempotencyReused)
	if got := w.usage(t, starter, noon).ColdCalls; got != 1 {
		t.Errorf("replays cost %d calls, want 1 in all", got)
	}
	f(func(r *AdmitRequest) { r.Account.ID = "second" }, false, nil)
	f(func(r *AdmitRequest) { r.IdempotencyKey = "twice" }, false, nil)
	f(func(r *AdmitRequest) { r.Now = noon.Add(24 * time.Hour) }, false, nil)
}

func TestConcurrentReplaysChargeOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 100, 2))
	var wg sync.WaitGroup
	jobs := make([]string, 50)
	for i := range jobs {
		wg.Go(func() { jobs[i] = w.mustAdmit(t, AdmitRequest{IdempotencyKey: "once"}).JobID })
	}
	wg.Wait()
	if slices.Sort(jobs); jobs[0] != jobs[len(jobs)-1] {
		t.Errorf("one Idempotency-Key made several jobs: %v", slices.Compact(jobs))
	}
	if got := w.usage(t, starter, noon).ColdCalls; got != 1 {
		t.Errorf("cost = %d, want 1", got)
	}
}

// A client repeats a call whose answer was lost on the way.
func TestAdmittingAJobTwiceChargesOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	w.mustAdmit(t, AdmitRequest{Domain: "other.com"})
	req := AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: noon}
	a := Admission{JobID: "job", AccountID: starter.ID, KeyID: "key", Domain: "acme.com", CreatedAt: noon}
	first, err := w.runAdmit(t.Context(), req, a, "run")
	must(t, err)
	second, err := w.runAdmit(t.Context(), req, a, "run")
	must(t, err)
	if first != second || first.used != 2 {
		t.Errorf("repeated call = %+v, first = %+v; want the same with 2 used", second, first)
	}
}

// lose admits a call whose answer is lost: Redis is frozen until the caller has its
// error. The script runs before lose returns.
func (w *world) lose(t *testing.T, req AdmitRequest) {
	t.Helper()
	must(t, admitScript.Load(t.Context(), w.client).Err())
	before := w.usage(t, starter, noon).ColdCalls
	thaw := w.server.Freeze(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := w.Admit(ctx, req)
	thaw()
	if !errors.Is(err, ErrOutcomeUnknown) {
		t.Fatalf("Admit while Redis is frozen = %v, want %v", err, ErrOutcomeUnknown)
	}
	for deadline := time.Now().Add(wait.Max); w.usage(t, starter, noon).ColdCalls == before; {
		if time.Now().After(deadline) {
			t.Fatal("the script did not run after the freeze")
		}
	}
}

// The caller repeats a call whose answer was lost. Whether the repeat or the refund
// of the first try comes first, the job that the caller gets stays, charged once.
func TestRepeatedCallAndItsRefund(t *testing.T) {
	t.Parallel()
	req := AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: noon, IdempotencyKey: "once"}
	repeat := func(t *testing.T, w *world) Admission {
		t.Helper()
		a, found, err := w.Replay(t.Context(), req)
		must(t, err)
		if found {
			return a
		}
		return w.mustAdmit(t, req)
	}
	refund := func(t *testing.T, w *world) Admission {
		t.Helper()
		if w.refunds.Len() != 1 {
			t.Fatalf("%d calls wait for their refund, want 1", w.refunds.Len())
		}
		must(t, w.refunds.Flush(t.Context()))
		return Admission{}
	}
	again := func(t *testing.T, w *world) Admission { t.Helper(); return w.mustAdmit(t, req) }
	type step = func(*testing.T, *world) Admission
	for name, steps := range map[string][]step{
		"replay, refund":                 {repeat, refund},
		"refund, replay":                 {refund, repeat},
		"replay by the admission script": {again, refund},
		"two replays, refund":            {repeat, again, refund, repeat},
		"refund between replays":         {refund, repeat, again, repeat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, with(5, 5, 2))
			w.lose(t, req)
			lost := w.refunds.Drain()[0]
			w.refundLater(lost)
			var acknowledged string
			for _, do := range steps {
				a := do(t, w)
				if acknowledged == "" {
					acknowledged = a.JobID
				}
				if a.JobID != "" && a.JobID != acknowledged {
					t.Errorf("one Idempotency-Key named the jobs %s and %s", acknowledged, a.JobID)
				}
			}
			// Retries of both scripts of the first try arrive late.
			must(t, w.refund(t.Context(), lost))
			again := Admission{JobID: lost.id, AccountID: req.Account.ID, KeyID: req.KeyID, Domain: req.Domain, CreatedAt: req.Now,
				idempotencyKey: req.IdempotencyKey, plan: req.Account.Plan}
			if _, err := w.runAdmit(t.Context(), req, again, "late-run"); err != nil {
				t.Fatal(err)
			}
			if w.client.HGet(t.Context(), redis.Job(acknowledged), "status").Val() != "pending" {
				t.Errorf("job %s was acknowledged and is gone", acknowledged)
			}
			if got := w.usage(t, starter, noon).ColdCalls; got != 1 {
				t.Errorf("charged %d calls, want 1", got)
			}
			must(t, w.copy(t.Context()))
			if call, ok := w.ledger.call(acknowledged); !ok || call.Refunded {
				t.Errorf("ledger has %+v, want the acknowledged call as charged", call)
			}
			if call, ok := w.ledger.call(lost.id); lost.id != acknowledged && (!ok || !call.Refunded) {
				t.Errorf("ledger has %+v, want the lost call as refunded", call)
			}
			if row := w.ledger.row(starter.ID, "2026-05"); row.ColdCalls != 1 {
				t.Errorf("ledger counts %d cold calls, want 1", row.ColdCalls)
			}
		})
	}
}

// A network may deliver the refund of a call before its admission.
func TestAdmissionAfterItsRefundChargesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	w.usage(t, starter, noon) // so that Redis has the counts
	req := AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: noon}
	a := Admission{JobID: "job", AccountID: starter.ID, KeyID: "key", Domain: "acme.com", CreatedAt: noon}
	must(t, w.refund(t.Context(), refundOf(a)))
	before := dump(t, w)
	reply, err := w.runAdmit(t.Context(), req, a, "run")
	if err != nil || reply.outcome != "refunded" {
		t.Errorf("admission after its refund = %+v, %v; want refunded", reply, err)
	}
	if after := dump(t, w); !slices.Equal(before, after) {
		t.Errorf("Redis holds\n%q, want\n%q", after, before)
	}
}

// Refunds wait for Redis, as many as there is room for.
func TestRefundsOutlastAnOutage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(5, 5, 2))
	calls := []Admission{w.mustAdmit(t, AdmitRequest{}), w.mustAdmit(t, AdmitRequest{Domain: "other.com"})}
	for _, a := range calls {
		w.refundLater(refundOf(a))
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.refunds.Flush(cut); err == nil || w.refunds.Len() != 2 {
		t.Errorf("Flush without Redis = %v, %d calls wait; want an error and 2", err, w.refunds.Len())
	}
	must(t, w.refunds.Flush(t.Context()))
	if got := w.usage(t, starter, noon).ColdCalls; got != 0 || w.refunds.Len() != 0 {
		t.Errorf("after the outage %d calls are charged and %d wait, want none", got, w.refunds.Len())
	}
	for range refundsMost + 1 {
		w.refundLater(refundOf(calls[0]))
	}
	if w.refunds.Len() != refundsMost {
		t.Errorf("%d calls wait, want at most %d", w.refunds.Len(), refundsMost)
	}
}

// TestAdmissionAgreesWithModel plays random calls against the scripts and against
// a model that looks at the whole history each time. Some answers are lost, and the
// scripts of those calls come again, late and in any order.
func TestAdmissionAgreesWithModel(t *testing.T) {
	t.Parallel()
	const budget, perKey, multiple = 12, 2, 1
	w := newWorld(t, with(budget, perKey, multiple))
	random := rand.New(rand.NewPCG(1, 2))

	type call struct {
		req          AdmitRequest
		admission    Admission
		acknowledged bool // a caller knows the job
		refunded     bool
	}
	var kept, lost []*call
	outcomes := make(map[Reason]int)
	within := func(now time.Time, span time.Duration, same func(*call) bool) []*call {
		var found []*call
		for _, c := range kept {
			if same(c) && c.req.Now.After(now.Add(-span)) {
				found = append(found, c)
			}
		}
		return found
	}
	now := time.Date(2026, 5, 29, 0, 0, 0, 0, time.UTC)
	for step := range 3000 {
		// Bursts, pauses, and now and then the last hours of a month.
		longest := 5 * time.Minute
		switch n := random.IntN(60); {
		case n == 0:
			if late := monthOf("", now).end().Add(-6 * time.Hour); late.After(now) {
				now = late
			}
		case n < 4:
			longest = 8 * time.Hour
		}
		now = now.Add(time.Duration(random.Int64N(int64(longest)))).Truncate(time.Millisecond)
		if n := random.IntN(6); n < 2 && len(lost) > 0 {
			c := lost[len(lost)-1-random.IntN(min(5, len(lost)))]
			if n == 0 {
				must(t, w.refund(t.Context(), refundOf(c.admission)))
				if !c.acknowledged {
					c.refunded = true
					kept = slices.DeleteFunc(kept, func(k *call) bool { return k == c })
					outcomes["refunded"]++
				} else {
					outcomes["refund refused"]++
				}
				continue
			}
			reply, err := w.runAdmit(t.Context(), c.req, c.admission, "late-run")
			if want := map[bool]string{true: "refunded", false: "admitted"}[c.refunded]; err != nil || reply.outcome != want {
				t.Fatalf("step %d: late admission = %+v, %v; want %s", step, reply, err, want)
			}
			outcomes["late"]++
			continue
		}
		acct := account.Account{ID: fmt.Sprint("account", random.IntN(2)), Plan: account.Starter}
		key := fmt.Sprint(acct.ID, "key", random.IntN(3))
		req := AdmitRequest{Account: acct, KeyID: key, Now: now, Domain: fmt.Sprintf("d%d.com", random.IntN(5))}
		if random.IntN(2) == 0 {
			req.IdempotencyKey = fmt.Sprint("once", random.IntN(4))
			same := within(now, idempotencyWindow, func(c *call) bool {
				return c.req.Account.ID == acct.ID && c.req.IdempotencyKey == req.IdempotencyKey
			})
			if len(same) > 1 {
				t.Fatalf("step %d: one Idempotency-Key names %d jobs", step, len(same))
			}
			asked, a, found, err := "Admit", Admission{}, false, error(nil)
			if random.IntN(2) == 0 {
				asked = "Replay"
				a, found, err = w.Replay(t.Context(), req)
			} else if len(same) == 1 {
				a, err = w.Admit(t.Context(), req)
				found = a.Replayed
			}
			if err != nil || found != (len(same) == 1) || found && a.JobID != same[0].admission.JobID {
				t.Fatalf("step %d: %s = %+v, %v, %v; want replayed %v", step, asked, a, found, err, len(same) == 1)
			}
			if found {
				same[0].acknowledged = true
				outcomes["replayed"]++
				continue
			}
		}

		var want Reason
		var wait time.Duration
		month := 0
		for _, c := range kept {
			if c.req.Account.ID == acct.ID && redis.Period(c.req.Now) == redis.Period(now) {
				month++
			}
		}
		ofKey := within(now, time.Hour, func(c *call) bool { return c.req.KeyID == key })
		ofAccount := within(now, 24*time.Hour, func(c *call) bool { return c.req.Account.ID == acct.ID })
		switch {
		case month >= budget:
			want, wait = MonthlyCap, time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC).Sub(now)
		case len(ofKey) >= perKey:
			want, wait = PerKeyCold1h, ofKey[len(ofKey)-perKey].req.Now.Add(time.Hour).Sub(now)
		case len(ofAccount) >= budget*multiple:
			want, wait = AccountCold24h, ofAccount[len(ofAccount)-budget*multiple].req.Now.Add(24*time.Hour).Sub(now)
		}
		if random.IntN(4) == 0 { // a call for many companies
			many := BulkRequest{Account: acct, KeyID: key, Now: now, Partial: random.IntN(2) == 0}
			for i := range 1 + random.IntN(4) {
				many.Domains = append(many.Domains, fmt.Sprintf("d%d.com", i))
			}
			wanted := len(many.Domains)
			room := max(0, min(wanted, budget-month, perKey-len(ofKey), budget*multiple-len(ofAccount)))
			dry, _, err := w.Room(t.Context(), many)
			must(t, err)
			a, err := w.AdmitMany(t.Context(), many)
			admitted := room
			if room < wanted && !many.Partial {
				admitted = 0
			}
			var rejected *Rejected
			if dry != room || len(a.Jobs) != admitted || errors.As(err, &rejected) != (admitted == 0) ||
				(a.Rest != "") != (admitted > 0 && room < wanted) || rejected != nil && rejected.Room != room {
				t.Fatalf("step %d, %s, %s: AdmitMany of %d, partial %v = %+v, %v, dry %d; want room for %d", step, now, key, wanted,
					many.Partial, a, err, dry, room)
			}
			for domain, job := range a.Jobs {
				kept = append(kept, &call{
					req:          AdmitRequest{Account: acct, KeyID: key, Now: now, Domain: domain},
					admission:    Admission{JobID: job, AccountID: acct.ID, KeyID: key, Domain: domain, CreatedAt: now, plan: acct.Plan},
					acknowledged: true,
				})
			}
			switch {
			case admitted == wanted:
				outcomes["all"]++
			case admitted > 0:
				outcomes["part"]++
			default:
				outcomes["none"]++
			}
			continue
		}
		a, err := w.Admit(t.Context(), req)
		var rejected *Rejected
		switch {
		case want == "" && err == nil:
			c := &call{req: req, admission: a, acknowledged: random.IntN(2) == 0}
			kept = append(kept, c)
			if !c.acknowledged {
				lost = append(lost, c)
			}
			outcomes["admitted"]++
			if q, known := w.Quota(acct, now); known && q.Cold != int64(month+1) {
				t.Fatalf("step %d: %d cold calls in memory, want %d", step, q.Cold, month+1)
			}
		case want != "" && errors.As(err, &rejected) && rejected.Reason == want && rejected.RetryAfter == wholeSeconds(wait):
			outcomes[want]++
		default:
			t.Fatalf("step %d, %s, %s: Admit = %v; want %q, room in %s", step, now, key, err, want, wait)
		}
	}
	t.Log(outcomes)
	for _, outcome := range []Reason{"admitted", MonthlyCap, PerKeyCold1h, AccountCold24h, "replayed", "refunded", "refund refused",
		"late", "all", "part", "none"} {
		if outcomes[outcome] < 20 {
			t.Errorf("outcome %s came %d times: the test shows little", outcome, outcomes[outcome])
		}
	}
	must(t, w.copyColdCalls(t.Context()))
	for _, c := range append(lost, kept...) {
		id := c.admission.JobID
		if status := w.client.HGet(t.Context(), redis.Job(id), "status").Val(); (status == "pending") == c.refunded {
			t.Errorf("job %s is %q, refunded %v", id, status, c.refunded)
		}
		if call, ok := w.ledger.call(id); !ok || call.Refunded != c.refunded {
			t.Errorf("ledger has %+v of job %s, want refunded %v", call, id, c.refunded)
		}
	}
}

// dump returns all keys with their contents.
func dump(t *testing.T, w *world) []string {
	t.Helper()
	keys, err := w.client.Keys(t.Context(), "*").Result()
	must(t, err)
	contents := make([]string, len(keys))
	for i, key := range keys {
		value, err := w.client.Dump(t.Context(), key).Result()
		must(t, err)
		contents[i] = key + " = " + value
	}
	slices.Sort(contents)
	return contents
}
