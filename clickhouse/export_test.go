package clickhouse

import (
	"context"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/sql"
)

// Conn gives tests the connections of a DB.
func (db *DB) Conn() driver.Conn { return db.conn }

// Database is the name of the private database.
func (db *DB) Database() string { return db.private }

// Public is the name of the public database.
func (db *DB) Public() string { return db.public }

// MigrateWith applies the given migrations and views.
func (db *DB) MigrateWith(ctx context.Context, migrations []sql.Migration, views []string) ([]string, error) {
	return db.migrate(ctx, migrations, views)
}

// Named is a query parameter.
var Named = ch.Named

// Queued returns the number of records that wait for an insert.
func (s *Scores) Queued() int { return len(s.writer.queue) }

// LatestHead is LatestHeads of one company, or scoring.ErrNotFound.
func (s *Scores) LatestHead(ctx context.Context, domain string) (scoring.Record, error) {
	records, err := s.LatestHeads(ctx, []string{domain})
	if err != nil {
		return scoring.Record{}, err
	}
	rec, ok := records[domain]
	if !ok {
		return scoring.Record{}, scoring.ErrNotFound
	}
	return rec, nil
}

// NoteCommitted stores that an import is committed, and does nothing else.
func (f *Facts) NoteCommitted(ctx context.Context, i table.FactsImport) error {
	_, err := f.noteCommitted(ctx, i)
	return err
}

// SetRecentMax sets the maximum number of recent records of a count.
func (u *Universe) SetRecentMax(n int) { u.recentMax = n }
