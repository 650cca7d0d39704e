package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/sql"
)

var (
	databaseCreate  = sql.Query("database_create")
	migrationTable  = sql.Query("migration_table")
	migrationList   = sql.Query("migration_list")
	migrationInsert = sql.Query("migration_insert")
)

// Migrate makes the database, applies the migrations that were not applied yet
// and replaces the public views. It returns the names of those it applied.
//
// It may run twice and in several processes at once without a lock, because each
// statement of a migration is harmless when it is repeated; a migration that was
// interrupted is simply applied again. A migration that was edited after it was
// applied is an error.
func (db *DB) Migrate(ctx context.Context) (applied []string, err error) {
	if err := db.createDatabase(ctx); err != nil {
		return nil, fmt.Errorf("make database %s: %w", db.database, err)
	}
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
	for _, m := range sql.Migrations() {
		sum := sha256.Sum256([]byte(m.Text))
		checksum := hex.EncodeToString(sum[:])
		if before, ok := done[m.Number]; ok {
			if before != checksum {
				return applied, fmt.Errorf("migration %s was changed after it was applied here: put its text back and add a new migration", m.Name)
			}
			continue
		}
		for _, statement := range sql.Split(m.Text) {
			if err := db.exec(ctx, statement); err != nil {
				return applied, fmt.Errorf("apply migration %s: %w", m.Name, err)
			}
		}
		if err := db.exec(ctx, migrationInsert, ch.Named("number", m.Number), ch.Named("name", m.Name), ch.Named("checksum", checksum)); err != nil {
			return applied, fmt.Errorf("record migration %s: %w", m.Name, err)
		}
		applied = append(applied, m.Name)
	}
	for _, statement := range sql.Views() {
		if err := db.exec(ctx, statement); err != nil {
			return applied, fmt.Errorf("replace view: %w", err)
		}
	}
	return applied, nil
}

// createDatabase connects without a database, as ours may not exist.
func (db *DB) createDatabase(ctx context.Context) error {
	opt := *db.options
	opt.Auth.Database = "default"
	conn, err := ch.Open(&opt)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := db.bound(ctx)
	defer cancel()
	return conn.Exec(ctx, databaseCreate, ch.Named("database", db.database))
}

func (db *DB) exec(ctx context.Context, query string, args ...any) error {
	ctx, cancel := db.bound(ctx)
	defer cancel()
	return db.conn.Exec(ctx, query, args...)
}
