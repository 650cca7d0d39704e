package faults

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/redis"
	"companyscore/internal/test/extent"
	"companyscore/internal/test/openapicheck"
	"companyscore/internal/test/program"
	"companyscore/scoring"
)

var (
	// The default plan kills its last worker early, so that jobs settle soon after the load,
	// and freezes Redis once for so long that calls fail.
	seed   = flag.Uint64("seed", 3457, "chooses the faults, their order and pauses, and what callers do")
	length = flag.Duration("for", 15*time.Second, "how long the load lasts")
)

const (
	hotCompanies = 100
	companies    = 4000 // with imported facts
	// settleTimeout is how long after the load jobs may take to settle: four leases of a
	// run whose workers died, and the time stores take to come back.
	settleTimeout = 2 * time.Minute
	// copyTimeout is how long after that copies in ClickHouse may be behind.
	copyTimeout = time.Minute
	// checkers is how many calls are made at once when all is quiet.
	checkers = 8
)

// TestLedger runs a load and a plan of faults against a live system, and compares the answers
// with the stored data. docs/consistency.md has the list.
func TestLedger(t *testing.T) {
	extent.Crash(t)
	if runtime.GOOS != "linux" {
		t.Skip("children are found in /proc")
	}
	dir, err := os.MkdirTemp("", "cs-faults-") // short, as unix sockets are made in it
	if err != nil {
		t.Fatal(err)
	}
	// An interrupt ends the test in order, so that nothing runs on.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	limit := *length + 15*time.Minute
	if deadline, ok := t.Deadline(); ok {
		limit = min(limit, time.Until(deadline)-program.Timeout)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	binary, err := program.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	system := program.New(binary, dir, "--tiers", filepath.Join(dir, "tiers.yaml"), "--log-format", "json")
	t.Cleanup(func() {
		for _, pid := range system.Processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended this instant
		}
		if !t.Failed() {
			os.RemoveAll(dir)
		}
	})
	e := experiment{dir: dir, system: system, began: time.Now()}
	if err := e.run(ctx); err != nil {
		t.Error(err)
	}
	if e.ledger == nil {
		return
	}
	if err := e.report(os.Stdout); err != nil {
		t.Error(err)
	}
	if n := len(e.ledger.differences); n > 0 {
		t.Errorf("%d differences; all is kept in %s", n, dir)
	}
}

// experiment is one run of the test. It is not safe for concurrent use, except where noted.
type experiment struct {
	dir     string
	system  *program.System
	load    *load
	ledger  *ledger
	target  *target
	stored  *stored
	began   time.Time
	loaded  time.Duration // how long the load lasted
	settled time.Duration // after the load, until the last job was settled
	equal   time.Duration // after the load, until nothing differed or the time was over
	deaths  *deaths
}

// run starts a system, runs the load and the faults, and compares. It returns an error if the
// experiment could not run; differences are in the ledger.
func (e *experiment) run(ctx context.Context) error {
	if err := e.prepare(ctx); err != nil {
		return err
	}
	plan := newPlan(*seed, *length)
	fmt.Printf("seed %d: %d faults in %s\n", *seed, len(plan), *length)
	for i, f := range plan {
		fmt.Printf("  %3d  after %4.1f s  %s\n", i+1, f.pause.Seconds(), f)
	}
	loading, stop := context.WithCancel(ctx)
	var callers sync.WaitGroup
	began := time.Now()
	callers.Go(func() { e.load.run(loading) })
	n := 0
	err := e.target.run(ctx, plan, func(f *doneFault) {
		n++
		fmt.Printf("%6.1f s  %3d  %s%s\n", f.at.Sub(began).Seconds(), n, f.fault, f.outcome())
	})
	if err == nil {
		rest(ctx, *length-time.Since(began))
	}
	stop()
	if errors.Is(err, errNotBack) {
		e.target.serve() // there are no callers any more
	}
	callers.Wait()
	e.loaded = time.Since(began)
	if err != nil {
		return err
	}
	if err := e.compare(ctx, time.Now()); err != nil {
		return err
	}
	e.stop()
	return ctx.Err()
}

// prepare starts the system and makes its accounts and companies.
func (e *experiment) prepare(ctx context.Context) error {
	growth, scale := max(20, int(2*length.Seconds())), max(30, int(3*length.Seconds()))
	tiers := fmt.Sprintf("tiers:\n  growth: {cold_calls_included: %d}\n  scale: {cold_calls_included: %d}\nbreakers:\n"+
		"  cold_per_key: {limit: 1000000}\n", growth, scale)
	var text strings.Builder
	text.WriteString("domain,company_name,country,industry,employees,revenue_usd,founded_year\n")
	domains := make([]string, companies)
	for i := range domains {
		domains[i] = fmt.Sprintf("company-%d.com", i)
		fmt.Fprintf(&text, "%s,Company %d,US,Software,%d,%d,%d\n", domains[i], i, 10+i, 1_000_000+1000*i, 1950+i%70)
	}
	for name, text := range map[string]string{"tiers.yaml": tiers, "companies.csv": text.String(),
		"hot.txt": strings.Join(domains[:hotCompanies], "\n") + "\n"} {
		if err := os.WriteFile(filepath.Join(e.dir, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if err := e.system.Start(); err != nil {
		return err
	}
	customers := []*account{
		{Name: "unmetered", Tier: "enterprise", Keys: make([]string, 1), Budget: unmetered},
		{Name: "two keys", Tier: "enterprise", Keys: make([]string, 2), Budget: unmetered},
		{Name: "small budget", Tier: "growth", Keys: make([]string, 1), Budget: growth},
		{Name: "shared budget", Tier: "scale", Keys: make([]string, 2), Budget: scale},
	}
	stranger := &account{Name: "stranger", Tier: "starter", Keys: make([]string, 1), Budget: 100}
	free := &account{Name: "free", Tier: "free", Keys: make([]string, 1), Budget: 0}
	for _, a := range append([]*account{stranger, free}, customers...) {
		if err := e.create(ctx, a); err != nil {
			return err
		}
	}
	sandbox, err := e.key(ctx, free.ID, "test")
	if err != nil {
		return err
	}
	if _, err := e.system.Command(ctx, "facts", "import", "--quiet", filepath.Join(e.dir, "companies.csv")); err != nil {
		return err
	}
	if _, err := e.system.Command(ctx, "run", "start", "--quiet", "--wait", "--from", filepath.Join(e.dir, "hot.txt")); err != nil {
		return err
	}
	if e.ledger, err = newLedger(filepath.Join(e.dir, "ledger.jsonl"), customers); err != nil {
		return err
	}
	e.target = newTarget(e.system, e.ledger)
	e.load = &load{
		target: e.target, ledger: e.ledger, seed: *seed * 1000, customers: customers, hot: domains[:hotCompanies],
		domains: domains[hotCompanies:],
		free:    free.Keys[0], stranger: stranger.Keys[0], sandbox: sandbox,
	}
	e.load.document, err = openapicheck.Load()
	return err
}

// create makes an account and its keys.
func (e *experiment) create(ctx context.Context, a *account) error {
	out, err := e.system.Command(ctx, "account", "create", "--name", a.Name, "--tier", a.Tier, "--json")
	if err != nil {
		return err
	}
	made, err := decode[struct {
		ID string `json:"account_id"`
	}]([]byte(out))
	if err != nil {
		return err
	}
	a.ID = made.ID
	for i := range a.Keys {
		if a.Keys[i], err = e.key(ctx, a.ID, "live"); err != nil {
			return err
		}
	}
	return nil
}

func (e *experiment) key(ctx context.Context, account, mode string) (string, error) {
	out, err := e.system.Command(ctx, "key", "create", "--account", account, "--mode", mode, "--json")
	if err != nil {
		return "", err
	}
	made, err := decode[struct {
		Key string `json:"api_key"`
	}]([]byte(out))
	return made.Key, err
}

// compare waits until all jobs are settled, reads everything that was acknowledged, and
// compares the ledger with what is stored.
func (e *experiment) compare(ctx context.Context, quiet time.Time) error {
	e.settle(ctx, quiet.Add(settleTimeout))
	e.settled = time.Since(quiet)
	e.replayAll(ctx)
	e.settle(ctx, time.Now().Add(settleTimeout)) // a replay that started another run is a difference of its own
	e.pollAll(ctx)
	for _, a := range e.ledger.accounts {
		// A call of the account has its counts copied to ClickHouse.
		e.untilAnswered(ctx, func() answer {
			read, _ := e.load.readScore(ctx, a, a.Keys[0], e.load.hot[0])
			return read
		})
	}
	lossy := lossySpans(e.target.done)
	for asked := time.Now(); ; {
		var err error
		if e.stored, err = e.collect(ctx); err != nil {
			return err
		}
		found := audit(e.ledger, e.stored, lossy)
		if len(found) == 0 || time.Since(asked) > copyTimeout || !rest(ctx, time.Second) {
			e.equal = time.Since(quiet)
			for _, d := range found {
				e.ledger.differ(d.kind, "%s", d.detail)
			}
			return nil
		}
	}
}

// settle polls until all jobs are settled, or the time is over.
func (e *experiment) settle(ctx context.Context, until time.Time) {
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	var pollers sync.WaitGroup
	for range checkers {
		pollers.Go(func() {
			for j := e.ledger.next(); j != nil; j = e.ledger.next() {
				status := e.load.pollOne(ctx, j, j.Operation.Account.Keys[0])
				if (status == "pending" || status == "") && !rest(ctx, 50*time.Millisecond) {
					return
				}
			}
		})
	}
	pollers.Wait()
}

// replayAll replays every Idempotency-Key with a job. It must return the same job.
func (e *experiment) replayAll(ctx context.Context) {
	each(e.ledger.operations, func(op *operation) {
		if op.Key == "" || len(op.Jobs) == 0 {
			return
		}
		e.untilAnswered(ctx, func() answer {
			a, _ := e.load.post(ctx, op.Account.Keys[0], op, op.Domain)
			if !a.failed() && a.status != http.StatusAccepted {
				e.load.wrong("replay, when all is quiet, of "+op.String(), a)
			}
			return a
		})
	})
}

// pollAll polls every settled job once more, with another key of its account if it has one.
func (e *experiment) pollAll(ctx context.Context) {
	each(slices.Collect(maps.Values(e.ledger.jobs)), func(j *job) {
		if j.Status != "complete" && j.Status != "failed" {
			return
		}
		keys := j.Operation.Account.Keys
		e.load.pollOne(ctx, j, keys[len(keys)-1])
	})
}

// each calls do for each of a list, some at once.
func each[T any](list []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(checkers)
	for _, v := range list {
		group.Go(func() error { do(v); return nil })
	}
	_ = group.Wait() // no call returns an error
}

// untilAnswered makes a call until it is answered, some times at most.
func (e *experiment) untilAnswered(ctx context.Context, call func() answer) {
	for range 20 {
		if a := call(); !a.failed() || !rest(ctx, 500*time.Millisecond) {
			return
		}
	}
}

// collect reads the stored data.
func (e *experiment) collect(ctx context.Context) (*stored, error) {
	s := &stored{latest: make(map[string]int64), usage: make(map[string]usage), tables: make(map[string]usage)}
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			panic(err) // the statements select numbers
		}
		return n
	}
	for _, query := range []struct {
		text string
		row  func(f []string)
	}{
		{"SELECT domain, toUnixTimestamp64Milli(scored_at), run_id FROM companyscore.v1_score_history", func(f []string) {
			s.records = append(s.records, record{f[0], number(f[1]), f[2]})
		}},
		{"SELECT count() FROM score_history", func(f []string) { s.copies = int(number(f[0])) }},
		{"SELECT domain, toUnixTimestamp64Milli(scored_at) FROM companyscore.v1_score_latest", func(f []string) {
			s.latest[f[0]] = number(f[1])
		}},
		{"SELECT id, subject, outcome, attempts, error FROM companyscore.v1_run WHERE kind = 'score'", func(f []string) {
			s.runs = append(s.runs, run{f[0], f[1], f[2], int(number(f[3])), f[4]})
		}},
		{"SELECT job_id, run_id, account_id FROM cold_call FINAL WHERE NOT refunded", func(f []string) {
			s.charges = append(s.charges, charge{f[0], f[1], f[2]})
		}},
		// In a night over the end of a month the newest month counts.
		{"SELECT account_id, cold_calls_month, cached_calls_month FROM companyscore.v1_usage_daily ORDER BY day", func(f []string) {
			s.tables[f[0]] = usage{int(number(f[1])), int(number(f[2]))}
		}},
	} {
		out, err := e.system.Command(ctx, "sql", "--operator", "--format", "TabSeparated", query.text)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(out) {
			query.row(strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
	}
	s.copies -= len(s.records)
	for _, a := range e.ledger.accounts {
		e.untilAnswered(ctx, func() answer {
			got, _ := e.load.call(ctx, http.MethodGet, "/v1/usage", a.Keys[0], "")
			if body, err := decode[usageBody](got.body); err == nil && got.status == http.StatusOK {
				s.usage[a.ID] = usage{body.Cold, body.Cached}
			}
			return got
		})
	}
	e.untilAnswered(ctx, func() answer {
		got, _ := e.load.call(ctx, http.MethodGet, "/v1/score/"+e.load.hot[0], e.load.stranger, "")
		if body, err := decode[struct {
			Rank struct {
				Size int `json:"cohort_size"`
			}
		}](got.body); err == nil {
			s.ranked = body.Rank.Size
		}
		return got
	})
	rdb, err := redis.Open(ctx, e.system.Runtime.RedisURL)
	if err != nil {
		return nil, err
	}
	defer rdb.Close()
	open := []string{redis.Leases(), redis.Retries()}
	for _, lane := range scoring.Lanes {
		open = append(open, redis.Lane(string(lane)))
	}
	for _, list := range open {
		ids, err := rdb.ZRange(ctx, list, 0, -1).Result()
		if err != nil {
			return nil, err
		}
		s.open = append(s.open, ids...)
	}
	return s, nil
}

// stop ends the system and looks at what it leaves behind.
func (e *experiment) stop() {
	if err := e.system.Stop(); err != nil {
		e.ledger.differ(stopFailed, "SIGTERM, when all is quiet: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), childTimeout)
	defer cancel()
	for len(e.system.Processes()) > 0 && rest(ctx, 50*time.Millisecond) {
	}
	if left := e.system.Processes(); len(left) > 0 {
		e.ledger.differ(processLeft, "processes %v run %s after up has ended", left, childTimeout)
	}
	e.deaths = e.readDeaths()
}

// deaths are the deaths of children in the log.
type deaths struct {
	killed map[string]int             // by child: deaths by SIGKILL
	exits  map[string]int             // by child: worker and batch that gave up while a store was away
	back   map[string][]time.Duration // by child: from a death until the next life was ready
}

// logName is what the log calls a child.
func logName(victim string) string {
	if victim == "worker" {
		return "work"
	}
	return victim
}

// logLine is a line of the log of `up` and its children.
type logLine struct {
	At         time.Time `json:"time"`
	Message    string    `json:"msg"`
	Child, Err string
	text       string
}

// readLog returns the lines of the log. Those that are not of the log itself, such as a
// panic, have no time.
func (e *experiment) readLog() (lines []logLine) {
	text, err := os.ReadFile(e.system.Log)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		l := logLine{text: strings.TrimSuffix(line, "\n")}
		_ = json.Unmarshal([]byte(line), &l) // what is not JSON has its text only
		lines = append(lines, l)
	}
	return lines
}

// deathLogged is how long after a kill the death may be in the log.
const deathLogged = 5 * time.Second

// readDeaths compares the logged deaths of children with those of the plan. A worker or batch
// without a store exits and is restarted; no other child may die by itself.
func (e *experiment) readDeaths() *deaths {
	d := &deaths{killed: make(map[string]int), exits: make(map[string]int), back: make(map[string][]time.Duration)}
	used := make(map[*doneFault]bool)
	planned := func(child string, at time.Time) bool {
		for _, f := range e.target.done {
			if f.kind == kill && logName(f.victim) == child && !used[f] && at.After(f.at) && at.Before(f.end.Add(deathLogged)) {
				used[f] = true
				return true
			}
		}
		return false
	}
	died := make(map[string]time.Time)
	for _, line := range e.readLog() {
		role := line.Child == "work" || line.Child == "batch"
		switch {
		case line.At.IsZero() && (strings.HasPrefix(line.text, "panic:") || strings.HasPrefix(line.text, "fatal error:")):
			e.ledger.differ(processDied, "the log says: %s", line.text)
		case line.Message == "child restarted":
			d.back[line.Child] = append(d.back[line.Child], line.At.Sub(died[line.Child]))
		case line.Message != "child died; restarting":
		case strings.Contains(line.Err, "signal: killed") && planned(line.Child, line.At):
			d.killed[line.Child]++
			died[line.Child] = line.At
		case role && strings.Contains(line.Err, "exit status 1") && e.target.troubled(line.At, line.At):
			d.exits[line.Child]++
		default:
			died[line.Child] = line.At
			e.ledger.differAt(line.At, processDied, "%s at %s: %s%s", line.Child, line.At.UTC().Format(clockFormat), line.Err,
				e.target.latest(line.At))
		}
	}
	return d
}

func TestDeathsOutsideThePlanAreNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := newLedger(filepath.Join(dir, "ledger"), nil)
	if err != nil {
		t.Fatal(err)
	}
	at := func(seconds float64) time.Time {
		return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
	}
	e := experiment{system: program.New("", dir), ledger: l, target: &target{done: []*doneFault{
		{fault: fault{kind: freeze, victim: "clickhouse"}, at: at(0), end: at(1)},
		{fault: fault{kind: kill, victim: "clickhouse"}, at: at(20), end: at(20)},
		{fault: fault{kind: kill, victim: "worker"}, at: at(30), end: at(30)},
	}}}
	var log strings.Builder
	for _, death := range []struct {
		at         float64
		child, err string
	}{
		{1.1, "clickhouse", "exited: signal: killed"}, // not killed by the plan
		{20.1, "clickhouse", "exited: signal: killed"},
		{20.2, "work", "exited: exit status 1"}, // it found no store
		{30.1, "work", "exited: signal: killed"},
		{30.2, "clickhouse", "exited: signal: broken pipe"},
		{30.3, "batch", "exited: exit status 2"},
		{90, "batch", "exited: exit status 1"}, // with both stores there
	} {
		fmt.Fprintf(&log, "{\"time\":%q,\"msg\":\"child died; restarting\",\"child\":%q,\"err\":%q}\n",
			at(death.at).Format(time.RFC3339Nano), death.child, death.err)
	}
	log.WriteString("panic: something\n")
	if err := os.WriteFile(e.system.Log, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d := e.readDeaths()
	if d.killed["clickhouse"] != 1 || d.killed["work"] != 1 || d.exits["work"] != 1 {
		t.Errorf("planned: %+v", d)
	}
	var times []float64
	for _, found := range l.differences {
		times = append(times, found.at.Sub(at(0)).Seconds())
	}
	if len(times) != 5 || !slices.Equal(times[:4], []float64{1.1, 30.2, 30.3, 90}) {
		t.Errorf("differences %v", l.differences)
	}
	if detail := l.differences[0].detail; !strings.Contains(detail, "0.1 s after the end of freeze clickhouse") {
		t.Errorf("detail %q", detail)
	}
}
