package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"companyscore/scoring"
)

// Why an attempt is stopped before its handler is done.
var (
	errDeadline = errors.New("the run's deadline has passed")
	errNotOurs  = errors.New("the run was aborted or taken over")
	errShutdown = errors.New("the worker shuts down")
)

const (
	// handlerPatience is how long a handler may take to return after it was stopped.
	handlerPatience = 2 * time.Second
	// finishPatience is how long the end of a run is tried to be written while
	// Redis is away. After it, a sweeper has the run worked on again.
	finishPatience = 2 * time.Minute
	// errorLimitBytes bounds the explanation kept with a run.
	errorLimitBytes = 2000
)

// retry is the error with which a task asks to come back.
type retry struct {
	after time.Duration
	cause error
}

func (r *retry) Error() string { return r.cause.Error() }
func (r *retry) Unwrap() error { return r.cause }

// process handles one task. Attempts are stopped through work; what has to be
// written about them may be written until writes ends, a little later.
func (s *Server) process(work, writes context.Context, handler Handler, runID, taskID string) error {
	ctx, cancel := context.WithCancelCause(work)
	defer cancel(nil)
	a, ok := s.enlist(runID, cancel)
	if !ok {
		return &retry{cause: errShutdown}
	}
	defer s.delist(a)
	run, begun, err := s.begin(writes, a, taskID)
	if err != nil || !begun {
		return err
	}
	ctx, stop := context.WithTimeoutCause(ctx, s.queue.cfg.Deadline, errDeadline)
	defer stop()
	scoredAt, err := call(ctx, handler, run)
	return s.conclude(writes, a, run, scoredAt, err, context.Cause(ctx))
}

// conclude writes down how an attempt ended; cause says why it was stopped, if it was.
func (s *Server) conclude(ctx context.Context, a *attempt, run scoring.Run, scoredAt time.Time, err, cause error) error {
	logger := s.queue.cfg.Logger.With("run", run.ID, "domain", run.Domain, "attempt", run.Attempts)
	switch {
	case err == nil:
		// What was made was made, even if it came a moment late.
		run.ScoredAt = scoredAt
		return s.finish(ctx, a, run, scoring.RunSucceeded, "")
	case errors.Is(cause, errNotOurs):
		logger.Info("run stopped", "reason", cause)
		return nil
	case errors.Is(cause, errShutdown):
		return s.release(ctx, a, run, "", &retry{cause: errShutdown})
	case errors.Is(cause, errDeadline):
		logger.Warn("run timed out", "error", err)
		return s.finish(ctx, a, run, scoring.RunTimedOut, fmt.Sprintf("no result within %s: %v", s.queue.cfg.Deadline, err))
	case errors.Is(err, scoring.ErrUnregistered):
		logger.Info("run failed", "error", err)
		return s.finish(ctx, a, run, scoring.RunFailed, err.Error())
	case run.Attempts >= s.queue.cfg.Attempts:
		logger.Error("run failed", "error", err)
		return s.finish(ctx, a, run, scoring.RunFailed, err.Error())
	}
	after := s.cfg.RetryDelay << (run.Attempts - 1)
	logger.Warn("run will be tried again", "error", err, "after", after)
	return s.release(ctx, a, run, err.Error(), &retry{after: after, cause: err})
}

// call runs the handler and returns what it returns, turning a panic into an
// error. A handler that does not heed the end of ctx is left behind.
func call(ctx context.Context, handler Handler, run scoring.Run) (time.Time, error) {
	type result struct {
		scoredAt time.Time
		err      error
	}
	results := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				results <- result{err: fmt.Errorf("panic: %v\n%s", p, debug.Stack())}
			}
		}()
		scoredAt, err := handler(ctx, run)
		results <- result{scoredAt, err}
	}()
	select {
	case r := <-results:
		return r.scoredAt, r.err
	case <-ctx.Done():
	}
	select {
	case r := <-results:
		return r.scoredAt, r.err
	case <-time.After(handlerPatience):
		return time.Time{}, fmt.Errorf("handler did not stop: %w", context.Cause(ctx))
	}
}

func (s *Server) begin(ctx context.Context, a *attempt, taskID string) (run scoring.Run, begun bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := beginScript.Run(ctx, s.queue.redis, ScriptKeys(),
		a.runID, taskID, a.holder, s.queue.cfg.Now().UnixMilli(), s.cfg.Lease.Milliseconds()).StringSlice()
	if err != nil {
		return scoring.Run{}, false, fmt.Errorf("begin run %s: %w", a.runID, err)
	}
	return decodeReply(reply)
}

func (s *Server) finish(ctx context.Context, a *attempt, run scoring.Run, state scoring.RunState, message string) error {
	scoredAt := ""
	if !run.ScoredAt.IsZero() {
		scoredAt = fmt.Sprint(run.ScoredAt.UnixMilli())
	}
	args := append([]any{run.ID, a.holder, string(state), s.queue.cfg.Now().UnixMilli(),
		scoredAt, shorten(message), s.queue.cfg.TTL.Milliseconds()}, encode(run)...)
	return s.persist(ctx, "finish", run.ID, func(ctx context.Context) error {
		return finishScript.Run(ctx, s.queue.redis, ScriptKeys(), args...).Err()
	})
}

// release puts a run back and returns the error with which its task comes again.
// A release for shutdown does not count as an attempt.
func (s *Server) release(ctx context.Context, a *attempt, run scoring.Run, message string, again *retry) error {
	counts := 1
	if errors.Is(again, errShutdown) {
		counts = 0
	}
	err := s.persist(ctx, "release", run.ID, func(ctx context.Context) error {
		return releaseScript.Run(ctx, s.queue.redis, ScriptKeys(), run.ID, a.holder, shorten(message), counts).Err()
	})
	if err != nil {
		return err
	}
	return again
}

// persist repeats a write until it succeeds, so that an outage of Redis does not
// undo the work of a run.
func (s *Server) persist(ctx context.Context, what, runID string, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		callCtx, cancelCall := context.WithTimeout(ctx, callTimeout)
		err := write(callCtx)
		cancelCall()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			s.queue.cfg.Logger.Error("run could not be written; it will be worked on again", "write", what, "run", runID, "error", err)
			return fmt.Errorf("%s run %s: %w", what, runID, err)
		case <-time.After(wait):
		}
	}
}

func shorten(message string) string {
	if len(message) > errorLimitBytes {
		return message[:errorLimitBytes] + " ..."
	}
	return message
}
