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
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"companyscore/internal/redis"
	"companyscore/universe"
)

// Store is where the jobs work.
type Store interface {
	// Compact merges rows that replaced each other, so that reads find fewer of them.
	Compact(ctx context.Context) error
	// Groups counts the newest records of the current pipeline version.
	Groups(ctx context.Context) (universe.Snapshot, error)
	// Movers finds whose composite changed most within the window that ends at end.
	Movers(ctx context.Context, window universe.Window, end time.Time) (universe.Movers, error)
}

// Config holds what the jobs need. All fields are required.
type Config struct {
	Store  Store
	Redis  goredis.UniversalClient
	Logger *slog.Logger
}

// Validate returns an error that names every field that is not set.
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
	return errors.Join(faults...)
}

// job is one thing to do by the clock.
type job struct {
	name     string
	schedule string // as robfig/cron reads it, in UTC
	deadline time.Duration
	// atStart has it run when the runner starts, too.
	atStart bool
	// do is given the fencing token of this run: larger than that of any before.
	do func(ctx context.Context, fence int64) error
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
	rest   map[string]time.Time // until when a job rests
}

// New returns a runner that does nothing yet.
func New(cfg Config) (*Runner, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Runner{cfg: cfg, cron: cron.New(cron.WithLocation(time.UTC)), rest: make(map[string]time.Time)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.jobs = []job{
		{name: "universe", schedule: "@every 10s", deadline: 10 * time.Minute, atStart: true, do: r.countUniverse},
		{name: "compact", schedule: "17 3 * * *", deadline: time.Hour, do: func(ctx context.Context, _ int64) error { return cfg.Store.Compact(ctx) }},
	}
	for _, j := range r.jobs {
		if _, err := r.cron.AddFunc(j.schedule, func() { r.scheduled(j) }); err != nil {
			return nil, fmt.Errorf("schedule %s: %w", j.name, err)
		}
	}
	return r, nil
}

// Start begins to run jobs by their schedules.
func (r *Runner) Start() {
	r.starts.Go(func() {
		for _, j := range r.jobs {
			if j.atStart {
				r.scheduled(j)
			}
		}
	})
	r.cron.Start()
}

// Stop ends the schedules and the job under way, and waits for it.
func (r *Runner) Stop() {
	r.cancel()
	<-r.cron.Stop().Done()
	r.starts.Wait()
}

// Once runs every job now, one after the other, and tells progress after each.
// The error joins those of all jobs.
func (r *Runner) Once(ctx context.Context, progress func(job string, took fmt.Stringer)) error {
	var faults []error
	for _, j := range r.jobs {
		began := time.Now()
		if err := r.run(ctx, j); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", j.name, err))
			continue
		}
		progress(j.name, time.Since(began).Round(time.Millisecond))
	}
	return errors.Join(faults...)
}

func (r *Runner) scheduled(j job) {
	r.mu.Lock()
	resting := time.Now().Before(r.rest[j.name])
	r.mu.Unlock()
	if resting {
		return
	}
	began := time.Now()
	err := r.run(r.ctx, j)
	r.mu.Lock()
	r.rest[j.name] = time.Now().Add(restFactor * time.Since(began))
	r.mu.Unlock()
	switch {
	case errors.Is(err, errTaken):
		r.cfg.Logger.Debug("batch job runs elsewhere", "job", j.name)
	case err != nil && r.ctx.Err() == nil:
		r.cfg.Logger.Error("batch job failed", "job", j.name, "err", err)
	}
}

var errTaken = errors.New("another process runs it")

//go:embed release.lua
var releaseLua string

var releaseScript = goredis.NewScript(releaseLua)

// run does a job if no other process is at it. The lock outlasts the job's
// deadline, so that it needs no renewal.
func (r *Runner) run(ctx context.Context, j job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, j.deadline)
	defer cancel()
	key, token := redis.BatchLock(j.name), rand.Text()
	won, err := r.cfg.Redis.SetNX(ctx, key, token, j.deadline+time.Minute).Result()
	if err != nil {
		return fmt.Errorf("take lock: %w", err)
	}
	if !won {
		return errTaken
	}
	fence, err := r.cfg.Redis.Incr(ctx, redis.BatchFence(j.name)).Result()
	if err == nil {
		err = j.do(ctx, fence)
	}
	release, cancelRelease := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancelRelease()
	return errors.Join(err, releaseScript.Run(release, r.cfg.Redis, []string{key}, token).Err())
}
