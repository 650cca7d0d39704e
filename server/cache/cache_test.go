package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/scorecache"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
)

func TestMain(m *testing.M) { stores.Main(m) }

// records is a store in a map. Queries wait at the gate while there is one.
type records struct {
	mu      sync.Mutex
	scored  map[string]scoring.Record
	queries int
	asked   int // companies
	gate    chan struct{}
	err     error
}

func (r *records) LatestHeads(_ context.Context, domains []string) (map[string]scoring.Record, error) {
	r.mu.Lock()
	gate := r.gate
	r.queries++
	r.asked += len(domains)
	found := make(map[string]scoring.Record)
	for _, domain := range domains {
		if rec, ok := r.scored[domain]; ok {
			found[domain] = rec
		}
	}
	err := r.err
	r.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return found, err
}

func (r *records) NewestAt(ctx context.Context, domains []string) (map[string]time.Time, error) {
	heads, err := r.LatestHeads(ctx, domains)
	newest := make(map[string]time.Time)
	for domain, rec := range heads {
		newest[domain] = rec.ScoredAt
	}
	return newest, err
}

func (r *records) put(domain string, composite float64, at time.Time) scoring.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := scoring.Record{Domain: domain, Composite: composite, ScoredAt: at, Rating: scoring.RatingOf(composite)}
	r.scored[domain] = rec
	return rec
}

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is a cache over a store and a Redis, with a clock of its own.
type world struct {
	*Cache
	*records
	server *stores.RedisServer
	clock  time.Time
	told   []string // who was asked for, in lookups one after the other
}

func newWorld(t *testing.T) *world {
	t.Helper()
	server := stores.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	w := &world{records: &records{scored: make(map[string]scoring.Record)}, server: server, clock: noon}
	w.Cache = New(1<<20, client, w.records, w.tell, slog.New(slog.DiscardHandler))
	w.now = func() time.Time { return w.clock }
	return w
}

func (w *world) tell(domain string) {
	w.records.mu.Lock()
	defer w.records.mu.Unlock()
	w.told = append(w.told, domain)
}

func (w *world) wants(t *testing.T, domain string, composite float64, level Level) {
	t.Helper()
	e, got, err := w.Get(t.Context(), domain)
	if err != nil || got != level || e.Composite != composite || e.Found() != (composite > 0) {
		t.Fatalf("%s: %v of tier %d (%v), want %v of tier %d", domain, e.Composite, got, err, composite, level)
	}
}

func TestEachTierFillsTheOneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
	w.wants(t, "a.com", 50, Memory)
	w.DropAll()
	w.wants(t, "a.com", 50, Redis)
	w.wants(t, "a.com", 50, Memory)
	w.clock = w.clock.Add(freshFor)
	w.wants(t, "a.com", 50, Redis)
	if w.queries != 1 {
		t.Errorf("%d queries, want 1", w.queries)
	}
}

func TestEntryCountsWhileAllNewsArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
	w.wants(t, "none.com", 0, ClickHouse)
	for w.clock = noon; w.clock.Before(noon.Add(keptFor)); w.clock = w.clock.Add(freshFor / 2) {
		w.wants(t, "a.com", 50, Memory)
		w.Alive()
	}
	w.wants(t, "a.com", 50, Redis) // as it counts no longer than keptFor
	w.wants(t, "none.com", 0, ClickHouse)
	w.clock = w.clock.Add(freshFor) // half a minute after the last sign
	w.wants(t, "a.com", 50, Redis)
	w.Alive()
	w.clock = w.clock.Add(freshFor - time.Millisecond)
	w.wants(t, "a.com", 50, Memory)
	w.DropAll() // whatever was said before, some news was missed
	w.wants(t, "a.com", 50, Redis)
}

func TestDropOlderKeepsNewerEntries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
	w.DropOlder("a.com", noon)
	w.wants(t, "a.com", 50, Memory)
	w.DropOlder("a.com", noon.Add(time.Millisecond))
	w.wants(t, "a.com", 50, Redis)
}

func TestDropEndsEntryOfCompany(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
	if err := scorecache.Put(t.Context(), w.redis, w.put("a.com", 60, noon.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	w.wants(t, "a.com", 50, Memory)
	w.Drop("a.com")
	w.wants(t, "a.com", 60, Redis)
}

func TestMissingScoreIsCachedBriefly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wants(t, "a.com", 0, ClickHouse)
	w.wants(t, "a.com", 0, Memory)
	w.clock = w.clock.Add(absentFor)
	w.wants(t, "a.com", 0, ClickHouse)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 0, Memory)
	w.Drop("a.com")
	w.wants(t, "a.com", 50, ClickHouse)
}

func TestNearAsksNobodyForLong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	if _, _, ok := w.Near(t.Context(), "a.com"); ok || w.queries != 0 {
		t.Fatalf("known %v after %d queries", ok, w.queries)
	}
	for domain, want := range map[string]time.Time{"a.com": noon, "none.com": {}} {
		if at, err := w.Cache.NewestAt(t.Context(), domain); err != nil || !at.Equal(want) {
			t.Errorf("newest of %s is of %s, %v", domain, at, err)
		}
	}
	w.wants(t, "a.com", 50, ClickHouse)
	for _, want := range []Level{Memory, Redis} {
		if e, level, ok := w.Near(t.Context(), "a.com"); !ok || level != want || e.Composite != 50 {
			t.Errorf("%v of tier %d, %v; want tier %d", e.Composite, level, ok, want)
		}
		w.DropAll()
	}
}

// A lookup that began before a company was scored again must not be kept after
// the news of it.
func TestLookupOvertakenByDropIsDiscarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.gate = make(chan struct{})
	began := make(chan error)
	go func() {
		_, _, err := w.Get(t.Context(), "a.com")
		began <- err
	}()
	for asked := 0; asked == 0; {
		w.mu.Lock()
		asked = w.queries
		w.mu.Unlock()
	}
	w.put("a.com", 60, noon.Add(time.Hour))
	w.Drop("a.com")
	close(w.gate)
	if err := <-began; err != nil {
		t.Fatal(err)
	}
	if err := scorecache.Put(t.Context(), w.redis, w.put("a.com", 60, noon.Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	w.wants(t, "a.com", 60, Redis)
}

func TestManyMissesShareFewQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const companies = 1000
	w.gate = make(chan struct{})
	var asking sync.WaitGroup
	for i := range companies {
		w.put(fmt.Sprintf("c%d.com", i), 50, noon)
		for range 2 {
			asking.Go(func() {
				if e, err := w.Fresh(t.Context(), fmt.Sprintf("c%d.com", i)); err != nil || !e.Found() {
					t.Errorf("company %d: %v, %v", i, e, err)
				}
			})
		}
	}
	for known := 0; known < companies; {
		w.mu.Lock()
		known = w.Waiting() + w.asked // what is about to be asked is in neither
		w.mu.Unlock()
	}
	close(w.gate)
	asking.Wait()
	if w.queries > companies/10 {
		t.Errorf("%d queries for %d companies", w.queries, companies)
	}
}

func TestManyReadsEachMissingScoreOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, domain := range []string{"a.com", "b.com", "c.com"} {
		w.put(domain, 50, noon)
	}
	w.wants(t, "a.com", 50, ClickHouse)
	before := w.queries
	entries, level, err := w.Many(t.Context(), []string{"a.com", "b.com", "c.com", "none.com"})
	if err != nil || level != ClickHouse || len(entries) != 4 || !entries["b.com"].Found() || entries["none.com"].Found() ||
		w.queries != before+1 {
		t.Errorf("%v of tier %d (%v), %d queries", entries, level, err, w.queries-before)
	}
	if entries, level, err = w.Many(t.Context(), []string{"a.com", "b.com", "none.com"}); err != nil || level != Memory ||
		len(entries) != 3 {
		t.Errorf("again: %v of tier %d (%v)", entries, level, err)
	}
}

func TestPagesLiveAsLongAsScores(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := 0
	page := func(key string, want byte, hit bool) {
		t.Helper()
		body, got, err := w.Page(t.Context(), "a.com", key, func(context.Context) ([]byte, error) {
			made++
			return bytes.Repeat([]byte{byte('0' + made)}, 200_000), nil // larger than an entry of the cache
		})
		if err != nil || got != hit || len(body) != 200_000 || body[0] != want {
			t.Fatalf("page %s: %q, hit %v (%v)", key, body[0], got, err)
		}
	}
	page("one", '1', false)
	page("one", '1', true)
	page("two", '2', false)
	w.Drop("a.com")
	page("one", '3', false)
	w.clock = w.clock.Add(freshFor)
	page("one", '4', false)
	if _, _, err := w.Page(t.Context(), "a.com", "bad", func(context.Context) ([]byte, error) {
		return nil, errors.New("no")
	}); err == nil {
		t.Error("an error is no page")
	}
	page("bad", '5', false)
}

func TestWithoutRedisTheStoreAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	if err := w.redis.Close(); err != nil {
		t.Fatal(err)
	}
	w.wants(t, "a.com", 50, ClickHouse)
	w.wants(t, "a.com", 50, Memory)
}

func TestStoreErrorIsReturnedNotCached(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.err = errors.New("away")
	if _, _, err := w.Get(t.Context(), "a.com"); !errors.Is(err, w.err) {
		t.Errorf("got %v", err)
	}
	w.err = nil
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
}

func TestLookupInMemoryAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "a.com", 50, ClickHouse)
	buf, domain := make([]byte, 0, 2048), []byte("a.com")
	if n := testing.AllocsPerRun(1000, func() {
		if e, _, ok := w.Lookup(buf, domain, noon); !ok || !e.Found() {
			t.Fatal("not in memory")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestEveryCachedCompanyIsReported has the demand for a company heard of as long as it is
// answered from memory, however long that is.
func TestEveryCachedCompanyIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("a.com", 50, noon)
	w.wants(t, "none.com", 0, ClickHouse)
	times := 0
	for last := noon; w.clock.Before(noon.Add(3 * time.Hour)); w.clock = w.clock.Add(freshFor / 2) {
		w.Alive() // no news: the entry lives as long as it can
		before := len(w.told)
		if _, level, err := w.Get(t.Context(), "a.com"); err != nil || (level == Memory) != (len(w.told) == before) {
			t.Fatalf("tier %d, %v: told %d times", level, err, len(w.told)-before)
		}
		if len(w.told) > before {
			last = w.clock
			times++
		}
		if w.clock.Sub(last) > keptFor {
			t.Fatalf("not told for %s", w.clock.Sub(last))
		}
	}
	if most := int(3*time.Hour/keptFor) + 1; times > most {
		t.Errorf("told %d times, want at most %d", times, most)
	}
	if _, _, err := w.Many(t.Context(), []string{"none.com", "b.com"}); err != nil {
		t.Fatal(err)
	}
	for _, domain := range w.told {
		if domain != "a.com" {
			t.Errorf("told of %s, which has no score", domain)
		}
	}
	w.put("b.com", 40, noon)
	w.clock = w.clock.Add(absentFor)
	if _, _, err := w.Many(t.Context(), []string{"b.com"}); err != nil || w.told[len(w.told)-1] != "b.com" {
		t.Errorf("not told of a company of a batch, %v", err)
	}
	told := len(w.told)
	w.DropAll()
	if _, _, ok := w.Near(t.Context(), "a.com"); !ok || len(w.told) != told+1 {
		t.Errorf("not told of a company found in Redis")
	}
}
