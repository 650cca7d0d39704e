package queue

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

var (
	//go:embed begin.lua
	beginLua string
	//go:embed beat.lua
	beatLua string

	beginScript = goredis.NewScript(beginLua)
	beatScript  = goredis.NewScript(beatLua)
)

const (
	// attemptMax is how often a run is tried before it has failed.
	attemptMax = 4
	// A worker says every beatEvery that it is alive. After beatLife of silence
	// its runs are taken over.
	beatEvery = 2 * time.Second
	beatLife  = 10 * time.Second
	// A run that waits longer than this is enqueued again, in case it never was.
	sweepAge   = 10 * time.Second
	sweepBatch = 200
	// finishFor is how long the end of a run is written again while Redis is away.
	finishFor = 2 * time.Minute
)

var errAborted = errors.New("the run ended elsewhere")

// Handler makes the record of a run and returns its ScoredAt, or the zero time
// when no record came of it. It must return soon after its context ends.
type Handler func(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error)

// RunLog keeps what became of runs, for operators.
type RunLog interface {
	WriteRuns(ctx context.Context, runs []scoring.Run) error
}

// Server works on runs. Make one with Serve and end it with Shutdown.
type Server struct {
	queue   *Queue
	handler Handler
	log     RunLog
	logger  *slog.Logger
	asynq   *asynq.Server

	base   context.Context // of all attempts; ends when the server stops waiting for them
	cancel context.CancelFunc
	done   sync.WaitGroup
	logs   chan scoring.Run

	mu   sync.Mutex
	busy map[string]context.CancelCauseFunc // attempts under way by run id
}

// Serve starts working on runs, concurrency at a time.
func (q *Queue) Serve(concurrency int, handler Handler, log RunLog, logger *slog.Logger) (*Server, error) {
	base, cancel := context.WithCancel(context.Background())
	s := &Server{
		queue: q, handler: handler, log: log, logger: logger, base: base, cancel: cancel,
		logs: make(chan scoring.Run, 10_000), busy: make(map[string]context.CancelCauseFunc),
	}
	s.asynq = asynq.NewServerFromRedisClient(q.rdb, asynq.Config{
		Concurrency:              concurrency,
		Queues:                   map[string]int{taskQueue: 1},
		BaseContext:              func() context.Context { return base },
		TaskCheckInterval:        50 * time.Millisecond,
		DelayedTaskCheckInterval: 500 * time.Millisecond,
		ShutdownTimeout:          10 * time.Second,
		RetryDelayFunc: func(n int, _ error, _ *asynq.Task) time.Duration {
			return min(time.Second<<n, 10*time.Second)
		},
		Logger:   asynqLogger{logger},
		LogLevel: asynq.WarnLevel,
	})
	if err := s.asynq.Start(asynq.HandlerFunc(s.process)); err != nil {
		cancel()
		return nil, fmt.Errorf("start worker: %w", err)
	}
	s.done.Go(s.beat)
	s.done.Go(s.writeLog)
	return s, nil
}

// Shutdown takes no new runs, gives those under way until ctx ends, and gives
// back what is not finished by then, for another worker to do.
func (s *Server) Shutdown(ctx context.Context) {
	s.asynq.Stop()
	stop := context.AfterFunc(ctx, s.cancel)
	s.asynq.Shutdown()
	stop()
	s.cancel()
	close(s.logs)
	s.done.Wait()
}

// process handles one task. An error makes asynq try again; nil drops the task.
func (s *Server) process(ctx context.Context, task *asynq.Task) error {
	id := string(task.Payload())
	run, begun, err := s.begin(ctx, id)
	if err != nil || !begun {
		return err
	}
	attempt, cancel := context.WithTimeoutCause(ctx, s.queue.cfg.Deadline, context.DeadlineExceeded)
	attempt, abort := context.WithCancelCause(attempt)
	s.mu.Lock()
	s.busy[id] = abort
	s.mu.Unlock()
	scoredAt, err := s.handle(attempt, run)
	cause := context.Cause(attempt)
	s.mu.Lock()
	delete(s.busy, id)
	s.mu.Unlock()
	abort(nil)
	cancel()

	switch {
	case err == nil:
		return s.end(run, scoring.RunSucceeded, scoredAt, "")
	case errors.Is(cause, errAborted):
		return nil
	case s.base.Err() != nil:
		// The server is going down: another attempt follows elsewhere.
		if _, err := s.queue.finish(context.WithoutCancel(ctx), run, scoring.RunQueued, "", "", true); err != nil {
			return err
		}
		return fmt.Errorf("worker stopped: %w", err)
	case errors.Is(cause, context.DeadlineExceeded):
		return s.end(run, scoring.RunTimedOut, time.Time{}, err.Error())
	case run.Attempts >= attemptMax:
		return s.end(run, scoring.RunFailed, time.Time{}, err.Error())
	}
	s.logger.Warn("attempt failed", "run", id, "domain", run.Domain, "attempt", run.Attempts, "err", err)
	if _, ferr := s.queue.finish(ctx, run, scoring.RunQueued, "", err.Error(), false); ferr != nil {
		return errors.Join(err, ferr)
	}
	return err
}

// begin starts an attempt and reports whether there is anything to do.
func (s *Server) begin(ctx context.Context, id string) (scoring.Run, bool, error) {
	now := s.queue.now()
	reply, err := beginScript.Run(ctx, s.queue.rdb, []string{redis.Run(id), redis.RunBeats()},
		id, now.UnixMilli(), now.Add(-beatLife).UnixMilli(), attemptMax).Slice()
	if err != nil {
		return scoring.Run{}, false, fmt.Errorf("begin run %s: %w", id, err)
	}
	switch reply[0] {
	case "spent":
		run, err := s.queue.Get(ctx, id)
		if err != nil {
			return scoring.Run{}, false, err
		}
		return run, false, s.end(run, scoring.RunFailed, time.Time{}, fmt.Sprintf("given up after %d attempts: %s", run.Attempts, run.Error))
	case "begun":
		attempts, _ := reply[5].(int64)
		return scoring.Run{
			ID: id, Domain: reply[1].(string), Origin: reply[2].(string), State: scoring.RunRunning,
			CreatedAt: millis(reply[3].(string)), StartedAt: millis(reply[4].(string)), Attempts: int(attempts),
		}, true, nil
	}
	return scoring.Run{}, false, nil
}

// handle calls the handler and turns a panic into an error.
func (s *Server) handle(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.logger.Error("run panicked", "run", run.ID, "domain", run.Domain, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return s.handler(ctx, run)
}

// end writes the end of a run, again and again while Redis is away: the record
// is made, and only the note of it is missing.
func (s *Server) end(run scoring.Run, state scoring.RunState, scoredAt time.Time, why string) error {
	ctx, cancel := context.WithTimeout(context.Background(), finishFor)
	defer cancel()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		ended, err := s.queue.end(ctx, run, state, scoredAt, why)
		if err == nil {
			if ended {
				run.State, run.FinishedAt, run.ScoredAt, run.Error = state, s.queue.now(), scoredAt, why
				s.note(run)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-s.base.Done():
			return err
		case <-time.After(pause):
		}
	}
}

// note hands a finished run to the log without ever waiting for it.
func (s *Server) note(run scoring.Run) {
	select {
	case s.logs <- run:
	default:
		s.logger.Warn("run log is full, run not logged", "run", run.ID)
	}
}

// writeLog writes finished runs to the run log, those of a second in one go.
func (s *Server) writeLog() {
	var batch []scoring.Run
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	flush := func() {
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := s.log.WriteRuns(ctx, batch); err != nil {
			s.logger.Warn("run log not written, will try again", "runs", len(batch), "err", err)
			if len(batch) < cap(s.logs) {
				return
			}
		}
		batch = nil
	}
	for {
		select {
		case run, ok := <-s.logs:
			if !ok {
				flush()
				return
			}
			batch = append(batch, run)
		case <-tick.C:
			flush()
		}
	}
}

// beat says that this worker is at its runs, ends attempts of runs that are over,
// and now and then sweeps up runs that nobody is at.
func (s *Server) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-s.base.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(s.base, 5*time.Second)
		err := s.sayAlive(ctx)
		if err == nil {
			err = s.sweep(ctx)
		}
		cancel()
		if err != nil && s.base.Err() == nil {
			s.logger.Warn("worker cannot reach Redis", "err", err)
		}
	}
}

func (s *Server) sayAlive(ctx context.Context) error {
	keys, args := []string{redis.RunBeats()}, []any{s.queue.now().UnixMilli()}
	s.mu.Lock()
	for id := range s.busy {
		keys, args = append(keys, redis.Run(id)), append(args, id)
	}
	s.mu.Unlock()
	if len(keys) == 1 {
		return nil
	}
	over, err := beatScript.Run(ctx, s.queue.rdb, keys, args...).StringSlice()
	if err != nil {
		return fmt.Errorf("say alive: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range over {
		if abort, ok := s.busy[id]; ok {
			abort(errAborted)
		}
	}
	return nil
}

// sweep enqueues again the runs whose worker fell silent, and the oldest runs
// that wait, in case their task was never enqueued or was lost.
func (s *Server) sweep(ctx context.Context) error {
	now := s.queue.now()
	silent, err := s.queue.rdb.ZRangeByScore(ctx, redis.RunBeats(), &goredis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(now.Add(-beatLife).UnixMilli(), 10), Count: sweepBatch,
	}).Result()
	if err != nil {
		return fmt.Errorf("find silent runs: %w", err)
	}
	waiting, err := s.queue.rdb.ZRangeByScore(ctx, redis.OpenRuns(), &goredis.ZRangeBy{
		Min: "-inf", Max: strconv.FormatInt(now.Add(-sweepAge).UnixMilli(), 10), Count: sweepBatch,
	}).Result()
	if err != nil {
		return fmt.Errorf("find waiting runs: %w", err)
	}
	runs, err := s.queue.GetMany(ctx, append(silent, waiting...))
	if err != nil {
		return err
	}
	for i, run := range runs {
		switch {
		case i < len(silent) && (run.ID == "" || run.State.Final()):
			err = s.queue.rdb.ZRem(ctx, redis.RunBeats(), silent[i]).Err()
		case i < len(silent):
			err = s.queue.enqueue(ctx, sweepTask(run.ID, now), run.ID)
		case run.ID == "" || run.State.Final():
			err = s.queue.rdb.ZRem(ctx, redis.OpenRuns(), waiting[i-len(silent)]).Err()
		case run.State == scoring.RunQueued:
			err = s.queue.enqueue(ctx, sweepTask(run.ID, now), run.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepTask names the task of a sweep: the plain id may still be held by the task
// of a dead worker or by one that asynq gave up. It changes with the minute, so
// that sweeps agree and yet a lost task is replaced. One task too many finds the
// run over or busy and is dropped.
func sweepTask(runID string, now time.Time) string {
	return runID + ":" + strconv.FormatInt(now.Unix()/60, 10)
}

// asynqLogger hands asynq's own messages to our log.
type asynqLogger struct{ logger *slog.Logger }

func (l asynqLogger) Debug(args ...any) { l.logger.Debug("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Info(args ...any)  { l.logger.Info("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Warn(args ...any)  { l.logger.Warn("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Error(args ...any) { l.logger.Error("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Fatal(args ...any) { l.logger.Error("asynq: " + fmt.Sprint(args...)) }
