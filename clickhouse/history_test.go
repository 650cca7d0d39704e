package clickhouse_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

// TestStatementsOfAnalystsAreLogged checks the rows of v1_query.
func TestStatementsOfAnalystsAreLogged(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	before, _ := asAnalyst(t, server, "SELECT 'before the migration'", "TSV")
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL("companyscore")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"SELECT 'before the migration' analyst ok  rows 1"}
	for statement, is := range map[string]string{
		"SELECT number FROM numbers(5)":                                                               "ok  rows 5",
		"SELECT number FROM numbers(5) SETTINGS max_result_rows = 2":                                  "refused result rows 0",
		"SELECT sum(sipHash64(number)) FROM numbers(1000000000000) SETTINGS max_execution_time = 0.2": "refused time rows 0",
		"SELECT * FROM companyscore_private.account":                                                  "refused access rows 0",
		"SELECT 1 SETTINGS max_threads = 1000":                                                        "refused setting rows 0",
		"SELECT nonsense":                                                                             "failed  rows 0",
	} {
		asAnalyst(t, server, statement, "TSV")
		want = append(want, statement+" analyst "+is)
	}
	slices.Sort(want)
	var got []string
	for deadline := time.Now().Add(wait.Max); len(got) < len(want) && time.Now().Before(deadline); {
		got, err = plainColumn(t, db, "SELECT concat(query, ' ', analyst, ' ', outcome, ' ', refused_by, ' rows ', "+
			"toString(result_rows)) FROM companyscore_private.v1_query "+
			"WHERE query_id != '' AND started_at > now() - 600 AND duration_ms < 60000 ORDER BY 1")
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(got)
	if before != http.StatusOK || !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestServerHasItsOwnLog makes a table like that of a server, as the embedded engine has none.
func TestServerHasItsOwnLog(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL("companyscore")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`CREATE TABLE system.query_log (type Enum8('QueryStart' = 1, 'QueryFinish' = 2, 'ExceptionBeforeStart' = 3, 'ExceptionWhileProcessing' = 4), event_date Date,
			query_start_time_microseconds DateTime64(6), query_duration_ms UInt64, read_rows UInt64, read_bytes UInt64, result_rows UInt64, result_bytes UInt64,
			query String, exception_code Int32, exception String, is_initial_query UInt8, user LowCardinality(String), query_id String) ENGINE = Memory`,
		`INSERT INTO system.query_log SELECT 'QueryFinish', today(), now64(6), 5, 1, 2, 3, 4, 'SELECT 1', 0, '', 1, 'bob', 'a'`,
		`INSERT INTO system.query_log SELECT 'ExceptionWhileProcessing', today(), now64(6), 5, 1, 2, 3, 4, 'SELECT 2', 241, 'Code: 241', 1, 'bob', 'b'`,
		`INSERT INTO system.query_log SELECT 'QueryFinish', today(), now64(6), 5, 1, 2, 3, 4, 'INSERT', 0, '', 1, 'companyscore', 'c'`,
	} {
		if err := db.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := plainColumn(t, db, "SELECT concat(analyst, ' ', query, ' ', outcome, ' ', refused_by, ' ', exception, ' ', "+
		"toString(read_rows)) FROM companyscore_private.v1_query ORDER BY query")
	if err != nil || !slices.Equal(got, []string{"bob SELECT 1 ok   1", "bob SELECT 2 refused memory MEMORY_LIMIT_EXCEEDED 1"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// plainColumn is column of a text that is sent as it is.
func plainColumn(t *testing.T, db *clickhouse.DB, query string) (all []string, err error) {
	t.Helper()
	rows, err := db.Conn().Query(t.Context(), query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, rows.Err()
}
