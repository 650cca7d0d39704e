package clickhouse

import (
	"context"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/scoring"

	"companyscore/sql"
)

var (
	rescoreAmount = sql.Query("rescore_amount")
	rescoreUntil  = sql.Query("rescore_until")
	rescorePage   = sql.Query("rescore_page")
)

// RescoreAmount counts the records of version from for which no record of version to, of
// the same company and time, exists: with signals (Pending) and without (Bare). An empty
// from means any version.
func (db *DB) RescoreAmount(ctx context.Context, from, to string) (table.RescoreAmount, error) {
	var row struct {
		Pending uint64 `ch:"pending"`
		Bare    uint64 `ch:"bare"`
	}
	if _, err := db.first(ctx, &row, rescoreAmount, ch.Named("from", from), ch.Named("to", to)); err != nil {
		return table.RescoreAmount{}, fmt.Errorf("count records to rescore: %w", err)
	}
	return table.RescoreAmount{Pending: row.Pending, Bare: row.Bare}, nil
}

// RescorePage returns the records of the companies that follow domain after. The page ends
// with the company of the limit-th pending record, and contains all records of that
// company.
func (db *DB) RescorePage(ctx context.Context, after, from, to string, limit int) ([]scoring.Record, error) {
	var end struct {
		Domain string `ch:"domain"`
	}
	versions := []any{ch.Named("after", after), ch.Named("from", from), ch.Named("to", to)}
	found, err := db.first(ctx, &end, rescoreUntil, append(versions, ch.Named("limit", uint32(limit)))...)
	var rows []recordRow
	if err == nil && found {
		err = db.list(ctx, &rows, rescorePage, append(versions, ch.Named("until", end.Domain))...)
	}
	if err != nil {
		return nil, fmt.Errorf("read records to rescore after %q: %w", after, err)
	}
	records := make([]scoring.Record, len(rows))
	for i := range rows {
		records[i] = rows[i].record()
	}
	return records, nil
}

// PutRecords stores records with one insert and returns when they are durable.
func (db *DB) PutRecords(ctx context.Context, records []scoring.Record) error {
	rows := make([]*recordRow, len(records))
	for i, rec := range records {
		rows[i] = newRecordRow(rec)
	}
	if err := insert(ctx, db, scoreInsert, rows); err != nil {
		return fmt.Errorf("write %d records: %w", len(records), err)
	}
	return nil
}
