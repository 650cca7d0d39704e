package testenv_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// Whatever was acknowledged before a crash in the middle of inserts is there after it.
func TestCrashesAmongInsertsLoseNothingAcknowledged(t *testing.T) {
	t.Parallel()
	s := testenv.StartClickHouse(t)
	mustQuery(t, s, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS fsync_after_insert = 1")
	const writers, rounds, enough = 6, 5, 60
	var next, acknowledged atomic.Int64
	for round := range rounds {
		var inserting sync.WaitGroup
		crashed := make(chan struct{})
		goal := acknowledged.Load() + enough
		for range writers {
			inserting.Go(func() {
				for {
					if got, err := query(s, fmt.Sprintf("INSERT INTO t VALUES (%d)", next.Add(1))); err != nil || got != "" {
						return // the server is gone
					}
					if acknowledged.Add(1) == goal {
						close(crashed)
					}
				}
			})
		}
		<-crashed
		s.Kill()
		inserting.Wait()
		s.Restart(t)
		rows, err := strconv.ParseInt(mustQuery(t, s, "SELECT count() FROM t"), 10, 64)
		if err != nil || rows < acknowledged.Load() || rows > acknowledged.Load()+int64(writers*(round+1)) {
			t.Fatalf("crash %d: %d rows of %d acknowledged and %d sent (%v)", round, rows, acknowledged.Load(), next.Load(), err)
		}
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
