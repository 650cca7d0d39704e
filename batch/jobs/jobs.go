// Package jobs has the names of the batch jobs and the status of each, which batch writes and other processes read.
package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/internal/table"
)

// Names of the jobs.
const (
	Count        = "count"
	Movers       = "movers"
	Refresh      = "refresh"
	Housekeeping = "housekeeping"
	Spreads      = "spreads"
	Inbox        = "inbox"
)

// Names returns the names of all jobs.
func Names() []string { return []string{Count, Movers, Refresh, Housekeeping, Spreads, Inbox} }

// Status is the result of the last run of a job.
type Status struct {
	Outcome table.BatchOutcome
	// At is the end of the last run, Good that of the last successful run, zero if there
	// was none.
	At, Good time.Time
	Error    string
	// Refresh is that of the last successful run of the refresh job, nil for other jobs.
	Refresh *table.Refreshed `json:",omitempty"`
}

// After returns the status after another run.
func (s Status) After(run table.BatchRun) Status {
	ended := run.StartedAt.Add(run.Took).UTC()
	after := Status{Outcome: run.Outcome, At: ended, Good: s.Good, Error: run.Error, Refresh: s.Refresh}
	if run.Outcome != table.BatchFailed {
		after.Good, after.Refresh = ended, run.Refresh
	}
	return after
}

// ReadStatus returns the status of each job by name. Jobs that never ran are not in the
// map.
func ReadStatus(ctx context.Context, rdb goredis.UniversalClient) (map[string]Status, error) {
	fields, err := rdb.HGetAll(ctx, redis.BatchStatus()).Result()
	if err != nil {
		return nil, fmt.Errorf("read the status of batch jobs: %w", err)
	}
	all := make(map[string]Status, len(fields))
	for job, text := range fields {
		var s Status
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("read the status of batch job %s: %w", job, err)
		}
		all[job] = s
	}
	return all, nil
}

// WriteRun updates the status of a job after a run. Concurrent calls for the same job may
// overwrite each other.
func WriteRun(ctx context.Context, rdb goredis.UniversalClient, run table.BatchRun) error {
	all, err := ReadStatus(ctx, rdb)
	if err != nil {
		return err
	}
	text, err := json.Marshal(all[run.Job].After(run))
	if err != nil {
		return err
	}
	if err := rdb.HSet(ctx, redis.BatchStatus(), run.Job, text).Err(); err != nil {
		return fmt.Errorf("write the status of batch job %s: %w", run.Job, err)
	}
	return nil
}
