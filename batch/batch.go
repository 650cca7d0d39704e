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

	"companyscore/internal/redis"
	"companyscore/universe"
	"companyscore/universe/published"
)

// Store is where the jobs work. Advance returns an error that wraps
// universe.ErrLost when only Count helps.
type Store interface {
	// Position returns the last insert of records that can be seen, and how many
	// records all inserts up to it brought.
	Position(ctx context.Context) (position, records uint64, err error)
	// Count counts everything; progress is told after each step.
	Count(ctx context.Context, at time.Time, limits universe.Limits, progress func(step string)) (*universe.Tally, error)
	// Advance counts what changed since a tally. After an error the tally is of no use.
	Advance(ctx context.Context, t *universe.Tally, at time.Time) error
	// Notes is how many notes the store has of a generation.
	Notes(ctx context.Context, generation uint64) (uint64, error)
	// Forget drops the notes of generations before a current one, but for the last of them.
	Forget(ctx context.Context, current uint64) error
	// Compact merges rows that replaced each other, so that reads find fewer of them.
	Compact(ctx context.Context) error
	// Load returns what the engine has read so far and the memory in use.
	Load(ctx context.Context) (Load, error)
	// WriteRuns stores what became of runs.
	WriteRuns(ctx context.Context, runs []Run) error
}

// Load is what an engine has read since its start, and the memory it has in use.
type Load struct{ ReadRows, ReadBytes, MemoryBytes uint64 }

// Config holds what the jobs need. All fields are required.
type Config struct {
	Store     Store
	Redis     goredis.UniversalClient
	Logger    *slog.Logger
	Schedules Schedules
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
	return errors.Join(append(faults, c.Schedules.Validate())...)
}

// job is one thing to do by the clock.
type job struct {
	name     string
	lock     string        // jobs of one lock work on the same thing
	schedule cron.Schedule // nil for never by the clock
	deadline time.Duration
	// do is given the fencing token of this run: larger than that of any before with
	// the same lock.
	do func(ctx context.Context, fence int64) (Run, error)
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
	// tally is what this process published last, so that it need not be read again.
	tally    *universe.Tally
	progress func(step string)
	lease    time.Duration
}

// New returns a runner that does nothing yet.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, cron: cron.New(cron.WithLocation(time.UTC)), rest: make(map[string]time.Time), progress: func(string) {}, lease: leaseFor}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	counts := func(name, schedule string, do countRun) job {
		return job{name: name, lock: "universe", schedule: parsed(schedule), deadline: 30 * time.Minute, do: func(ctx context.Context, fence int64) (Run, error) { return r.count(ctx, fence, do) }}
	}
	s := cfg.Schedules
	r.jobs = []job{
		counts("count", s.Count, countRun{}),
		counts("movers-7d", s.Movers7d, countRun{show: []universe.Window{universe.Week}}),
		counts("movers-30d", s.Movers30d, countRun{show: []universe.Window{universe.Month}}),
		counts("movers-90d", s.Movers90d, countRun{show: []universe.Window{universe.Quarter}}),
		counts("recount", s.Recount, countRun{full: true}),
		{name: "housekeeping", lock: "housekeeping", schedule: parsed(s.Housekeeping), deadline: time.Hour, do: r.keepHouse},
	}
	for _, j := range r.jobs {
		if j.schedule != nil {
			r.cron.Schedule(j.schedule, cron.FuncJob(func() { r.scheduled(j) }))
		}
	}
	return r, nil
}

// everything is the first job of a process: one count for all that is published, of what
// changed or of all records anew.
func (r *Runner) everything(anew bool) job {
	j := r.jobs[0]
	j.do = func(ctx context.Context, fence int64) (Run, error) {
		return r.count(ctx, fence, countRun{show: universe.Windows, full: anew})
	}
	return j
}

// Start begins to run jobs by their schedules, all that is published at once.
func (r *Runner) Start() {
	r.starts.Go(func() { r.attempt(r.everything(false)) })
	r.cron.Start()
}

// Stop ends the schedules and the job under way, and waits for it.
func (r *Runner) Stop() {
	r.cancel()
	<-r.cron.Stop().Done()
	r.starts.Wait()
}

// Once does the work of every job now and tells each step with its figures; with anew
// it counts all records, not only what changed. The error joins those of all jobs.
func (r *Runner) Once(ctx context.Context, anew bool, progress func(line string)) error {
	began := time.Now()
	r.progress = func(step string) {
		progress(fmt.Sprintf("%8.3f s  %s", time.Since(began).Seconds(), step))
	}
	var faults []error
	for _, j := range []job{r.everything(anew), r.jobs[len(r.jobs)-1]} {
		run, err := r.run(ctx, j)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", j.name, err))
			continue
		}
		progress(fmt.Sprintf("%s took %.3f s: %s", j.name, run.Took.Seconds(), run.describe()))
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
}

// attempt runs a job and says in the log when it failed.
func (r *Runner) attempt(j job) {
	began := time.Now()
	_, err := r.run(r.ctx, j)
	r.restMu.Lock()
	r.rest[j.name] = time.Now().Add(restFactor * time.Since(began))
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
	//go:embed renew.lua
	renewLua string
	//go:embed release.lua
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
func (r *Runner) run(ctx context.Context, j job) (run Run, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, j.deadline)
	defer cancel()
	key, token := redis.BatchLock(j.lock), rand.Text()
	won, err := r.cfg.Redis.SetNX(ctx, key, token, r.lease).Result()
	if err != nil {
		return Run{}, fmt.Errorf("take lock: %w", err)
	}
	if !won {
		return Run{}, errTaken
	}
	began := time.Now()
	fence, err := r.cfg.Redis.Incr(ctx, redis.BatchFence(j.lock)).Result()
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
	run.finish(err)
	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancelAfter()
	if parent.Err() == nil { // a job that was told to stop has not failed
		r.note(after, run)
	}
	return run, errors.Join(err, releaseScript.Run(after, r.cfg.Redis, []string{key}, token).Err())
}

// keepHouse merges what can be merged and drops notes that nobody needs.
func (r *Runner) keepHouse(ctx context.Context, _ int64) (Run, error) {
	generation, _, err := published.Count(ctx, r.cfg.Redis)
	if err != nil {
		return Run{}, err
	}
	if err := r.cfg.Store.Forget(ctx, generation); err != nil {
		return Run{}, err
	}
	if err := r.cfg.Store.Compact(ctx); err != nil {
		return Run{}, err
	}
	r.progress("tables merged")
	return Run{Coverage: 1}, nil
}

// Jobs lists the names of all jobs.
func Jobs() []string {
	return slices.Clone([]string{"count", "movers-7d", "movers-30d", "movers-90d", "recount", "housekeeping"})
}
