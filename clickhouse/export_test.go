package clickhouse

import (
	"context"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"companyscore/scoring"
	"companyscore/sql"
)

// Conn gives tests the connections of a DB.
func (db *DB) Conn() driver.Conn { return db.conn }

// Database is the name of the database.
func (db *DB) Database() string { return db.database }

// SetLockSilenceMax says after how long tests take a migrator for dead.
func (db *DB) SetLockSilenceMax(d time.Duration) { db.lockSilenceMax = d }

// MigrateWith applies other migrations and views than those of the project.
func (db *DB) MigrateWith(ctx context.Context, migrations []sql.Migration, views []string) ([]string, error) {
	return db.migrate(ctx, migrations, views)
}

// LockSchema takes the lock of migrators and returns what gives it back.
func (db *DB) LockSchema(ctx context.Context) (release func() error, err error) {
	l, _, err := db.lockSchema(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return l.release(ctx) }, nil
}

// DieWithLock takes the lock and leaves it behind, as a killed migrator does.
func (db *DB) DieWithLock(ctx context.Context) error { return db.exec(ctx, lockTake) }

// Named is a query parameter.
var Named = ch.Named

// Queued is how many records wait for an insert.
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

// SetRecordsMax says how many records tests have grouped at a time.
func (u *Universe) SetRecordsMax(n uint64) { u.recordsMax, u.changesMax, u.fewMax = n, n, n/4 }

// Ranges returns the ends of n ranges of companies.
func Ranges(n uint64) (ends [][2]uint64) {
	for _, of := range ranges(n) {
		ends = append(ends, [2]uint64{of.first, of.last})
	}
	return ends
}
