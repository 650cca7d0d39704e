package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/sql"
)

var (
	databaseCreate  = sql.Query("database_create")
	migrationTable  = sql.Query("migration_table")
	migrationList   = sql.Query("migration_list")
	migrationInsert = sql.Query("migration_insert")
	logFlush        = sql.Query("log_flush")
	logExists       = sql.Query("log_exists")
)

// statementMax is the deadline of a statement of a migration, which may copy a table.
const statementMax = time.Hour

// Migrate creates both databases, applies the pending migrations, replaces the views of
// analysts and operators and writes the definitions of the signals. It returns the names of the migrations that it applied.
//
// Several processes may call it concurrently, and it may be repeated: all statements are
// idempotent. An interrupted migration is applied again from its first statement. A statement
// may take an hour, since a migration may copy a table. Migrate changes nothing and returns
// an error if an applied migration has another text. It does not replace the views if a newer
// program has migrated the database.
func (db *DB) Migrate(ctx context.Context) (applied []string, err error) {
	for _, name := range []string{db.private, db.public} {
		if err := db.createDatabase(ctx, name); err != nil {
			return nil, fmt.Errorf("make database %s: %w", name, err)
		}
	}
	var row struct {
		Logs uint64 `ch:"logs"`
	}
	_ = db.exec(ctx, logFlush) // the embedded engine has no logs, and the user of a hosted one may not
	if _, err := db.first(ctx, &row, logExists); err != nil {
		return nil, fmt.Errorf("look for query_log: %w", err)
	}
	if applied, err = db.migrate(ctx, sql.Migrations(), slices.Concat(sql.Views(), sql.OperatorViews(row.Logs > 0))); err != nil {
		return applied, err
	}
	return applied, db.writeDefinitions(ctx)
}

func (db *DB) migrate(ctx context.Context, migrations []sql.Migration, views []string) (applied []string, err error) {
	done, err := db.appliedMigrations(ctx)
	if err != nil {
		return nil, err
	}
	checksums := make(map[uint32]string, len(migrations))
	for _, m := range migrations {
		sum := sha256.Sum256([]byte(m.Text))
		checksums[m.Number] = hex.EncodeToString(sum[:])
		if before, ok := done[m.Number]; ok && before != checksums[m.Number] {
			return nil, fmt.Errorf("database %s was made by another build: migration %s has another text. Use an empty database (for "+
				"`up`, a new --data directory) "+
				"and import the facts again, or run the build that made it. To change the schema, restore the text of the migration and "+
				"add a new one", db.private, m.Name)
		}
	}
	for _, m := range migrations {
		if _, ok := done[m.Number]; ok {
			delete(done, m.Number)
			continue
		}
		for _, statement := range sql.Split(m.Text) {
			if err := db.execWithin(ctx, statementMax, statement); err != nil {
				return applied, fmt.Errorf("apply migration %s: %w", m.Name, err)
			}
		}
		if err := db.exec(ctx, migrationInsert, ch.Named("number", m.Number), ch.Named("name", m.Name),
			ch.Named("checksum", checksums[m.Number])); err != nil {
			return applied, fmt.Errorf("record migration %s: %w", m.Name, err)
		}
		applied = append(applied, m.Name)
	}
	if len(done) > 0 {
		return applied, nil // the schema and its views are newer than this program
	}
	for _, statement := range views {
		if err := db.exec(ctx, statement, ch.Named("public", db.public)); err != nil {
			return applied, fmt.Errorf("replace view: %w", err)
		}
	}
	return applied, nil
}

// appliedMigrations returns the checksums of the applied migrations, by number.
func (db *DB) appliedMigrations(ctx context.Context) (map[uint32]string, error) {
	if err := db.exec(ctx, migrationTable); err != nil {
		return nil, fmt.Errorf("make migration table: %w", err)
	}
	var rows []struct {
		Number   uint32 `ch:"number"`
		Name     string `ch:"name"`
		Checksum string `ch:"checksum"`
	}
	if err := db.list(ctx, &rows, migrationList); err != nil {
		return nil, fmt.Errorf("list migrations: %w", err)
	}
	done := make(map[uint32]string, len(rows))
	for _, row := range rows {
		done[row.Number] = row.Checksum
	}
	return done, nil
}

// createDatabase creates a database. It connects without one, as it may not exist.
func (db *DB) createDatabase(ctx context.Context, name string) error {
	opt := *db.options
	opt.Auth.Database = "default"
	conn, err := ch.Open(&opt)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := db.bound(ctx)
	defer cancel()
	return conn.Exec(ctx, databaseCreate, ch.Named("database", name))
}

// execWithin runs a statement that may take longer than the query timeout.
func (db *DB) execWithin(ctx context.Context, limit time.Duration, query string) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return db.exec(ctx, query)
}

func (db *DB) exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	return redactURL(db.conn.Exec(ctx, query, args...))
}
