package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/retry"
	"companyscore/scoring"
)

// Causes for which the context of a group ends before its handler returns.
var (
	errDeadline = errors.New("the run's deadline has passed")
	errLost     = errors.New("the run was aborted or taken over")
	errShutdown = errors.New("the worker is shutting down")
)

const (
	// handlerTimeout bounds the time from the end of a handler's context to its return.
	handlerTimeout = 2 * time.Second
	// finishTimeout bounds retries of the final writes during an outage of Redis. After
	// it, the leases expire and other attempts follow.
	finishTimeout = 2 * time.Minute
	// finishPage is the maximum number of runs that one script ends. It takes Redis some
	// milliseconds.
	finishPage = 250
	// errorLimitBytes bounds the error text stored with a run.
	errorLimitBytes = 2000
)

// group is a list of attempts that were claimed by one script and are handled by one
// call of the handler.
type group struct {
	holder string
	lane   scoring.Lane
	runs   []scoring.Run
	cancel context.CancelCauseFunc
	leased time.Time // when the leases were last taken or extended; guarded by the server's mu

	mu     sync.Mutex
	isLost []bool // parallel to runs
	left   int    // runs that are not lost
}

// lose marks an attempt whose run was aborted or taken over.
func (g *group) lose(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isLost[i] {
		return
	}
	g.isLost[i] = true
	if g.left--; g.left == 0 {
		g.cancel(errLost)
	}
}

func (g *group) lost(i int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isLost[i]
}

// process runs the handler on a group and writes the results. The handler stops with
// ctx; the writes stop with writes, which ends a little later.
func (s *Server) process(ctx, writes context.Context, handler Handler, g *group) {
	defer s.delist(g)
	defer g.cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, s.queue.cfg.Deadline, errDeadline)
	defer stop()
	outcomes := call(ctx, handler, g)
	s.conclude(writes, g, outcomes, context.Cause(ctx))
}

// call runs the handler and returns its outcomes. A panic becomes an error of each run.
// A handler that does not stop within handlerTimeout is abandoned.
func call(ctx context.Context, handler Handler, g *group) []scoring.Outcome {
	failed := func(err error) []scoring.Outcome {
		return slices.Repeat([]scoring.Outcome{{Err: err}}, len(g.runs))
	}
	results := make(chan []scoring.Outcome, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				results <- failed(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
			}
		}()
		results <- handler(ctx, g.runs, g.lost)
	}()
	select {
	case outcomes := <-results:
		return outcomes
	case <-ctx.Done():
	}
	select {
	case outcomes := <-results:
		return outcomes
	case <-time.After(handlerTimeout):
		return failed(fmt.Errorf("handler did not stop: %w", context.Cause(ctx)))
	}
}

// conclude writes the results of the attempts of a group. cause is the cause for which
// its context ended, nil if it did not.
func (s *Server) conclude(ctx context.Context, g *group, outcomes []scoring.Outcome, cause error) {
	var ended, released [][]any // arguments of the scripts for each run
	finish := func(run scoring.Run, state scoring.RunState, scoredAt time.Time, message string) {
		ended = append(ended, []any{
			run.ID, g.holder, string(state), millis(scoredAt), shorten(message),
			run.Domain, string(run.Lane), millis(run.CreatedAt), run.Attempts, millis(run.StartedAt),
		})
	}
	for i, run := range g.runs {
		err := outcomes[i].Err
		if err == nil {
			// A written record counts, even after the context has ended.
			finish(run, scoring.RunSucceeded, outcomes[i].ScoredAt, "")
			continue
		}
		logger := s.queue.cfg.Logger.With("run", run.ID, "domain", run.Domain, "attempt", run.Attempts)
		switch {
		case g.lost(i):
			logger.Info("run stopped", "reason", errLost)
		case errors.Is(cause, errShutdown):
			released = append(released, []any{run.ID, g.holder, "", ""})
		case errors.Is(cause, errDeadline):
			logger.Warn("run timed out", "err", err)
			finish(run, scoring.RunTimedOut, time.Time{}, fmt.Sprintf("no result within %s: %v", s.queue.cfg.Deadline, err))
		case errors.Is(err, scoring.ErrUnregistered):
			logger.Info("run failed", "err", err)
			finish(run, scoring.RunFailed, time.Time{}, err.Error())
		case run.Attempts >= s.queue.cfg.Attempts:
			logger.Error("run failed", "err", err)
			finish(run, scoring.RunFailed, time.Time{}, err.Error())
		default:
			pause := s.cfg.RetryDelay << (run.Attempts - 1)
			logger.Warn("attempt failed; the run will be retried", "err", err, "after", pause)
			released = append(released, []any{run.ID, g.holder, shorten(err.Error()), pause.Milliseconds()})
		}
	}
	s.write(ctx, finishScript, []any{s.queue.cfg.Now().UnixMilli(), s.queue.cfg.TTL.Milliseconds()}, ended)
	s.write(ctx, releaseScript, nil, released)
}

// write runs a script on pages of runs. It retries each page until it succeeds or
// finishTimeout has passed.
func (s *Server) write(ctx context.Context, script *goredis.Script, common []any, runs [][]any) {
	ctx, cancel := context.WithTimeout(ctx, finishTimeout)
	defer cancel()
	for page := range slices.Chunk(runs, finishPage) {
		args := slices.Concat(common, slices.Concat(page...))
		pauses := retry.Backoff(50*time.Millisecond, time.Second)
		for {
			callCtx, cancelCall := context.WithTimeout(ctx, callTimeout)
			err := script.Run(callCtx, s.queue.redis, ScriptKeys(), args...).Err()
			cancelCall()
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				s.queue.cfg.Logger.Error("ends of runs could not be written; will be retried", "runs", len(runs), "err", err)
				return
			case <-time.After(pauses.NextBackOff()):
			}
		}
	}
}

func shorten(message string) string {
	if len(message) > errorLimitBytes {
		return strings.ToValidUTF8(message[:errorLimitBytes], "") + " ..."
	}
	return message
}
