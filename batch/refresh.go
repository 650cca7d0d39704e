package batch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/scoring"
)

const (
	// laneMax is the maximum number of runs that wait in the refresh lane: a few seconds of
	// work for a worker without live sources.
	laneMax = 10_000
	// paceBurst is how long unused pace is kept. The runs of that time may wait in the lane.
	paceBurst = 10 * time.Minute
)

// Refresh configures the refresh job.
type Refresh struct {
	table.RefreshTargets
	// Pace is the maximum number of runs started per second. Zero means no limit but
	// laneMax.
	Pace float64
	// Queue is the queue of runs. It is required.
	Queue *queue.Queue
}

// laneBound returns the maximum number of runs that wait in the refresh lane.
func (c Refresh) laneBound() int {
	if c.Pace == 0 {
		return laneMax
	}
	return int(min(laneMax, max(1, math.Ceil(c.Pace*paceBurst.Seconds()))))
}

// refresh starts runs for companies that are due, up to the limits of pace and lane. It
// writes the demand after the start of the runs: if that fails, the next refresh job joins
// the runs that are still open.
func (r *Runner) refresh(ctx context.Context, _ int64) (table.BatchRun, error) {
	cfg, now := r.cfg.Refresh, time.Now()
	coverage, err := r.cfg.Store.RefreshCoverage(ctx, now, cfg.RefreshTargets)
	if err != nil {
		return table.BatchRun{}, err
	}
	run := table.BatchRun{Companies: coverage.Companies, Refresh: &table.Refreshed{RefreshCoverage: coverage}}
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
	domains, err := r.cfg.Store.RefreshDue(ctx, now, cfg.RefreshTargets, room)
	if err != nil {
		return run, err
	}
	if cfg.Pace > 0 {
		paced = paced.Add(time.Duration(float64(len(domains)) / cfg.Pace * float64(time.Second)))
		if err := r.cfg.Redis.Set(ctx, redis.RefreshPaced(), paced.UnixMilli(), 0).Err(); err != nil {
			return run, fmt.Errorf("write the pace of refreshes: %w", err)
		}
	}
	if _, err := cfg.Queue.Start(ctx, scoring.LaneRefresh, domains...); err != nil {
		return run, err
	}
	run.Refresh.Started = uint64(len(domains))
	return run, r.cfg.Store.NoteRefreshed(ctx, domains, now)
}

// pacedUntil returns the instant until which the pace is used. It is not in the future and
// at most paceBurst, or the time of one run at the pace if longer, before now.
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
	if paced.After(now) { // the clock was set back
		return now, nil
	}
	if paced.Before(earliest) {
		return earliest, nil
	}
	return paced, nil
}
