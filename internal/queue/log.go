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
	// logPage is how many runs one insert into the run log holds at most.
	logPage = 5000
)

// writeLog copies the runs that have ended, in this process or in any other, to the
// run log. Their ids are kept in Redis until then, so no run waits for the log and no
// crash loses an entry. It ends with ctx, after a last round.
func (s *Server) writeLog(ctx context.Context) {
	wait, pauses := logInterval, retry.Backoff(2*logInterval, longestLogWait)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		// The last round is under a deadline of its own.
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
		s.queue.cfg.Logger.Warn("run log is behind", "error", err)
	}
}

// writeLogRound writes the ended runs there are. Those that end meanwhile are left to
// the next round.
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
			if run.State.Final() { // not so if it expired or was lost
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
