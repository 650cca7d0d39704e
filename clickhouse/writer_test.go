package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/test/extent"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

// ownServer starts a server for one test, with a migrated database.
func ownServer(t *testing.T) (*stores.ClickHouseServer, *clickhouse.DB) {
	t.Helper()
	server := stores.StartClickHouse(t)
	db := openURL(t, server.URL("killed"))
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, db
}

func TestKilledStoreLosesNoAcknowledgedRecord(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	server, db := ownServer(t)
	s := clickhouse.NewScores(db, clickhouse.WriterConfig{BatchMax: 20})
	const writers, each = 16, 40
	var acknowledged atomic.Int32
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				rec := record(t, fmt.Sprintf("company-%d-%d.com", w, i), noon)
				if err := s.Write(t.Context(), rec); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	for kill := int32(1); kill <= 3; kill++ { // a quarter of the way, half, three quarters
		for acknowledged.Load() < kill*writers*each/4 {
			select {
			case <-finished:
				t.Fatal("the writers ended before the kill")
			case <-time.After(time.Millisecond):
			}
		}
		server.Restart(t)
	}
	<-finished
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(writers * each)
	for _, query := range []string{
		"SELECT toString(count()) FROM v1_score_history", "SELECT toString(uniqExact(domain)) FROM v1_score_history",
		"SELECT toString(count()) FROM v1_score_latest", "SELECT toString(intDiv(count(), 67)) FROM v1_signal",
	} {
		if got := column(t, db, query); got[0] != want {
			t.Errorf("%s = %s, want %s: one of each acknowledged record", query, got[0], want)
		}
	}
}

func TestWriterWaitsNoLongerThanCaller(t *testing.T) {
	t.Parallel()
	server, db := ownServer(t)
	s := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	server.Kill()
	for limit, tried := 200*time.Millisecond, false; !tried; limit *= 2 { // on a busy machine the limit may end before the first try
		impatient, cancel := context.WithTimeout(t.Context(), limit)
		err := s.Write(impatient, record(t, "impatient.com", noon))
		cancel()
		tried = err != nil && strings.Contains(err.Error(), "refused")
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "impatient.com") || !tried && limit > wait.Max {
			t.Fatalf("Write to a dead store = %v; want the deadline, the company and what the store said", err)
		}
	}
	patient := make(chan error, 1)
	go func() { patient <- s.Write(t.Context(), record(t, "patient.com", noon)) }()
	server.Restart(t)
	if err := <-patient; err != nil {
		t.Errorf("Write over a restart = %v", err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.LatestHead(t.Context(), "patient.com"); err != nil {
		t.Error(err)
	}
	if _, err := s.LatestHead(t.Context(), "impatient.com"); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("record whose caller gave up before anything was sent: %v, want ErrNotFound", err)
	}
}

func TestCloseGivesUpOnDeadStore(t *testing.T) {
	t.Parallel()
	server, db := ownServer(t)
	server.Kill()
	s := clickhouse.NewScores(db, clickhouse.WriterConfig{BatchMax: 1, QueueMax: 1})
	results := make(chan error, 5)
	for i := range cap(results) { // more than fit into batch and queue
		go func() { results <- s.Write(t.Context(), record(t, fmt.Sprintf("company-%d.com", i), noon)) }()
	}
	wait.Until(t, "a record is in the queue", func() bool { return s.Queued() > 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := s.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close = %v, want the deadline", err)
	}
	for range cap(results) {
		if err := <-results; err == nil {
			t.Error("a caller was told that a record is in a dead store")
		}
	}
}

func TestReplayedRecordReplacesItself(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	rec := record(t, "example.com", noon)
	for _, run := range []string{"first", "second", "third"} {
		rec.RunID = run
		if err := s.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	for _, view := range []string{"v1_score_history", "v1_score_latest"} {
		if got := column(t, db, "SELECT run_id FROM "+view); len(got) != 1 || got[0] != "third" {
			t.Errorf("runs in %s = %v, want the last one", view, got)
		}
	}
	head, err := s.LatestHead(t.Context(), "example.com")
	if err != nil || head.RunID != "third" {
		t.Errorf("head of run %s, %v; want the last one", head.RunID, err)
	}
}

func TestBadRecordIsFoundByHalving(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	var wg sync.WaitGroup
	errs := make([]error, 200)
	for i := range errs {
		rec := record(t, fmt.Sprintf("company-%d.com", i), noon)
		switch i {
		case 50:
			rec.ScalePremium = 13 // rejected by the table
		case 100:
			rec.Rating = "SVC-9" // rejected by the driver
		}
		wg.Go(func() { errs[i] = s.Write(t.Context(), rec) })
	}
	wg.Wait()
	for i, err := range errs {
		if bad := i == 50 || i == 100; (err != nil) != bad {
			t.Errorf("write %d: %v", i, err)
		} else if bad && !strings.Contains(err.Error(), fmt.Sprintf("company-%d.com", i)) {
			t.Errorf("error of %d does not name its company: %v", i, err)
		}
	}
	if got := column(t, db, "SELECT toString(count()) FROM v1_score_history"); got[0] != "198" {
		t.Errorf("%s records are stored, want 198", got[0])
	}
}

// TestErrorsOfAClusterAreNotTakenForBadData has a proxy answer the first insert with an exception. The whole
// batch is inserted once more.
func TestErrorsOfAClusterAreNotTakenForBadData(t *testing.T) {
	t.Parallel()
	server, _ := ownServer(t)
	target, err := url.Parse(server.URL("killed"))
	if err != nil {
		t.Fatal(err)
	}
	var code, inserts atomic.Int32
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: target.Host})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Query().Get("query"), "INSERT") && inserts.Add(1) == 1 {
			w.Header().Set("X-ClickHouse-Exception-Code", fmt.Sprint(code.Load()))
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "Code: %d. DB::Exception: The cluster has a trouble. (SOME_NAME) (version 25.1)", code.Load())
			return
		}
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	target.Host = strings.TrimPrefix(proxy.URL, "http://")
	s := clickhouse.NewScores(openURL(t, target.String()), clickhouse.WriterConfig{})
	records := make([]scoring.Record, 8)
	for i := range records {
		records[i] = record(t, fmt.Sprintf("company-%d.com", i), noon)
	}
	for _, c := range []int32{60, 198, 203, 225, 242, 279, 285, 319, 497, 999} {
		code.Store(c)
		inserts.Store(0)
		if err := errors.Join(s.WriteGroup(t.Context(), records)...); err != nil || inserts.Load() != 2 {
			t.Errorf("code %d: %v after %d inserts, want 2", c, err, inserts.Load())
		}
	}
	code.Store(469) // of a violated constraint
	inserts.Store(0)
	if err := errors.Join(s.WriteGroup(t.Context(), records)...); err != nil || inserts.Load() != 3 {
		t.Errorf("bad data: %v after %d inserts, want one for the batch and one for each half", err, inserts.Load())
	}
}

func TestHistoryPagesBackwards(t *testing.T) {
	t.Parallel()
	db := open(t)
	s := scores(t, db)
	const n = 25
	for i := range n {
		if err := s.Write(t.Context(), record(t, "example.com", noon.AddDate(0, -i, 0))); err != nil {
			t.Fatal(err)
		}
	}
	rescored := record(t, "example.com", noon.AddDate(0, -3, 0)) // of the same run, with other formulas
	rescored.PipelineVersion = "v3"
	for range 2 {
		if err := s.Write(t.Context(), rescored); err != nil {
			t.Fatal(err)
		}
	}
	var got []scoring.Record
	var before time.Time
	for {
		page, err := s.History(t.Context(), "example.com", scoring.Span{To: before}, 10)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		got = append(got, page...)
		before = page[len(page)-1].ScoredAt
	}
	if len(got) != n {
		t.Fatalf("%d records on all pages, want %d", len(got), n)
	}
	for i, rec := range got {
		if want := noon.AddDate(0, -i, 0); !rec.ScoredAt.Equal(want) {
			t.Errorf("record %d is of %v, want %v", i, rec.ScoredAt, want)
		}
	}
	// Each span has the same records from either end.
	for first := range n {
		for end := first; end <= n; end += 7 {
			span := scoring.Span{From: noon.AddDate(0, -(n - 1 - first), 0), OldestFirst: true}
			if end < n {
				span.To = noon.AddDate(0, -(n - 1 - end), 0)
			}
			oldest, err := s.History(t.Context(), "example.com", span, n)
			if err != nil {
				t.Fatal(err)
			}
			span.OldestFirst = false
			newest, err := s.History(t.Context(), "example.com", span, n)
			if err != nil {
				t.Fatal(err)
			}
			slices.Reverse(newest)
			if len(oldest) != end-first || !slices.EqualFunc(oldest, newest, func(a, b scoring.Record) bool {
				return a.ScoredAt.Equal(b.ScoredAt) && a.PipelineVersion == b.PipelineVersion
			}) {
				t.Errorf("records %d to %d: %d from the oldest, %d from the newest", first, end, len(oldest), len(newest))
			}
		}
	}
	if got[3].PipelineVersion != "v3" {
		t.Errorf("record 3 is of %s, want the one written last", got[3].PipelineVersion)
	}
	if page, err := s.History(t.Context(), "unknown.com", scoring.Span{}, 10); err != nil || len(page) != 0 {
		t.Errorf("history of an unknown company = %v, %v", page, err)
	}
}

// TestCloseWritesRecordHeldByPause has a pause that does not end.
func TestCloseWritesRecordHeldByPause(t *testing.T) {
	t.Parallel()
	s := clickhouse.NewScores(open(t), clickhouse.WriterConfig{Pause: 24 * time.Hour})
	if err := s.Write(t.Context(), record(t, "first.com", noon)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Write(ctx, record(t, "gone.com", noon)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a record within the pause: %v", err)
	}
	written := make(chan error)
	go func() { written <- s.Write(t.Context(), record(t, "second.com", noon)) }()
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// If Close comes before the second record, the record is rejected.
	err := <-written
	if err != nil && !errors.Is(err, clickhouse.ErrClosed) {
		t.Fatal(err)
	}
	newest, queryErr := s.NewestAt(t.Context(), []string{"first.com", "gone.com", "second.com"})
	if queryErr != nil || newest["first.com"].IsZero() || !newest["gone.com"].IsZero() || newest["second.com"].IsZero() == (err == nil) {
		t.Errorf("written are %v, %v; the second was answered with %v", newest, queryErr, err)
	}
}
