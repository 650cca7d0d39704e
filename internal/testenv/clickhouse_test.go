package testenv_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"companyscore/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	a, b := testenv.ClickHouse(t), testenv.ClickHouse(t)
	if a == b {
		t.Fatalf("two tests share %s", a)
	}
}

func TestKilledServerComesBackWithItsData(t *testing.T) {
	t.Parallel()
	s := testenv.StartClickHouse(t)
	mustQuery(t, s, "CREATE TABLE t (a UInt8) ENGINE = MergeTree ORDER BY a")
	mustQuery(t, s, "INSERT INTO t VALUES (1), (2)")

	s.Kill()
	if _, err := query(s, "SELECT 1"); err == nil {
		t.Fatal("a killed server answers")
	}

	s.Restart(t)
	if got := mustQuery(t, s, "SELECT sum(a) FROM t"); got != "3" {
		t.Errorf("sum after restart: got %q, want 3", got)
	}
}

func mustQuery(t *testing.T, s *testenv.ClickHouseServer, q string) string {
	t.Helper()
	got, err := query(s, q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return got
}

func query(s *testenv.ClickHouseServer, q string) (string, error) {
	res, err := http.Post(strings.TrimSuffix(s.URL(""), "/")+"/", "text/plain", strings.NewReader(q))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return strings.TrimSpace(string(body)), err
}
