package batch

import (
	"context"
	"time"

	"companyscore/batch/jobs"
	"companyscore/internal/table"
)

// note stores the result of a run in Redis and in the store. It logs errors.
func (r *Runner) note(ctx context.Context, run table.BatchRun) {
	if err := jobs.WriteRun(ctx, r.cfg.Redis, run); err != nil {
		r.cfg.Logger.Warn("status of a batch job not written", "job", run.Job, "err", err)
	}
	if err := r.cfg.Store.WriteRuns(ctx, []table.BatchRun{run}); err != nil {
		r.cfg.Logger.Warn("run of a batch job not recorded", "job", run.Job, "err", err)
	}
}

// loadEvery is the time between two reads of the engine's memory.
const loadEvery = 250 * time.Millisecond

// loadWatch measures the load of the engine while a job runs.
type loadWatch struct {
	store  Store
	before table.EngineLoad
	peak   uint64
	err    error
	stop   context.CancelFunc
	done   chan struct{}
	ctx    context.Context
}

func watchLoad(ctx context.Context, store Store) *loadWatch {
	w := &loadWatch{store: store, ctx: ctx, done: make(chan struct{})}
	w.before, w.err = store.Load(ctx)
	watching, stop := context.WithCancel(ctx)
	w.stop, w.peak = stop, w.before.MemoryBytes
	go func() {
		defer close(w.done)
		tick := time.NewTicker(loadEvery)
		defer tick.Stop()
		for {
			select {
			case <-watching.Done():
				return
			case <-tick.C:
			}
			if load, err := store.Load(watching); err == nil {
				w.peak = max(w.peak, load.MemoryBytes)
			}
		}
	}()
	return w
}

// end stops the measurement and sets the figures of the run. They stay 0 if a read failed or
// the engine restarted.
func (w *loadWatch) end(run *table.BatchRun) {
	w.stop()
	<-w.done
	after, err := w.store.Load(w.ctx)
	if w.err != nil || err != nil || after.ReadRows < w.before.ReadRows {
		return
	}
	run.ReadRows, run.ReadBytes = after.ReadRows-w.before.ReadRows, after.ReadBytes-w.before.ReadBytes
	run.PeakMemoryBytes = max(w.peak, after.MemoryBytes)
}
