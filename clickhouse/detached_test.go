package clickhouse_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/test/stores"
)

// TestDamagedPartsAreLogged damages one of two parts of a table. The next start must log it and serve the other. It must not log a
// part that a statement detached.
func TestDamagedPartsAreLogged(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL("")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE DATABASE damaged", "CREATE TABLE damaged.parts (a UInt8) ENGINE = MergeTree ORDER BY a", "SYSTEM STOP MERGES damaged.parts",
		"INSERT INTO damaged.parts SELECT 1", "INSERT INTO damaged.parts SELECT 2", "INSERT INTO damaged.parts SELECT 3",
		"ALTER TABLE damaged.parts DETACH PART 'all_3_3_0'",
	} {
		if err := db.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	server.Kill()
	found, err := filepath.Glob(filepath.Join(server.Dir(), "data", "store", "*", "*", "all_2_2_0", "columns.txt"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	if err := os.WriteFile(found[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	server.Restart(t)
	log, err := os.ReadFile(filepath.Join(server.Dir(), "server.log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" ERROR ", "table=damaged.parts", "part=broken-on-start_all_2_2_0", "reason=broken-on-start", "remedy=",
		filepath.Join("detached", "broken-on-start_all_2_2_0")} {
		if !strings.Contains(string(log), want) {
			t.Errorf("%q is not logged:\n%s", want, log)
		}
	}
	if n := strings.Count(string(log), "part="); n != 1 {
		t.Errorf("%d parts are logged, want 1:\n%s", n, log)
	}
	if got := column(t, db, "SELECT toString(a) FROM damaged.parts"); len(got) != 1 || got[0] != "1" {
		t.Errorf("the table has %v, want what is whole", got)
	}
}
