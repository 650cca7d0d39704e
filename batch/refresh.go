package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/batchjob"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// laneMax bounds the runs that wait in the lane of the job: some seconds of a worker
	// that asks for facts alone.
	laneMax = 10_000
	// paceBurst is for how long a pace that was not used is made up for, and how much of
	// it may wait in the lane.
	paceBurst = 10 * time.Minute
)

// Refresh configures the refresh job.
type Refresh struct {
	batchjob.Targets
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
func (r *Runner) refresh(ctx context.Context, _ int64) (batchjob.Run, error) {
	cfg, now := r.cfg.Refresh, time.Now()
	coverage, err := r.cfg.Store.RefreshCoverage(ctx, now, cfg.Targets)
	if err != nil {
		return batchjob.Run{}, err
	}
	run := batchjob.Run{Companies: coverage.Companies, Refresh: &batchjob.Refreshed{Coverage: coverage}}
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
