package clickhouse_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/internal/table"
)

func TestRepeatedRequestsAreStoredOnce(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewRequests(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	kind := table.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score/*", Status: 404, ErrorCode: "no_history", AnsweredBy: "redis"}
	var rows []table.Request
	for i := range 3 {
		rows = append(rows, table.Request{
			RequestKind: kind, ID: "same-request", At: now.Add(time.Duration(i) * time.Second), Took: 1500 * time.Microsecond, Bytes: 88,
			Charged: i == 2, JobID: "j", Server: "s", Number: uint64(i),
		})
	}
	rows = append(rows, table.Request{RequestKind: kind, ID: "other-request", At: now, Server: "s", Number: 9})
	for range 2 { // as after a lost answer of ClickHouse
		if err := store.WriteRequests(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
	got, err := store.FindRequests(t.Context(), "same-request", "", 2)
	if diff := cmp.Diff([]table.Request{rows[2], rows[1]}, got); err != nil || diff != "" {
		t.Errorf("newest two of the id: %v\n%s", err, diff)
	}
	for id, accountID := range map[string]string{"never-sent": "", "same-request": "b"} {
		if got, err := store.FindRequests(t.Context(), id, accountID, 2); err != nil || len(got) != 0 {
			t.Errorf("id %s of account %q has %v, %v", id, accountID, got, err)
		}
	}
	if got, err := plainColumn(t, db, "SELECT toString(count()) FROM v1_request"); err != nil || got[0] != "4" {
		t.Errorf("v1_request has %s rows, %v, want 4", got, err)
	}
}

func TestRequestHistoryHasNewestTotals(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewRequests(db)
	day := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -2)
	count := func(accountID, key string, status uint16, server string, minute time.Time, calls, version uint64) table.RequestCount {
		return table.RequestCount{
			RequestKind: table.RequestKind{AccountID: accountID, KeyID: key, Route: "/v1/score/*", Status: status, AnsweredBy: "l1"},
			Minute:      minute, Server: server,
			Calls: calls, Charged: 1, NotStored: calls - 1, Took: time.Duration(calls) * time.Millisecond, Bytes: 10 * calls,
			Version: version,
		}
	}
	for _, rows := range [][]table.RequestCount{
		{count("a", "k1", 200, "s1", day, 7, 2), count("a", "k1", 200, "s2", day, 5, 1), count("b", "k9", 200, "s1", day, 100, 1)},
		{count("a", "k1", 200, "s1", day, 3, 1)}, // an earlier write that arrives late
		{count("a", "k2", 404, "s1", day.Add(25*time.Hour), 2, 3), count("a", "k1", 200, "s1", day.Add(48*time.Hour), 50, 4)},
	} {
		if err := store.WriteRequestCounts(t.Context(), rows); err != nil {
			t.Fatal(err)
		}
	}
	first, second := day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)
	for by, want := range map[string]string{
		"day":    fmt.Sprintf("[{%s 12 2 0 12ms 120} {%s 2 1 2 2ms 20}]", first, second),
		"key":    "[{k1 12 2 0 12ms 120} {k2 2 1 2 2ms 20}]",
		"route":  "[{/v1/score/* 14 3 2 14ms 140}]",
		"status": "[{200 12 2 0 12ms 120} {404 2 1 2 2ms 20}]",
	} {
		got, err := store.RequestGroups(t.Context(), "a", day, day.Add(48*time.Hour), by)
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("by %s: %v, %v; want %s", by, got, err, want)
		}
	}
	for _, view := range []string{"v1_request_minute", "v1_request_daily"} {
		got, err := plainColumn(t, db,
			fmt.Sprintf("SELECT concat(toString(sum(calls)), ' calls in ', toString(count())) FROM %s WHERE account_id = 'a'", view))
		if want := "64 calls in 3"; err != nil || got[0] != want {
			t.Errorf("%s has %s, %v, want %s", view, got, err, want)
		}
	}
}

func TestRequestsAreListedByKind(t *testing.T) {
	t.Parallel()
	db := open(t)
	store := clickhouse.NewRequests(db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	row := func(accountID, key string, status uint16, ago time.Duration, number uint64) table.Request {
		return table.Request{RequestKind: table.RequestKind{AccountID: accountID, KeyID: key, Route: "/v1/score/*", Status: status,
			AnsweredBy: "l1"}, ID: "id", At: now.Add(-ago), Number: number}
	}
	newest, failed, other, old := row("a", "k1", 200, 0, 1), row("a", "k1", 404, time.Minute, 2), row("a", "k2", 200, 2*time.Minute, 3),
		row("a", "k1", 200, 2*time.Hour, 4)
	for range 2 {
		if err := store.WriteRequests(t.Context(), []table.Request{old, other, failed, newest, row("b", "k3", 200, 0, 5)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		key    string
		status uint16
		limit  int
		want   []table.Request
	}{
		{"", 0, 10, []table.Request{newest, failed, other}}, {"", 0, 2, []table.Request{newest, failed}},
		{"k1", 0, 10, []table.Request{newest, failed}}, {"", 404, 10, []table.Request{failed}}, {"k3", 0, 10, []table.Request{}},
	} {
		got, err := store.ListRequests(t.Context(), "a", now.Add(-time.Hour), c.key, c.status, c.limit)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("key %q, status %d, limit %d: %v\n%s", c.key, c.status, c.limit, err, diff)
		}
	}
}
