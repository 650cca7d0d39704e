package clickhouse

import (
	"context"
	"fmt"
	"time"

	"companyscore/internal/table"
	"companyscore/sql"
)

var (
	engineLoad     = sql.Query("engine_load")
	batchRunInsert = sql.Query("batch_run_insert")
	scoreAny       = sql.Query("score_any")
)

// Compact calls [DB.Compact].
func (u *Universe) Compact(ctx context.Context) error { return u.db.Compact(ctx) }

// Load returns the rows and bytes that the engine has read since its start, for all
// clients, and the memory in use.
func (u *Universe) Load(ctx context.Context) (table.EngineLoad, error) {
	var row struct {
		ReadRows    uint64 `ch:"read_rows"`
		ReadBytes   uint64 `ch:"read_bytes"`
		MemoryBytes uint64 `ch:"memory_bytes"`
	}
	if _, err := u.db.first(ctx, &row, engineLoad); err != nil {
		return table.EngineLoad{}, fmt.Errorf("load of the engine: %w", err)
	}
	return table.EngineLoad{ReadRows: row.ReadRows, ReadBytes: row.ReadBytes, MemoryBytes: row.MemoryBytes}, nil
}

// AnyScore reports whether any company has a score.
func (u *Universe) AnyScore(ctx context.Context) (bool, error) {
	var row struct {
		Scored uint8 `ch:"scored"`
	}
	found, err := u.db.first(ctx, &row, scoreAny)
	if err != nil {
		return false, fmt.Errorf("look for a score: %w", err)
	}
	return found, nil
}

// batchRunRow is a row of batch_run.
type batchRunRow struct {
	StartedAt       time.Time `ch:"started_at"`
	Job             string    `ch:"job"`
	ID              string    `ch:"id"`
	Fence           uint64    `ch:"fence"`
	TookMs          uint64    `ch:"took_ms"`
	ReadRows        uint64    `ch:"read_rows"`
	ReadBytes       uint64    `ch:"read_bytes"`
	PeakMemoryBytes uint64    `ch:"peak_memory_bytes"`
	Companies       uint64    `ch:"companies"`
	Young           uint64    `ch:"young"`
	Due             uint64    `ch:"due"`
	Started         uint64    `ch:"started"`
	OldestScoredAt  time.Time `ch:"oldest_scored_at"`
	Outcome         string    `ch:"outcome"`
	Error           string    `ch:"error"`
}

// WriteRuns stores the results of runs of batch jobs.
func (u *Universe) WriteRuns(ctx context.Context, runs []table.BatchRun) error {
	rows := make([]*batchRunRow, len(runs))
	for i, r := range runs {
		rows[i] = &batchRunRow{
			StartedAt: r.StartedAt.UTC(), Job: r.Job, ID: r.ID, Fence: uint64(r.Fence), TookMs: uint64(r.Took.Milliseconds()),
			ReadRows: r.ReadRows, ReadBytes: r.ReadBytes, PeakMemoryBytes: r.PeakMemoryBytes, Companies: r.Companies,
			OldestScoredAt: toColumn(time.Time{}), Outcome: string(r.Outcome), Error: r.Error,
		}
		if c := r.Refresh; c != nil {
			rows[i].Young, rows[i].Due, rows[i].Started, rows[i].OldestScoredAt = c.Young, c.Due, c.Started, toColumn(c.Oldest)
		}
		if c := r.Received; c != nil {
			rows[i].Started = c.Started
		}
	}
	if err := insert(ctx, u.db, batchRunInsert, rows); err != nil {
		return fmt.Errorf("record runs of batch jobs: %w", err)
	}
	return nil
}
