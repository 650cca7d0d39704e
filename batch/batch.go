// Package batch runs the cron jobs. Several processes may run it; a lock in Redis lets
// only one of them run a job at a time.
package batch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"companyscore/batch/inbox"
	"companyscore/batch/jobs"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

// Store is the store of the jobs.
type Store interface {
	// Count counts the newest record of each company; at is the instant of the call.
	// Only records with a completeness of at least minDataPct count.
	Count(ctx context.Context, at time.Time, minDataPct float64) (universe.Counts, error)
	// Movers returns the companies with the largest deltas within the windows that end at
	// an instant, of records with a completeness of at least minDataPct.
	Movers(ctx context.Context, at time.Time, minDataPct float64) (universe.Movers, error)
	// Spreads returns how the signals of about that many companies spread.
	Spreads(ctx context.Context, companies uint64) (scoring.Spreads, error)
	// Compact merges replaced rows, so that reads scan fewer rows.
	Compact(ctx context.Context) error
	// Load returns the rows and bytes read since the start of the engine and the memory
	// in use.
	Load(ctx context.Context) (table.EngineLoad, error)
	// RefreshCoverage counts the companies younger than their target age and those due.
	RefreshCoverage(ctx context.Context, at time.Time, t table.RefreshTargets) (table.RefreshCoverage, error)
	// RefreshDue returns up to limit companies that are due for a refresh, by falling
	// ratio of age to target age.
	RefreshDue(ctx context.Context, at time.Time, t table.RefreshTargets, limit int) ([]string, error)
	// NoteRefreshed writes that runs were started for companies.
	NoteRefreshed(ctx context.Context, domains []string, at time.Time) error
	// WriteRuns stores the results of runs.
	WriteRuns(ctx context.Context, runs []table.BatchRun) error
}

// Config configures the jobs. All fields up to Refresh are required.
type Config struct {
	Store     Store
	Redis     goredis.UniversalClient
	Logger    *slog.Logger
	Schedules Schedules
	Refresh   Refresh
	// Inbox is the directory of new files; nil for none.
	Inbox *inbox.Inbox
	// MinDataPct is the lowest completeness, in percent, of a record that counts in the universe.
	MinDataPct float64
	// Once has the names of jobs that Run runs once. Empty means all jobs by their schedules.
	Once []string
	// Report is called with one line per successful job of Once. It is required with Once.
	Report func(line string)
	// Ready is called by Run after the schedules have started. It may be nil.
	Ready func()
}

// Validate returns an error that names every missing or invalid field.
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
	return errors.Join(append(faults, c.Schedules.Validate(), Ages(c.Refresh.Ages).Validate(), CheckMinData(c.MinDataPct))...)
}

// job is one cron job. A lock per name lets one process run it at a time.
type job struct {
	name     string
	schedule cron.Schedule // nil for "off"
	deadline time.Duration
	// do runs the job. fence is larger than that of all earlier runs of the job.
	do func(ctx context.Context, fence int64) (table.BatchRun, error)
	// epoch is that of the part that the job publishes, 0 if it publishes none.
	epoch time.Duration
	// beside is set for a job that runs beside the others and does not rest: a long import must not delay
	// the counts, nor the next file.
	beside bool
}

// restFactor times the duration of the last run is the minimum pause of a job. It limits
// the load of slow jobs.
const restFactor = 10

// Runner runs the jobs, one at a time, but the inbox job beside the others.
type Runner struct {
	cfg    Config
	jobs   []job
	cron   *cron.Cron
	ctx    context.Context
	cancel context.CancelFunc
	starts sync.WaitGroup
	mu     sync.Mutex           // one job at a time, but those beside
	restMu sync.Mutex           // guards rest
	rest   map[string]time.Time // until when a job rests
	lease  time.Duration

	companies atomic.Uint64     // of the last count of this process
	counted   bool              // whether this process has counted; mu guards it
	adoption  snapshot.Adoption // of what the jobs publish
	once      bool              // set by Once
}

// New returns a runner. Start or Once run the jobs.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, cron: cron.New(cron.WithLocation(time.UTC)), rest: make(map[string]time.Time), lease: leaseFor}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	s := cfg.Schedules
	r.jobs = []job{
		{name: jobs.Count, schedule: parsed(s.Count), deadline: 30 * time.Minute, do: r.count, epoch: s.CountEpoch},
		{name: jobs.Movers, schedule: parsed(s.Movers), deadline: 30 * time.Minute, do: r.movers, epoch: s.MoversEpoch},
		{name: jobs.Refresh, schedule: parsed(s.Refresh), deadline: 10 * time.Minute, do: r.refresh},
		{name: jobs.Spreads, schedule: parsed(s.Spreads), deadline: 30 * time.Minute, do: r.spreads},
		{name: jobs.Housekeeping, schedule: parsed(s.Housekeeping), deadline: time.Hour, do: r.keepHouse},
	}
	if cfg.Inbox != nil {
		r.jobs = append(r.jobs, job{name: jobs.Inbox, schedule: parsed(s.Inbox), deadline: 2 * time.Hour, do: r.receive, beside: true})
	}
	for _, j := range r.jobs {
		if j.schedule != nil {
			once := cron.NewChain(cron.SkipIfStillRunning(cron.DiscardLogger)) // skips a job that still runs or waits
			r.cron.Schedule(j.schedule, once.Then(cron.FuncJob(func() { r.scheduled(j) })))
		}
	}
	return r, nil
}

// Start starts the schedules and returns. It runs the movers job, the count job and the spreads job at once,
// movers first, because servers answer as soon as counts are published. The inbox job begins at once too, and completes
// imports that a killed process left.
func (r *Runner) Start() {
	r.starts.Go(func() {
		r.attempt(r.job(jobs.Movers))
		r.attempt(r.job(jobs.Count))
		r.attempt(r.job(jobs.Spreads))
	})
	if r.cfg.Inbox != nil && r.job(jobs.Inbox).schedule != nil {
		r.starts.Go(func() { r.attempt(r.job(jobs.Inbox)) })
	}
	r.cron.Start()
}

func (r *Runner) job(name string) job {
	return r.jobs[slices.IndexFunc(r.jobs, func(j job) bool { return j.name == name })]
}

// Stop ends the schedules, cancels the job in flight and waits for its end.
func (r *Runner) Stop() {
	r.cancel()
	<-r.cron.Stop().Done()
	r.starts.Wait()
}

// Once runs the named jobs one after the other. It waits while another process runs a job, until the deadline of that job. Servers
// adopt the results at once. Once calls report with the figures of each successful job and returns the joined errors of the others.
func (r *Runner) Once(ctx context.Context, names []string, report func(line string)) error {
	var faults []error
	r.adoption = snapshot.AtOnce
	r.once = true
	for _, j := range r.jobs {
		if !slices.Contains(names, j.name) {
			continue
		}
		run, err := r.runAlone(ctx, j)
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", j.name, err))
			continue
		}
		report(fmt.Sprintf("%s took %.3f s: %s", j.name, run.Took.Seconds(), run.String()))
	}
	return errors.Join(faults...)
}

// takenPause is the time between two tries of a job that another process runs.
const takenPause = 200 * time.Millisecond

// runAlone runs a job, after another process that runs it.
func (r *Runner) runAlone(ctx context.Context, j job) (table.BatchRun, error) {
	over := time.After(j.deadline)
	for {
		run, err := r.run(ctx, j)
		if !errors.Is(err, errTaken) {
			return run, err
		}
		select {
		case <-time.After(takenPause):
		case <-over:
			return run, err
		case <-ctx.Done():
			return run, err
		}
	}
}

// jitterMax is the maximum random delay of a job. It prevents that many processes and jobs
// start at the same instant.
const jitterMax = 10 * time.Second

// lead is the time before the end of an epoch in which a job runs. It leaves room for a second try.
const lead = time.Minute

// premature reports whether a later run of a job will replace the result of one now before servers
// adopt it.
func (r *Runner) premature(j job, now time.Time) bool {
	return epochOf(j.epoch, r.companies.Load()) > 0 && j.schedule.Next(now).Before(universe.Adopted(j.epoch, now).Add(-lead))
}

// epochOf returns the epoch for a number of companies: length, or 0 for a small universe.
func epochOf(length time.Duration, companies uint64) time.Duration {
	if companies < smallUniverse {
		return 0
	}
	return length
}

// scheduled runs a job by its schedule. It skips the run while the job rests or if it is premature.
func (r *Runner) scheduled(j job) {
	now := time.Now()
	r.restMu.Lock()
	resting := now.Before(r.rest[j.name])
	r.restMu.Unlock()
	if resting || r.premature(j, now) {
		return
	}
	next := j.schedule.Next(now)
	if most := min(j.schedule.Next(next).Sub(next)/20, jitterMax); most > 0 {
		select {
		case <-time.After(mathrand.N(most)):
		case <-r.ctx.Done():
			return
		}
	}
	r.attempt(j)
	if j.name == jobs.Count && r.moversLost() {
		r.attempt(r.job(jobs.Movers))
	}
}

// moversLost reports whether no movers are published, for example after a loss of the data
// in Redis. It returns false if Redis does not answer.
func (r *Runner) moversLost() bool {
	ctx, cancel := context.WithTimeout(r.ctx, time.Second)
	defer cancel()
	found, err := snapshot.HasMovers(ctx, r.cfg.Redis)
	return err == nil && !found
}

// attempt runs a job, sets its rest and logs a failure.
func (r *Runner) attempt(j job) {
	run, err := r.run(r.ctx, j)
	r.restMu.Lock()
	if !j.beside {
		r.rest[j.name] = time.Now().Add(restFactor * run.Took)
	}
	r.restMu.Unlock()
	switch {
	case errors.Is(err, errTaken):
		r.cfg.Logger.Debug("batch job runs in another process", "job", j.name)
	case err != nil && r.ctx.Err() == nil:
		r.cfg.Logger.Error("batch job failed; the previous result stays", "job", j.name, "err", err)
	}
}

var errTaken = errors.New("another process runs the job")

// leaseFor is the lease of a lock. The lock of a dead process expires after it.
const leaseFor = 30 * time.Second

// renew renews a lock until ctx ends. It calls lost and returns if the lock is lost. Another
// process may then run the job; the smaller fence of this one makes Redis reject its snapshot.
func (r *Runner) renew(ctx context.Context, lock *redis.Lock, lost context.CancelCauseFunc) {
	tick := time.NewTicker(r.lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := lock.Renew(ctx); errors.Is(err, redis.ErrLockLost) {
			lost(err)
			return
		}
	}
}

// run takes the lock of a job, runs it and stores the result. It returns errTaken if
// another process runs the job.
func (r *Runner) run(ctx context.Context, j job) (run table.BatchRun, err error) {
	if !j.beside {
		r.mu.Lock()
		defer r.mu.Unlock()
	}
	parent := ctx
	ctx, cancel := context.WithTimeout(ctx, j.deadline)
	defer cancel()
	lock, err := redis.TakeLock(ctx, r.cfg.Redis, redis.BatchLock(j.name), r.lease)
	if errors.Is(err, redis.ErrLocked) {
		return table.BatchRun{}, errTaken
	}
	if err != nil {
		return table.BatchRun{}, err
	}
	holding, lost := context.WithCancelCause(ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { r.renew(holding, lock, lost) })
	watch := watchLoad(ctx, r.cfg.Store)
	began := time.Now() // the load is read outside of the measured time
	run, err = j.do(holding, lock.Fence())
	took := time.Since(began)
	if cause := context.Cause(holding); err != nil && errors.Is(cause, redis.ErrLockLost) {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	watch.end(&run)
	lost(nil)
	renewing.Wait()
	run.Job, run.Fence, run.StartedAt, run.Took = j.name, lock.Fence(), began, took
	run.Finish(err)
	after, cancelAfter := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancelAfter()
	if parent.Err() == nil { // a canceled job has not failed
		r.note(after, run)
	}
	return run, errors.Join(err, lock.Release(after))
}

// count counts all companies and publishes the counts.
func (r *Runner) count(ctx context.Context, fence int64) (table.BatchRun, error) {
	counts, err := r.cfg.Store.Count(ctx, time.Now(), r.cfg.MinDataPct)
	if err != nil {
		return table.BatchRun{}, err
	}
	run := table.BatchRun{Companies: counts.Companies()}
	when, before := r.adoption, r.companies.Swap(run.Companies)
	if r.counted && before < smallUniverse {
		when = snapshot.AtOnce // the counts in use are of a small universe, and a new one would wait for minutes
	}
	r.counted = true
	counts.Epoch = epochOf(r.cfg.Schedules.CountEpoch, run.Companies)
	return run, snapshot.PublishCounts(ctx, r.cfg.Redis, counts, fence, when)
}

// movers reads the movers of all windows and publishes them.
func (r *Runner) movers(ctx context.Context, fence int64) (table.BatchRun, error) {
	movers, err := r.cfg.Store.Movers(ctx, time.Now(), r.cfg.MinDataPct)
	if err != nil {
		return table.BatchRun{}, err
	}
	published, _, err := snapshot.Read(ctx, r.cfg.Redis)
	if err != nil {
		return table.BatchRun{}, err
	}
	movers.Epoch = epochOf(r.cfg.Schedules.MoversEpoch, published.Counts.Companies())
	return table.BatchRun{}, snapshot.PublishMovers(ctx, r.cfg.Redis, movers, fence, r.adoption)
}

// spreads reads how signals spread and publishes it. It follows the count job, which publishes the
// number of companies.
func (r *Runner) spreads(ctx context.Context, _ int64) (table.BatchRun, error) {
	published, _, err := snapshot.Read(ctx, r.cfg.Redis)
	if err != nil {
		return table.BatchRun{}, err
	}
	run := table.BatchRun{Companies: published.Counts.Companies()}
	spreads, err := r.cfg.Store.Spreads(ctx, run.Companies)
	if err != nil {
		return table.BatchRun{}, err
	}
	return run, snapshot.PublishSpreads(ctx, r.cfg.Redis, spreads)
}

// keepHouse merges replaced rows.
func (r *Runner) keepHouse(ctx context.Context, _ int64) (table.BatchRun, error) {
	return table.BatchRun{}, r.cfg.Store.Compact(ctx)
}

// receive imports what is new in the inbox. Run by hand it takes the files as they are, since there was no look before.
func (r *Runner) receive(ctx context.Context, _ int64) (table.BatchRun, error) {
	received, err := r.cfg.Inbox.Run(ctx, r.once)
	return table.BatchRun{Received: &received}, err
}
