package queue

import (
	"context"
	"time"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	logInterval    = time.Second
	logTimeout     = 30 * time.Second
	longestLogWait = 30 * time.Second
	logTrouble     = "run log is behind"
	// logPage is the maximum number of runs per insert into the run log.
	logPage = 5000
)

// writeLog copies ended runs of all processes to the run log. Redis lists the ids until they are
// copied, so a crash loses no entry. Runs that end meanwhile may wait for the next call.
func (s *Server) writeLog(ctx context.Context) error {
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
