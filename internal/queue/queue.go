// Package queue carries cold runs from those who ask for them to the workers,
// and keeps the state of each run for as long as a job may ask about it.
//
// The state of a run is a hash in Redis and is changed by scripts only. A run
// exists from the moment its hash does; the asynq task is only what wakes a
// worker. A task that was never enqueued, or whose worker was killed, is
// enqueued again by a sweep that every worker makes, so no run is left hanging.
// Whoever holds a run says so every few seconds; when that stops, another
// worker takes over. An attempt that is repeated keeps the start of the first
// one, which makes the same record again: repeating is harmless.
package queue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

var (
	//go:embed open_run.lua
	openRunLua string
	//go:embed start.lua
	startLua string
	//go:embed finish.lua
	finishLua string

	startScript  = goredis.NewScript(OpenRunLua + startLua)
	finishScript = goredis.NewScript(finishLua)
)

// OpenRunLua defines the Lua function open_run, for scripts that open a run
// together with something else.
var OpenRunLua = openRunLua

// ErrOver says that a run has ended and cannot be aborted any more.
var ErrOver = errors.New("run is over")

const (
	taskType  = "run"
	taskQueue = "runs"
)

// Config says how long runs may take and how long they are remembered.
type Config struct {
	// Deadline bounds one attempt; zero means 90 s.
	Deadline time.Duration
	// TTL is how long a run is remembered after it was opened; zero means 30 days.
	TTL time.Duration
}

// Queue opens, reads and aborts runs. It is safe for concurrent use.
type Queue struct {
	rdb   goredis.UniversalClient
	tasks *asynq.Client
	cfg   Config
	now   func() time.Time
}

// New returns a queue over a Redis connection, which stays the caller's.
func New(rdb goredis.UniversalClient, cfg Config) *Queue {
	if cfg.Deadline == 0 {
		cfg.Deadline = 90 * time.Second
	}
	if cfg.TTL == 0 {
		cfg.TTL = 30 * 24 * time.Hour
	}
	return &Queue{rdb: rdb, tasks: asynq.NewClientFromRedisClient(rdb), cfg: cfg, now: time.Now}
}

// Enqueue wakes a worker for a run that was opened. Doing so twice is harmless,
// and if it fails the sweep of the workers will do it some seconds later.
func (q *Queue) Enqueue(ctx context.Context, runID string) error {
	return q.enqueue(ctx, runID, runID)
}

func (q *Queue) enqueue(ctx context.Context, taskID, runID string) error {
	// asynq's own timeout only guards against a handler that ignores its
	// deadline, and its retries are only a backstop for ours.
	_, err := q.tasks.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(runID)),
		asynq.TaskID(taskID), asynq.Queue(taskQueue), asynq.Timeout(q.cfg.Deadline+time.Minute), asynq.MaxRetry(2*attemptMax))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue run %s: %w", runID, err)
	}
	return nil
}

// Start opens and enqueues a run for each domain on an operator's behalf. A
// domain that has a run under way gets that one. The ids are in the order of
// domains.
func (q *Queue) Start(ctx context.Context, domains []string) ([]string, error) {
	ids := make([]string, len(domains))
	now := q.now()
	for i, domain := range domains {
		id := uuid.Must(uuid.NewV7()).String()
		reply, err := startScript.Run(ctx, q.rdb, []string{redis.InFlight(domain), redis.OpenRuns()},
			redis.Run(""), id, domain, "operator", now.UnixMilli(), now.Add(q.cfg.TTL).UnixMilli()).Slice()
		if err != nil {
			return nil, fmt.Errorf("open run for %s: %w", domain, err)
		}
		ids[i] = reply[0].(string)
		if reply[1].(int64) == 0 {
			continue
		}
		if err := q.Enqueue(ctx, ids[i]); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Get returns a run, or scoring.ErrNotFound when there is none of that id.
func (q *Queue) Get(ctx context.Context, id string) (scoring.Run, error) {
	runs, err := q.GetMany(ctx, []string{id})
	if err != nil {
		return scoring.Run{}, err
	}
	if runs[0].ID == "" {
		return scoring.Run{}, fmt.Errorf("run %s: %w", id, scoring.ErrNotFound)
	}
	return runs[0], nil
}

// GetMany returns runs in the order of ids; one that does not exist is the zero Run.
func (q *Queue) GetMany(ctx context.Context, ids []string) ([]scoring.Run, error) {
	runs := make([]scoring.Run, len(ids))
	replies := make([]*goredis.MapStringStringCmd, len(ids))
	_, err := q.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, id := range ids {
			replies[i] = p.HGetAll(ctx, redis.Run(id))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	for i, reply := range replies {
		if fields := reply.Val(); len(fields) > 0 {
			runs[i] = parseRun(ids[i], fields)
		}
	}
	return runs, nil
}

// Open returns the runs that are not final, oldest first, at most limit.
func (q *Queue) Open(ctx context.Context, limit int) ([]scoring.Run, error) {
	ids, err := q.rdb.ZRange(ctx, redis.OpenRuns(), 0, int64(limit)-1).Result()
	if err != nil {
		return nil, fmt.Errorf("list open runs: %w", err)
	}
	runs, err := q.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	open := runs[:0]
	for _, run := range runs {
		if run.ID != "" && !run.State.Final() {
			open = append(open, run)
		}
	}
	return open, nil
}

// Abort ends a run; a worker that is at it is told within some seconds. The
// error is scoring.ErrNotFound for an unknown run and ErrOver for one that has ended.
func (q *Queue) Abort(ctx context.Context, id string) error {
	run, err := q.Get(ctx, id)
	if err != nil {
		return err
	}
	ended, err := q.end(ctx, run, scoring.RunAborted, time.Time{}, "aborted by an operator")
	if err != nil {
		return err
	}
	if !ended {
		return fmt.Errorf("abort run %s: %w", id, ErrOver)
	}
	return nil
}

// end makes a run final and reports whether this call did it.
func (q *Queue) end(ctx context.Context, run scoring.Run, state scoring.RunState, scoredAt time.Time, why string) (bool, error) {
	scored := ""
	if !scoredAt.IsZero() {
		scored = strconv.FormatInt(scoredAt.UnixMilli(), 10)
	}
	return q.finish(ctx, run, state, scored, why, false)
}

func (q *Queue) finish(ctx context.Context, run scoring.Run, state scoring.RunState, scored, why string, uncounted bool) (bool, error) {
	flag := ""
	if uncounted {
		flag = "1"
	}
	n, err := finishScript.Run(ctx, q.rdb,
		[]string{redis.Run(run.ID), redis.InFlight(run.Domain), redis.OpenRuns(), redis.RunBeats()},
		run.ID, string(state), q.now().UnixMilli(), scored, why, flag).Int()
	if err != nil {
		return false, fmt.Errorf("end run %s: %w", run.ID, err)
	}
	return n == 1, nil
}

func parseRun(id string, fields map[string]string) scoring.Run {
	attempts, _ := strconv.Atoi(fields["attempts"])
	return scoring.Run{
		ID: id, Domain: fields["domain"], State: scoring.RunState(fields["state"]), Origin: fields["origin"],
		CreatedAt: millis(fields["created"]), StartedAt: millis(fields["started"]),
		FinishedAt: millis(fields["finished"]), ScoredAt: millis(fields["scored"]),
		Attempts: attempts, Error: fields["error"],
	}
}

// millis reads a time in unix milliseconds; an empty text is the zero time.
func millis(s string) time.Time {
	ms, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
