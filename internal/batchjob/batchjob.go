// Package batchjob describes the jobs of the batch role: their names, runs, status and
// what the refresh job is asked for. The jobs themselves are in batch.
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
)

// Names returns the names of all jobs, in the order in which they run.
func Names() []string { return []string{Count, Movers, Refresh, Housekeeping} }

// Outcome is how a run ended.
type Outcome string

// The outcomes. After one that is not OK the last good result stays published.
const (
	OK     Outcome = "ok"
	Failed Outcome = "failed"
)

// Load is what an engine has read since its start, and the memory it has in use.
type Load struct{ ReadRows, ReadBytes, MemoryBytes uint64 }

// Run is one run of a job.
type Run struct {
	ID                  string
	Job                 string
	Fence               int64
	StartedAt           time.Time
	Took                time.Duration
	ReadRows, ReadBytes uint64     // by the engine meanwhile, for anybody
	PeakMemoryBytes     uint64     // of the engine meanwhile
	Companies           uint64     // that were counted; 0 for other jobs
	Refresh             *Refreshed // nil for other jobs than refresh
	Outcome             Outcome
	Error               string
}

// Finish sets the id of the run, and its outcome by err.
func (r *Run) Finish(err error) {
	r.ID, r.Outcome = uuid.Must(uuid.NewV7()).String(), OK
	if err != nil {
		r.Outcome, r.Error = Failed, err.Error()
	}
}

// String returns outcome and figures of the run.
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

// Status is how a job ended last.
type Status struct {
	Outcome Outcome
	// At is when its last run ended, Good when the last one ended that did not fail;
	// zero if there was none.
	At, Good time.Time
	Error    string
	// Refresh is of the last good run of the refresh job, nil without one and for others.
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

// ReadStatus returns how each job ended last, by name. Jobs that never ran are not in it.
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

// WriteRun writes the status of a job after a run.
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
