package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/sql"
)

var (
	seedPhaseTable  = sql.Query("seed_phase_table")
	seedPhaseInsert = sql.Query("seed_phase_insert")
	seedPhaseDrop   = sql.Query("seed_phase_drop")
	seedRunTable    = sql.Query("seed_run_table")
	seedRunInsert   = sql.Query("seed_run_insert")
	seedRunGet      = sql.Query("seed_run_get")
	seedRecords     = sql.Query("seed_records")
	scoreCount      = sql.Query("score_count")
)

// seedRunRow is a row of seed_run.
type seedRunRow struct {
	Seed    uint64    `ch:"seed"`
	Records uint32    `ch:"records"`
	Signals string    `ch:"signals"`
	Until   time.Time `ch:"until"`
	Domains uint64    `ch:"domains"`
	Target  uint64    `ch:"target"`
	Next    uint32    `ch:"next"`
}

// Seeded returns the progress of the universe generated in this database. found is false
// if there is none.
func (db *DB) Seeded(ctx context.Context) (s table.SeedRun, found bool, err error) {
	if err := db.exec(ctx, seedRunTable); err != nil {
		return s, false, fmt.Errorf("make table of generated universes: %w", err)
	}
	var row seedRunRow
	if found, err = db.first(ctx, &row, seedRunGet); err != nil || !found {
		return s, false, err
	}
	return table.SeedRun{
		Seed: row.Seed, Domains: int(row.Domains), Records: int(row.Records), Until: row.Until.UTC(),
		Signals: row.Signals, Target: int(row.Target), Next: row.Next,
	}, true, nil
}

// NoteSeeded writes the progress of the generation of a universe.
func (db *DB) NoteSeeded(ctx context.Context, s table.SeedRun) error {
	row := seedRunRow{s.Seed, uint32(s.Records), s.Signals, s.Until, uint64(s.Domains), uint64(s.Target), s.Next}
	if err := insert(ctx, db, seedRunInsert, []*seedRunRow{&row}); err != nil {
		return fmt.Errorf("write the generated universe: %w", err)
	}
	return nil
}

// CountRecords returns the number of stored records. It counts copies that are not merged
// yet.
func (db *DB) CountRecords(ctx context.Context) (uint64, error) {
	var row struct {
		Records uint64 `ch:"records"`
	}
	if _, err := db.first(ctx, &row, scoreCount); err != nil {
		return 0, fmt.Errorf("count records: %w", err)
	}
	return row.Records, nil
}

// phaseRow is a row of seed_phase.
type phaseRow struct {
	recordRow
	ID     uint32  `ch:"id"`
	Before float64 `ch:"momentum_before"`
	After  float64 `ch:"momentum_after"`
}

// PutPhases stores the scored companies from which SeedRecords generates records.
func (db *DB) PutPhases(ctx context.Context, phases []table.SeedPhase) error {
	if err := db.exec(ctx, seedPhaseTable); err != nil {
		return fmt.Errorf("make table of phases: %w", err)
	}
	rows := make([]*phaseRow, len(phases))
	for i, p := range phases {
		rows[i] = &phaseRow{*newRecordRow(p.Record), p.ID, p.MomentumBefore, p.MomentumAfter}
	}
	for part := range slices.Chunk(rows, phasesPerInsert) {
		if err := insert(ctx, db, seedPhaseInsert, part); err != nil {
			return fmt.Errorf("store phases: %w", err)
		}
	}
	return nil
}

// phasesPerInsert bounds the memory and the time of an insert of phases.
const phasesPerInsert = 4096

// DropPhases drops the table that PutPhases filled.
func (db *DB) DropPhases(ctx context.Context) error {
	if err := db.exec(ctx, seedPhaseDrop); err != nil {
		return fmt.Errorf("remove phases: %w", err)
	}
	return nil
}

// SeedRecords generates the records of one part of a universe with one INSERT.
func (db *DB) SeedRecords(ctx context.Context, p table.SeedPart) error {
	err := db.exec(ctx, seedRecords,
		ch.Named("first", p.First), ch.Named("last", p.Last), ch.Named("x_from", p.XFrom), ch.Named("x_last", p.XLast),
		ch.Named("records", p.Records), ch.Named("detailed", p.Detailed), ch.Named("mix", p.Mix), ch.Named("until_ms", millis(p.Until)),
		ch.Named("first_words", p.FirstWords), ch.Named("second_words", p.SecondWords), ch.Named("kinds", p.Kinds),
		ch.Named("endings", p.Endings))
	if err != nil {
		return fmt.Errorf("generate companies with names %d to %d: %w", p.XFrom, p.XLast, err)
	}
	return nil
}
