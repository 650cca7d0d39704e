package embedded

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"
)

func newTestHistory() *history {
	return &history{wake: make(chan struct{}, 1), rates: map[string]*rate.Limiter{}, left: map[string]int{}}
}

func request1(analyst, text string, ran bool) *request {
	return &request{user: &user{name: analyst}, queryID: "id", text: text, ran: ran}
}

// TestRowsOfAFailedInsertComeBack has an insert fail while newer statements push the oldest ones out. No other row may be lost, and none may be twice.
func TestRowsOfAFailedInsertComeBack(t *testing.T) {
	t.Parallel()
	h := newTestHistory()
	add := func(text string) { h.pending = append(h.pending, past{Query: text}) }
	add("old")
	for range historyMax - 2 {
		add("middle")
	}
	rows := h.take(time.Unix(0, 0))
	add("new 1")
	add("new 2")
	h.putBack(rows)
	left := h.take(time.Unix(0, 0))
	if len(left) != historyMax || left[0].Query != "middle" || left[historyMax-2].Query != "new 1" || left[historyMax-1].Query != "new 2" {
		t.Errorf("%d rows, the first %q, the last two %q and %q", len(left), left[0].Query, left[len(left)-2].Query, left[len(left)-1].Query)
	}
	if more := h.take(time.Unix(0, 0)); more != nil {
		t.Errorf("%d rows are twice", len(more))
	}
}

// TestRowsOfAnAnalystHaveARate sends more statements than the log keeps. Those of another analyst are all kept.
func TestRowsOfAnAnalystHaveARate(t *testing.T) {
	t.Parallel()
	h := newTestHistory()
	began := time.Unix(1000, 0)
	long := strings.Repeat("a", 20_000)
	const statements = 2000
	for range statements {
		h.add(request1("greedy", long, true), began, summary{}, nil)
	}
	h.add(request1("modest", "SELECT 1", true), began, summary{}, nil)
	h.add(request1("modest", long, false), began, summary{}, newException(codeAccessDenied, "no"))
	rows := h.take(began.Add(time.Second))
	bytes := 0
	for _, row := range rows {
		bytes += len(row.Query)
	}
	if bytes > historyBurst+historyRate || bytes < historyBurst/2 {
		t.Errorf("%d bytes of texts are kept", bytes)
	}
	kept := func(f func(past) bool) (n int) {
		for _, row := range rows {
			if f(row) {
				n++
			}
		}
		return n
	}
	greedy := kept(func(r past) bool { return r.Analyst == "greedy" && len(r.Query) == queryTextMax })
	if !slices.ContainsFunc(rows, func(r past) bool {
		return r.Analyst == "greedy" && strings.HasPrefix(r.Query, "("+strconv.Itoa(statements-greedy)+" statements")
	}) {
		t.Errorf("%d are kept, and no row counts the others", greedy)
	}
	if n := kept(func(r past) bool { return r.Analyst == "modest" }); n != 2 {
		t.Errorf("%d statements of another analyst", n)
	}
	if n := kept(func(r past) bool { return len(r.Query) == refusedTextMax }); n != 1 {
		t.Errorf("a refused statement has not its first %d bytes", refusedTextMax)
	}
}
