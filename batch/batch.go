// Package batch runs the jobs that nobody waits for, by the clock. Of several
// processes that run it, one does each job.
package batch

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"companyscore/internal/batchjob"
	"companyscore/internal/redis"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

// Store is where the jobs work.
type Store interface {
	// Count counts the newest record of each company; at is the instant of the call.
	Count(ctx context.Context, at time.Time) (universe.Counts, error)
	// Movers finds the largest deltas within the windows that end at an instant.
	Movers(ctx context.Context, at time.Time) (universe.Movers, error)
	// Compact merges rows that replaced each other, so that reads find fewer of them.
	Compact(ctx context.Context) error
	// Load returns what the engine has read so far and the memory in use.
	Load(ctx context.Context) (batchjob.Load, error)
	// RefreshCoverage returns how far companies are younger than their target ages.
	RefreshCoverage(ctx context.Context, at time.Time, t batchjob.Targets) (batchjob.Coverage, error)
	// RefreshDue returns up to limit companies that are due for a refresh, the oldest in
	// relation to its target age first.
	RefreshDue(ctx context.Context, at time.Time, t batchjob.Targets, limit int) ([]string, error)
	// NoteRefreshed notes that runs were started for companies.
	NoteRefreshed(ctx context.Context, domains []string, at time.Time) error
	// WriteRuns stores the results of runs.
	WriteRuns(ctx context.Context, runs []batchjob.Run) error
}

// Config holds what the jobs need. All fields up to Refresh are required.
type Config struct {
	Store     Store
	Redis     goredis.UniversalClient
	Logger    *slog.Logger
	Schedules Schedules
	Refresh   Refresh
	// Once are the names of jobs that Run runs once; empty means all jobs, by their schedules.
	Once []string
	// Report receives a line for each job of Once that succeeded.
	Report func(line string)
	// Ready is called by Run once the schedules have started.
	Ready func()
}

// Validate returns an error that names every field that is not set or wrong.
func (c Config) Validate() error {
	var faults []error
	if c.Store == nil {
		faults = append(faults, errors.New("batch config: Store is not set"))
	}
	if c.Redis == nil {
		faults = append(faults, errors.New("batch config: Redis is not set"))
	}
	if c.Logger == nil {
		faults = append(faults, errors.New("batch config: Logger is not set"))
	}
	if c.Refresh.Queue == nil {
		faults = append(faults, errors.New("batch config: Refresh.Queue is not set"))
	}
	if !(c.Refresh.Pace >= 0) {
		faults = append(faults, fmt.Errorf("batch config: Refresh.Pace %g must not be negative", c.Refresh.Pace))
	}
	if len(c.Once) > 0 && c.Report == nil {
		faults = append(faults, errors.New("batch config: Report is not set"))
	}
	return errors.Join(append(faults, c.Schedules.Validate(), c.Refresh.Ages.Validate())...)
}

// job is one thing to do by the clock. A lock of its name lets one process do it.
type job struct {
	name     string
	schedule cron.Schedule // nil for never by the clock
	deadline time.Duration
	// do is given the fencing token of this run: larger than that of any run of the job before.
	do func(ctx context.Context, fence int64) (batchjob.Run, error)
}

// restFactor is how many times as long as its last run a job rests at least, so
// that a job that has become slow does not take the machine.
const restFactor = 10

// Runner runs the jobs.
type Runner struct {
	cfg    Config
	jobs   []job
	cron   *cron.Cron
	ctx    context.Context
	cancel context.CancelFunc
	starts sync.WaitGroup
	mu     sync.Mutex           // one job at a time
	restMu sync.Mutex           // guards rest
	rest   map[string]time.Time // until when a job rests
	lease  time.Duration
}

// New returns a runner that does nothing yet.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, cron: cron.New(cron.WithLocation(time.UTC)), rest: make(map[string]time.Time), lease: leaseFor}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	s := cfg.Schedules
	r.jobs = []job{
		{name: batchjob.Count, schedule: parsed(s.Count), deadline: 30 * time.Minute, do: r.count},
		{name: batchjob.Movers, schedule: parsed(s.Movers), deadline: 30 * time.Minute, do: r.movers},
		{name: batchjob.Refresh, schedule: parsed(s.Refresh), deadline: 10 * time.Minute, do: r.refresh},
		{name: batchjob.Housekeeping, schedule: parsed(s.Housekeeping), deadline: time.Hour, do: r.keepHouse},
	}
	for _, j := range r.jobs {
		if j.schedule != nil {
			once := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger)) // of one job, while it runs or waits for another
			r.cron.Schedule(j.schedule, once.Then(cron.FuncJob(func() { r.scheduled(j) })))
		}
	}
	return r, nil
}

// Start begins to run jobs by their schedules. What servers answer from is made at once,
// movers first, as servers answer once there are counts.
func (r *Runner) Start() {
	r.starts.Go(func() {
		r.attempt(r.job(batchjob.Movers))
		r.attempt(r.job(batchjob.Count))
	})
	r.cron.Start()
}

func (r *Runner) job(name string) job {
	return r.jobs[slices.IndexFunc(r.jobs, func(j job) bool { return j.name == name })]
}

// Stop ends the schedules and the job in flight, and waits for it.
func (r *Runner) Stop() {
	r.cancel()
	<-r.cron.Stop().Done()
	r.starts.Wait()
}

// Once runs the named jobs now, one after the other, and reports each with its figures.
// The error joins those of all jobs.
func (r *Runner) Once(ctx context.Context, names []string, report func(line string)) error {
	var faults []error
	for _, j := range r.jobs {
		if !slices.Contains(names, j.name) {
			continue
		}
		run, err := r.run(ctx, j)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", j.name, err))
			continue
		}
		report(fmt.Sprintf("%s took %.3f s: %s", j.name, run.Took.Seconds(), run.String()))
	}
	return errors.Join(faults...)
}

// jitterMax bounds by how much a job is late on purpose, so that many processes
// and jobs do not all begin in the same instant.
const jitterMax = 10 * time.Second

// scheduled runs a job whose time has come.
func (r *Runner) scheduled(j job) {
	r.restMu.Lock()
	resting := time.Now().Before(r.rest[j.name])
	r.restMu.Unlock()
	if resting {
		return
	}
	now := time.Now()
	next := j.schedule.Next(now)
	if most := min(j.schedule.Next(next).Sub(next)/20, jitterMax); most > 0 {
		select {
		case <-time.After(mathrand.N(most)):
		case <-r.ctx.Done():
			return
		}
	}
	r.attempt(j)
	if j.name == batchjob.Count && r.moversLost() {
		r.attempt(r.job(batchjob.Movers))
	}
}

// moversLost reports whether no movers are published: Redis was emptied, and new servers
// would have none until the next movers job.
func (r *Runner) moversLost() bool {
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	found, err := snapshot.HasMovers(ctx, r.cfg.Redis)
	return err == nil && !found
}

// attempt runs a job and says in the log when it failed.
func (r *Runner) attempt(j job) {
	run, err := r.run(r.ctx, j)
	r.restMu.Lock()
	r.rest[j.name] = time.Now().Add(restFactor * run.Took)
	r.restMu.Unlock()
	switch {
	case errors.Is(err, errTaken):
		r.cfg.Logger.Debug("batch job runs elsewhere", "job", j.name)
	case err != nil && r.ctx.Err() == nil:
		r.cfg.Logger.Error("batch job failed; what was published before stays", "job", j.name, "err", err)
	}
}

var (
	errTaken = errors.New("another process runs it")
	errLost  = errors.New("the lock was lost, as Redis did not answer or forgot it")
)

var (
	//go:embed renew_lock.lua
	renewLua string
	//go:embed release_lock.lua
	releaseLua string

	renewScript   = goredis.NewScript(renewLua)
	releaseScript = goredis.NewScript(releaseLua)
)

// leaseFor is how long the lock of a process that is gone keeps others from a job.
const leaseFor = 30 * time.Second

// renew keeps a lock until ctx ends. When it is lost lost is called: another process
// may be at the job, and what this one publishes is refused for its lower fence.
func (r *Runner) renew(ctx context.Context, key, token string, lost context.CancelCauseFunc) {
	tick := time.NewTicker(r.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if ours, err := renewScript.Run(ctx, r.cfg.Redis, []string{key}, token, r.lease.Milliseconds()).Int(); err == nil && ours == 0 {
			lost(errLost)
			return
		}
	}
}

// run does a job if no other process is at it, and notes what became of it.
func (r *Runner) run(ctx context.Context, j job) (run batchjob.Run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, j.deadline)
	defer cancel()
	key, token := redis.BatchLock(j.name), rand.Text()
	won, err := redis.TakeLock(ctx, r.cfg.Redis, key, token, r.lease)
	if err != nil {
		return batchjob.Run{}, err
	}
	if !won {
		return batchjob.Run{}, errTaken
	}
	began := time.Now()
	fence, err := r.cfg.Redis.Incr(ctx, redis.BatchFence(j.name)).Result()
	if err == nil {
		holding, lost := context.WithCancelCause(ctx)
		var renewing sync.WaitGroup
		renewing.Go(func() { r.renew(holding, key, token, lost) })
		watch := watchLoad(ctx, r.cfg.Store)
		run, err = j.do(holding, fence)
		if cause := context.Cause(holding); err != nil && errors.Is(cause, errLost) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		watch.end(&run)
		lost(nil)
		renewing.Wait()
	}
	run.Job, run.Fence, run.StartedAt, run.Took = j.name, fence, began, time.Since(began)
	run.Finish(err)
	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancelAfter()
	if parent.Err() == nil { // a job that was told to stop has not failed
		r.note(after, run)
	}
	return run, errors.Join(err, releaseScript.Run(after, r.cfg.Redis, []string{key}, token).Err())
}

// count counts all companies and publishes the counts.
func (r *Runner) count(ctx context.Context, fence int64) (batchjob.Run, error) {
	counts, err := r.cfg.Store.Count(ctx, time.Now())
	if err != nil {
		return batchjob.Run{}, err
	}
	var run batchjob.Run
	for _, n := range counts.PremiumHist {
		run.Companies += uint64(n)
	}
	return run, snapshot.PublishCounts(ctx, r.cfg.Redis, counts, fence)
}

// movers finds the movers of all windows and publishes them.
func (r *Runner) movers(ctx context.Context, fence int64) (batchjob.Run, error) {
	movers, err := r.cfg.Store.Movers(ctx, time.Now())
	if err != nil {
		return batchjob.Run{}, err
	}
	return batchjob.Run{}, snapshot.PublishMovers(ctx, r.cfg.Redis, movers, fence)
}

// keepHouse merges what can be merged.
func (r *Runner) keepHouse(ctx context.Context, _ int64) (batchjob.Run, error) {
	return batchjob.Run{}, r.cfg.Store.Compact(ctx)
}
