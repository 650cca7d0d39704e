package clickhouse_test

import (
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/test/stores"
)

func TestMain(m *testing.M) { stores.Main(m) }

// open returns a new migrated database.
func open(t testing.TB) *clickhouse.DB {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: stores.ClickHouse(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
