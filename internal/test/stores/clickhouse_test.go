package stores_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"companyscore/internal/test/stores"
)

func TestMain(m *testing.M) { stores.Main(m) }

func TestDatabasesAreSeparate(t *testing.T) {
	t.Parallel()
	a, b := stores.ClickHouse(t), stores.ClickHouse(t)
	if a == b {
		t.Fatalf("two tests share %s", a)
	}
}

func TestKilledServerKeepsItsData(t *testing.T) {
	t.Parallel()
	s := stores.StartClickHouse(t)
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
	s := stores.StartClickHouse(t)
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

// The library removes no files of dropped tables; the next start does, and
// touches no others.
func TestRestartRemovesFilesOfDroppedTables(t *testing.T) {
	t.Parallel()
	s := stores.StartClickHouse(t)
	for _, name := range []string{"kept", "dropped"} {
		mustQuery(t, s, "CREATE TABLE "+name+" (a UInt64, b String) ENGINE = MergeTree ORDER BY a")
		mustQuery(t, s, "INSERT INTO "+name+" SELECT number, randomString(100) FROM numbers(50000)")
	}
	path := mustQuery(t, s, "SELECT data_paths[1] FROM system.tables WHERE name = 'dropped'")
	mustQuery(t, s, "DROP TABLE dropped SYNC")
	s.Restart(t)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("files of the dropped table are still in %s (%v)", path, err)
	}
	if got := mustQuery(t, s, "SELECT count() FROM kept"); got != "50000" {
		t.Errorf("the other table has %s rows", got)
	}
	mustQuery(t, s, "CREATE TABLE dropped (a UInt64) ENGINE = MergeTree ORDER BY a")
}

func mustQuery(t *testing.T, s *stores.ClickHouseServer, q string) string {
	t.Helper()
	got, err := query(s, q)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return got
}

func query(s *stores.ClickHouseServer, q string) (string, error) {
	res, err := http.Post(strings.TrimSuffix(s.URL(""), "/")+"/", "text/plain", strings.NewReader(q))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return strings.TrimSpace(string(body)), err
}
