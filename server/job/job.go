// Package job keeps the jobs that callers poll. A job is bound to the account
// that started it, waits for a run, and is settled by the first poll that sees
// the run over. A job nobody polls stays pending until it expires.
package job

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

// ErrNotFound says that there is no such job, or not any more.
var ErrNotFound = errors.New("job not found")

//go:embed settle.lua
var settleLua string

var settleScript = goredis.NewScript(settleLua)

// Status says how far a job has come.
type Status string

// The states of a job.
const (
	Pending  Status = "pending"
	Complete Status = "complete"
	Failed   Status = "failed"
)

// FailureReason says why a job failed.
type FailureReason string

// The reasons for which a job fails.
const (
	RunFailed   FailureReason = "sfn_failed"
	RunTimedOut FailureReason = "sfn_timed_out"
	RunAborted  FailureReason = "sfn_aborted"
	RunNoRecord FailureReason = "scoring_completed_no_record"
)

// Job is what a caller waits with.
type Job struct {
	ID, AccountID, Domain, RunID string
	Status                       Status
	CreatedAt                    time.Time
	CompletedAt                  time.Time // zero while pending
	ScoredAt                     time.Time // of the record, set when complete
	FailureReason                FailureReason
}

// Runs reads runs. Get returns scoring.ErrNotFound for one that is not there.
type Runs interface {
	Get(ctx context.Context, id string) (scoring.Run, error)
}

// Jobs reads and settles jobs. It is safe for concurrent use.
type Jobs struct {
	rdb  goredis.UniversalClient
	runs Runs
	now  func() time.Time
}

// New returns the jobs in a Redis, over the runs they wait for.
func New(rdb goredis.UniversalClient, runs Runs) *Jobs {
	return &Jobs{rdb: rdb, runs: runs, now: time.Now}
}

// Get returns a job as it is stored, or ErrNotFound.
func (j *Jobs) Get(ctx context.Context, id string) (Job, error) {
	fields, err := j.rdb.HGetAll(ctx, redis.Job(id)).Result()
	if err != nil {
		return Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return parseJob(id, fields)
}

// Settle looks at the run of a pending job and, when it is over, settles the
// job. Settling does not make a job live longer. Of several polls at once one
// settles and all return the same.
func (j *Jobs) Settle(ctx context.Context, job Job) (Job, error) {
	if job.Status != Pending {
		return job, nil
	}
	run, err := j.runs.Get(ctx, job.RunID)
	switch {
	case errors.Is(err, scoring.ErrNotFound):
		// A run is kept at least as long as its jobs, so this one was lost.
		run = scoring.Run{State: scoring.RunFailed}
	case err != nil:
		return Job{}, fmt.Errorf("settle job %s: %w", job.ID, err)
	case !run.State.Final():
		return job, nil
	}
	status, reason := outcome(run)
	completed := run.FinishedAt
	if completed.Before(job.CreatedAt) {
		completed = j.now()
	}
	scored := ""
	if status == Complete {
		scored = strconv.FormatInt(run.ScoredAt.UnixMilli(), 10)
	}
	reply, err := settleScript.Run(ctx, j.rdb, []string{redis.Job(job.ID)},
		string(status), completed.UnixMilli(), scored, string(reason)).StringSlice()
	if err != nil {
		return Job{}, fmt.Errorf("settle job %s: %w", job.ID, err)
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		fields[reply[i]] = reply[i+1]
	}
	return parseJob(job.ID, fields)
}

func outcome(run scoring.Run) (Status, FailureReason) {
	switch run.State {
	case scoring.RunSucceeded:
		if run.ScoredAt.IsZero() {
			return Failed, RunNoRecord
		}
		return Complete, ""
	case scoring.RunTimedOut:
		return Failed, RunTimedOut
	case scoring.RunAborted:
		return Failed, RunAborted
	}
	return Failed, RunFailed
}

func parseJob(id string, fields map[string]string) (Job, error) {
	if fields["run"] == "" {
		return Job{}, ErrNotFound
	}
	return Job{
		ID: id, AccountID: fields["account"], Domain: fields["domain"], RunID: fields["run"],
		Status: Status(fields["status"]), CreatedAt: millis(fields["created"]), CompletedAt: millis(fields["completed"]),
		ScoredAt: millis(fields["scored"]), FailureReason: FailureReason(fields["reason"]),
	}, nil
}

// millis reads a time in unix milliseconds; an empty text is the zero time.
func millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
