// Package batchjob defines the names, runs and status of the cron jobs, and the target
// ages of the refresh job. Package batch runs the jobs.
package batchjob

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
)

// Names of the jobs.
const (
	Count        = "count"
	Movers       = "movers"
	Refresh      = "refresh"
	Housekeeping = "housekeeping"
	Spreads      = "spreads"
)

// Names returns the names of all jobs.
func Names() []string { return []string{Count, Movers, Refresh, Housekeeping, Spreads} }

// Outcome is how a run ended.
type Outcome string

// The outcomes. A failed run does not change what is published.
const (
	OK     Outcome = "ok"
	Failed Outcome = "failed"
)

// Load is the number of rows and bytes that the engine has read since its start, and its
// memory in use.
type Load struct{ ReadRows, ReadBytes, MemoryBytes uint64 }

// Run is one run of a job.
type Run struct {
	ID                  string
	Job                 string
	Fence               int64
	StartedAt           time.Time
	Took                time.Duration
	ReadRows, ReadBytes uint64     // by the engine during the run, for all clients
	PeakMemoryBytes     uint64     // of the engine during the run
	Companies           uint64     // counted by the count or refresh job; 0 for other jobs
	Refresh             *Refreshed // nil for jobs other than refresh
	Outcome             Outcome
	Error               string
}

// Finish sets a new id, and outcome and error by err.
func (r *Run) Finish(err error) {
	r.ID, r.Outcome = uuid.Must(uuid.NewV7()).String(), OK
	if err != nil {
		r.Outcome, r.Error = Failed, err.Error()
	}
}

// String returns the outcome and the figures of the run.
func (r *Run) String() string {
	counted := ""
	if r.Companies > 0 {
		counted = fmt.Sprintf(", %d companies", r.Companies)
	}
	if c := r.Refresh; c != nil {
		counted += fmt.Sprintf(", %.1f %% younger than their target age, %d due, %d runs started", 100*c.Share(), c.Due, c.Started)
	}
	return fmt.Sprintf("%s%s, engine read %d rows and %d MiB, peak %d MiB", r.Outcome, counted, r.ReadRows, r.ReadBytes>>20, r.PeakMemoryBytes>>20)
}

// Status is the result of the last run of a job.
type Status struct {
	Outcome Outcome
	// At is the end of the last run, Good that of the last successful run, zero if there
	// was none.
	At, Good time.Time
	Error    string
	// Refresh is that of the last successful run of the refresh job, nil for other jobs.
	Refresh *Refreshed `json:",omitempty"`
}

// After returns the status after another run.
func (s Status) After(run Run) Status {
	ended := run.StartedAt.Add(run.Took).UTC()
	after := Status{Outcome: run.Outcome, At: ended, Good: s.Good, Error: run.Error, Refresh: s.Refresh}
	if run.Outcome != Failed {
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
func WriteRun(ctx context.Context, rdb goredis.UniversalClient, run Run) error {
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
