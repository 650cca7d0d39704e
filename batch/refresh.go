package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// AskedWithin is how long a company counts as asked for after somebody did.
	AskedWithin = 30 * 24 * time.Hour
	// ageLeast is the least target age. The job looks once a minute.
	ageLeast = time.Minute
	// laneMax bounds the runs that wait in the lane of the job: some seconds of a worker
	// that asks for facts alone.
	laneMax = 10_000
	// paceBurst is for how long a pace that was not used is made up for, and how much of
	// it may wait in the lane.
	paceBurst = 10 * time.Minute
)

// Ages are the ages that companies should stay younger than.
type Ages struct {
	// Asked is for companies that were asked for within AskedWithin, Others for all
	// others. Both are a minute or more.
	Asked, Others time.Duration
}

// Flags adds the flags of a with their defaults.
func (a *Ages) Flags(flags *pflag.FlagSet) {
	flags.DurationVar(&a.Asked, "refresh-asked", 24*time.Hour, "age at which a company is scored again that was asked for in the last 30 days")
	flags.DurationVar(&a.Others, "refresh-others", 7*24*time.Hour, "age at which any other company is scored again")
}

// Args are the flags that give another process the same ages.
func (a Ages) Args() []string {
	return []string{"--refresh-asked", a.Asked.String(), "--refresh-others", a.Others.String()}
}

// Validate returns an error that names every age that is too small.
func (a Ages) Validate() error {
	var faults []error
	for _, f := range []struct {
		name string
		age  time.Duration
	}{{"refresh-asked", a.Asked}, {"refresh-others", a.Others}} {
		if f.age < ageLeast {
			faults = append(faults, fmt.Errorf("%s %s: use an age of a minute or more", f.name, f.age))
		}
	}
	return errors.Join(faults...)
}

// Targets say which companies are due for a refresh.
type Targets struct {
	Ages Ages
	// Live says that workers ask other sources than imported facts, so that every run can
	// learn something new. Without them only companies are due whose facts are newer than
	// their record, or whose record is of another pipeline version.
	Live bool
}

// Coverage says how far companies are younger than their target ages.
type Coverage struct {
	// Companies have a record, Young ones one that is younger than the target age. Due
	// ones are older, were not started again within that age, and a run can learn
	// something new of them.
	Companies, Young, Due uint64
	// Oldest is when the newest record of the oldest company was made, zero without any.
	Oldest time.Time
}

// Share is the part of the companies that are younger than their target ages, 0 to 1.
// It is 1 without companies.
func (c Coverage) Share() float64 {
	if c.Companies == 0 {
		return 1
	}
	return float64(c.Young) / float64(c.Companies)
}

// Refreshed is what a run of the refresh job saw and did.
type Refreshed struct {
	Coverage        // from before the runs were started
	Started  uint64 // runs
}

// Refresh configures the refresh job.
type Refresh struct {
	Targets
	// Pace is how many runs a second are started at most. Zero is no limit but what
	// workers take.
	Pace float64
	// Queue is where runs are started. It is required.
	Queue *queue.Queue
}

// laneBound is how many runs may wait in the lane of the job.
func (c Refresh) laneBound() int {
	if c.Pace == 0 {
		return laneMax
	}
	return int(min(laneMax, max(1, math.Ceil(c.Pace*paceBurst.Seconds()))))
}

// refresh starts runs for companies that have become too old, as many as the pace allows
// and the lane has room for. The runs are noted after they were started: when noting
// fails, the next run of the job joins those that are still open.
func (r *Runner) refresh(ctx context.Context, _ int64) (Run, error) {
	cfg, now := r.cfg.Refresh, time.Now()
	coverage, err := r.cfg.Store.RefreshCoverage(ctx, now, cfg.Targets)
	if err != nil {
		return Run{}, err
	}
	run := Run{Companies: coverage.Companies, Refresh: &Refreshed{Coverage: coverage}}
	if coverage.Due == 0 {
		return run, nil
	}
	status, err := cfg.Queue.Status(ctx)
	if err != nil {
		return run, err
	}
	room := cfg.laneBound()
	for _, lane := range status.Lanes {
		if lane.Lane == scoring.LaneRefresh {
			room -= lane.Waiting
		}
	}
	paced := now
	if cfg.Pace > 0 {
		if paced, err = r.pacedUntil(ctx, now); err != nil {
			return run, err
		}
		room = min(room, int(now.Sub(paced).Seconds()*cfg.Pace+1e-6))
	}
	if room <= 0 {
		return run, nil
	}
	domains, err := r.cfg.Store.RefreshDue(ctx, now, cfg.Targets, room)
	if err != nil {
		return run, err
	}
	if cfg.Pace > 0 {
		paced = paced.Add(time.Duration(float64(len(domains)) / cfg.Pace * float64(time.Second)))
		if err := r.cfg.Redis.Set(ctx, redis.RefreshPaced(), paced.UnixMilli(), 0).Err(); err != nil {
			return run, fmt.Errorf("note the pace of refreshes: %w", err)
		}
	}
	if _, err := cfg.Queue.Start(ctx, scoring.LaneRefresh, domains...); err != nil {
		return run, err
	}
	run.Refresh.Started = uint64(len(domains))
	return run, r.cfg.Store.NoteRefreshed(ctx, domains, now)
}

// pacedUntil is until when the pace is used up: no earlier than paceBurst ago, or than
// one run takes, and not in the future.
func (r *Runner) pacedUntil(ctx context.Context, now time.Time) (time.Time, error) {
	longest := max(paceBurst, time.Duration(float64(time.Second)/r.cfg.Refresh.Pace))
	earliest := now.Add(-longest)
	ms, err := r.cfg.Redis.Get(ctx, redis.RefreshPaced()).Int64()
	switch {
	case errors.Is(err, goredis.Nil):
		return earliest, nil
	case err != nil:
		return now, fmt.Errorf("read the pace of refreshes: %w", err)
	}
	paced := time.UnixMilli(ms)
	if paced.After(now) { // the clock went back
		return now, nil
	}
	if paced.Before(earliest) {
		return earliest, nil
	}
	return paced, nil
}
