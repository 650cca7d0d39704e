package meter

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/internal/account"
	"companyscore/internal/redis"
)

func domains(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("company-%d.com", i)
	}
	return list
}

func bulkOf(n int) BulkRequest {
	return BulkRequest{Account: starter, KeyID: "key", Domains: domains(n), Now: noon}
}

// jobs returns the ids of the stored jobs.
func (w *world) jobs(t *testing.T) []string {
	t.Helper()
	keys, err := w.client.Keys(t.Context(), redis.Job("*")).Result()
	must(t, err)
	for i, key := range keys {
		keys[i] = key[len(redis.Job("")):]
	}
	slices.Sort(keys)
	return keys
}

// Issue: 1,000 domains against a budget of 600 start 600 or none.
func TestManyAreAdmittedInOneStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(600, 10_000, 2))
	req := bulkOf(1000)
	_, err := w.AdmitMany(t.Context(), req)
	var rejected *Rejected
	if !errors.As(err, &rejected) || rejected.Reason != MonthlyCap || rejected.Room != 600 {
		t.Fatalf("all of 1,000 = %v, %+v; want rejected with room for 600", err, rejected)
	}
	if got := w.usage(t, starter, noon).ColdCalls; got != 0 || len(w.jobs(t)) != 0 {
		t.Fatalf("after a rejection %d calls are charged and there are jobs %q", got, w.jobs(t))
	}
	before := dump(t, w)
	if n, rest, err := w.Room(t.Context(), req); err != nil || n != 600 || rest != MonthlyCap {
		t.Errorf("room = %d, %q, %v; want 600", n, rest, err)
	}
	if after := dump(t, w); !slices.Equal(before, after) {
		t.Errorf("Room changed\n%q to\n%q", before, after)
	}
	req.Partial = true
	a, err := w.AdmitMany(t.Context(), req)
	must(t, err)
	if len(a.Jobs) != 600 || a.Rest != MonthlyCap || a.Replayed {
		t.Fatalf("part of 1,000 = %d jobs, rest %q", len(a.Jobs), a.Rest)
	}
	if stored := w.jobs(t); !slices.Equal(stored, slices.Sorted(maps.Values(a.Jobs))) {
		t.Errorf("%d jobs are stored, want those of the answer", len(stored))
	}
	for _, domain := range req.Domains[:600] { // the first ones
		job := w.client.HGetAll(t.Context(), redis.Job(a.Jobs[domain])).Val()
		if job["domain"] != domain || job["account"] != starter.ID || job["key"] != "key" || job["status"] != "pending" ||
			job["created"] != strconv.FormatInt(noon.UnixMilli(), 10) ||
			w.client.HGet(t.Context(), redis.Run(job["run"]), "domain").Val() != domain {
			t.Fatalf("job of %s = %v", domain, job)
		}
	}
	must(t, w.copyColdCalls(t.Context()))
	if got := w.usage(t, starter, noon).ColdCalls; got != 600 || len(w.ledger.calls) != 600 {
		t.Errorf("%d calls are charged and %d are in the ledger, want 600", got, len(w.ledger.calls))
	}
}

// Issue: exact under 500 concurrent calls of one account.
func TestConcurrentBulkCallsKeepTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(600, 10_000, 2))
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			req := bulkOf(1 + i%7)
			req.Partial = i%2 == 0
			a, err := w.AdmitMany(t.Context(), req)
			var rejected *Rejected
			if err != nil && !errors.As(err, &rejected) {
				t.Error(err)
			}
			if n := len(a.Jobs); n > 0 {
				admitted.Add(int64(n))
				if n < len(req.Domains) && !req.Partial {
					t.Errorf("%d of %d without partial", n, len(req.Domains))
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != 600 || len(w.jobs(t)) != 600 || w.usage(t, starter, noon).ColdCalls != 600 {
		t.Errorf("%d calls were admitted, %d jobs, %d charged; want 600", admitted.Load(), len(w.jobs(t)),
			w.usage(t, starter, noon).ColdCalls)
	}
}

// Issue: killed at any step and repeated with its key, nothing is charged twice.
func TestBulkCallSurvivesItsServer(t *testing.T) {
	t.Parallel()
	const n = 2*openMax + 10
	for opened := range 4 { // the parts that the first server opened
		for _, by := range []string{"repeat", "another server"} {
			t.Run(fmt.Sprint(opened, " parts, ", by), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, with(n, 10_000, 2))
				req := bulkOf(n)
				req.IdempotencyKey = "once"
				first := bulk{id: "first", account: starter.ID, key: "key", created: noon, remembered: idempotencyWindow}
				reply, err := w.runAdmitMany(t.Context(), req, first, "all")
				must(t, err)
				end := min(opened*openMax, n)
				if first.calls = reply.calls; end == n {
					must(t, w.open(t.Context(), first))
				}
				for _, call := range first.calls[:end] { // as open does, but for the end of the call
					must(t, bulkOpenScript.Run(t.Context(), w.client, bulkKeys(first.account, first.key, "", noon), first.id, first.account,
						first.key, noon.UnixMilli(), time.Hour.Milliseconds(), "", call.job, call.domain, call.run).Err())
				}
				if got := len(w.jobs(t)); got != end {
					t.Fatalf("the first server opened %d jobs, want %d", got, end)
				}
				want := make(map[string]string)
				for _, call := range reply.calls {
					want[call.domain] = call.job
				}
				if by == "repeat" {
					for range 2 {
						a, err := w.AdmitMany(t.Context(), req)
						must(t, err)
						if !a.Replayed || !maps.Equal(a.Jobs, want) {
							t.Fatalf("repeat = replayed %v, %d jobs; want those of the first call", a.Replayed, len(a.Jobs))
						}
						a, found, err := w.ReplayMany(t.Context(), req)
						if err != nil || !found || !maps.Equal(a.Jobs, want) {
							t.Fatalf("replay = %v, %v, %d jobs", found, err, len(a.Jobs))
						}
					}
				} else {
					w.now = func() time.Time { return noon.Add(bulkStaleAge) }
					must(t, w.openBulks(t.Context()))
				}
				if stored := w.jobs(t); !slices.Equal(stored, slices.Sorted(maps.Values(want))) {
					t.Errorf("%d jobs are stored, want %d", len(stored), n)
				}
				if got := w.usage(t, starter, noon).ColdCalls; got != n {
					t.Errorf("%d calls are charged, want %d", got, n)
				}
				if left := w.client.ZCard(t.Context(), redis.OpenBulks()).Val(); left != 0 {
					t.Errorf("%d calls still wait for their jobs", left)
				}
				must(t, w.copyColdCalls(t.Context()))
				if len(w.ledger.calls) != n {
					t.Errorf("the ledger has %d calls, want %d", len(w.ledger.calls), n)
				}
			})
		}
	}
}

func TestIdempotencyKeyOfBulkCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 100, 2))
	req := bulkOf(3)
	req.IdempotencyKey = "once"
	first, err := w.AdmitMany(t.Context(), req)
	must(t, err)
	other := req
	other.BodyHash = [32]byte{1}
	if _, err := w.AdmitMany(t.Context(), other); !errors.Is(err, ErrIdempotencyReused) {
		t.Errorf("the key with another body = %v", err)
	}
	if _, _, err := w.ReplayMany(t.Context(), other); !errors.Is(err, ErrIdempotencyReused) {
		t.Errorf("replay of the key with another body = %v", err)
	}
	single := AdmitRequest{Account: starter, KeyID: "key", Domain: "acme.com", Now: noon, IdempotencyKey: "once", BodyHash: [32]byte{2}}
	if _, err := w.Admit(t.Context(), single); !errors.Is(err, ErrIdempotencyReused) {
		t.Errorf("the key of a bulk call for one company = %v", err)
	}
	single.IdempotencyKey = "single"
	if _, err := w.Admit(t.Context(), single); err != nil {
		t.Fatal(err)
	}
	many := req
	many.IdempotencyKey = "single"
	if _, err := w.AdmitMany(t.Context(), many); !errors.Is(err, ErrIdempotencyReused) {
		t.Errorf("the key of a call for one company for many = %v", err)
	}
	later := req
	later.Now = noon.Add(idempotencyWindow)
	again, err := w.AdmitMany(t.Context(), later)
	if err != nil || again.Replayed || maps.Equal(again.Jobs, first.Jobs) {
		t.Errorf("after a day = %+v, %v; want a new call", again, err)
	}
	if got := w.usage(t, starter, noon).ColdCalls; got != 7 {
		t.Errorf("%d calls are charged, want 3, 1 and 3", got)
	}
}

// The outcome of a call is not known: its refund comes before it, after it, or after its jobs are being opened.
func TestBulkCallAndItsRefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t, with(100, 100, 2))
	if _, err := w.AdmitMany(t.Context(), bulkOf(1)); err != nil {
		t.Fatal(err)
	}
	must(t, w.copyColdCalls(t.Context()))
	w.client.Del(t.Context(), w.client.Keys(t.Context(), redis.Bulk("*")).Val()...)
	before := dump(t, w)
	req := bulkOf(5)
	req.IdempotencyKey = "once"
	b := bulk{id: "lost", account: starter.ID, key: "key", created: noon}
	undo := refund{script: bulkRefundScript, keys: bulkKeys(b.account, b.key, "once", noon), id: b.id, month: monthOf(b.account, noon),
		plan: starter.Plan}
	for _, refundFirst := range []bool{false, true} {
		if refundFirst {
			must(t, w.refund(t.Context(), undo))
		}
		reply, err := w.runAdmitMany(t.Context(), req, b, "all")
		if want := map[bool]string{false: "admitted", true: "refunded"}[refundFirst]; err != nil || reply.outcome != want {
			t.Fatalf("admission = %+v, %v; want %s", reply, err, want)
		}
		for range 2 {
			must(t, w.refund(t.Context(), undo))
		}
		if w.client.Del(t.Context(), redis.Bulk(b.id)).Val() != 1 {
			t.Error("the refund is not remembered")
		}
		if after := dump(t, w); !slices.Equal(before, after) {
			t.Errorf("after the refund Redis holds\n%q, want\n%q", after, before)
		}
	}
	reply, err := w.runAdmitMany(t.Context(), req, b, "all")
	must(t, err)
	if _, found, err := w.ReplayMany(t.Context(), req); err != nil || !found {
		t.Fatalf("replay = %v, %v", found, err)
	}
	must(t, w.refund(t.Context(), undo)) // removes nothing: the caller has the jobs
	if got := w.usage(t, starter, noon).ColdCalls; got != 6 || len(w.jobs(t)) != 6 {
		t.Errorf("%d calls are charged, %d jobs are stored; want 6 with %d of the replay", got, len(w.jobs(t)), len(reply.calls))
	}
}

// BenchmarkBulkBlocksRedis measures how long Redis works on each script of calls for 1,000 companies.
func BenchmarkBulkBlocksRedis(b *testing.B) {
	w := newWorld(b, with(1<<40, 1<<40, 2))
	must(b, w.client.ConfigSet(b.Context(), "slowlog-log-slower-than", "0").Err())
	must(b, w.client.ConfigSet(b.Context(), "slowlog-max-len", "1000000").Err())
	must(b, w.client.Do(b.Context(), "SLOWLOG", "RESET").Err())
	calls := 0
	for b.Loop() {
		calls++
		acct := account.Account{ID: fmt.Sprint("account", calls), Plan: account.Enterprise}
		req := BulkRequest{Account: acct, KeyID: fmt.Sprint("key", calls), Now: noon, IdempotencyKey: fmt.Sprint(calls)}
		for i := range 1000 {
			req.Domains = append(req.Domains, fmt.Sprintf("company-%d-%d.com", calls, i))
		}
		if _, err := w.AdmitMany(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
	log, err := w.client.SlowLogGet(b.Context(), 1_000_000).Result()
	must(b, err)
	for name, script := range map[string]string{"admit": bulkAdmitScript.Hash(), "open": bulkOpenScript.Hash()} {
		var took []time.Duration
		for _, entry := range log {
			if len(entry.Args) > 1 && entry.Args[1] == script {
				took = append(took, entry.Duration)
			}
		}
		slices.Sort(took)
		for _, q := range []struct {
			name  string
			share float64
		}{{"p50", 0.5}, {"p99", 0.99}} {
			b.ReportMetric(float64(took[int(q.share*float64(len(took)-1))].Microseconds())/1000, name+"-"+q.name+"-ms")
		}
	}
}
