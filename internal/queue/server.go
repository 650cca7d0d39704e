package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hibiken/asynq"

	"companyscore/scoring"
)

// Handler works on one run. It makes the record and returns the record's
// ScoredAt, or the zero time when it made none. It must return soon after ctx
// ends, which happens at the run's deadline, when the run is aborted, when
// another worker has taken it over, and when the worker shuts down. It may be
// called again for a run it was called for before; run.StartedAt is then the same.
type Handler func(ctx context.Context, run scoring.Run) (scoredAt time.Time, err error)

// RunLog keeps what became of each run.
type RunLog interface {
	// WriteRuns keeps the runs, all of which have ended. It may be given a run
	// again, and then with the same content.
	WriteRuns(ctx context.Context, runs []scoring.Run) error
}

// ServerConfig says how a worker takes runs.
type ServerConfig struct {
	// Log is told of every run that ends. It is required.
	Log RunLog
	// Concurrency is how many runs are worked on at once. Zero means 16.
	Concurrency int
	// Lease is how long a worker that says nothing keeps its runs. Zero means
	// 10 s. Takeover of a dead worker's runs takes this and Sweep together.
	Lease time.Duration
	// Sweep is the time between looks for runs that nobody works on. Zero means 2 s.
	Sweep time.Duration
	// Grace is how long runs may go on at shutdown before they are put back. Zero means 5 s.
	Grace time.Duration
	// RetryDelay is the wait after the first failed attempt; it doubles with
	// each. Zero means 1 s. asynq counts whole seconds.
	RetryDelay time.Duration
}

func (c ServerConfig) withDefaults() (ServerConfig, error) {
	if c.Log == nil {
		return c, errors.New("configure worker: a run log is required")
	}
	if c.Concurrency < 0 || c.Lease < 0 || c.Sweep < 0 || c.Grace < 0 || c.RetryDelay < 0 {
		return c, errors.New("configure worker: no number may be negative")
	}
	if c.Concurrency == 0 {
		c.Concurrency = 16
	}
	for _, d := range []struct {
		value    *time.Duration
		standard time.Duration
	}{{&c.Lease, 10 * time.Second}, {&c.Sweep, 2 * time.Second}, {&c.Grace, 5 * time.Second}, {&c.RetryDelay, time.Second}} {
		if *d.value == 0 {
			*d.value = d.standard
		}
	}
	return c, nil
}

const (
	// pollInterval is how often an empty queue is asked for tasks.
	pollInterval = 100 * time.Millisecond
	// releasePatience is how long a worker that shuts down tries to put its runs back.
	releasePatience = 3 * time.Second
)

// Server takes runs from the queue and has a handler work on them.
type Server struct {
	cfg   ServerConfig
	queue *Queue

	mu       sync.Mutex
	attempts map[string]*attempt // by holder
	closing  bool
	working  sync.WaitGroup // one for each entry of attempts
}

// NewServer returns a worker for the queue.
func NewServer(q *Queue, cfg ServerConfig) (*Server, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Server{cfg: cfg, queue: q, attempts: make(map[string]*attempt)}, nil
}

// Run works on runs until ctx ends. Runs under way may then go on for the grace
// time; what is not done by then is put back for another worker. Run survives
// outages of Redis. It may be called once.
func (s *Server) Run(ctx context.Context, handler Handler) error {
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(errShutdown)
	writes, stopWrites := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWrites()

	server := asynq.NewServerFromRedisClient(s.queue.redis, asynq.Config{
		Concurrency:              s.cfg.Concurrency,
		Queues:                   map[string]int{Name: 1},
		TaskCheckInterval:        pollInterval,
		DelayedTaskCheckInterval: time.Second,
		ShutdownTimeout:          time.Millisecond, // by then nothing is under way
		IsFailure:                func(error) bool { return false },
		RetryDelayFunc: func(_ int, err error, _ *asynq.Task) time.Duration {
			var again *retry
			if errors.As(err, &again) {
				return again.after
			}
			return time.Second
		},
		Logger:   asynqLogger{s.queue.cfg.Logger},
		LogLevel: asynq.WarnLevel,
	})
	err := server.Start(asynq.HandlerFunc(func(taskCtx context.Context, task *asynq.Task) error {
		taskID, _ := asynq.GetTaskID(taskCtx)
		return s.process(work, writes, handler, string(task.Payload()), taskID)
	}))
	if err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	var background sync.WaitGroup
	background.Go(func() { every(writes, s.cfg.Lease/4, s.heartbeat) })
	background.Go(func() { every(writes, s.cfg.Sweep, newSweeper(s).sweep) })
	background.Go(func() { s.writeLog(writes) })

	<-ctx.Done()
	server.Stop()
	unfinished := s.drain(stopWork)
	server.Shutdown()
	stopWrites()
	background.Wait()
	if unfinished > 0 {
		return fmt.Errorf("shut down worker: %d runs did not stop; another worker takes them over", unfinished)
	}
	return nil
}

// drain lets attempts end by themselves for the grace time, then stops them, and
// returns how many did not obey.
func (s *Server) drain(stopWork context.CancelCauseFunc) int {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() { s.working.Wait(); close(ended) }() // ends with the last attempt, or with the process
	select {
	case <-ended:
		return 0
	case <-time.After(s.cfg.Grace):
	}
	stopWork(errShutdown)
	select {
	case <-ended:
		return 0
	case <-time.After(handlerPatience + releasePatience):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.attempts)
}

// attempt is one begun try at a run.
type attempt struct {
	holder string
	runID  string
	cancel context.CancelCauseFunc
}

// enlist announces an attempt; it refuses when the server is shutting down.
func (s *Server) enlist(runID string, cancel context.CancelCauseFunc) (*attempt, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return nil, false
	}
	a := &attempt{holder: uuid.NewString(), runID: runID, cancel: cancel}
	s.attempts[a.holder] = a
	s.working.Add(1)
	return a, true
}

func (s *Server) delist(a *attempt) {
	s.mu.Lock()
	delete(s.attempts, a.holder)
	s.mu.Unlock()
	s.working.Done()
}

// heartbeat extends the leases of all attempts and stops those that have lost
// their run.
func (s *Server) heartbeat(ctx context.Context) {
	s.mu.Lock()
	args := make([]any, 1, 1+2*len(s.attempts))
	args[0] = s.cfg.Lease.Milliseconds()
	for _, a := range s.attempts {
		args = append(args, a.runID, a.holder)
	}
	s.mu.Unlock()
	if len(args) == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	stop, err := heartbeatScript.Run(ctx, s.queue.redis, ScriptKeys(), args...).StringSlice()
	if err != nil {
		if ctx.Err() == nil {
			s.queue.cfg.Logger.Warn("leases of runs could not be extended", "error", err)
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, holder := range stop {
		if a := s.attempts[holder]; a != nil {
			a.cancel(errNotOurs)
		}
	}
}

// every calls f again and again until ctx ends.
func every(ctx context.Context, interval time.Duration, f func(context.Context)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f(ctx)
		}
	}
}

// asynqLogger passes on what asynq has to say. Its own account of starting and
// stopping is not worth an operator's time.
type asynqLogger struct{ logger *slog.Logger }

func (l asynqLogger) Debug(args ...any) { l.logger.Debug("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Info(args ...any)  { l.logger.Debug("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Warn(args ...any)  { l.logger.Warn("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Error(args ...any) { l.logger.Error("asynq: " + fmt.Sprint(args...)) }
func (l asynqLogger) Fatal(args ...any) { l.logger.Error("asynq: " + fmt.Sprint(args...)) }
