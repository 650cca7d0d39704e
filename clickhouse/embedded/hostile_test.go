package embedded_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

// TestHostileStatementsOnlyCauseErrors sends what could take the process
// down with it. Each must be answered, and the server go on.
func TestHostileStatementsOnlyCauseErrors(t *testing.T) {
	for name, query := range map[string]string{
		"deep brackets":   "SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000),
		"deep functions":  "SELECT " + strings.Repeat("abs(", 5000) + "1" + strings.Repeat(")", 5000),
		"deep arrays":     "SELECT " + strings.Repeat("[", 5000) + "1" + strings.Repeat("]", 5000),
		"deep subqueries": strings.Repeat("SELECT * FROM (", 3000) + "SELECT 1" + strings.Repeat(")", 3000),
		"deep lambdas": "SELECT arrayMap(x -> " + strings.Repeat("arrayMap(x -> ", 1500) + "x" + strings.Repeat(", [1])", 1500) +
			", [1])",
		"long unions":          strings.TrimSuffix(strings.Repeat("SELECT 1 UNION ALL ", 20000), " UNION ALL "),
		"many operators":       "SELECT 1" + strings.Repeat("+1", 100_000),
		"deep minus":           "SELECT " + strings.Repeat("- ", 100_000) + "1",
		"more text than may":   "SELECT '" + strings.Repeat("a", 3<<20) + "'",
		"too much memory":      "SELECT groupArray(number) FROM numbers(10000000000) SETTINGS max_memory_usage = 100000000",
		"a huge string":        "SELECT repeat('a', 10000000000)",
		"a huge array":         "SELECT range(10000000000)",
		"a type too deep":      "SELECT CAST('', '" + strings.Repeat("Array(", 3000) + "UInt8" + strings.Repeat(")", 3000) + "')",
		"a regular expression": "SELECT match('a', '" + strings.Repeat("(", 5000) + "a" + strings.Repeat(")", 5000) + "')",
		"JSON too deep":        "SELECT JSONExtractRaw('" + strings.Repeat("[", 100_000) + "', 1)",
		"bytes that are none":  "SELECT '\xff\xfe', \xc3\x28",
		"NUL":                  "SELECT 'a\x00b' \x00 ; \x00",
		"only NUL":             "\x00",
		"an exception":         "SELECT throwIf(1, 'boom')",
		"division by zero":     "SELECT intDiv(1, 0), intDiv(-9223372036854775808, -1)",
		"a bad insert":         "INSERT INTO nowhere FORMAT Native\nnonsense",
		"open quotes":          "SELECT '",
		"open comment":         "SELECT 1 /*",
		"nothing":              "",
		"semicolons":           ";;;;",
	} {
		t.Run(name, func(t *testing.T) {
			for _, user := range []string{"companyscore", "analyst"} {
				status, body := ask(t, user, query, url.Values{"max_execution_time": {"20"}})
				if status != http.StatusOK && !strings.Contains(body, "Code: ") && !strings.Contains(body, "DB::") {
					t.Errorf("%s: %d %.200q is no exception of ClickHouse", user, status, body)
				}
			}
			if status, body := ask(t, "companyscore", "SELECT 1", nil); status != http.StatusOK || body != "1" {
				t.Fatalf("afterwards: %d %s", status, body)
			}
		})
	}
}

// TestDropSyncEnds drops what other connections have just used, in the words
// that ask to wait for it.
func TestDropSyncEnds(t *testing.T) {
	t.Parallel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 5 {
			must(t, "CREATE DATABASE dropped")
			must(t, "CREATE TABLE dropped.t (a UInt64) ENGINE = MergeTree ORDER BY a")
			must(t, "INSERT INTO dropped.t SELECT number FROM numbers(1000)")
			for range 10 { // connections of their own, as they differ in settings
				for _, threads := range []string{"1", "2", "3", "4"} {
					if status, body := ask(t, "companyscore", "SELECT sum(a) FROM dropped.t",
						url.Values{"max_threads": {threads}}); status != http.StatusOK {
						t.Errorf("%d %s", status, body)
					}
				}
			}
			must(t, "DROP TABLE dropped.t SYNC")
			must(t, "DROP DATABASE dropped SYNC")
		}
	}()
	select {
	case <-done:
	case <-time.After(wait.Max):
		t.Fatal("DROP ... SYNC does not end")
	}
}
