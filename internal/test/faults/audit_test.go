package faults

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// record is a row of v1_score_history.
type record struct {
	domain   string
	scoredAt int64 // unix ms
	run      string
}

// run is a row of v1_run that made a score.
type run struct {
	id, domain, outcome string
	attempts            int
	err                 string
}

// charge is a row of cold_call that was not refunded.
type charge struct {
	job, run, account string
}

// usage is what an account used in the month.
type usage struct{ cold, cached int }

// stored is the stored data after the load.
type stored struct {
	records []record
	copies  int // rows of score_history that replace another and are not merged yet
	latest  map[string]int64
	ranked  int // companies that the statistics count
	runs    []run
	charges []charge
	open    []string         // runs in flight
	usage   map[string]usage // of GET /v1/usage, by account
	tables  map[string]usage // of v1_usage_daily, by account
}

// span is a time in which cached calls that were counted may be lost.
type span struct{ from, to time.Time }

// audit compares the ledger with what is stored and returns what differs. Nothing may
// be added to the ledger meanwhile.
func audit(l *ledger, s *stored, lossy []span) (found []difference) {
	differ := func(kind, format string, args ...any) {
		found = append(found, difference{kind: kind, detail: fmt.Sprintf(format, args...)})
	}
	byRun := make(map[string][]record)
	byTime := make(map[record]int)
	for _, r := range s.records {
		byRun[r.run] = append(byRun[r.run], r)
		byTime[record{domain: r.domain, scoredAt: r.scoredAt}]++
	}
	auditRecords(s, byRun, byTime, differ)

	rows := make(map[string][]charge)
	chargedRows := make(map[string]int)
	for _, c := range s.charges {
		rows[c.job] = append(rows[c.job], c)
		chargedRows[c.account]++
	}
	runs := make(map[string]run)
	for _, r := range s.runs {
		runs[r.id] = r
	}
	acknowledged := make(map[*account]int)
	for _, id := range slices.Sorted(maps.Keys(l.jobs)) {
		j := l.jobs[id]
		acknowledged[j.Operation.Account]++
		mine := rows[id]
		if len(mine) != 1 {
			differ(ledgerRow, "job %s has %d rows: %s", id, len(mine), j.Operation)
			mine = append(mine, charge{})
		}
		worked := runs[mine[0].run]
		switch j.Status {
		case "unknown": // the poll noted it
		case "complete":
			made := record{domain: j.Domain, scoredAt: j.ScoredAt.UnixMilli()}
			if n := byTime[made]; n != 1 {
				differ(jobNoRecord, "job %s names the record of %s: there are %d, run %s %s: %s", id, j.ScoredAt, n, mine[0].run,
					worked.outcome, j.Operation)
			}
		case "failed":
			if j.Reason != "sfn_failed" || worked.attempts < attemptsMost {
				differ(jobFailed, "job %s: %s; run %s %s after %d attempts, error %q: %s", id, j.Reason, mine[0].run, worked.outcome,
					worked.attempts, worked.err, j.Operation)
			}
		default:
			differ(jobUnsettled, "job %s is %s; run %s %s: %s", id, j.Status, mine[0].run, worked.outcome, j.Operation)
		}
	}
	refused := make(map[*account]bool)
	unknown := make(map[*account]int)
	for _, op := range l.operations {
		unknown[op.Account] += op.mayCost()
		for _, a := range op.Attempts {
			refused[op.Account] = refused[op.Account] || a.Outcome == "429"
		}
	}
	for _, a := range l.accounts {
		charged := s.usage[a.ID].cold
		least, most := acknowledged[a], acknowledged[a]+unknown[a]
		if charged < least {
			differ(chargeTooLow, "account %s: %d jobs acknowledged, %d charged", a.Name, least, charged)
		}
		if charged > most {
			differ(chargeTooHigh, "account %s: %d jobs acknowledged, %d more calls may have been charged, %d were", a.Name, least,
				unknown[a], charged)
		}
		if a.Budget != unmetered && charged > a.Budget {
			differ(budgetExceeded, "account %s: %d charged of %d", a.Name, charged, a.Budget)
		}
		if a.Budget != unmetered && refused[a] && most < a.Budget {
			differ(refusedEarly, "account %s: refused, with at most %d of %d charged", a.Name, most, a.Budget)
		}
		if chargedRows[a.ID] != charged {
			differ(ledgerRow, "account %s: %d charged, %d rows of cold_call", a.Name, charged, chargedRows[a.ID])
		}
		if s.tables[a.ID] != s.usage[a.ID] {
			differ(usageTable, "account %s: the interface says %+v, v1_usage_daily %+v", a.Name, s.usage[a.ID], s.tables[a.ID])
		}
		auditCached(a, l.cached[a], s.usage[a.ID].cached, lossy, differ)
	}
	return found
}

// attemptsMost is the maximum number of attempts of a run.
const attemptsMost = 4

// mayCost returns the number of calls of an operation that may have been charged without a
// job. An Idempotency-Key is charged at most once.
func (op *operation) mayCost() int {
	switch {
	case op.Key == "":
		return op.Unknown
	case len(op.Jobs) == 0 && op.Unknown > 0:
		return 1
	}
	return 0
}

func auditRecords(s *stored, byRun map[string][]record, byTime map[record]int, differ func(kind, format string, args ...any)) {
	logged := make(map[string]bool)
	for _, r := range s.runs {
		logged[r.id] = true
		n := len(byRun[r.id])
		switch r.outcome {
		case "succeeded":
			if n != 1 {
				differ(runRecords, "run %s of %s succeeded and has %d records: %v", r.id, r.domain, n, byRun[r.id])
			}
		case "failed", "timed_out", "aborted":
			if n > 1 {
				differ(runRecords, "run %s of %s %s and has %d records: %v", r.id, r.domain, r.outcome, n, byRun[r.id])
			}
		default:
			differ(runOpen, "run %s of %s is %s in the run log", r.id, r.domain, r.outcome)
		}
	}
	for _, id := range s.open {
		differ(runOpen, "run %s is in the queue", id)
	}
	newest := make(map[string]int64)
	for _, r := range s.records {
		newest[r.domain] = max(newest[r.domain], r.scoredAt)
		if !logged[r.run] {
			differ(recordAlone, "the record %v has a run that is not in the run log", r)
		}
	}
	for r, n := range byTime {
		if n != 1 {
			differ(recordTwice, "%s has %d records of %d", r.domain, n, r.scoredAt)
		}
	}
	if s.ranked != len(newest) {
		differ(notCounted, "%d of %d companies", s.ranked, len(newest))
	}
	for domain, at := range newest {
		if s.latest[domain] != at {
			differ(latestBehind, "the newest record of %s is of %d, its latest score of %d", domain, at, s.latest[domain])
		}
	}
}

func auditCached(a *account, calls *cachedCalls, counted int, lossy []span, differ func(kind, format string, args ...any)) {
	answered := len(calls.answered)
	mayBeLost := 0
	for _, at := range calls.answered {
		if slices.ContainsFunc(lossy, func(s span) bool { return at.After(s.from) && at.Before(s.to) }) {
			mayBeLost++
		}
	}
	if counted > answered+calls.unknown {
		differ(cachedTooHigh, "account %s: %d calls answered, %d without an answer, %d counted", a.Name, answered, calls.unknown, counted)
	}
	if counted < answered-mayBeLost {
		differ(cachedTooLow, "account %s: %d calls answered, of which %d just before up was killed, %d counted", a.Name, answered,
			mayBeLost, counted)
	}
}

const (
	// lossBefore is how long before the kill of a server the cached calls that it
	// answered may not have reached Redis: 0.1 s, and what a busy machine adds.
	lossBefore = 5 * time.Second
	// storeBack is how long after a fault of a store the counts of a server may not have
	// reached Redis yet.
	storeBack = 8 * time.Second
)

// lossySpans are the times before each kill of `up` in which cached calls may be lost. A
// fault of a store shortly before it makes them longer: counts wait in memory for Redis, and
// for the ledger in ClickHouse if Redis has no count of the month.
func lossySpans(done []*doneFault) (spans []span) {
	for i, f := range done {
		if f.victim != "up" {
			continue
		}
		from := f.at.Add(-lossBefore)
		for _, earlier := range slices.Backward(done[:i]) {
			if earlier.victim == "up" {
				break
			}
			begun := earlier.at.Add(-lossBefore)
			if (earlier.victim == "redis-server" || earlier.victim == "clickhouse") && earlier.end.Add(storeBack).After(from) &&
				begun.Before(from) {
				from = begun
			}
		}
		spans = append(spans, span{from, f.end})
	}
	return spans
}

// sound is a ledger and what is stored, without a difference.
func sound(t *testing.T) (*ledger, *stored) {
	t.Helper()
	big := &account{Name: "big", ID: "A1", Tier: "enterprise", Keys: []string{"k1", "k2"}, Budget: unmetered}
	small := &account{Name: "small", ID: "A2", Tier: "growth", Keys: []string{"k3"}, Budget: 3}
	l, err := newLedger(t.TempDir()+"/ledger", []*account{big, small})
	if err != nil {
		t.Fatal(err)
	}
	s := &stored{latest: make(map[string]int64), usage: make(map[string]usage)}
	for i, a := range []*account{big, big, small} {
		op := l.begin(&operation{Account: a, Key: fmt.Sprint("order ", i), Domain: fmt.Sprintf("company-%d.com", i)})
		id, at := fmt.Sprint("job-", i), time.UnixMilli(int64(1000+i))
		l.attempted(op, attempt{Domain: op.Domain, Outcome: "none"}, true)
		l.attempted(op, attempt{Domain: op.Domain, Outcome: "202", Job: id}, false)
		l.polled(l.next(), "complete", at, "")
		s.records = append(s.records, record{op.Domain, at.UnixMilli(), fmt.Sprint("run-", i)})
		s.latest[op.Domain] = at.UnixMilli()
		s.runs = append(s.runs, run{id: fmt.Sprint("run-", i), domain: op.Domain, outcome: "succeeded", attempts: 1})
		s.charges = append(s.charges, charge{id, fmt.Sprint("run-", i), a.ID})
	}
	s.ranked = 3
	unsure := l.begin(&operation{Account: small, Domain: "company-4.com"})
	l.attempted(unsure, attempt{Outcome: "500"}, true)
	l.countCached(big, 10)
	l.mayCount(big, 2)
	s.usage["A1"], s.usage["A2"] = usage{2, 11}, usage{1, 0}
	s.tables = maps.Clone(s.usage)
	return l, s
}

// TestAuditNamesEachDifference makes one thing wrong at a time.
func TestAuditNamesEachDifference(t *testing.T) {
	t.Parallel()
	l, s := sound(t)
	if found := audit(l, s, nil); len(found) > 0 || len(l.differences) > 0 {
		t.Fatalf("differences without a fault: %v %v", found, l.differences)
	}
	for name, c := range map[string]struct {
		kind  string
		spoil func(l *ledger, s *stored)
	}{
		"a job that polls do not know": {jobUnknown, func(l *ledger, _ *stored) { l.polled(l.jobs["job-1"], "unknown", time.Time{}, "") }},
		"a settled job that changes": {jobChanged, func(l *ledger, _ *stored) {
			l.polled(l.jobs["job-1"], "complete", time.UnixMilli(5), "")
		}},
		"a job that is pending": {jobUnsettled, func(l *ledger, _ *stored) { l.jobs["job-1"].Status = "pending" }},
		"a job that failed": {jobFailed, func(l *ledger, _ *stored) {
			l.jobs["job-1"].Status, l.jobs["job-1"].Reason = "failed",
				"sfn_timed_out"
		}},
		"a job that failed early": {jobFailed, func(l *ledger, _ *stored) {
			l.jobs["job-1"].Status, l.jobs["job-1"].Reason = "failed",
				"sfn_failed"
		}},
		"a record that is gone":        {jobNoRecord, func(_ *ledger, s *stored) { s.records = s.records[1:] }},
		"a record that is there twice": {recordTwice, func(_ *ledger, s *stored) { s.records = append(s.records, s.records[0]) }},
		"a run with two records": {runRecords, func(_ *ledger, s *stored) {
			s.records = append(s.records, record{"company-0.com", 999, "run-0"})
		}},
		"a failed run with two records": {runRecords, func(_ *ledger, s *stored) {
			s.runs[0].outcome = "failed"
			s.records = append(s.records, record{"company-0.com", 999, "run-0"})
		}},
		"a run without a record": {runRecords, func(_ *ledger, s *stored) {
			s.runs = append(s.runs, run{id: "run-9", outcome: "succeeded"})
		}},
		"a record of no run": {recordAlone, func(_ *ledger, s *stored) {
			s.records = append(s.records, record{"company-0.com", 999, "run-9"})
		}},
		"a run that did not end":        {runOpen, func(_ *ledger, s *stored) { s.runs[0].outcome = "running" }},
		"a run in the queue":            {runOpen, func(_ *ledger, s *stored) { s.open = []string{"run-9"} }},
		"statistics that are behind":    {notCounted, func(_ *ledger, s *stored) { s.ranked-- }},
		"a latest score that is behind": {latestBehind, func(_ *ledger, s *stored) { s.latest["company-0.com"]-- }},
		"a charge too few":              {chargeTooLow, func(_ *ledger, s *stored) { s.usage["A1"] = usage{1, 10} }},
		"a charge too many":             {chargeTooHigh, func(_ *ledger, s *stored) { s.usage["A1"] = usage{3, 10} }},
		"a budget that is exceeded":     {budgetExceeded, func(_ *ledger, s *stored) { s.usage["A2"] = usage{4, 0} }},
		"a refusal within the budget": {refusedEarly, func(l *ledger, _ *stored) {
			l.attempted(l.operations[3], attempt{Outcome: "429"}, false)
		}},
		"a job without a row": {ledgerRow, func(_ *ledger, s *stored) { s.charges = s.charges[1:] }},
		"a job with two rows": {ledgerRow, func(_ *ledger, s *stored) { s.charges = append(s.charges, s.charges[0]) }},
		"a row without a charge": {ledgerRow, func(_ *ledger, s *stored) {
			s.charges = append(s.charges, charge{"job-9", "run-9", "A1"})
		}},
		"a table of usage that is behind": {usageTable, func(_ *ledger, s *stored) { s.tables["A1"] = usage{2, 10} }},
		"a cached call too many":          {cachedTooHigh, func(_ *ledger, s *stored) { s.usage["A1"] = usage{2, 13} }},
		"a cached call too few":           {cachedTooLow, func(_ *ledger, s *stored) { s.usage["A1"] = usage{2, 9} }},
		"a key with two jobs": {keyWithTwoJobs, func(l *ledger, _ *stored) {
			l.attempted(l.operations[0], attempt{Job: "job-9"}, false)
		}},
		"a job of two calls": {jobOfTwoCalls, func(l *ledger, _ *stored) {
			l.attempted(l.operations[0], attempt{Job: "job-1"}, false)
		}},
		"a read that finds nothing": {staleRead, func(l *ledger, _ *stored) {
			l.read("GET", "company-0.com", l.floor("company-0.com"), time.Time{})
		}},
		"a read that finds an older record": {staleRead, func(l *ledger, _ *stored) {
			l.read("GET", "company-0.com", l.floor("company-0.com"), time.UnixMilli(999))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := sound(t)
			c.spoil(l, s)
			found := append(l.differences, audit(l, s, nil)...)
			if !slices.ContainsFunc(found, func(d difference) bool { return d.kind == c.kind && strings.TrimSpace(d.detail) != "" }) {
				t.Errorf("want %q, got %v", c.kind, found)
			}
		})
	}
}

// TestAuditAllowsWhatIsDocumented makes wrong what the documents allow.
func TestAuditAllowsWhatIsDocumented(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		spoil func(l *ledger, s *stored)
		lossy []span
	}{
		"a charge of a call without an answer": {spoil: func(_ *ledger, s *stored) {
			s.usage["A2"], s.tables["A2"] = usage{2, 0}, usage{2, 0}
			s.charges = append(s.charges, charge{"job-9", "run-9", "A2"})
		}},
		"a failure after four attempts": {spoil: func(l *ledger, s *stored) {
			l.jobs["job-1"].Status, l.jobs["job-1"].Reason = "failed", "sfn_failed"
			s.runs[1].outcome, s.runs[1].attempts = "failed", attemptsMost
		}},
		"cached calls lost with a server": {
			spoil: func(_ *ledger, s *stored) { s.usage["A1"], s.tables["A1"] = usage{2, 1}, usage{2, 1} },
			lossy: []span{{now.Add(-time.Minute), now.Add(time.Minute)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, s := sound(t)
			c.spoil(l, s)
			if found := append(l.differences, audit(l, s, c.lossy)...); len(found) > 0 {
				t.Errorf("got %v", found)
			}
		})
	}
}

func TestLossySpans(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	done := func(kind, victim string, from, to int) *doneFault {
		return &doneFault{fault: fault{kind: kind, victim: victim}, at: at(from), end: at(to)}
	}
	got := lossySpans([]*doneFault{
		done(kill, "redis-server", 0, 0), done(kill, "up", 30, 31), // long over
		done(freeze, "redis-server", 40, 46), done(kill, "worker", 47, 47), done(kill, "up", 50, 51), // still felt
		done(kill, "up", 57, 58),                                   // counts of the server before do not wait any more
		done(kill, "clickhouse", 90, 91), done(kill, "up", 92, 93), // begun less than lossBefore ago
	})
	want := []span{{at(25), at(31)}, {at(35), at(51)}, {at(52), at(58)}, {at(85), at(93)}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
