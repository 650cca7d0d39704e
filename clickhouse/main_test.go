package clickhouse_test

import (
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// open returns a migrated database of its own.
func open(t testing.TB) *clickhouse.DB {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: testenv.ClickHouse(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}
