package table

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// BatchOutcome is how a run ended.
type BatchOutcome string

// The outcomes. A failed run does not change what is published.
const (
	BatchOK     BatchOutcome = "ok"
	BatchFailed BatchOutcome = "failed"
)

// EngineLoad is the number of rows and bytes that the engine has read since its start, and its
// memory in use.
type EngineLoad struct{ ReadRows, ReadBytes, MemoryBytes uint64 }

// BatchRun is one run of a job.
type BatchRun struct {
	ID                  string
	Job                 string
	Fence               int64
	StartedAt           time.Time
	Took                time.Duration
	ReadRows, ReadBytes uint64     // by the engine during the run, for all clients
	PeakMemoryBytes     uint64     // of the engine during the run
	Companies           uint64     // counted by the count or refresh job; 0 for other jobs
	Refresh             *Refreshed // nil for jobs other than refresh
	Received            *Received  // nil for jobs other than inbox
	Outcome             BatchOutcome
	Error               string
}

// Finish sets a new id, and outcome and error by err.
func (r *BatchRun) Finish(err error) {
	r.ID, r.Outcome = uuid.Must(uuid.NewV7()).String(), BatchOK
	if err != nil {
		r.Outcome, r.Error = BatchFailed, err.Error()
	}
}

// String returns the outcome and the figures of the run.
func (r *BatchRun) String() string {
	counted := ""
	if r.Companies > 0 {
		counted = fmt.Sprintf(", %d companies", r.Companies)
	}
	if c := r.Refresh; c != nil {
		counted += fmt.Sprintf(", %.1f %% younger than their target age, %d due, %d runs started", 100*c.Share(), c.Due, c.Started)
	}
	if c := r.Received; c != nil {
		counted += fmt.Sprintf(", %d imports, %d runs started, %d companies wait for one", c.Imports, c.Started, c.Waiting)
	}
	return fmt.Sprintf("%s%s, engine read %d rows and %d MiB, peak %d MiB", r.Outcome, counted, r.ReadRows, r.ReadBytes>>20,
		r.PeakMemoryBytes>>20)
}
