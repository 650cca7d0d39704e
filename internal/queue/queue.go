// Package queue holds the cold runs: who may start one, how far each has come,
// and which worker works on it.
//
// The state of a run is a hash in Redis, and every change of it is one script.
// Delivery is asynq's: a task carries nothing but the id of a run, and means
// "this run may be worked on". A task is only a hint. Whether an attempt begins
// is decided by the run's own state, so a task that comes twice, late or never
// does no harm: the first two begin nothing, and the sweeper of any worker makes
// up for the third.
//
// An attempt holds its run under a lease that its worker extends every few
// seconds. When the worker dies, the lease runs out, a sweeper takes the run
// back under a new task, and another worker begins it with the same StartedAt,
// so that its record replaces what the dead one may have written.
package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// Name is the name of the queue in asynq's tools.
	Name = "cold"
	// taskType is the only type of task in it.
	taskType = "run"

	// callTimeout bounds one exchange with Redis.
	callTimeout = 5 * time.Second
	// pageSize is how many runs one pipeline or script handles.
	pageSize = 500
	// enqueuers is how many tasks are handed to asynq at once.
	enqueuers = 16
)

// The origins of a run.
const (
	OriginAPI      = "api"
	OriginOperator = "operator"
)

// ErrFinal says that a run has already ended, so that there is nothing to abort.
var ErrFinal = errors.New("run has already ended")

// Config says how runs are kept and delivered.
type Config struct {
	// TTL is how long a run is kept, at least, after it was last asked for. It
	// must be as long as jobs live. Zero means 30 days.
	TTL time.Duration
	// Deadline is how long one attempt at a run may take. Zero means 90 s.
	Deadline time.Duration
	// Attempts is how often a run is begun before it fails. Zero means 4.
	Attempts int
	// Now is the clock for what is recorded. Nil means time.Now.
	Now func() time.Time
	// Logger is told what goes wrong in the background. Nil means slog.Default.
	Logger *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.TTL < 0 || c.Deadline < 0 || c.Attempts < 0 {
		return c, errors.New("configure queue: TTL, deadline and attempts must not be negative")
	}
	if c.TTL == 0 {
		c.TTL = 30 * 24 * time.Hour
	}
	if c.Deadline == 0 {
		c.Deadline = 90 * time.Second
	}
	if c.Attempts == 0 {
		c.Attempts = 4
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

// Queue starts, finds and aborts runs. It may be used concurrently.
type Queue struct {
	cfg       Config
	redis     goredis.UniversalClient
	tasks     *asynq.Client
	inspector *asynq.Inspector
}

// New returns the queue in the given Redis. The client stays the caller's, and
// must be closed after everything that uses the queue has ended.
func New(client goredis.UniversalClient, cfg Config) (*Queue, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Queue{
		cfg: cfg, redis: client,
		tasks: asynq.NewClientFromRedisClient(client), inspector: asynq.NewInspectorFromRedisClient(client),
	}, nil
}

// NewRunID returns an id for a run. Ids sort by the time they were made.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// Enqueue hands a new run to the workers. Doing so twice is doing it once. The
// run must have been opened before; if Enqueue fails, a sweeper of the workers
// enqueues every open run that has no task within a few seconds.
func (q *Queue) Enqueue(ctx context.Context, runID string) error {
	return q.enqueue(ctx, runID, runID)
}

func (q *Queue) enqueue(ctx context.Context, runID, taskID string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// Deadlines and retries are counted in the run. asynq's own are set so far
	// away that they never decide anything. Nothing is retained: a finished task
	// that lingered would stand in the way of a later one with its id.
	_, err := q.tasks.EnqueueContext(ctx, asynq.NewTask(taskType, []byte(runID)),
		asynq.Queue(Name), asynq.TaskID(taskID), asynq.MaxRetry(100), asynq.Timeout(q.cfg.Deadline+finishPatience+time.Hour))
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return fmt.Errorf("enqueue run %s: %w", runID, err)
	}
	return nil
}

// Start opens a run for each domain, on behalf of an operator: no account is
// charged. A domain with a run under way joins it. Domains must be canonical.
// The runs returned stand in the order of the domains. After an error some of
// the runs may have been started; starting them again joins those.
func (q *Queue) Start(ctx context.Context, domains ...string) ([]scoring.Run, error) {
	runs := make([]scoring.Run, 0, len(domains))
	for len(domains) > 0 {
		page := domains[:min(pageSize, len(domains))]
		domains = domains[len(page):]
		started, err := q.startPage(ctx, page)
		if err != nil {
			return nil, fmt.Errorf("start runs: %w", err)
		}
		runs = append(runs, started...)
	}
	return runs, nil
}

func (q *Queue) startPage(ctx context.Context, domains []string) ([]scoring.Run, error) {
	pipe := q.redis.Pipeline()
	replies := make([]*goredis.Cmd, len(domains))
	for i, domain := range domains {
		replies[i] = startScript.Eval(ctx, pipe, ScriptKeys(),
			domain, NewRunID(), OriginOperator, q.cfg.Now().UnixMilli(), q.cfg.TTL.Milliseconds())
	}
	if err := exec(ctx, pipe); err != nil {
		return nil, err
	}
	runs := make([]scoring.Run, len(domains))
	for i, reply := range replies {
		fields, err := reply.StringSlice()
		if err != nil {
			return nil, err
		}
		if runs[i], _, err = decodeReply(fields); err != nil {
			return nil, err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(enqueuers)
	for _, run := range runs {
		if run.State == scoring.RunQueued && run.Attempts == 0 {
			group.Go(func() error { return q.Enqueue(ctx, run.ID) })
		}
	}
	return runs, group.Wait()
}

// Reopen opens a run for a domain under an id that Redis has lost, so that those
// who wait for that id need not know. If another run of the domain is under way
// it is returned instead.
func (q *Queue) Reopen(ctx context.Context, runID, domain string) (scoring.Run, error) {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	fields, err := startScript.Run(callCtx, q.redis, ScriptKeys(),
		domain, runID, OriginAPI, q.cfg.Now().UnixMilli(), q.cfg.TTL.Milliseconds()).StringSlice()
	if err != nil {
		return scoring.Run{}, fmt.Errorf("reopen run %s: %w", runID, err)
	}
	run, _, err := decodeReply(fields)
	if err != nil {
		return scoring.Run{}, fmt.Errorf("reopen run %s: %w", runID, err)
	}
	if run.ID != runID {
		return run, nil
	}
	return run, q.Enqueue(ctx, runID)
}

// Get returns a run, or an error that is [scoring.ErrNotFound].
func (q *Queue) Get(ctx context.Context, id string) (scoring.Run, error) {
	runs, err := q.GetMany(ctx, id)
	if err != nil {
		return scoring.Run{}, err
	}
	if runs[0].ID == "" {
		return scoring.Run{}, fmt.Errorf("run %s: %w", id, scoring.ErrNotFound)
	}
	return runs[0], nil
}

// GetMany returns the runs in the order of their ids. A run that does not exist
// is the zero Run.
func (q *Queue) GetMany(ctx context.Context, ids ...string) ([]scoring.Run, error) {
	runs := make([]scoring.Run, 0, len(ids))
	for len(ids) > 0 {
		page := ids[:min(pageSize, len(ids))]
		ids = ids[len(page):]
		pipe := q.redis.Pipeline()
		replies := make([]*goredis.MapStringStringCmd, len(page))
		for i, id := range page {
			replies[i] = pipe.HGetAll(ctx, redis.Run(id))
		}
		if err := exec(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read runs: %w", err)
		}
		for _, reply := range replies {
			if len(reply.Val()) == 0 {
				runs = append(runs, scoring.Run{})
				continue
			}
			run, err := decode(reply.Val())
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// List returns up to limit open runs, oldest first: those in the given state, or
// queued and running ones alike when state is empty.
func (q *Queue) List(ctx context.Context, state scoring.RunState, limit int) ([]scoring.Run, error) {
	if state != "" && state != scoring.RunQueued && state != scoring.RunRunning {
		return nil, fmt.Errorf("list runs: only queued and running ones are listed, not %q", state)
	}
	var found []scoring.Run
	for offset := int64(0); len(found) < limit; offset += pageSize {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		ids, err := q.redis.ZRange(callCtx, redis.OpenRuns(), offset, offset+pageSize-1).Result()
		cancel()
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		if len(ids) == 0 {
			break
		}
		runs, err := q.GetMany(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, run := range runs {
			// A run may have ended since its id was read.
			if run.ID == "" || run.State.Final() || (state != "" && run.State != state) {
				continue
			}
			if found = append(found, run); len(found) == limit {
				break
			}
		}
	}
	return found, nil
}

// Open counts the runs that are queued or running.
func (q *Queue) Open(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	n, err := q.redis.ZCard(ctx, redis.OpenRuns()).Result()
	if err != nil {
		return 0, fmt.Errorf("count open runs: %w", err)
	}
	return int(n), nil
}

// Oldest returns when the oldest run that has not ended was opened, the zero time
// when there is none.
func (q *Queue) Oldest(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	first, err := q.redis.ZRangeWithScores(ctx, redis.OpenRuns(), 0, 0).Result()
	if err != nil {
		return time.Time{}, fmt.Errorf("find the oldest open run: %w", err)
	}
	if len(first) == 0 {
		return time.Time{}, nil
	}
	return time.UnixMilli(int64(first[0].Score)).UTC(), nil
}

// Abort ends a run that is queued or running; a worker that is at it stops
// within seconds. The error is [scoring.ErrNotFound] when there is no such run
// and [ErrFinal] when it has already ended.
func (q *Queue) Abort(ctx context.Context, id string) error {
	before, task, err := q.abort(ctx, id, scoring.RunAborted, "")
	if err != nil {
		return fmt.Errorf("abort run %s: %w", id, err)
	}
	switch {
	case before == "":
		return fmt.Errorf("abort run %s: %w", id, scoring.ErrNotFound)
	case before.Final():
		return fmt.Errorf("abort run %s: %w: %s", id, ErrFinal, before)
	}
	// A task that stays behind, such as that of a running run, begins nothing.
	if err := q.inspector.DeleteTask(Name, task); err != nil {
		q.cfg.Logger.Debug("task of an aborted run stays in the queue", "run", id, "reason", err)
	}
	return nil
}

// abort ends a run if it is open and returns its state before and its task.
func (q *Queue) abort(ctx context.Context, id string, state scoring.RunState, message string) (before scoring.RunState, task string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := abortScript.Run(ctx, q.redis, ScriptKeys(), id, string(state), q.cfg.Now().UnixMilli(), message).StringSlice()
	if err != nil {
		return "", "", err
	}
	return scoring.RunState(reply[0]), reply[1], nil
}

func exec(ctx context.Context, pipe goredis.Pipeliner) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := pipe.Exec(ctx)
	return err
}
