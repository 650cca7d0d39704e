// Package job stores the jobs that callers poll. A job belongs to the account that started
// it and waits for a run. The first poll after the end of the run settles the job. A job
// without polls stays pending until it expires.
//
// Redis can lose the run of a job, for example if an operator deletes keys. The next poll
// then searches the score history. A record made since the job was created completes the
// job. Otherwise the run is reopened and the job stays pending. Lost data in Redis never
// fails a job.
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

// callTimeout bounds one exchange with Redis.
const callTimeout = 5 * time.Second

// ErrNotFound means that the job does not exist or has expired.
var ErrNotFound = errors.New("job not found")

var (
	//go:embed settle.lua
	settleLua string
	//go:embed rebind.lua
	rebindLua string

	settleScript = goredis.NewScript(settleLua)
	rebindScript = goredis.NewScript(rebindLua)
)

// Status is the state of a job.
type Status string

// The states of a job.
const (
	Pending  Status = "pending"
	Complete Status = "complete"
	Failed   Status = "failed"
)

// FailureReason is the code of the failure of a job.
type FailureReason string

// The reasons for which a job fails.
const (
	RunFailed   FailureReason = "sfn_failed"
	RunTimedOut FailureReason = "sfn_timed_out"
	RunAborted  FailureReason = "sfn_aborted"
	RunNoRecord FailureReason = "scoring_completed_no_record"
)

// Job is the state of a cold call. Callers poll it. Times are in UTC and whole milliseconds.
type Job struct {
	ID, AccountID, KeyID, Domain, RunID string
	Status                              Status
	CreatedAt                           time.Time
	CompletedAt                         time.Time     // end of the run; zero while pending
	ScoredAt                            time.Time     // of the record; zero unless complete
	FailureReason                       FailureReason // empty unless failed
}

// Runs reads and reopens runs.
type Runs interface {
	// Get returns a run, or scoring.ErrNotFound if it does not exist.
	Get(ctx context.Context, id string) (scoring.Run, error)
	// Reopen opens a lost run again under its id and returns the id. If the domain has an
	// open run, it returns the id of that run.
	Reopen(ctx context.Context, id, domain, accountID string) (runID string, err error)
}

// RecordStore reads stored records.
type RecordStore interface {
	// FreshSince returns the scored_at of the newest record by domain. It omits domains
	// without a record of since or later.
	FreshSince(ctx context.Context, domains []string, since time.Time) (map[string]time.Time, error)
}

// Option configures Jobs.
type Option func(*Jobs)

// WithRecords sets the records that are searched before a lost run is reopened. Without it
// every lost run is reopened.
func WithRecords(records RecordStore) Option { return func(j *Jobs) { j.records = records } }

// Jobs reads and settles jobs. It may be used concurrently.
type Jobs struct {
	rdb     goredis.UniversalClient
	runs    Runs
	records RecordStore
	now     func() time.Time
}

// New returns the jobs stored in Redis. runs has the runs that they wait for.
func New(rdb goredis.UniversalClient, runs Runs, options ...Option) *Jobs {
	j := &Jobs{rdb: rdb, runs: runs, now: time.Now}
	for _, option := range options {
		option(j)
	}
	return j
}

// Get returns a stored job, or [ErrNotFound] if it does not exist or has expired. It does
// not check the account of the job.
func (j *Jobs) Get(ctx context.Context, id string) (Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := j.rdb.HGetAll(ctx, redis.Job(id)).Result()
	if err != nil {
		return Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return decode(id, fields)
}

// Settle reads the run of a pending job and settles the job if the run has ended. It does
// not extend the lifetime of the job. Concurrent calls return the same result. The error is
// [ErrNotFound] if the job has expired meanwhile.
func (j *Jobs) Settle(ctx context.Context, job Job) (Job, error) {
	if job.Status != Pending {
		return job, nil
	}
	run, err := j.runs.Get(ctx, job.RunID)
	if errors.Is(err, scoring.ErrNotFound) {
		run, err = j.replaceLost(ctx, job)
	}
	if err != nil {
		return Job{}, fmt.Errorf("settle job %s: %w", job.ID, err)
	}
	if !run.State.Final() {
		job.RunID = run.ID
		return job, nil
	}
	return j.settle(ctx, job, run)
}

// settle writes the outcome of an ended run to a job, unless the job is already settled. It
// returns the stored job.
func (j *Jobs) settle(ctx context.Context, job Job, run scoring.Run) (Job, error) {
	status, reason := outcome(run)
	scored := ""
	if status == Complete {
		scored = strconv.FormatInt(run.ScoredAt.UnixMilli(), 10)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := settleScript.Run(ctx, j.rdb, []string{redis.Job(job.ID)},
		string(status), run.FinishedAt.UnixMilli(), scored, string(reason)).StringSlice()
	if err != nil {
		return Job{}, fmt.Errorf("settle job %s: %w", job.ID, err)
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 0; i+1 < len(reply); i += 2 {
		fields[reply[i]] = reply[i+1]
	}
	return decode(job.ID, fields)
}

// replaceLost returns a run in place of one that Redis has lost: a succeeded run if the
// history has a record made since the job was created, else a reopened or open run.
func (j *Jobs) replaceLost(ctx context.Context, job Job) (scoring.Run, error) {
	if j.records != nil {
		made, err := j.records.FreshSince(ctx, []string{job.Domain}, job.CreatedAt)
		if err != nil {
			return scoring.Run{}, fmt.Errorf("find the record of lost run %s: %w", job.RunID, err)
		}
		if scoredAt, ok := made[job.Domain]; ok {
			return scoring.Run{ID: job.RunID, State: scoring.RunSucceeded, ScoredAt: scoredAt, FinishedAt: j.now()}, nil
		}
	}
	id, err := j.runs.Reopen(ctx, job.RunID, job.Domain, job.AccountID)
	if err != nil {
		return scoring.Run{}, err
	}
	run := scoring.Run{ID: id, State: scoring.RunQueued}
	if id == job.RunID {
		return run, nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := rebindScript.Run(ctx, j.rdb, []string{redis.Job(job.ID)}, job.RunID, id).Err(); err != nil {
		return scoring.Run{}, fmt.Errorf("set run %s of job: %w", id, err)
	}
	return run, nil
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

// decode returns the job in the fields of a Redis hash. The error is ErrNotFound if the hash
// has no run.
func decode(id string, fields map[string]string) (Job, error) {
	if fields["run"] == "" {
		return Job{}, ErrNotFound
	}
	job := Job{
		ID: id, AccountID: fields["account"], KeyID: fields["key"], Domain: fields["domain"], RunID: fields["run"],
		Status: Status(fields["status"]), FailureReason: FailureReason(fields["reason"]),
	}
	for name, at := range map[string]*time.Time{
		"created": &job.CreatedAt, "completed": &job.CompletedAt, "scored": &job.ScoredAt,
	} {
		if fields[name] == "" {
			continue
		}
		ms, err := strconv.ParseInt(fields[name], 10, 64)
		if err != nil {
			return Job{}, fmt.Errorf("read %s of job %s: %w", name, id, err)
		}
		*at = time.UnixMilli(ms).UTC()
	}
	return job, nil
}
