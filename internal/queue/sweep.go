package queue

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

const (
	// strayAge is how old a queued run must be before a sweeper makes sure that
	// it has a task; younger ones are being enqueued by whoever opened them.
	strayAge = 5 * time.Second
	// sweepReclaims bounds how many runs one sweep takes from dead workers.
	sweepReclaims = 200
)

// sweeper looks for runs that nobody works on or will work on. All it does is
// safe to do from several workers at once; a lock only spares Redis the repetition.
type sweeper struct {
	server *Server
	queue  *Queue
	// offset is where the slow walk over all open runs goes on.
	offset int
}

func newSweeper(s *Server) *sweeper { return &sweeper{server: s, queue: s.queue} }

func (w *sweeper) sweep(ctx context.Context) {
	ours, err := w.lock(ctx)
	if err != nil || !ours {
		return // without Redis there is nothing to sweep, and others log the outage
	}
	// Our own leases first, so that an outage that outlasted them costs us nothing.
	w.server.heartbeat(ctx)
	for _, step := range []func(context.Context) error{w.reclaim, w.replaceOrphans, w.failArchived, w.enqueueStrays} {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			w.queue.cfg.Logger.Warn("sweep of runs was cut short", "error", err)
			return
		}
	}
}

func (w *sweeper) lock(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	// A little less than the interval, so that the lock is free when we come again.
	return w.queue.redis.SetNX(ctx, redis.SweepLock(), "", w.server.cfg.Sweep*9/10).Result()
}

// reclaim gives the runs of dead workers new tasks.
func (w *sweeper) reclaim(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := reclaimScript.Run(callCtx, w.queue.redis, ScriptKeys(),
		w.queue.cfg.Now().UnixMilli(), w.queue.cfg.Attempts, sweepReclaims).StringSlice()
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(reply); i += 2 {
		id, task := reply[i], reply[i+1]
		if task == "" {
			w.queue.cfg.Logger.Error("run failed: its workers died", "run", id)
			continue
		}
		w.queue.cfg.Logger.Warn("run taken over from a worker that died", "run", id)
		if err := w.queue.enqueue(ctx, id, task); err != nil {
			return err
		}
	}
	return nil
}

// replaceOrphans looks for tasks whose worker died before it began the run.
func (w *sweeper) replaceOrphans(ctx context.Context) error {
	active, err := w.queue.inspector.ListActiveTasks(Name, asynq.PageSize(1000))
	if err != nil {
		return ignoreNoQueue(err)
	}
	for _, task := range active {
		if !task.IsOrphaned {
			continue
		}
		id := string(task.Payload)
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		replacement, err := retaskScript.Run(callCtx, w.queue.redis, ScriptKeys(), id, task.ID).Text()
		cancel()
		if err != nil {
			return err
		}
		if replacement == "" {
			continue
		}
		if err := w.queue.enqueue(ctx, id, replacement); err != nil {
			return err
		}
	}
	return nil
}

// failArchived ends the runs whose tasks were given up on, which asynq does only
// when someone asks it to.
func (w *sweeper) failArchived(ctx context.Context) error {
	archived, err := w.queue.inspector.ListArchivedTasks(Name, asynq.PageSize(100))
	if err != nil {
		return ignoreNoQueue(err)
	}
	for _, task := range archived {
		if _, _, err := w.queue.abort(ctx, string(task.Payload), scoring.RunFailed, "task archived: "+task.LastErr); err != nil {
			return err
		}
		if err := w.queue.inspector.DeleteTask(Name, task.ID); err != nil && !errors.Is(err, asynq.ErrTaskNotFound) {
			return err
		}
	}
	return nil
}

// enqueueStrays enqueues the queued runs of one page of the open runs. Those
// that have a task, which is nearly all, are not changed by that.
func (w *sweeper) enqueueStrays(ctx context.Context) error {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := scanScript.Run(callCtx, w.queue.redis, ScriptKeys(),
		w.offset, pageSize, w.queue.cfg.Now().Add(-strayAge).UnixMilli()).Slice()
	if err != nil {
		return err
	}
	if seen, _ := reply[0].(int64); seen < pageSize {
		w.offset = 0
	} else {
		w.offset += pageSize
	}
	for i := 1; i+1 < len(reply); i += 2 {
		id, _ := reply[i].(string)
		task, _ := reply[i+1].(string)
		if err := w.queue.enqueue(ctx, id, task); err != nil {
			return err
		}
	}
	return nil
}

func ignoreNoQueue(err error) error {
	if errors.Is(err, asynq.ErrQueueNotFound) {
		return nil
	}
	return err
}
