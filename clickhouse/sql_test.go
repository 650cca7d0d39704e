package clickhouse_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/test/golden"
	"companyscore/sql"
)

// parameters are values of query parameters by name.
var parameters = map[string]any{
	"domain": "example.com", "domains": []string{"example.com"}, "version": "v1", "limit": uint32(5),
	"id": "1", "account_id": "1", "hash": "00", "period": "2026-05-01", "number": uint32(1), "name": "n", "checksum": "c",
	"now_ms": int64(1), "nows_ms": []int64{1}, "since_ms": int64(1), "before_ms": int64(2), "from_ms": int64(1),
	"start_ms": int64(1), "end_ms": int64(2),
	"cut_ms": int64(1), "at_ms": int64(1),
	"start_7d_ms": int64(1), "start_30d_ms": int64(1), "start_90d_ms": int64(1), "leaders": uint16(201), "recent_max": uint32(10),
	"blocks":    uint32(1),
	"scored_ms": []int64{1}, "previous_days": uint16(400), "min_days": uint16(20), "best_days": uint16(30), "max_days": uint16(120),
	"database": "default", "import": "i", "origin": "o",
	"after": "", "until": "b", "from": "", "to": "v1",
	"first": uint64(0), "last": uint64(9), "x_from": uint32(0), "x_last": uint32(9), "records": uint32(2), "detailed": uint32(1),
	"mix":            uint64(1),
	"asked_since_ms": int64(1), "asked_ms": int64(1), "others_ms": int64(1), "live": true,
	"prefix": "a", "rows": uint32(8), "status": uint16(200), "key_id": "k", "runs": uint32(1),
	"by": "day", "until_ms": int64(1), "first_words": []string{"a"}, "second_words": []string{"b"}, "kinds": []string{"c"},
	"min_data": float64(1),
	"endings":  []string{".com"},
}

var parameter = regexp.MustCompile(`\{(\w+):[\w()]+\}`)

func TestEveryQueryIsUsedAndUnderstood(t *testing.T) {
	t.Parallel()
	db := open(t)
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	if _, _, err := db.Seeded(t.Context()); err != nil { // makes its table
		t.Fatal(err)
	}
	for _, name := range sql.Queries() {
		if !strings.Contains(code.String(), fmt.Sprintf("sql.Query(%q)", name)) {
			t.Errorf("query %s is used nowhere", name)
		}
		text := sql.Query(name)
		var args []any
		for _, m := range parameter.FindAllStringSubmatch(text, -1) {
			value, ok := parameters[m[1]]
			if !ok {
				t.Errorf("query %s: the test has no value for parameter %s", name, m[1])
			}
			args = append(args, clickhouse.Named(m[1], value))
		}
		body := text[strings.LastIndex("\n"+text, "\n--"):]
		body = body[strings.Index(body, "\n")+1:]
		explain := "EXPLAIN AST "
		if strings.HasPrefix(body, "SELECT") || strings.HasPrefix(body, "WITH") {
			explain = "EXPLAIN PLAN indexes = 1 "
		}
		if strings.HasPrefix(body, "INSERT") && !strings.Contains(body, "SELECT") {
			body += "SELECT 1"
		}
		rows, err := db.Conn().Query(t.Context(), explain+body, args...)
		if err != nil {
			t.Errorf("query %s: %v", name, err)
			continue
		}
		rows.Close()
	}
}

func TestTablesExplainThemselves(t *testing.T) {
	t.Parallel()
	db := open(t)
	public := clickhouse.Named("public", db.Public())
	tables := column(t, db,
		`SELECT concat(name, ' (', engine, '): ', comment) FROM system.tables WHERE database IN ({public:String}, currentDatabase()) ORDER BY name`, public)
	columns := column(t, db,
		`SELECT concat(table, '.', name, ' ', type, ': ', comment) FROM system.columns WHERE database IN ({public:String}, currentDatabase()) ORDER BY table, position`, public)
	for _, line := range append(tables, columns...) {
		if strings.HasSuffix(line, ": ") && !strings.Contains(strings.SplitAfter(line, "_feed")[0], "_feed") {
			t.Errorf("no comment on %s", line)
		}
	}
	golden.Compare(t, "testdata/describe.golden", strings.Join(tables, "\n")+"\n\n"+strings.Join(columns, "\n")+"\n")
}
