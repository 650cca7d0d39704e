package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
)

// Outcome is what became of a run.
type Outcome string

// The outcomes. After one that is not OK the last good result stays published.
const (
	OK     Outcome = "ok"
	Failed Outcome = "failed"
)

// Run is what became of one run of a job.
type Run struct {
	ID                  string
	Job                 string
	Fence               int64
	StartedAt           time.Time
	Took                time.Duration
	ReadRows, ReadBytes uint64     // by the engine meanwhile, for anybody
	PeakMemoryBytes     uint64     // of the engine meanwhile
	Companies           uint64     // that were counted; 0 for other jobs
	Refresh             *Refreshed // nil for other jobs than refresh
	Outcome             Outcome
	Error               string
}

// finish says how the run ended.
func (r *Run) finish(err error) {
	r.ID, r.Outcome = uuid.Must(uuid.NewV7()).String(), OK
	if err != nil {
		r.Outcome, r.Error = Failed, err.Error()
	}
}

func (r *Run) describe() string {
	counted := ""
	if r.Companies > 0 {
		counted = fmt.Sprintf(", %d companies", r.Companies)
	}
	if c := r.Refresh; c != nil {
		counted += fmt.Sprintf(", %.1f %% younger than their target age, %d due, %d runs started", 100*c.Share(), c.Due, c.Started)
	}
	return fmt.Sprintf("%s%s, engine read %d rows and %d MiB, peak %d MiB", r.Outcome, counted, r.ReadRows, r.ReadBytes>>20, r.PeakMemoryBytes>>20)
}

// Status is how a job did last.
type Status struct {
	Outcome Outcome
	// At is when its last run ended, Good when the last one ended that was not failed;
	// zero if there was none.
	At, Good time.Time
	Error    string
	// Refresh is of the last good run of the refresh job, nil without one and for others.
	Refresh *Refreshed `json:",omitempty"`
}

// note tells everyone what became of a run. What cannot be noted is logged: the
// job itself is done.
func (r *Runner) note(ctx context.Context, run Run) {
	all, err := ReadStatus(ctx, r.cfg.Redis)
	before := all[run.Job]
	ended := run.StartedAt.Add(run.Took).UTC()
	status := Status{Outcome: run.Outcome, At: ended, Good: before.Good, Error: run.Error, Refresh: before.Refresh}
	if run.Outcome != Failed {
		status.Good, status.Refresh = ended, run.Refresh
	}
	if err == nil {
		var text []byte
		if text, err = json.Marshal(status); err == nil {
			err = r.cfg.Redis.HSet(ctx, redis.BatchStatus(), run.Job, text).Err()
		}
	}
	if err != nil {
		r.cfg.Logger.Warn("status of a batch job not noted", "job", run.Job, "err", err)
	}
	if err := r.cfg.Store.WriteRuns(ctx, []Run{run}); err != nil {
		r.cfg.Logger.Warn("run of a batch job not recorded", "job", run.Job, "err", err)
	}
}

// ReadStatus returns how each job did last, by name. Jobs that never ran are not in it.
func ReadStatus(ctx context.Context, rdb goredis.UniversalClient) (map[string]Status, error) {
	fields, err := rdb.HGetAll(ctx, redis.BatchStatus()).Result()
	if err != nil {
		return nil, fmt.Errorf("read the status of batch jobs: %w", err)
	}
	all := make(map[string]Status, len(fields))
	for job, text := range fields {
		var s Status
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("read the status of batch job %s: %w", job, err)
		}
		all[job] = s
	}
	return all, nil
}

// loadEvery is how often the memory of the engine is looked at.
const loadEvery = 250 * time.Millisecond

// loadWatch follows what the engine does while a job runs.
type loadWatch struct {
	store  Store
	before Load
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

// end stops following and puts into the run what was seen. Figures that the engine
// does not give stay 0.
func (w *loadWatch) end(run *Run) {
	w.stop()
	<-w.done
	after, err := w.store.Load(w.ctx)
	if w.err != nil || err != nil || after.ReadRows < w.before.ReadRows {
		return
	}
	run.ReadRows, run.ReadBytes = after.ReadRows-w.before.ReadRows, after.ReadBytes-w.before.ReadBytes
	run.PeakMemoryBytes = max(w.peak, after.MemoryBytes)
}
