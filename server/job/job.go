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
	"fmt"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// callTimeout bounds one exchange with Redis.
	callTimeout = 5 * time.Second
	// settleMax bounds the jobs of one script.
	settleMax = 250
)

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
	CompletedAt                         time.Time        // end of the run; zero while pending
	ScoredAt                            time.Time        // of the record; zero unless complete
	FailureReason                       FailureReason    // empty unless failed
	Progress                            scoring.Progress // of the run; zero unless pending
}

// Runs reads and reopens runs.
type Runs interface {
	// GetMany returns the runs in the order of their ids. A run that does not exist is the zero Run.
	GetMany(ctx context.Context, ids ...string) ([]scoring.Run, error)
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

// Get returns the stored jobs by id, without those that do not exist or have expired. It does
// not check the accounts of the jobs.
func (j *Jobs) Get(ctx context.Context, ids ...string) (map[string]Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	replies, err := j.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for _, id := range ids {
			p.HGetAll(ctx, redis.Job(id))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %d jobs: %w", len(ids), err)
	}
	jobs := make(map[string]Job, len(ids))
	for i, reply := range replies {
		job, found, err := decode(ids[i], reply.(*goredis.MapStringStringCmd).Val())
		if err != nil {
			return nil, err
		}
		if found {
			jobs[ids[i]] = job
		}
	}
	return jobs, nil
}

// Settle reads the runs of pending jobs and settles the jobs whose run has ended. It returns the
// jobs by id, without those that have expired meanwhile. It does not extend the lifetime of a
// job. Concurrent calls return the same result.
func (j *Jobs) Settle(ctx context.Context, jobs map[string]Job) (map[string]Job, error) {
	settled := make(map[string]Job, len(jobs))
	var pending []Job
	var ids []string
	for id, job := range jobs {
		if job.Status == Pending {
			pending, ids = append(pending, job), append(ids, job.RunID)
		} else {
			settled[id] = job
		}
	}
	if len(pending) == 0 {
		return settled, nil
	}
	runs, err := j.runs.GetMany(ctx, ids...)
	if err != nil {
		return nil, fmt.Errorf("settle %d jobs: %w", len(pending), err)
	}
	if err := j.replaceLost(ctx, pending, runs); err != nil {
		return nil, fmt.Errorf("settle %d jobs: %w", len(pending), err)
	}
	var ended []Job
	var endedRuns []scoring.Run
	for i, job := range pending {
		if runs[i].State.Final() {
			ended, endedRuns = append(ended, job), append(endedRuns, runs[i])
			continue
		}
		job.RunID, job.Progress = runs[i].ID, runs[i].Progress
		settled[job.ID] = job
	}
	return settled, j.settle(ctx, ended, endedRuns, settled)
}

// settle writes the outcomes of ended runs to their jobs, unless a job is already settled. It
// adds the stored jobs to settled.
func (j *Jobs) settle(ctx context.Context, jobs []Job, runs []scoring.Run, settled map[string]Job) error {
	for len(jobs) > 0 {
		n := min(len(jobs), settleMax)
		if err := j.settlePage(ctx, jobs[:n], runs[:n], settled); err != nil {
			return fmt.Errorf("settle %d jobs: %w", n, err)
		}
		jobs, runs = jobs[n:], runs[n:]
	}
	return nil
}

func (j *Jobs) settlePage(ctx context.Context, jobs []Job, runs []scoring.Run, settled map[string]Job) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	keys, args := make([]string, len(jobs)), make([]any, 0, 4*len(jobs))
	for i, job := range jobs {
		keys[i] = redis.Job(job.ID)
		status, reason := outcome(runs[i])
		scored := ""
		if status == Complete {
			scored = strconv.FormatInt(runs[i].ScoredAt.UnixMilli(), 10)
		}
		args = append(args, string(status), runs[i].FinishedAt.UnixMilli(), scored, string(reason))
	}
	reply, err := settleScript.Run(ctx, j.rdb, keys, args...).Slice()
	if err != nil {
		return err
	}
	for i, job := range jobs {
		values, _ := reply[i].([]any)
		fields := make(map[string]string, len(values)/2)
		for k := 0; k+1 < len(values); k += 2 {
			name, _ := values[k].(string)
			fields[name], _ = values[k+1].(string)
		}
		stored, found, err := decode(job.ID, fields)
		if err != nil {
			return err
		}
		if found {
			settled[job.ID] = stored
		}
	}
	return nil
}

// replaceLost sets the runs that Redis has lost: a succeeded run if the history has a record
// made since the job was created, else a reopened or open run. runs has the run of each job.
func (j *Jobs) replaceLost(ctx context.Context, jobs []Job, runs []scoring.Run) error {
	var lost []int
	var domains []string
	var oldest time.Time
	for i, run := range runs {
		if run.ID != "" {
			continue
		}
		lost, domains = append(lost, i), append(domains, jobs[i].Domain)
		if oldest.IsZero() || jobs[i].CreatedAt.Before(oldest) {
			oldest = jobs[i].CreatedAt
		}
	}
	var made map[string]time.Time
	if len(lost) > 0 && j.records != nil {
		var err error
		if made, err = j.records.FreshSince(ctx, domains, oldest); err != nil {
			return fmt.Errorf("find the records of %d lost runs: %w", len(lost), err)
		}
	}
	for _, i := range lost {
		job := jobs[i]
		if scoredAt, ok := made[job.Domain]; ok && !scoredAt.Before(job.CreatedAt) {
			runs[i] = scoring.Run{ID: job.RunID, State: scoring.RunSucceeded, ScoredAt: scoredAt, FinishedAt: j.now()}
			continue
		}
		id, err := j.reopen(ctx, job)
		if err != nil {
			return err
		}
		runs[i] = scoring.Run{ID: id, State: scoring.RunQueued}
	}
	return nil
}

// reopen opens the lost run of a job again, or makes the job wait for the open run of its domain. It
// returns the id of the run.
func (j *Jobs) reopen(ctx context.Context, job Job) (runID string, err error) {
	id, err := j.runs.Reopen(ctx, job.RunID, job.Domain, job.AccountID)
	if err != nil || id == job.RunID {
		return id, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := rebindScript.Run(ctx, j.rdb, []string{redis.Job(job.ID)}, job.RunID, id).Err(); err != nil {
		return "", fmt.Errorf("set run %s of job: %w", id, err)
	}
	return id, nil
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

// decode returns the job in the fields of a Redis hash. It returns false if the hash has no run.
func decode(id string, fields map[string]string) (job Job, found bool, err error) {
	if fields["run"] == "" {
		return Job{}, false, nil
	}
	job = Job{
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
			return Job{}, false, fmt.Errorf("read %s of job %s: %w", name, id, err)
		}
		*at = time.UnixMilli(ms).UTC()
	}
	return job, true, nil
}
