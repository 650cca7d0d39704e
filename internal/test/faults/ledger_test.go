package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"time"
)

// account is a customer of the load.
type account struct {
	Name, ID, Tier string
	Keys           []string
	Budget         int // cold calls a month; unmetered for none
}

const unmetered = -1

// operation is a cold call that a caller wants once: one POST, or several with one
// Idempotency-Key. The ledger guards its fields.
type operation struct {
	Account  *account
	Key      string // the Idempotency-Key, empty without one
	Domain   string
	Forced   bool
	Attempts []attempt
	Jobs     []string // different ones that were acknowledged
	Unknown  int      // attempts with an unknown charge
}

// attempt is one POST of an operation and its outcome.
type attempt struct {
	At      time.Time
	Domain  string
	Request string // X-Request-Id
	Outcome string // as in the table of calls
	Job     string
}

func (op *operation) String() string {
	text := fmt.Sprintf("account %s, domain %s, Idempotency-Key %q", op.Account.Name, op.Domain, op.Key)
	for _, a := range op.Attempts {
		text += fmt.Sprintf("\n      %s POST %s: %s %s", a.At.UTC().Format(clockFormat), a.Request, a.Outcome, a.Job)
	}
	return text
}

const clockFormat = "15:04:05.000"

// job is an acknowledged job and what polls said of it.
type job struct {
	ID        string
	Operation *operation
	Domain    string
	At        time.Time     // of the acknowledgement
	Took      time.Duration // from then until a poll saw it settled
	Status    string        // of the last poll: pending, complete, failed, or unknown for 404
	ScoredAt  time.Time
	Reason    string // failure_reason
}

// difference is a deviation from the expected state.
type difference struct {
	at     time.Time // when it showed; zero for what the comparison at the end found
	kind   string
	detail string
}

// ledger has the answers that callers got. It is safe for concurrent use.
type ledger struct {
	mu          sync.Mutex
	accounts    []*account
	operations  []*operation
	jobs        map[string]*job
	unsettled   []*job               // to be polled, in turn
	newest      map[string]time.Time // scored_at of the newest record of a domain that a caller was told of
	cached      map[*account]*cachedCalls
	calls       map[string]map[string]int // by operation of the document, then by outcome
	replays     map[string]int            // replays of an Idempotency-Key by their outcome
	ownReads    int                       // reads that had to find a record
	answers     map[string][]time.Duration
	analyst     map[string]int
	differences []difference
	file        *os.File
	lines       *bufio.Writer
}

// cachedCalls are the calls of an account that were answered from a stored score.
type cachedCalls struct {
	answered []time.Time // one entry for each call that counts
	unknown  int         // calls without an answer, which may count
}

func newLedger(path string, accounts []*account) (*ledger, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l := &ledger{
		accounts: accounts, jobs: make(map[string]*job), newest: make(map[string]time.Time), cached: make(map[*account]*cachedCalls),
		calls: make(map[string]map[string]int), replays: make(map[string]int), answers: make(map[string][]time.Duration),
		analyst: make(map[string]int),
		file:    file, lines: bufio.NewWriter(file),
	}
	for _, a := range accounts {
		l.cached[a] = new(cachedCalls)
	}
	return l, nil
}

// close writes the rest of the file.
func (l *ledger) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lines.Flush(); err != nil {
		return err
	}
	return l.file.Close()
}

// write appends a line to the file; the ledger is locked.
func (l *ledger) write(fields map[string]any) {
	line, err := json.Marshal(fields)
	if err == nil {
		_, err = l.lines.Write(append(line, '\n'))
	}
	if err != nil {
		panic(err) // a full disk ends the test
	}
}

// differ records a difference found now.
func (l *ledger) differ(kind, format string, args ...any) {
	l.differAt(time.Now(), kind, format, args...)
}

// differAt records a difference found at a time.
func (l *ledger) differAt(at time.Time, kind, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.noteAt(at, kind, format, args...)
}

// note is differ while the ledger is locked.
func (l *ledger) note(kind, format string, args ...any) { l.noteAt(time.Now(), kind, format, args...) }

func (l *ledger) noteAt(at time.Time, kind, format string, args ...any) {
	d := difference{at, kind, fmt.Sprintf(format, args...)}
	l.differences = append(l.differences, d)
	l.write(map[string]any{"at": d.at, "difference": kind, "detail": d.detail})
}

// begin adds an operation.
func (l *ledger) begin(op *operation) *operation {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.operations = append(l.operations, op)
	return op
}

// attempted adds the outcome of a POST. An attempt that names a job acknowledges it;
// unknown means that it may have been charged.
func (l *ledger) attempted(op *operation, a attempt, unknown bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	op.Attempts = append(op.Attempts, a)
	if unknown {
		op.Unknown++
	}
	l.write(map[string]any{"at": a.At, "account": op.Account.Name, "key": op.Key, "domain": a.Domain, "forced": op.Forced,
		"request": a.Request, "outcome": a.Outcome, "job": a.Job, "unknown": unknown})
	if a.Job == "" {
		return
	}
	known := l.jobs[a.Job]
	switch {
	case known == nil:
		known = &job{ID: a.Job, Operation: op, Domain: a.Domain, At: time.Now(), Status: "pending"}
		l.jobs[a.Job] = known
		l.unsettled = append(l.unsettled, known)
		if op.Jobs = append(op.Jobs, a.Job); len(op.Jobs) > 1 {
			l.note(keyWithTwoJobs, "jobs %v: %s", op.Jobs, op)
		}
	case known.Operation != op:
		l.note(jobOfTwoCalls, "job %s: %s\n    and %s", a.Job, known.Operation, op)
	}
}

// next returns a job to poll, nil when there is none. Its caller gives it to polled.
func (l *ledger) next() *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.unsettled) == 0 {
		return nil
	}
	j := l.unsettled[0]
	l.unsettled = l.unsettled[1:]
	return j
}

// polled adds the result of a poll; an empty status means no answer.
func (l *ledger) polled(j *job, status string, scoredAt time.Time, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if status == "" {
		l.unsettled = append(l.unsettled, j)
		return
	}
	settled := j.Status == "complete" || j.Status == "failed"
	switch {
	case settled && status != "unknown" && (status != j.Status || !scoredAt.Equal(j.ScoredAt)):
		l.note(jobChanged, "job %s was %s %s, then %s %s", j.ID, j.Status, j.ScoredAt, status, scoredAt)
	case status == "unknown" && j.Status != "unknown":
		l.note(jobUnknown, "job %s, acknowledged at %s: %s", j.ID, j.At.UTC().Format(clockFormat), j.Operation)
	}
	if status != j.Status {
		j.Took = time.Since(j.At)
		l.write(map[string]any{"at": time.Now(), "job": j.ID, "status": status, "scored_at": scoredAt, "reason": reason})
	}
	j.Status, j.ScoredAt, j.Reason = status, scoredAt, reason
	if status == "pending" {
		l.unsettled = append(l.unsettled, j)
	}
	if status == "complete" && scoredAt.After(l.newest[j.Domain]) {
		l.newest[j.Domain] = scoredAt
	}
}

// anyJob returns an acknowledged job, nil when there is none.
func (l *ledger) anyJob(random *rand.Rand) *job {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.operations) == 0 {
		return nil
	}
	jobs := pick(random, l.operations).Jobs
	if len(jobs) == 0 {
		return nil
	}
	return l.jobs[jobs[0]]
}

// floor returns the scored_at of the newest record of a domain in an answer, zero if there is
// none. A read that begins now must return this record or a newer one.
func (l *ledger) floor(domain string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.newest[domain]
}

// read compares what a read found, zero for nothing, with what it had to find.
func (l *ledger) read(what, domain string, floor, found time.Time) {
	if floor.IsZero() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ownReads++
	if found.Before(floor) {
		l.note(staleRead, "%s of %s found the record of %s; before it began a poll had named %s", what, domain, found.Format(clockFormat),
			floor.Format(clockFormat))
	}
}

// countCached adds calls that were answered from stored scores.
func (l *ledger) countCached(a *account, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for range n {
		l.cached[a].answered = append(l.cached[a].answered, now)
	}
}

// mayCount adds calls without an answer, which may have been counted.
func (l *ledger) mayCount(a *account, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cached[a].unknown += n
}

// called adds a call to the table of calls.
func (l *ledger) called(operation, outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls[operation] == nil {
		l.calls[operation] = make(map[string]int)
	}
	l.calls[operation][outcome]++
}

// replayed adds the outcome of a replay.
func (l *ledger) replayed(outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.replays[outcome]++
}

// answeredIn adds how long a hot read took in a phase.
func (l *ledger) answeredIn(phase string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[phase] = append(l.answers[phase], took)
}

// analysed adds the outcome of a statement of the analyst.
func (l *ledger) analysed(outcome string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.analyst[outcome]++
}

// The kinds of differences.
const (
	restartFailed  = "restart failed"
	processDied    = "process died of itself"
	childMissing   = "child did not come back"
	noAnswer       = "no answer while up ran"
	undocumented   = "answer not as documented"
	errorInPeace   = "error without a fault"
	wrongAnswer    = "wrong answer"
	staleRead      = "own write not readable"
	jobUnknown     = "acknowledged job unknown"
	jobUnsettled   = "acknowledged job not settled"
	jobFailed      = "acknowledged job failed"
	jobChanged     = "settled job changed"
	jobOfTwoCalls  = "job of two calls"
	jobNoRecord    = "job without its record"
	keyWithTwoJobs = "Idempotency-Key with two jobs"
	runRecords     = "run without exactly one record"
	recordTwice    = "record twice"
	recordAlone    = "record without a run"
	runOpen        = "run left open"
	notCounted     = "statistics without every company"
	latestBehind   = "latest score behind history"
	chargeTooLow   = "charged less than acknowledged"
	chargeTooHigh  = "charged more than asked for"
	budgetExceeded = "budget exceeded"
	refusedEarly   = "refused within the budget"
	ledgerRow      = "job without one row in cold_call"
	usageTable     = "usage in ClickHouse differs"
	cachedTooHigh  = "more cached calls than asked for"
	cachedTooLow   = "cached calls lost"
	stopFailed     = "stop failed"
	processLeft    = "process left behind"
)
