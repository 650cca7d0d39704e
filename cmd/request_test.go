package cmd

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
)

// executeRequest runs `request show` on a store.
func executeRequest(ctx context.Context, url string, args ...string) (stdout, stderr string, err error) {
	var out, notes bytes.Buffer
	cmd := requestCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"show", "--clickhouse-url", url}, args...))
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	err = cmd.ExecuteContext(ctx)
	return out.String(), notes.String(), err
}

// newRequestStore returns a store of requests and the URL of its ClickHouse.
func newRequestStore(t *testing.T) (store *clickhouse.Requests, url string) {
	t.Helper()
	url = stores.ClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return clickhouse.NewRequests(db), url
}

func TestShowSelectsAccount(t *testing.T) {
	t.Parallel()
	store, url := newRequestStore(t)
	at := time.Now().UTC().Truncate(time.Millisecond)
	rows := []table.Request{{RequestKind: table.RequestKind{AccountID: "a", Route: "/v1/score", Status: 202, AnsweredBy: "none"},
		ID: "same-id", At: at.Add(-time.Hour), Number: 1}}
	for i := range 120 {
		rows = append(rows, table.Request{RequestKind: table.RequestKind{AccountID: "b", Route: "/v1/movers", Status: 200,
			AnsweredBy: "table"}, ID: "same-id", At: at, Number: uint64(i + 2)})
	}
	if err := store.WriteRequests(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := executeRequest(t.Context(), url, "same-id")
	if err != nil || strings.Count(stdout, "/v1/movers") != 100 || strings.Contains(stdout, "/v1/score") ||
		!strings.Contains(stderr, "--account") {
		t.Errorf("of all accounts: %v: %q: %s", err, stderr, stdout)
	}
	stdout, stderr, err = executeRequest(t.Context(), url, "same-id", "--account", "a")
	if err != nil || strings.Count(stdout, "same-id") != 1 || !strings.Contains(stdout, "/v1/score") || stderr != "" {
		t.Errorf("of one account: %v: %q: %s", err, stderr, stdout)
	}
}

func TestShowFindsRequestsByID(t *testing.T) {
	t.Parallel()
	store, url := newRequestStore(t)
	at := time.Now().UTC().Truncate(time.Millisecond)
	rows := []table.Request{
		{RequestKind: table.RequestKind{Route: "none", Status: 404, ErrorCode: "not found", AnsweredBy: "none"}, ID: "my-request-1",
			At: at.Add(-time.Hour), Took: 85 * time.Microsecond, Bytes: 62, Number: 1},
		{RequestKind: table.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score", Status: 202, AnsweredBy: "none"},
			ID: "my-request-1", At: at, Took: 4 * time.Millisecond, Bytes: 155, Charged: true, JobID: "job", Number: 2},
		{RequestKind: table.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score/*", Status: 200, AnsweredBy: "l1"},
			ID: "my-request-2", At: at, Took: 9 * time.Microsecond, Bytes: 444, Number: 3},
	}
	if err := store.WriteRequests(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := executeRequest(t.Context(), url, "my-request-1")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if err != nil || len(lines) != 3 {
		t.Fatalf("%v: %s", err, stdout)
	}
	newest := "my-request-1 a k /v1/score 202 none 4000 155 true job"
	if got := strings.Join(strings.Fields(lines[1]), " "); !strings.HasSuffix(got, newest) {
		t.Errorf("the newest is %q, want %q", got, newest)
	}
	if got := strings.Join(strings.Fields(lines[2]), " "); !strings.HasSuffix(got, "my-request-1 none 404 not found none 85 62 false") {
		t.Errorf("the oldest is %q", got)
	}
	if stdout, _, err = executeRequest(t.Context(), url, "my-request-2", "--output", "json"); err != nil ||
		!strings.Contains(stdout, `"route":"/v1/score/*","status":200,"answered_by":"l1","took_us":9,"bytes":444,"charged":false`) {
		t.Errorf("as JSON: %v: %s", err, stdout)
	}
	if stdout, _, err = executeRequest(t.Context(), url, "my-request-3"); err == nil || stdout != "" ||
		!strings.Contains(err.Error(), "no request my-request-3") || !strings.Contains(err.Error(), "within seconds") {
		t.Errorf("an unknown id: %v: %s", err, stdout)
	}
}
