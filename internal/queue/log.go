package queue

import (
	"context"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/retry"
	"companyscore/scoring"
)

const (
	logInterval    = time.Second
	logTimeout     = 30 * time.Second
	longestLogWait = 30 * time.Second
	// logPage is the maximum number of runs per insert into the run log.
	logPage = 5000
)

// writeLog copies ended runs of all processes to the run log until ctx ends, and then
// does a last round. Redis lists the ids until they are copied, so a crash loses no
// entry.
func (s *Server) writeLog(ctx context.Context) {
	wait, pauses := logInterval, retry.Backoff(2*logInterval, longestLogWait)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		// The last round has its own deadline.
		roundCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), logTimeout)
		if ctx.Err() != nil {
			cancel()
			roundCtx, cancel = context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		}
		err := s.writeLogRound(roundCtx)
		cancel()
		if err == nil {
			wait = logInterval
			pauses.Reset()
			continue
		}
		wait = pauses.NextBackOff()
		s.queue.cfg.Logger.Warn("run log is behind", "err", err)
	}
}

// writeLogRound writes the runs that have ended. Runs that end meanwhile may wait for the
// next round.
func (s *Server) writeLogRound(ctx context.Context) error {
	for {
		ids, err := s.queue.redis.SRandMemberN(ctx, redis.RunLog(), logPage).Result()
		if err != nil || len(ids) == 0 {
			return err
		}
		found, err := s.queue.GetMany(ctx, ids...)
		if err != nil {
			return err
		}
		runs := make([]scoring.Run, 0, len(found))
		for _, run := range found {
			if run.State.Final() { // false if the run expired or was lost
				runs = append(runs, run)
			}
		}
		if len(runs) > 0 {
			if err := s.cfg.Log.WriteRuns(ctx, runs); err != nil {
				return err
			}
		}
		if err := s.queue.redis.SRem(ctx, redis.RunLog(), ids).Err(); err != nil || len(ids) < logPage {
			return err
		}
	}
}
