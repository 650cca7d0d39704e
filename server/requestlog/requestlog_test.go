package requestlog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
)

var (
	quiet = slog.New(slog.DiscardHandler)
	found = table.RequestKind{AccountID: "a", KeyID: "k", Route: "/v1/score/*", Status: 200, AnsweredBy: "l1"}
)

// open migrates a database and returns its store of requests.
func open(t testing.TB, url string) *clickhouse.Requests {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return clickhouse.NewRequests(db)
}

// stored returns the sums in the store of a URL.
func stored(t *testing.T, url string) string {
	t.Helper()
	var out strings.Builder
	const query = `SELECT concat(toString((SELECT count() FROM v1_request)), ' rows, ', toString(sum(calls)), ' calls, ', toString(sum(not_stored)), ' not stored, ',
		toString(sum(bytes)), ' bytes') FROM v1_request_minute`
	if err := clickhouse.QueryHTTP(t.Context(), stores.PrivateOf(url), query, "TSVRaw", &out); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// record records n requests of 10 bytes from each of five goroutines.
func record(l *Log, kind table.RequestKind, began time.Time, n int, hot bool) {
	var ended sync.WaitGroup
	for range 5 {
		ended.Go(func() {
			for i := range n {
				l.Record(fmt.Appendf(nil, "request-%d", i), Request{Kind: kind, Began: began, Took: time.Millisecond, Bytes: 10, Hot: hot})
			}
		})
	}
	ended.Wait()
}

func TestFullBufferDropsAndCounts(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	store := open(t, url)
	l := newLog(Config{HotRows: 1000}, store)
	l.rows.Max = 30
	record(l, found, time.Now(), 20, false)
	if l.dropped.Load() != 70 {
		t.Errorf("%d rows are dropped, want 70", l.dropped.Load())
	}
	if err := l.flush(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	record(l, found, time.Now(), 2, false) // there is room again
	if err := l.flushLast(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := stored(t, url), "40 rows, 110 calls, 70 not stored, 1100 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

func TestHotRowsHaveARate(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	store := open(t, url)
	l := newLog(Config{HotRows: 7}, store)
	now := l.started
	record(l, found, now, 4, true)
	record(l, found, now, 1, false)
	record(l, found, now.Add(time.Second), 4, true)
	record(l, found, now, 4, true) // these began a second earlier
	if l.skipped.Load() != 13+13+20 || l.dropped.Load() != 0 {
		t.Errorf("%d rows are skipped, %d dropped", l.skipped.Load(), l.dropped.Load())
	}
	if err := l.flushLast(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := stored(t, url), "19 rows, 65 calls, 46 not stored, 650 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

// lossy is a store whose answers get lost: every write is made, and each first one fails.
type lossy struct {
	Store
	writes int
}

func (s *lossy) WriteRequests(ctx context.Context, rows []table.Request) error {
	return s.lose(s.Store.WriteRequests(ctx, rows))
}

func (s *lossy) WriteRequestCounts(ctx context.Context, rows []table.RequestCount) error {
	return s.lose(s.Store.WriteRequestCounts(ctx, rows))
}

func (s *lossy) lose(err error) error {
	if s.writes++; err == nil && s.writes%3 != 0 {
		err = errors.New("answer lost")
	}
	return err
}

func TestLostAnswersCountNothingTwice(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	store := open(t, url)
	l := newLog(Config{HotRows: 1000}, &lossy{Store: store})
	now := time.Now()
	for i := range 12 {
		record(l, found, now, 3, i%2 == 0)
		_ = l.flush(t.Context(), now)
	}
	for l.flush(t.Context(), now) != nil {
	}
	if got, want := stored(t, url), "180 rows, 180 calls, 0 not stored, 1800 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

func TestOutageLosesNoCount(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	url := server.URL("companyscore")
	store := open(t, url)
	l := newLog(Config{HotRows: 1000}, store)
	l.rows.Max = 40
	now := time.Now()
	record(l, found, now, 2, false)
	if err := l.flush(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	for i := range 5 {
		record(l, found, now.Add(time.Duration(i)*time.Minute), 4, false) // 20 of each minute
		if err := l.flush(t.Context(), now.Add(time.Duration(i)*time.Minute)); err == nil {
			t.Error("flushed during the outage")
		}
	}
	server.Restart(t)
	if err := l.flushLast(t.Context()); err != nil {
		t.Fatal(err)
	}
	// 10 rows were written before, and 40 were in memory.
	if got, want := stored(t, url), "50 rows, 110 calls, 60 not stored, 1100 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

// refusing is a store that takes no rows.
type refusing struct{ Store }

func (refusing) WriteRequests(context.Context, []table.Request) error {
	return errors.New("rows refused")
}

func TestCloseCountsTheRowsItLoses(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	store := open(t, url)
	l := Start(Config{On: true, HotRows: 1000}, refusing{store}, quiet)
	record(l, found, time.Now(), 3, false)
	if err := l.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "15 rows are lost: ") {
		t.Errorf("Close = %v, want 15 lost rows", err)
	}
	if got, want := stored(t, url), "0 rows, 15 calls, 15 not stored, 150 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

func TestCountsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	url := stores.ClickHouse(t)
	store := open(t, url)
	l := newLog(Config{HotRows: 1000}, store)
	l.countsMax = 4
	now := time.Now()
	for i := range 10 {
		kind := found
		kind.AccountID, kind.Status = fmt.Sprintf("account-%d", i), uint16(200+i%2)
		record(l, kind, now, 1, false)
	}
	if len(l.counts) != 6 { // four accounts, and the others by status
		t.Errorf("%d counts in memory, want 6", len(l.counts))
	}
	if err := l.flush(t.Context(), now.Add(3*time.Minute)); err != nil {
		t.Fatal(err)
	}
	if len(l.counts) != 0 {
		t.Errorf("%d counts in memory after their minute, want none", len(l.counts))
	}
	record(l, found, now, 1, false) // began three minutes ago
	if err := l.flushLast(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := stored(t, url), "55 rows, 55 calls, 0 not stored, 550 bytes"; got != want {
		t.Errorf("stored %s; want %s", got, want)
	}
}

func TestConfigRefusesRatesOutOfRange(t *testing.T) {
	t.Parallel()
	for rate, want := range map[int]bool{-1: false, 0: false, 1: true, 1000: true, rowsMax: true, rowsMax + 1: false} {
		if err := (Config{HotRows: rate}).Validate(); (err == nil) != want || err != nil &&
			!strings.Contains(err.Error(), "--request-rows") {
			t.Errorf("a rate of %d: %v", rate, err)
		}
	}
}

func TestLogThatIsOff(t *testing.T) {
	t.Parallel()
	l := Start(Config{HotRows: 1}, nil, quiet)
	l.Record([]byte("request-1"), Request{Kind: found, Began: time.Now()})
	if err := l.Close(t.Context()); l != nil || err != nil {
		t.Errorf("a log that is off is %v, %v", l, err)
	}
}

func BenchmarkRecord(b *testing.B) {
	for name, rows := range map[string]int{"counted": 1, "stored": rowsMax} {
		b.Run(name, func(b *testing.B) {
			l := newLog(Config{HotRows: rows}, nil)
			r := Request{Kind: found, Began: time.Now(), Took: time.Millisecond, Bytes: 400, Hot: true}
			l.rows.Write = func(context.Context, []row) error { return nil }
			var flushing sync.Mutex
			id := []byte("01a1fc94-05cf-764e-800e-9c3462621484")
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					l.Record(id, r)
					if name == "stored" {
						l.inSecond.Store(0)
						if l.rows.Len() >= 1000 && flushing.TryLock() {
							_ = l.rows.Flush(context.Background())
							flushing.Unlock()
						}
					}
				}
			})
		})
	}
}

// BenchmarkFlush measures the CPU time of this process for a second of hot answers: 1,000 rows
// and their count.
func BenchmarkFlush(b *testing.B) {
	l := newLog(Config{HotRows: 1000}, open(b, stores.ClickHouse(b)))
	now := time.Now()
	cpu := func() (used syscall.Rusage) {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			b.Fatal(err)
		}
		return used
	}
	var spent time.Duration
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		record(l, found, now, 200, false)
		before := cpu()
		b.StartTimer()
		if err := l.flush(b.Context(), now); err != nil {
			b.Fatal(err)
		}
		after := cpu()
		spent += time.Duration(after.Utime.Nano() - before.Utime.Nano() + after.Stime.Nano() - before.Stime.Nano())
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N), "cpu-µs/op")
}
