package embedded_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/clickhouse/embedded/roster"
)

// as sends a statement with a name and password and returns status and body.
func as(t *testing.T, name, password, query string, params url.Values) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+server.address+"/?"+params.Encode(),
		strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(name, password)
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

// TestAnalystsComeAndGo creates and revokes analysts while the server runs.
func TestAnalystsComeAndGo(t *testing.T) {
	t.Parallel()
	file := roster.Path(filepath.Join(filepath.Dir(server.secret), "data"))
	password, err := roster.Add(file, "bob", roster.Limits{MemoryBytes: 100 << 20, Seconds: 7, Rows: 50, Statements: 1}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, err := roster.Add(file, "eve", roster.Limits{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	f := func(query string, params url.Values, want string) {
		t.Helper()
		if _, body := as(t, "bob", password, query, params); !strings.Contains(body, want) {
			t.Errorf("%s: %s; want %s", query, body, want)
		}
	}
	f("SELECT currentUser(), getSetting('max_memory_usage'), getSetting('max_result_rows'), getSetting('max_execution_time')", nil,
		"bob\t104857600\t50\t7")
	f("SHOW GRANTS", nil, "GRANT analysts TO bob\nGRANT SELECT ON companyscore.* TO analysts")
	f("SELECT 1", url.Values{"max_result_rows": {"51"}}, "Setting max_result_rows shouldn't be greater than 50")
	f("SELECT number FROM numbers(100)", nil, "This is the analyst's limit for a result, 50 rows")
	f("SELECT length(groupArray(toString(number))) FROM numbers(10000000)", nil, "limit of 100 MiB of memory")
	f("SELECT * FROM nowhere", nil, "UNKNOWN_TABLE")
	if status, body := as(t, "bob", other, "SELECT 1", nil); status != http.StatusForbidden {
		t.Errorf("with the password of another: %d %s", status, body)
	}
	if _, body := as(t, "eve", other, "SELECT currentUser(), getSetting('max_result_rows')", nil); body != "eve\t20000000" {
		t.Errorf("eve has %s", body)
	}
	for _, name := range []string{"bob", "eve"} {
		if err := roster.Remove(file, name); err != nil {
			t.Fatal(err)
		}
	}
	if status, body := as(t, "bob", password, "SELECT 1", nil); status != http.StatusForbidden {
		t.Errorf("revoked: %d %s", status, body)
	}
}

// TestNoAnalystTakesAllSlots has one analyst send many statements of a second. Those of another run before the last of them.
func TestNoAnalystTakesAllSlots(t *testing.T) {
	file := roster.Path(filepath.Join(filepath.Dir(server.secret), "data"))
	password, err := roster.Add(file, "greedy", roster.Limits{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	const statements = 40
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var ended atomic.Int32
	for range statements {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://greedy:%s@%s/", password, server.address),
			strings.NewReader("SELECT sleep(1)"))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
				ended.Add(1)
			}
		})
	}
	for ended.Load() == 0 { // until the slots are taken
		if status, body := ask(t, "analyst", "SELECT 1", nil); status != http.StatusOK || body != "1" {
			t.Fatalf("%d %s", status, body)
		}
	}
	if status, body := ask(t, "analyst", "SELECT 1", nil); status != http.StatusOK || body != "1" || ended.Load() == statements {
		t.Errorf("%d %s after %d of %d statements of another", status, body, ended.Load(), statements)
	}
	cancel()
	wg.Wait()
	if err := roster.Remove(file, "greedy"); err != nil {
		t.Error(err)
	}
}
