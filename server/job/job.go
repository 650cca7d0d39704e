// Package job keeps the jobs that callers poll. A job is bound to the account
// that started it, waits for a run, and is settled by the first poll that sees
// the run over. A job nobody polls stays pending until it expires.
//
// A run can be lost while its job is not, for instance when an operator deletes
// keys. The poll that notices asks the score history first: a record made since
// the job began is what the caller waited for. Without one the run is opened
// again under its id, and the job stays pending until that ends. A job is never
// declared failed because of what Redis forgot.
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

// ErrNotFound says that there is no such job, or not any more.
var ErrNotFound = errors.New("job not found")

var (
	//go:embed settle.lua
	settleLua string
	//go:embed rebind.lua
	rebindLua string

	settleScript = goredis.NewScript(settleLua)
	rebindScript = goredis.NewScript(rebindLua)
)

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

// Job is what a caller waits with. Times are in UTC and whole milliseconds.
type Job struct {
	ID, AccountID, KeyID, Domain, RunID string
	Status                              Status
	CreatedAt                           time.Time
	CompletedAt                         time.Time     // when the run ended; zero while pending
	ScoredAt                            time.Time     // of the record; zero unless complete
	FailureReason                       FailureReason // empty unless failed
}

// Runs finds the runs that jobs wait for.
type Runs interface {
	// Get returns a run, or scoring.ErrNotFound for one that is not there.
	Get(ctx context.Context, id string) (scoring.Run, error)
	// Reopen opens a run of an account under an id that was lost and returns the id,
	// or that of the open run of the domain.
	Reopen(ctx context.Context, id, domain, accountID string) (runID string, err error)
}

// History knows the records that were made.
type History interface {
	// FreshSince returns, for those of the domains that have a record of since or
	// later, when the newest was made.
	FreshSince(ctx context.Context, domains []string, since time.Time) (map[string]time.Time, error)
}

// Option changes how jobs are kept.
type Option func(*Jobs)

// WithHistory has lost runs looked up in the history before they are run again.
// Without it every lost run is run again.
func WithHistory(history History) Option { return func(j *Jobs) { j.history = history } }

// Jobs reads and settles jobs. It may be used concurrently.
type Jobs struct {
	rdb     goredis.UniversalClient
	runs    Runs
	history History
	now     func() time.Time
}

// New returns the jobs in a Redis, over the runs they wait for.
func New(rdb goredis.UniversalClient, runs Runs, options ...Option) *Jobs {
	j := &Jobs{rdb: rdb, runs: runs, now: time.Now}
	for _, option := range options {
		option(j)
	}
	return j
}

// Get returns a job as it is stored, or [ErrNotFound] when there is none or it
// has expired. Whether the caller may see it is the caller's business.
func (j *Jobs) Get(ctx context.Context, id string) (Job, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := j.rdb.HGetAll(ctx, redis.Job(id)).Result()
	if err != nil {
		return Job{}, fmt.Errorf("read job %s: %w", id, err)
	}
	return decode(id, fields)
}

// Settle looks at the run of a pending job and, when it is over, settles the
// job. Settling does not make a job live longer. Of several polls at once one
// settles and all return the same. The error is [ErrNotFound] when the job has
// expired meanwhile.
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

// settle makes a job what its ended run says, unless it is settled already.
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

// replaceLost returns a run in place of one that Redis has lost: the one that
// made a record since the job began, or else an open one.
func (j *Jobs) replaceLost(ctx context.Context, job Job) (scoring.Run, error) {
	if j.history != nil {
		made, err := j.history.FreshSince(ctx, []string{job.Domain}, job.CreatedAt)
		if err != nil {
			return scoring.Run{}, fmt.Errorf("look for the record of lost run %s: %w", job.RunID, err)
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
		return scoring.Run{}, fmt.Errorf("have job wait for run %s: %w", id, err)
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

// decode reads a job from the fields of its hash, which the admission wrote.
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
