package command

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/test/stores"
)

func TestMain(m *testing.M) { stores.Main(m) }

// execute runs `request show` on a store.
func execute(ctx context.Context, url string, args ...string) (stdout string, err error) {
	var out bytes.Buffer
	cmd := New()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{"show", "--clickhouse-url", url}, args...))
	cmd.SetOut(&out)
	err = cmd.ExecuteContext(ctx)
	return out.String(), err
}

func TestShowFindsRequestsByID(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := time.Now().UTC().Truncate(time.Millisecond)
	rows := []account.Request{
		{RequestKind: account.RequestKind{Route: "none", Status: 404, ErrorCode: "not found", AnsweredBy: "none"}, ID: "my-request-1", At: at.Add(-time.Hour), Took: 85 * time.Microsecond, Bytes: 62, Number: 1},
		{RequestKind: account.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score", Status: 202, AnsweredBy: "none"}, ID: "my-request-1", At: at, Took: 4 * time.Millisecond, Bytes: 155, Charged: true, JobID: "job", Number: 2},
		{RequestKind: account.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score/*", Status: 200, AnsweredBy: "l1"}, ID: "my-request-2", At: at, Took: 9 * time.Microsecond, Bytes: 444, Number: 3},
	}
	if err := clickhouse.NewRequests(db).WriteRequests(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	stdout, err := execute(t.Context(), url, "my-request-1")
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
	if stdout, err = execute(t.Context(), url, "my-request-2", "--output", "json"); err != nil || !strings.Contains(stdout, `"route":"/v1/score/*","status":200,"answered_by":"l1","took_us":9,"bytes":444,"charged":false`) {
		t.Errorf("as JSON: %v: %s", err, stdout)
	}
	if stdout, err = execute(t.Context(), url, "my-request-3"); err == nil || stdout != "" || !strings.Contains(err.Error(), "no request my-request-3") || !strings.Contains(err.Error(), "within seconds") {
		t.Errorf("an unknown id: %v: %s", err, stdout)
	}
}
