package clickhouse_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/sql"
)

// openEmpty returns a database without tables.
func openEmpty(t testing.TB) *clickhouse.DB {
	t.Helper()
	return openURL(t, stores.ClickHouse(t))
}

func openURL(t testing.TB, url string) *clickhouse.DB {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// column runs a query with one column and returns its values. Names of views need no database.
func column(t testing.TB, db *clickhouse.DB, query string, args ...any) []string {
	t.Helper()
	query = strings.ReplaceAll(query, " v1_", " "+db.Public()+".v1_")
	rows, err := db.Conn().Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return all
}

// schema returns the definitions of all tables without the name of the database.
func schema(t testing.TB, db *clickhouse.DB) string {
	t.Helper()
	tables := column(t, db,
		"SELECT create_table_query FROM system.tables WHERE database IN ({public:String}, currentDatabase()) ORDER BY name",
		clickhouse.Named("public", db.Public()))
	return strings.ReplaceAll(strings.Join(tables, "\n"), db.Public(), "DATABASE")
}

func TestMigrateTwiceAppliesOnce(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	first, err := db.Migrate(t.Context())
	if err != nil || len(first) != len(sql.Migrations()) {
		t.Fatalf("first Migrate = %v, %v", first, err)
	}
	before := schema(t, db)
	second, err := db.Migrate(t.Context())
	if err != nil || len(second) != 0 {
		t.Errorf("second Migrate = %v, %v; want nothing to do", second, err)
	}
	if after := schema(t, db); after != before {
		t.Errorf("second Migrate changed the schema:\n%s", after)
	}
}

func TestMigrateMakesTheDatabase(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	db := openURL(t, server.URL("not_there_yet"))
	if applied, err := db.Migrate(t.Context()); err != nil || len(applied) == 0 {
		t.Fatalf("Migrate = %v, %v", applied, err)
	}
}

func TestMigrationStatementsMayBeRepeated(t *testing.T) {
	t.Parallel()
	db := open(t)
	before := schema(t, db)
	for _, m := range sql.Migrations() {
		for _, statement := range sql.Split(m.Text) {
			if err := db.Conn().Exec(t.Context(), statement); err != nil {
				t.Errorf("migration %s: %v", m.Name, err)
			}
		}
	}
	if after := schema(t, db); after != before {
		t.Error("repeating the migrations changed the schema")
	}
}

// TestDatabaseOfEarlierBuildIsRefused checks that the database is not changed and that the
// message has a remedy.
func TestDatabaseOfEarlierBuildIsRefused(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	earlier := []sql.Migration{
		{Number: 1, Name: "001_score_history", Text: "CREATE TABLE IF NOT EXISTS score_history (x UInt8) ORDER BY x"},
		{Number: 8, Name: "008_universe_record", Text: "CREATE TABLE IF NOT EXISTS universe_record (x UInt8) ORDER BY x"},
	}
	if _, err := db.MigrateWith(t.Context(), earlier, nil); err != nil {
		t.Fatal(err)
	}
	before := schema(t, db)
	_, err := db.Migrate(t.Context())
	for _, want := range []string{db.Database(), "001_score_history", "new --data directory", "import the facts again",
		"restore the text"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Migrate = %v, want %q in it", err, want)
		}
	}
	if after := schema(t, db); after != before {
		t.Errorf("the database was changed:\n%s", after)
	}
}

func TestInterruptedMigrationIsAppliedAgain(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	migration := sql.Migration{Number: 1, Name: "001_two_tables",
		Text: "CREATE TABLE IF NOT EXISTS a (x UInt8) ORDER BY x;\nBROKEN;\nCREATE TABLE IF NOT EXISTS b (x UInt8) ORDER BY x;"}
	if applied, err := db.MigrateWith(t.Context(), []sql.Migration{migration}, nil); err == nil || len(applied) != 0 {
		t.Fatalf("Migrate with a broken statement = %v, %v", applied, err)
	}
	migration.Text = strings.ReplaceAll(migration.Text, "BROKEN;\n", "")
	if applied, err := db.MigrateWith(t.Context(), []sql.Migration{migration}, nil); err != nil || len(applied) != 1 {
		t.Fatalf("Migrate again = %v, %v", applied, err)
	}
	if got := column(t, db, "SHOW TABLES"); !slices.Equal(got, []string{"a", "b", "schema_migration"}) {
		t.Errorf("tables = %v", got)
	}
}

func TestOlderProgramLeavesNewerViews(t *testing.T) {
	t.Parallel()
	db := openEmpty(t)
	old := []sql.Migration{{Number: 1, Name: "001_a", Text: "CREATE TABLE IF NOT EXISTS a (x UInt8) ORDER BY x"}}
	recent := append(slices.Clone(old), sql.Migration{Number: 2, Name: "002_b", Text: "ALTER TABLE a ADD COLUMN IF NOT EXISTS y UInt8"})
	if _, err := db.MigrateWith(t.Context(), recent, []string{"CREATE OR REPLACE VIEW v AS SELECT x, y FROM a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.MigrateWith(t.Context(), old, []string{"CREATE OR REPLACE VIEW v AS SELECT x FROM a"}); err != nil {
		t.Fatal(err)
	}
	if got := column(t, db,
		"SELECT name FROM system.columns WHERE database = currentDatabase() AND table = 'v' ORDER BY position"); !slices.Equal(got,
		[]string{"x", "y"}) {
		t.Errorf("columns of the view = %v: the older program replaced it", got)
	}
}

// migratorVariable makes TestMigratorProcess migrate the database of that URL.
const migratorVariable = "COMPANYSCORE_TEST_MIGRATOR"

func TestMigratorProcess(t *testing.T) {
	url := os.Getenv(migratorVariable)
	if url == "" {
		t.Skip("runs only as a process of the other tests of migrations")
	}
	db := openURL(t, url)
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func migrator(t *testing.T, url string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^TestMigratorProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), migratorVariable+"="+url)
	return cmd
}

// TestMigratorsAtOnceAreHarmless checks that concurrent migrations all succeed without a lock.
func TestMigratorsAtOnceAreHarmless(t *testing.T) {
	t.Parallel()
	want := schema(t, open(t))
	for range 3 {
		url := stores.ClickHouse(t)
		begin := make(chan struct{})
		var migrators sync.WaitGroup
		for range 6 {
			db := openURL(t, url)
			migrators.Go(func() {
				<-begin
				if _, err := db.Migrate(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		migrators.Wait()
		db := openURL(t, url)
		if got := schema(t, db); got != want {
			t.Errorf("schema made by many at once differs:\n%s\nwant:\n%s", got, want)
		}
		if versions := column(t, db, "SELECT version FROM pipeline_version FINAL ORDER BY number"); !slices.Equal(versions,
			[]string{"v1", scoring.PipelineVersion}) {
			t.Errorf("pipeline versions %v", versions)
		}
	}
}

func TestKilledMigratorsLeaveNothingBroken(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	db := openURL(t, url)
	for round := range 2 {
		cmd := migrator(t, url)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		// Kill it after a number of tables that depends on the round.
		ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
		for ctx.Err() == nil {
			if tables := column(t, db, "SHOW TABLES"); len(tables) >= 3*round+2 {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("round %d: the migrator made no tables", round)
		}
		cancel()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := schema(t, db), schema(t, open(t)); got != want {
		t.Errorf("schema after kills differs:\n%s\nwant:\n%s", got, want)
	}
}
