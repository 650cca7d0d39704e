package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"companyscore/clickhouse/embedded/roster"
	"companyscore/internal/process"
)

// watch ends the process of the engine if a statement of an analyst does not end, or if the process has more memory than it may. The engine
// has limits of its own for both. The watch is for the functions that do not keep them.
type watch struct {
	running  *running
	memory   uint64                 // bytes that may be resident, 0 for no limit
	most     uint64                 // bytes above which statements have less time to end
	resident func() (uint64, error) // bytes in memory that are not those of files
	end      func(reason string, statements map[string]string)
	logger   *slog.Logger
}

const (
	watchInterval = 50 * time.Millisecond
	// statementGrace is the time from the end of a statement's limit, or from its cancellation, after which the engine counts as dead.
	statementGrace = 30 * time.Second
	// memoryGrace is the time in which statements must end once the process has too much memory.
	memoryGrace = 5 * time.Second
	// memoryShort is memoryGrace for a process that takes the memory of the machine.
	memoryShort = time.Second
	// memoryPatience is the time in which the memory must be released after all statements of analysts have ended.
	memoryPatience = 10 * time.Second
)

// errMemory is the cause of the end of a statement that ran while the engine had too much memory.
var errMemory = newException(codeMemoryLimit,
	"The engine has more memory than it may (--clickhouse-memory): the statements of analysts are ended")

// run watches until ctx ends or the watch ends the engine.
func (w *watch) run(ctx context.Context) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var over time.Time // since when there is too much memory
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-tick.C:
		}
		if late := w.running.overdue(now.Add(-statementGrace)); len(late) > 0 {
			w.end(fmt.Sprintf("a statement did not end within %s after its limit of time or its cancellation", statementGrace), late)
			return
		}
		if w.memory == 0 {
			continue
		}
		bytes, err := w.resident()
		if err != nil {
			w.logger.Error("the memory of the engine is not watched", "err", err)
			w.memory = 0
			continue
		}
		if bytes <= w.memory {
			over = time.Time{}
			continue
		}
		if over.IsZero() {
			over = now
			w.logger.Warn("the engine has more memory than it may; the statements of analysts are ended", "bytes", bytes, "limit", w.memory)
		}
		w.running.cancelAll(errMemory)
		late := w.running.overdue(now.Add(-memoryGrace))
		if bytes > w.most && now.Sub(over) >= memoryShort {
			late = w.running.overdue(now)
		} else if len(late) == 0 && now.Sub(over) < memoryPatience {
			continue
		}
		w.end(fmt.Sprintf("the engine had %d MB of memory and may have %d", bytes>>20, w.memory>>20), late)
		return
	}
}

// watch returns the watch over this process.
func (s *Server) watch() *watch {
	w := &watch{running: s.now, memory: s.cfg.Memory, resident: process.Resident, logger: s.cfg.Logger}
	w.most = w.memory + (max(w.memory, process.MachineMemory())-w.memory)/2
	w.end = func(reason string, statements map[string]string) {
		s.blame(statements, reason)
		s.cfg.End(reason)
	}
	return w
}

// blame refuses the analysts whose statements ended the engine, and forgets what runs.
func (s *Server) blame(statements map[string]string, reason string) {
	var blamed []string
	var err error
	if len(statements) > 0 {
		blamed, err = roster.Blame(roster.RefusalsPath(s.cfg.Path), statements, reason, time.Now())
	}
	s.cfg.Logger.Error("the engine has ended", "reason", reason, "refused", blamed, "err", errors.Join(err, s.now.clear()))
}
