package embedded

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"companyscore/internal/flush"
)

func newTestHistory(write func(context.Context, []loggedStatement) error) *statementLog {
	return &statementLog{rates: map[string]*rate.Limiter{}, left: map[string]int{},
		rows: &flush.Buffer[loggedStatement]{Max: statementLogMax, DropOldest: true, PageMax: statementLogMax, Write: write}}
}

func request1(analyst, text string, ran bool) *request {
	return &request{user: &user{name: analyst}, queryID: "id", text: text, ran: ran}
}

// TestRowsOfAFailedInsertComeBack has an insert fail while newer statements push the oldest ones out. No other row may be lost, and none
// may be twice.
func TestRowsOfAFailedInsertComeBack(t *testing.T) {
	t.Parallel()
	var h *statementLog
	add := func(text string) { h.rows.Add(loggedStatement{Query: text}) }
	var stored []loggedStatement
	failed := false
	h = newTestHistory(func(_ context.Context, rows []loggedStatement) error {
		if !failed {
			failed = true
			add("new 1")
			add("new 2")
			return errors.New("insert failed")
		}
		stored = append(stored, rows...)
		return nil
	})
	add("old")
	for range statementLogMax - 2 {
		add("middle")
	}
	if err := h.flush(t.Context()); err == nil {
		t.Fatal("the insert did not fail")
	}
	for range 2 {
		if err := h.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(stored); n != statementLogMax || stored[0].Query != "middle" || stored[n-2].Query != "new 1" ||
		stored[n-1].Query != "new 2" {
		t.Errorf("%d rows, the first %q, the last two %q and %q", n, stored[0].Query, stored[n-2].Query, stored[n-1].Query)
	}
}

// TestRowsOfAnAnalystHaveARate sends more statements than the log keeps. Those of another analyst are all kept.
func TestRowsOfAnAnalystHaveARate(t *testing.T) {
	t.Parallel()
	h := newTestHistory(nil)
	began := time.Unix(1000, 0)
	long := strings.Repeat("a", 20_000)
	const statements = 2000
	for range statements {
		h.add(request1("greedy", long, true), began, summary{}, nil)
	}
	h.add(request1("modest", "SELECT 1", true), began, summary{}, nil)
	h.add(request1("modest", long, false), began, summary{}, newException(codeAccessDenied, "no"))
	h.addLeft(began.Add(time.Second))
	rows := h.rows.Drain()
	bytes := 0
	for _, row := range rows {
		bytes += len(row.Query)
	}
	if bytes > statementLogBurst+statementLogRate || bytes < statementLogBurst/2 {
		t.Errorf("%d bytes of texts are kept", bytes)
	}
	kept := func(f func(loggedStatement) bool) (n int) {
		for _, row := range rows {
			if f(row) {
				n++
			}
		}
		return n
	}
	greedy := kept(func(r loggedStatement) bool { return r.Analyst == "greedy" && len(r.Query) == queryTextMax })
	if !slices.ContainsFunc(rows, func(r loggedStatement) bool {
		return r.Analyst == "greedy" && strings.HasPrefix(r.Query, "("+strconv.Itoa(statements-greedy)+" statements")
	}) {
		t.Errorf("%d are kept, and no row counts the others", greedy)
	}
	if n := kept(func(r loggedStatement) bool { return r.Analyst == "modest" }); n != 2 {
		t.Errorf("%d statements of another analyst", n)
	}
	if n := kept(func(r loggedStatement) bool { return len(r.Query) == refusedTextMax }); n != 1 {
		t.Errorf("a refused statement has not its first %d bytes", refusedTextMax)
	}
}
