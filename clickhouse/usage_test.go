package clickhouse_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/clickhouse"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// today is recent, so that the TTL of the tables does not remove rows of tests.
var today = time.Now().UTC().Truncate(24 * time.Hour)

func TestUsageIsNewestTotalOfMonth(t *testing.T) {
	t.Parallel()
	db := open(t)
	usage := clickhouse.NewUsage(db)
	period := today.Format("2006-01")
	row := func(day int, cached uint64) table.MonthUsage {
		return table.MonthUsage{AccountID: "a", Period: period, Plan: "starter", CachedCalls: cached, ColdCalls: 2,
			UpdatedAt: today.AddDate(0, 0, day)}
	}
	newest := row(1, 30)
	for _, r := range []table.MonthUsage{row(0, 10), newest, row(0, 20)} {
		if err := usage.WriteUsage(t.Context(), []table.MonthUsage{r}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := usage.Usage(t.Context(), "a", period)
	if diff := cmp.Diff(newest, got); err != nil || diff != "" {
		t.Errorf("usage: %v\n%s", err, diff)
	}
	for _, other := range [][2]string{{"b", period}, {"a", today.AddDate(0, -2, 0).Format("2006-01")}} {
		if got, err := usage.Usage(t.Context(), other[0], other[1]); err != nil || got != (table.MonthUsage{}) {
			t.Errorf("usage of %v = %+v, %v; want none", other, got, err)
		}
	}
	if _, err := usage.Usage(t.Context(), "a", "May"); err == nil {
		t.Error("a period that is none was accepted")
	}
	if got := column(t, db, "SELECT toString(count()) FROM usage FINAL"); got[0] != "2" {
		t.Errorf("%s rows, want one for each of two days", got[0])
	}
}

func TestRefundedColdCallsDoNotCount(t *testing.T) {
	t.Parallel()
	usage := clickhouse.NewUsage(open(t))
	call := func(job string, minute int, accountID string) table.ColdCall {
		return table.ColdCall{JobID: job, RunID: "r", AccountID: accountID, KeyID: "k", Domain: "example.com",
			At: today.Add(time.Duration(minute) * time.Minute)}
	}
	first, second, refunded := call("1", 1, "a"), call("2", 2, "a"), call("3", 3, "a")
	back := refunded
	back.Refunded = true
	for _, calls := range [][]table.ColdCall{{second, first, back}, {refunded, first, call("4", 4, "b")}} {
		if err := usage.WriteColdCalls(t.Context(), calls); err != nil {
			t.Fatal(err)
		}
	}
	got, err := usage.ColdCallsSince(t.Context(), "a", today)
	if diff := cmp.Diff([]table.ColdCall{first, second}, got); err != nil || diff != "" {
		t.Errorf("calls of a: %v\n%s", err, diff)
	}
	got, err = usage.ColdCallsSince(t.Context(), "a", first.At)
	if diff := cmp.Diff([]table.ColdCall{second}, got); err != nil || diff != "" {
		t.Errorf("calls after the first: %v\n%s", err, diff)
	}
}

func TestRunThatGotFurthestIsKept(t *testing.T) {
	t.Parallel()
	db := open(t)
	run := scoring.Run{ID: "1", Domain: "example.com", State: scoring.RunRunning, Lane: scoring.LaneAPI, CreatedAt: today,
		StartedAt: today.Add(time.Second), Attempts: 1}
	retried := run
	retried.Attempts = 2
	done := retried
	done.State, done.FinishedAt, done.ScoredAt = scoring.RunSucceeded, today.Add(time.Minute), run.StartedAt
	failed := scoring.Run{ID: "2", Domain: "b.com", State: scoring.RunFailed, Lane: scoring.LaneBulk, CreatedAt: today.Add(time.Hour),
		Error: "no 'such' thing"}
	for _, runs := range [][]scoring.Run{{retried}, {done, failed}, {run}, {retried}} {
		if err := db.WriteRuns(t.Context(), runs); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.Runs(t.Context(), 10)
	if diff := cmp.Diff([]scoring.Run{failed, done}, got); err != nil || diff != "" {
		t.Errorf("runs, newest first: %v\n%s", err, diff)
	}
	if got, err := db.Runs(t.Context(), 1); err != nil || len(got) != 1 {
		t.Errorf("one run = %v, %v", got, err)
	}
}
