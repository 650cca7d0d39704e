package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

// send sends a request as the analyst and returns the response, whose body is read.
func send(t *testing.T, method, path, body string, header map[string]string) (res *http.Response, text string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+server.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if res, err = http.DefaultClient.Do(req); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, strings.TrimSpace(string(all))
}

// TestHTTPIsThatOfServer sends what tools send to a server.
func TestHTTPIsThatOfServer(t *testing.T) {
	t.Parallel()
	user := map[string]string{"X-ClickHouse-User": "analyst", "X-ClickHouse-Key": "a"}
	with := func(pairs ...string) map[string]string {
		h := map[string]string{}
		for name, value := range user {
			h[name] = value
		}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	f := func(method, path, body string, header map[string]string, status int, want string) *http.Response {
		t.Helper()
		res, text := send(t, method, path, body, header)
		if res.StatusCode != status || !strings.Contains(text, want) {
			t.Errorf("%s %s %s = %d %.300s; want %d %s", method, path, body, res.StatusCode, text, status, want)
		}
		return res
	}
	f("GET", "/", "", nil, 200, "Ok.")
	f("GET", "/ping", "", nil, 200, "Ok.")
	f("GET", "/replicas_status", "", nil, 200, "Ok.")
	if res := f("OPTIONS", "/", "", map[string]string{"Origin": "http://example.com"}, 204,
		""); res.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("OPTIONS: %v", res.Header)
	}
	f("POST", "/", "SELECT currentUser(), currentDatabase()", user, 200, "analyst\tcompanyscore")
	f("POST", "/?database=default", "SELECT currentDatabase()", user, 200, "companyscore")
	f("POST", "/?user=analyst&password=a", "SELECT 1", nil, 200, "1")
	f("GET", "/?query=SELECT+1&session_id=a&session_timeout=60&session_check=1", "", user, 200, "1")
	f("POST", "/?role=analysts", "SELECT currentRoles()", user, 200, "analysts")
	f("POST", "/?role=service", "SELECT 1", user, 500, "UNKNOWN_ROLE")
	f("POST", "/?async_insert=0&wait_end_of_query=1", "SELECT 1", user, 200, "1")
	f("POST", "/", "SELECT 1 AS a", with("X-ClickHouse-Format", "JSONEachRow"), 200, `{"a":1}`)
	if res := f("POST", "/", "SELECT 1", with("X-ClickHouse-Query-Id", "mine"), 200,
		"1"); res.Header.Get("X-ClickHouse-Query-Id") != "mine" {
		t.Errorf("the query id is %q", res.Header.Get("X-ClickHouse-Query-Id"))
	}
	must(t, "CREATE TABLE IF NOT EXISTS companyscore.bound (a UInt8) ENGINE = MergeTree ORDER BY a")
	must(t, "CREATE TABLE IF NOT EXISTS companyscore_private.unbound (a UInt8) ENGINE = MergeTree ORDER BY a")
	f("POST", "/?param_t=bound&param_c=a", "SELECT sum({c:Identifier}) FROM {t:Identifier}", user, 200, "0")
	f("POST", "/?param_t=companyscore.bound", "SELECT count() FROM {t:Identifier}", user, 200, "0")
	f("POST", "/?param_t=companyscore_private.unbound", "SELECT count() FROM {t:Identifier}", user, 403, "ACCESS_DENIED")
	f("POST", "/", "SELECT count() FROM {t:Identifier}", user, 500, "UNKNOWN_QUERY_PARAMETER")
	f("POST", "/", "SELECT count() FROM (SELECT 1 SETTINGS max_threads = 1)", user, 200, "1")
	f("POST", "/", "SELECT count() FROM (SELECT 1 SETTINGS max_memory_usage = 3000000000)", user, 500,
		"Setting max_memory_usage shouldn't be greater than 2147483648")
	f("POST", "/", "SELECT 1\nFROM x WHERE", user, 400, "(line 2, col 13)")
	f("POST", "/", "SELEC 1", user, 400, "failed at position 1 (SELEC) (line 1, col 1)")
	for _, statement := range []string{"SELEC 1", "SELECT (", "", "SELECT 1 +\n\nFROM x WHERE"} {
		if _, text := send(t, "POST", "/", statement, user); strings.Contains(text, "formatQuery") ||
			!strings.Contains(text, "SYNTAX_ERROR") {
			t.Errorf("%q: %s", statement, text)
		}
	}
}

// TestSlowReadersHoldNoSlot reads nothing of more long answers than there are slots. Each ends for the engine, so another statement runs.
func TestSlowReadersHoldNoSlot(t *testing.T) {
	t.Parallel()
	const readers = 20
	for range readers {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://analyst:a@"+server.address+"/",
			strings.NewReader("SELECT number, leftPad('', 1000, 'a') FROM numbers(20000)"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
	}
	if status, body := ask(t, "analyst", "SELECT 1", nil); status != http.StatusOK || body != "1" {
		t.Errorf("%d %s", status, body)
	}
}

// TestHeldAnswersAreSpooled asks with wait_end_of_query for more than is held in memory.
func TestHeldAnswersAreSpooled(t *testing.T) {
	t.Parallel()
	const rows = 20_000_000
	for _, held := range []string{"0", "1"} {
		//nolint:noctx // a test on loopback
		res, err := http.Post("http://analyst:a@"+server.address+"/?wait_end_of_query="+held, "",
			strings.NewReader(fmt.Sprintf("SELECT number FROM numbers(%d) FORMAT RowBinary", rows)))
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || n != rows*8 || (res.ContentLength == n) != (held == "1") {
			t.Errorf("wait_end_of_query=%s: %d bytes of %d, %v", held, n, res.ContentLength, err)
		}
	}
	status, body := ask(t, "analyst", "SELECT throwIf(number = 10000000) FROM numbers(20000000)", url.Values{"wait_end_of_query": {"1"}})
	if status != http.StatusInternalServerError || !strings.HasPrefix(body, "Code: 395") {
		t.Errorf("an error at the end: %d %.200s", status, body)
	}
}

// TestClientThatLeavesCancelsStatement abandons a spooled answer while its statement runs.
func TestClientThatLeavesCancelsStatement(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://analyst:a@"+server.address+"/",
		strings.NewReader("SELECT number, sleepEachRow(0.01), leftPad('abandoned', 90000, 'x') FROM numbers(1000000) SETTINGS "+
			"max_block_size = 10"))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	res.Body.Close()
	for deadline := time.Now().Add(wait.Max); ; {
		if _, body := ask(t, "companyscore",
			"SELECT count() FROM system.processes WHERE query LIKE '%abandoned%' AND query NOT LIKE '%processes%'", nil); body == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the statement goes on without its client")
		}
	}
}

// TestManyAnalystsAtOnce runs more statements than there are slots.
func TestManyAnalystsAtOnce(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if status, body := ask(t, "analyst", "SELECT sum(number) FROM numbers(1000000)", nil); status != 200 || body != "499999500000" {
				t.Errorf("%d %s", status, body)
			}
		})
	}
	wg.Wait()
}
