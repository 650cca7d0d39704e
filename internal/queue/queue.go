// Package queue stores the cold runs in Redis: the waiting ones, the running ones with
// their workers, and the results.
//
// Each change of a run's state is one script. Runs wait in lanes. A worker claims many
// runs by one script and holds them under a lease that it extends every few seconds.
// When the worker dies, the lease expires and another worker requeues the run. The next
// attempt has the same StartedAt, so its record replaces one that the dead worker may
// have written.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// callTimeout bounds one call to Redis.
	callTimeout = 5 * time.Second
	// pageSize is the maximum number of runs per pipeline or script.
	pageSize = 500
	// operator is the owner of runs without an account.
	operator = "operator"
)

// ErrFinal is returned by Abort for a run that has ended.
var ErrFinal = errors.New("run has already ended")

// Config configures a Queue.
type Config struct {
	// TTL is the minimum time that a run is stored after its last start or join. It must
	// be at least the lifetime of jobs. Zero means 30 days.
	TTL time.Duration
	// Deadline bounds one attempt at a run. Zero means 90 s.
	Deadline time.Duration
	// Attempts is the maximum number of attempts of a run. Zero means 4.
	Attempts int
	// Now is the clock for recorded times. Nil means time.Now.
	Now func() time.Time
	// Logger receives background errors. Nil means slog.Default.
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

// Queue starts, reads and aborts runs. It is safe for concurrent use.
type Queue struct {
	cfg   Config
	redis goredis.UniversalClient
}

// New returns the queue in the given Redis. The caller closes the client after the last
// use of the queue.
func New(client goredis.UniversalClient, cfg Config) (*Queue, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Queue{cfg: cfg, redis: client}, nil
}

// NewRunID returns an id for a run. Ids sort by creation time.
func NewRunID() string { return uuid.Must(uuid.NewV7()).String() }

// Start opens a run for each domain in a lane and returns their ids in the order
// of the domains. No account is charged. If a domain has an open run, Start joins it.
// Domains must be canonical. After an error some runs may be started; a second Start
// joins them.
func (q *Queue) Start(ctx context.Context, lane scoring.Lane, domains ...string) ([]string, error) {
	if !slices.Contains(scoring.Lanes, lane) {
		return nil, fmt.Errorf("start runs: unknown lane %q: use one of %q", lane, scoring.Lanes)
	}
	ids := make([]string, 0, len(domains))
	for page := range slices.Chunk(domains, pageSize) {
		args := make([]any, 0, 2*len(page))
		for _, domain := range page {
			args = append(args, domain, NewRunID())
		}
		started, err := q.start(ctx, lane, operator, args...)
		if err != nil {
			return nil, fmt.Errorf("start runs: %w", err)
		}
		ids = append(ids, started...)
	}
	return ids, nil
}

// Reopen opens a run of an account under an id that is missing in Redis, and returns
// the id. If another run of the domain is open, it returns the id of that run.
func (q *Queue) Reopen(ctx context.Context, runID, domain, accountID string) (string, error) {
	ids, err := q.start(ctx, scoring.LaneAPI, accountID, domain, runID)
	if err != nil {
		return "", fmt.Errorf("reopen run %s: %w", runID, err)
	}
	return ids[0], nil
}

// start opens runs; domains are pairs of a domain and the id of its new run.
func (q *Queue) start(ctx context.Context, lane scoring.Lane, owner string, domains ...any) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	args := append([]any{string(lane), owner, q.cfg.Now().UnixMilli(), q.cfg.TTL.Milliseconds()}, domains...)
	return startScript.Run(ctx, q.redis, ScriptKeys(), args...).StringSlice()
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
	for page := range slices.Chunk(ids, pageSize) {
		pipe := q.redis.Pipeline()
		replies := make([]*goredis.SliceCmd, len(page))
		for i, id := range page {
			replies[i] = pipe.HMGet(ctx, redis.Run(id), runFields...)
		}
		if err := exec(ctx, pipe); err != nil {
			return nil, fmt.Errorf("read runs: %w", err)
		}
		for i, reply := range replies {
			run, err := decode(page[i], reply.Val())
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// List returns up to limit open runs, oldest first. An empty state matches queued and
// running runs.
func (q *Queue) List(ctx context.Context, state scoring.RunState, limit int) ([]scoring.Run, error) {
	var lists []string
	switch state {
	case scoring.RunQueued:
		lists = waitingLists()
	case scoring.RunRunning:
		lists = []string{redis.Leases()}
	case "":
		lists = append(waitingLists(), redis.Leases())
	default:
		return nil, fmt.Errorf("list runs: state %q: use queued or running", state)
	}
	pipe := q.redis.Pipeline()
	replies := make([]*goredis.StringSliceCmd, len(lists))
	for i, list := range lists {
		replies[i] = pipe.ZRange(ctx, list, 0, int64(limit)-1)
	}
	if err := exec(ctx, pipe); err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, reply := range replies {
		ids = append(ids, reply.Val()...)
	}
	runs, err := q.GetMany(ctx, ids...)
	if err != nil {
		return nil, err
	}
	// A run may have ended since its id was read.
	runs = slices.DeleteFunc(runs, func(r scoring.Run) bool {
		return r.ID == "" || r.State.Final() || state != "" && r.State != state
	})
	slices.SortFunc(runs, func(a, b scoring.Run) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return runs[:min(len(runs), limit)], nil
}

// waitingLists returns the keys that list queued runs.
func waitingLists() []string {
	var lists []string
	for _, lane := range scoring.Lanes {
		lists = append(lists, redis.Lane(string(lane)))
	}
	return append(lists, redis.Retries())
}

// LaneStatus is the state of one lane.
type LaneStatus struct {
	Lane    scoring.Lane
	Waiting int
	// NextCreatedAt is the creation time of the next run, zero if none waits.
	NextCreatedAt time.Time
}

// Status counts the open runs.
type Status struct {
	Lanes    []LaneStatus // in the order of scoring.Lanes
	Retrying int          // waiting for another attempt
	Running  int
}

// Open returns the number of runs that have not ended.
func (s Status) Open() int {
	open := s.Retrying + s.Running
	for _, lane := range s.Lanes {
		open += lane.Waiting
	}
	return open
}

// Status returns the state of the queue.
func (q *Queue) Status(ctx context.Context) (Status, error) {
	pipe := q.redis.Pipeline()
	running, retrying := pipe.ZCard(ctx, redis.Leases()), pipe.ZCard(ctx, redis.Retries())
	var waiting []*goredis.IntCmd
	var next []*goredis.StringSliceCmd
	for _, lane := range scoring.Lanes {
		waiting = append(waiting, pipe.ZCard(ctx, redis.Lane(string(lane))))
		next = append(next, pipe.ZRange(ctx, redis.Lane(string(lane)), 0, 0))
	}
	if err := exec(ctx, pipe); err != nil {
		return Status{}, fmt.Errorf("read the state of the queue: %w", err)
	}
	status := Status{Retrying: int(retrying.Val()), Running: int(running.Val())}
	for i, lane := range scoring.Lanes {
		runs, err := q.GetMany(ctx, next[i].Val()...)
		if err != nil {
			return Status{}, err
		}
		l := LaneStatus{Lane: lane, Waiting: int(waiting[i].Val())}
		if len(runs) > 0 {
			l.NextCreatedAt = runs[0].CreatedAt
		}
		status.Lanes = append(status.Lanes, l)
	}
	return status, nil
}

// Abort ends a queued or running run. A worker that holds it stops within seconds. The
// error is [scoring.ErrNotFound] if there is no such run, and [ErrFinal] if it has ended.
func (q *Queue) Abort(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	before, err := abortScript.Run(ctx, q.redis, ScriptKeys(), id, q.cfg.Now().UnixMilli()).Text()
	switch {
	case err != nil:
		return fmt.Errorf("abort run %s: %w", id, err)
	case before == "":
		return fmt.Errorf("abort run %s: %w", id, scoring.ErrNotFound)
	case scoring.RunState(before).Final():
		return fmt.Errorf("abort run %s: %w: %s", id, ErrFinal, before)
	}
	return nil
}

func exec(ctx context.Context, pipe goredis.Pipeliner) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := pipe.Exec(ctx)
	return err
}
