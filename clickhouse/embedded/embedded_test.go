package embedded_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/test/wait"
	"companyscore/sql"
)

// server is the only engine of this test binary: the library opens one data directory per
// process.
var server struct{ address, secret string }

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	if _, err := embedded.Find(); err != nil && os.Getenv("CI") == "" {
		println(err.Error())
		return 0
	}
	if text := os.Getenv(deployVariable); text != "" {
		return answerQuestion(text)
	}
	if text := os.Getenv(childVariable); text != "" {
		return serveChild(text)
	}
	if of := os.Getenv(recipeVariable); of != "" {
		return serveRecipe(of)
	}
	dir, err := os.MkdirTemp("", "companyscore-embedded-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	server.secret = filepath.Join(dir, "secret.csv")
	if err := os.WriteFile(server.secret, []byte("1,secret\n"), 0o600); err != nil {
		panic(err)
	}
	s, err := embedded.New(context.Background(), embedded.Config{
		// the machine may be busy
		Path: filepath.Join(dir, "data"), Password: "p", AnalystPassword: "a", QueueWait: wait.Max, AnalystWait: wait.Max,
	})
	if err != nil {
		panic(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server.address = ln.Addr().String()
	done := make(chan error, 1)
	go func() { done <- s.Serve(ln) }()
	if err := post(context.Background(), "CREATE DATABASE "+sql.Private(sql.Public), nil); err != nil {
		panic(err)
	}
	code := m.Run()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		println("shutdown:", err.Error())
		code = 1
	}
	if err := <-done; !errors.Is(err, http.ErrServerClosed) {
		println("serve:", err.Error())
		code = 1
	}
	return code
}

// ask sends a statement as a user and returns status and body.
func ask(t *testing.T, user, query string, params url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.address+"/?"+params.Encode(),
		strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(user, map[string]string{"companyscore": "p", "analyst": "a"}[user])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}

func must(t *testing.T, query string) {
	t.Helper()
	if status, body := ask(t, "companyscore", query, nil); status != http.StatusOK {
		t.Fatalf("%s: %d %s", query, status, body)
	}
}

func TestDriverInsertsAndReads(t *testing.T) {
	t.Parallel()
	opt, err := ch.ParseDSN("http://companyscore:p@" + server.address + "/default")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ch.Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Exec(t.Context(),
		"CREATE TABLE driver (a UInt64, b String, c Nullable(Float64), d Array(String)) ENGINE = MergeTree ORDER BY a"); err != nil {
		t.Fatal(err)
	}
	batch, err := conn.PrepareBatch(t.Context(), "INSERT INTO driver")
	if err != nil {
		t.Fatal(err)
	}
	const rows = 100_000
	for i := range rows {
		if err := batch.Append(uint64(i), "x", nil, []string{"p", "q"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := batch.Send(); err != nil {
		t.Fatal(err)
	}
	var n uint64
	hostile := "'; DROP TABLE driver --\\\t\n"
	if err := conn.QueryRow(t.Context(), "SELECT count() FROM driver WHERE b = {b:String} OR b = {h:String}", ch.Named("b", "x"),
		ch.Named("h", hostile)).Scan(&n); err != nil || n != rows {
		t.Fatalf("count = %d, %v; want %d", n, err, rows)
	}
	read, err := conn.Query(t.Context(), "SELECT a, d FROM driver ORDER BY a")
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	for want := range uint64(rows) {
		var a uint64
		var d []string
		if !read.Next() || read.Scan(&a, &d) != nil || a != want || len(d) != 2 {
			t.Fatalf("row %d = %d %v, %v", want, a, d, read.Err())
		}
	}
}

func TestPlainHTTP(t *testing.T) {
	t.Parallel()
	f := func(query string, params url.Values, status int, want string) {
		t.Helper()
		got, body := ask(t, "companyscore", query, params)
		if got != status || !strings.Contains(body, want) {
			t.Errorf("%q %v = %d %q; want %d and %q", query, params, got, body, status, want)
		}
	}
	f("SELECT 1 + 1", nil, 200, "2")
	f("", url.Values{"query": {"SELECT 3"}}, 200, "3")
	f("SELECT 1 AS a FORMAT JSONEachRow", nil, 200, `{"a":1}`)
	f("((SELECT 1 AS a)) FORMAT JSONEachRow", nil, 200, `{"a":1}`)
	f("SELECT 1 AS a", url.Values{"default_format": {"JSONEachRow"}}, 200, `{"a":1}`)
	f("SELECT {x:UInt8} + 1", url.Values{"param_x": {"41"}}, 200, "42")
	f("SELECT {x:String}", url.Values{"param_x": {"a b"}}, 200, "a b")
	f("SELECT currentDatabase()", url.Values{"database": {"system"}}, 200, "system")
	f("SELECT currentDatabase()", nil, 200, "default")
	f("SELECT getSetting('max_block_size')", url.Values{"max_block_size": {"1234"}}, 200, "1234")
	f("SELECT getSetting('max_block_size') = 1234", nil, 200, "0")
	f("SELECT * FROM nowhere", nil, 404, "Code: 60. DB::Exception")
	f("SELEC 1", nil, 400, "Code: 62. DB::Exception")
	f("SELECT 1; SELECT 2", nil, 400, "Code: 62")
	if status, body := ask(t, "nobody", "SELECT 1", nil); status != 401 && status != 403 || !strings.Contains(body, "Code: 516") {
		t.Errorf("unknown user = %d %q", status, body)
	}
}

func TestAnalystReadsAndNothingElse(t *testing.T) {
	t.Parallel()
	must(t, "CREATE TABLE companyscore.shared (a UInt8) ENGINE = MergeTree ORDER BY a")
	must(t, "INSERT INTO companyscore.shared VALUES (7)")
	if status, body := ask(t, "analyst", "SELECT a FROM shared", nil); status != 200 || body != "7" {
		t.Fatalf("analyst reads = %d %q", status, body)
	}
	refuse := func(query string, params url.Values) {
		t.Helper()
		if status, body := ask(t, "analyst", query, params); status == http.StatusOK {
			t.Errorf("analyst may %q and got %q", query, body)
		}
	}
	file := "file('" + server.secret + "', 'CSV', 'a UInt8, b String')"
	for _, query := range []string{
		"INSERT INTO shared VALUES (8)", "INSERT INTO shared SELECT 8", "DROP TABLE shared", "TRUNCATE TABLE shared",
		"ALTER TABLE shared DELETE WHERE 1",
		"CREATE TABLE mine (a UInt8) ENGINE = Memory", "CREATE TEMPORARY TABLE mine (a UInt8)", "CREATE VIEW v AS SELECT 1",
		"CREATE DATABASE mine",
		"RENAME TABLE shared TO other", "OPTIMIZE TABLE shared", "DETACH TABLE shared", "SET readonly = 0", "SET max_execution_time = 0",
		"SYSTEM SHUTDOWN",
		"KILL QUERY WHERE 1", "SELECT * FROM " + file, "SELECT * FROM `file`('" + server.secret + "', 'CSV')",
		"SELECT * FROM FILE /* x */ ('" + server.secret + "')",
		"WITH t AS (SELECT * FROM " + file + ") SELECT * FROM t", "SELECT (SELECT count() FROM " + file + ")", "DESCRIBE TABLE " + file,
		"SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a UInt8')", "SELECT * FROM remote('127.0.0.1:1', 'default', 'shared')",
		"SELECT * FROM s3('http://127.0.0.1:1/a', 'CSV', 'a UInt8')", "SELECT * FROM executable('id', 'CSV', 'a String')",
		"SELECT * FROM mysql('127.0.0.1:1', 'a', 'b', 'c', 'd')", "SELECT file('" + server.secret + "')",
		"SELECT 1 INTO OUTFILE '/tmp/companyscore-out'",
		"INSERT INTO FUNCTION file('x.csv', 'CSV', 'a UInt8') VALUES (1)", "INSERT INTO shared FROM INFILE '" + server.secret +
			"' FORMAT CSV",
		"SELECT 1 SETTINGS readonly = 0", "SELECT 1; DROP TABLE shared", "EXPLAIN SELECT * FROM " + file,
		"BACKUP TABLE shared TO File('/tmp/companyscore-backup')",
	} {
		refuse(query, nil)
	}
	refuse("INSERT INTO shared VALUES (9)", url.Values{"readonly": {"0"}})
	if status, body := ask(t, "companyscore", "SELECT count() FROM companyscore.shared", nil); status != 200 || body != "1" {
		t.Errorf("after all that the table has %q rows", body)
	}
}

func TestManyClientsAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 5 {
				if status, body := ask(t, "companyscore", "SELECT sum(number) FROM numbers(1000)", nil); status != 200 || body != "499500" {
					t.Errorf("%d %q", status, body)
				}
			}
		})
	}
	wg.Wait()
}

func TestClientThatLeavesCancelsItsQuery(t *testing.T) {
	t.Parallel()
	const query = "SELECT sum(sleepEachRow(1)) FROM numbers(100) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://companyscore:p@"+server.address+"/", strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	running := func() bool {
		_, body := ask(t, "companyscore",
			"SELECT count() FROM system.processes WHERE query LIKE '%sleepEachRow%' AND query NOT LIKE '%processes%'", nil)
		return body != "0"
	}
	deadline := time.Now().Add(wait.Max)
	for !running() {
		if time.Now().After(deadline) {
			t.Fatal("the query never ran")
		}
	}
	cancel()
	<-left
	for running() {
		if time.Now().After(deadline) {
			t.Fatal("the query goes on without its client")
		}
	}
}

func TestLargeResultArrivesWhole(t *testing.T) {
	t.Parallel()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://companyscore:p@"+server.address+"/",
		strings.NewReader("SELECT number FROM numbers(5000000) FORMAT RowBinary"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil || n != 5_000_000*8 {
		t.Errorf("%d bytes, %v; want %d", n, err, 5_000_000*8)
	}
}

func TestDataDirectoryHasOneOwner(t *testing.T) {
	t.Parallel()
	if _, err := embedded.New(t.Context(), embedded.Config{Path: filepath.Join(filepath.Dir(server.secret), "data"),
		Password: "p"}); !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("second New = %v, want ErrInUse", err)
	}
}

// TestExecutionTimeIsNoSessionState checks that the execution time of a request does not
// apply to the next statement on the connection.
func TestExecutionTimeIsNoSessionState(t *testing.T) {
	t.Parallel()
	const long = "SELECT sum(sipHash64(number)) FROM numbers(1000000000000)"
	for _, user := range []string{"companyscore", "analyst"} {
		for _, held := range []string{"0", "1"} {
			status, body := ask(t, user, long, url.Values{"max_execution_time": {"0.2"}, "wait_end_of_query": {held}})
			if status != http.StatusRequestTimeout || !strings.Contains(body, "TIMEOUT_EXCEEDED") {
				t.Errorf("%s: %d %s", user, status, body)
			}
			want := map[string]string{"companyscore": "0", "analyst": "300"}[user]
			if _, body := ask(t, user, "SELECT value FROM system.settings WHERE name = 'max_execution_time'",
				url.Values{"max_execution_time": {"7"}}); body != want {
				t.Errorf("%s: the session has a limit of %s s, want %s", user, body, want)
			}
		}
	}
	for _, wrong := range []string{"-1", "soon", "NaN"} {
		if status, body := ask(t, "companyscore", "SELECT 1", url.Values{"max_execution_time": {wrong}}); status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
}

// TestHeldAnswer compares a buffered answer with a streamed one.
func TestHeldAnswer(t *testing.T) {
	t.Parallel()
	for _, query := range []string{"SELECT number FROM numbers(3)", "SELECT number FROM numbers(0)", "SELECT 'a' FORMAT JSONEachRow",
		"SELECT number FROM numbers(100000)", "SELECT throwIf(number = 5) FROM numbers(10)"} {
		for _, user := range []string{"companyscore", "analyst"} {
			status, body := ask(t, user, query, nil)
			heldStatus, held := ask(t, user, query, url.Values{"wait_end_of_query": {"1"}})
			if status != heldStatus || body != held {
				t.Errorf("%s: %s: %d %.100s, held %d %.100s", user, query, status, body, heldStatus, held)
			}
		}
	}
	if status, body := ask(t, "companyscore", "SELECT leftPad('', 1000, 'a') FROM numbers(200000)",
		url.Values{"wait_end_of_query": {"1"}}); status != http.StatusInternalServerError || !strings.Contains(body, "TOO_MANY_BYTES") {
		t.Errorf("too much to hold: %d %.200s", status, body)
	}
}

// TestBrokenPipesRaiseNoSignal checks that SIGPIPE is ignored: Go ends the process if a thread of the library gets it.
func TestBrokenPipesRaiseNoSignal(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "SigIgn:")
	mask, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	ignored, err := strconv.ParseUint(mask, 16, 64)
	if err != nil || ignored&(1<<(syscall.SIGPIPE-1)) == 0 {
		t.Errorf("signals ignored: %s, %v; SIGPIPE is not among them", mask, err)
	}
}

// TestAbandonedStreamsLeaveNoGoroutine abandons answers after their first bytes.
func TestAbandonedStreamsLeaveNoGoroutine(t *testing.T) {
	leave := func(streams int) {
		for range streams {
			ctx, cancel := context.WithCancel(t.Context())
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://companyscore:p@"+server.address+"/",
				strings.NewReader("SELECT number FROM numbers(1000000000) FORMAT JSONEachRow"))
			if err != nil {
				t.Fatal(err)
			}
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadFull(res.Body, make([]byte, 100)); err != nil {
				t.Error(err)
			}
			cancel()
			_ = res.Body.Close()
		}
		http.DefaultClient.CloseIdleConnections()
	}
	leave(5)
	before := runtime.NumGoroutine()
	leave(40)
	const slack = 10 // of the runtime and the HTTP client
	for deadline := time.Now().Add(wait.Max); runtime.NumGoroutine() > before+slack; http.DefaultClient.CloseIdleConnections() {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, before there were %d", runtime.NumGoroutine(), before)
		}
		must(t, "SELECT 1")
	}
}
