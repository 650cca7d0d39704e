package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/job"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/universe/snapshot"
)

// condition is the state of the server that gets a request.
type condition int

const (
	healthy      condition = iota
	uncounted              // no statistics are published
	keyBytesUsed           // the key may have no more bytes of answers in flight
	allBytesUsed           // the server may have no more bytes of answers in flight, and no more histories of requests
	storesClosed           // the connections to Redis and ClickHouse are closed, the keys are in memory
	keysClosed             // the same, without keys in memory
)

// noon is the time of all requests. It is on the first day of a month, so that a call of the day
// before is in the last 24 hours and not in the month.
var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// fixture has a server in each condition. All are over one Redis and one ClickHouse, which all tests
// of this package share.
type fixture struct {
	servers map[condition]*Server
	keys    map[string]string // raw keys by name
	names   *strings.Replacer // replaces names of jobs and cursors, in braces

	db      *clickhouse.DB
	rdb     goredis.UniversalClient
	scores  *clickhouse.Scores
	queue   *queue.Queue
	meter   *meter.Meter
	callers map[string]keys.Caller // by the name of the key
}

// theFixture returns the fixture. Its first call makes it. It ends with the binary.
func theFixture(t *testing.T) *fixture {
	t.Helper()
	redisURL, clickhouseURL := stores.Shared(t)
	f, err := madeFixture(redisURL, clickhouseURL)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

var fixtureOnce struct {
	sync.Once
	fixture *fixture
	err     error
}

func madeFixture(redisURL, clickhouseURL string) (*fixture, error) {
	fixtureOnce.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
		defer cancel()
		f := &fixture{servers: make(map[condition]*Server), keys: make(map[string]string), callers: make(map[string]keys.Caller)}
		fixtureOnce.fixture = f
		for _, step := range []func() error{
			func() error { return f.connect(ctx, redisURL, clickhouseURL) },
			func() error { return f.addKeys(ctx) },
			func() error { return f.addRecords(ctx) },
			func() error { return f.addRequests(ctx) },
			func() error { return f.publish(ctx) },
			func() error { return f.start(ctx, redisURL, clickhouseURL) },
			func() error { return f.addCalls(ctx) },
		} {
			if fixtureOnce.err = step(); fixtureOnce.err != nil {
				return
			}
		}
	})
	return fixtureOnce.fixture, fixtureOnce.err
}

var quiet = slog.New(slog.DiscardHandler)

// connect opens the stores and makes the tables.
func (f *fixture) connect(ctx context.Context, redisURL, clickhouseURL string) (err error) {
	if f.db, err = clickhouse.Open(ctx, clickhouse.Config{URL: clickhouseURL}); err != nil {
		return err
	}
	if _, err := f.db.Migrate(ctx); err != nil {
		return err
	}
	f.scores = clickhouse.NewScores(f.db, clickhouse.WriterConfig{})
	if f.rdb, err = redis.Open(ctx, redisURL); err != nil {
		return err
	}
	f.queue, err = queue.New(f.rdb, queue.Config{Logger: quiet})
	return err
}

// addKeys stores an account with one key for each name.
func (f *fixture) addKeys(ctx context.Context) error {
	var accounts []account.Account
	var stored []account.Key
	for name, plan := range map[string]account.Plan{
		"free": account.Free, "starter": account.Starter, "growth": account.Growth, "enterprise": account.Enterprise,
		"sandbox":     account.Free,
		"spent month": account.Starter, "spent hour": account.Growth, "spent day": account.Starter, "revoked": account.Growth,
		"logged": account.Enterprise,
	} {
		mode := account.Live
		if name == "sandbox" {
			mode = account.Test
		}
		acct := account.Account{ID: "account of " + name, Name: name, Plan: plan, CreatedAt: noon}
		key, raw := account.NewKey(acct.ID, name, mode, noon)
		if name == "revoked" {
			key.RevokedAt = noon
		}
		accounts, stored = append(accounts, acct), append(stored, key)
		f.keys[name], f.callers[name] = raw, keys.Caller{Account: acct, KeyID: key.ID, Mode: mode}
	}
	_, f.keys["unknown"] = account.NewKey("nobody", "unknown", account.Live, noon)
	f.keys["mistyped"] = "svc_live_mistyped"
	store := clickhouse.NewAccounts(f.db)
	return errors.Join(store.Put(ctx, accounts...), store.PutKey(ctx, stored...))
}

// storedRecord returns a record of a company with that age at noon.
func storedRecord(domain string, age time.Duration, composite float64) scoring.Record {
	return scoring.Record{
		Domain: domain, CompanyName: "A company", PipelineVersion: scoring.PipelineVersion, ScoredAt: noon.Add(-age), Composite: composite,
		Base:   composite,
		Rating: scoring.RatingOf(composite), Buckets: scoring.BucketScores{TeamStructure: composite, MarketPosition: composite,
			MomentumTailwinds: composite, FinancialHealth: composite},
		Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth, MomentumIndex: 50, Confidence: scoring.BandDirectional,
	}
}

const day = 24 * time.Hour

// addRecords stores three records of stored.com and one of each other company. Those of aged.com are
// too old for every tier. alone.com has no peers.
func (f *fixture) addRecords(ctx context.Context) error {
	alone := storedRecord("alone.com", time.Minute, 40)
	alone.Sector = scoring.Unknown
	return errors.Join(f.scores.WriteGroup(ctx, []scoring.Record{
		storedRecord("stored.com", time.Minute, 61.4), storedRecord("stored.com", 10*day, 58.2), storedRecord("stored.com", 20*day, 50),
		storedRecord("peer.com", time.Minute, 55), storedRecord("aged.com", 40*day, 30), alone,
	})...)
}

// countedMinute is the minute of the stored counts of requests. The store removes counts of 30 days ago,
// so it is not before noon.
var countedMinute = time.Now().UTC().Truncate(time.Minute)

// addRequests stores counts of requests of the account "starter" in countedMinute.
func (f *fixture) addRequests(ctx context.Context) error {
	caller := f.callers["starter"]
	count := func(route string, status uint16, calls uint64) table.RequestCount {
		return table.RequestCount{
			RequestKind: table.RequestKind{AccountID: caller.Account.ID, KeyID: caller.KeyID, Route: route, Status: status,
				AnsweredBy: "l1"},
			Minute: countedMinute, Server: "s", Calls: calls, Took: time.Duration(calls) * 1500 * time.Microsecond, Bytes: 400 * calls,
			Version: 1,
		}
	}
	return clickhouse.NewRequests(f.db).WriteRequestCounts(ctx, []table.RequestCount{count("/v1/score/*", 200, 8),
		count("/v1/score/*", 404, 2), count("/v1/movers", 200, 1)})
}

// publish counts the records and publishes the statistics.
func (f *fixture) publish(ctx context.Context) error {
	u := clickhouse.NewUniverse(f.db)
	counts, err := u.Count(ctx, noon, 0)
	if err != nil {
		return err
	}
	movers, err := u.Movers(ctx, noon, 0)
	if err != nil {
		return err
	}
	counts.Epoch, movers.Epoch = 10*time.Minute, 5*time.Minute
	return errors.Join(snapshot.PublishMovers(ctx, f.rdb, movers, 1, snapshot.AtOnce), snapshot.PublishCounts(ctx, f.rdb, counts, 1,
		snapshot.AtOnce))
}

// start makes a server for each condition.
func (f *fixture) start(ctx context.Context, redisURL, clickhouseURL string) error {
	parts, err := dependencies(f.db, f.rdb)
	if err != nil {
		return err
	}
	f.meter = parts.Meter.(*meter.Meter)
	parts.Universe = snapshot.Follow(ctx, f.rdb, quiet)
	for name, caller := range f.callers { // so that the keys are in memory
		if got, err := parts.Keys.Verify(ctx, f.keys[name]); name != "revoked" && (err != nil || got.KeyID != caller.KeyID) {
			return fmt.Errorf("verify key %q: %w", name, err)
		}
	}
	empty, err := redis.Open(ctx, redisURL+"?db=1") // this database has no snapshot
	if err != nil {
		return err
	}
	closedDB, err := clickhouse.Open(ctx, clickhouse.Config{URL: clickhouseURL})
	if err != nil {
		return err
	}
	closedRedis, err := redis.Open(ctx, redisURL)
	if err != nil {
		return err
	}
	if err := errors.Join(closedDB.Close(), closedRedis.Close()); err != nil {
		return err
	}
	closed, err := dependencies(closedDB, closedRedis)
	if err != nil {
		return err
	}
	closed.Universe = parts.Universe
	withKeys, withoutTables := closed, parts
	withKeys.Keys = parts.Keys
	withoutTables.Universe = snapshot.Follow(ctx, empty, quiet)
	for on, d := range map[condition]Dependencies{
		healthy: parts, keyBytesUsed: parts, allBytesUsed: parts, uncounted: withoutTables, storesClosed: withKeys, keysClosed: closed,
	} {
		d.Metrics = prometheus.NewRegistry()
		s, err := New(d)
		if err != nil {
			return err
		}
		s.now, s.quotaWait = func() time.Time { return noon }, wait.Max
		f.servers[on] = s
	}
	f.servers[keyBytesUsed].answers = newInFlightBudget(answersMax, 1)
	f.servers[allBytesUsed].answers = newInFlightBudget(1, answersKeyMax)
	f.servers[allBytesUsed].histories = newInFlightBudget(0, historiesAccountMax)
	return nil
}

// dependencies returns the parts of a server over two stores, but for its statistics and metrics.
func dependencies(db *clickhouse.DB, rdb goredis.UniversalClient) (Dependencies, error) {
	q, err := queue.New(rdb, queue.Config{Logger: quiet})
	if err != nil {
		return Dependencies{}, err
	}
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	scoreCache, m := cache.New(64<<20, rdb, scores, nobody, quiet), meter.New(rdb, clickhouse.NewUsage(db), smallLimits(), quiet)
	return Dependencies{
		Keys: keys.New(clickhouse.NewAccounts(db), quiet), Scores: scores, Cache: scoreCache, Meter: m,
		Calls: NewColdCalls(scoreCache, m, nobody, prometheus.NewRegistry(), quiet), Jobs: job.New(rdb, q, job.WithRecords(scores)),
		RequestCounts: clickhouse.NewRequests(db), Logger: quiet,
	}, nil
}

// smallLimits returns limits that few calls reach: 3 cold calls in a month or a day for an account of
// the starter tier, and 5 in an hour for a key.
func smallLimits() meter.Limits {
	limits := meter.DefaultLimits()
	starter, budget := limits.Plans[account.Starter], int64(3)
	starter.ColdCallsIncluded = &budget
	limits.Plans[account.Starter] = starter
	limits.Breakers.ColdPerKey.Limit = 5
	limits.Breakers.ColdPerAccount.BudgetMultiple = 1
	return limits
}

// addCalls uses up the limits of three keys and starts a job in each state for the key "growth".
func (f *fixture) addCalls(ctx context.Context) error {
	for name, calls := range map[string]struct {
		n   int
		age time.Duration
	}{"spent month": {3, time.Minute}, "spent hour": {5, 30 * time.Minute}, "spent day": {3, 13 * time.Hour}} {
		for i := range calls.n {
			if _, err := f.admit(ctx, name, fmt.Sprintf("spent-%d.com", i), calls.age); err != nil {
				return err
			}
		}
	}
	complete, err := f.admit(ctx, "growth", "complete.com", time.Minute)
	if err != nil {
		return err
	}
	if err := f.work(ctx, complete.RunID); err != nil {
		return err
	}
	aborted, err := f.admit(ctx, "growth", "aborted.com", time.Minute)
	if err != nil {
		return err
	}
	if err := f.queue.Abort(ctx, aborted.RunID); err != nil {
		return err
	}
	// Its caller sent an Idempotency-Key.
	growth := f.callers["growth"]
	pending, err := f.meter.Admit(ctx, meter.AdmitRequest{
		Account: growth.Account, KeyID: growth.KeyID, Domain: "pending.com", Now: noon.Add(-time.Minute), IdempotencyKey: "used-key",
		BodyHash: requestHash("pending.com", false),
	})
	f.names = strings.NewReplacer("{minute}", countedMinute.Format(time.RFC3339), "{minute after}",
		countedMinute.Add(time.Minute).Format(time.RFC3339), "{date}", countedMinute.Format(time.DateOnly), "{complete}", complete.JobID,
		"{aborted}", aborted.JobID, "{pending}", pending.JobID,
		"{cursor}", api.EncodeCursor("stored.com", false, noon.Add(-time.Minute)), "{last cursor}",
		api.EncodeCursor("stored.com", false, noon.Add(-20*day)), "{oldest cursor}",
		api.EncodeCursor("stored.com", true, noon.Add(-20*day)), "{future cursor}",
		api.EncodeCursor("stored.com", false, noon.Add(time.Hour)))
	return err
}

// admit makes a cold call with that age at noon.
func (f *fixture) admit(ctx context.Context, key, domain string, age time.Duration) (meter.Admission, error) {
	caller := f.callers[key]
	return f.meter.Admit(ctx, meter.AdmitRequest{Account: caller.Account, KeyID: caller.KeyID, Domain: domain, Now: noon.Add(-age)})
}

// work ends all runs, each with a record, and returns when that with the id has ended.
func (f *fixture) work(ctx context.Context, id string) error {
	worker, err := queue.NewServer(f.queue, queue.ServerConfig{Log: f.db})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(ctx, func(ctx context.Context, runs []scoring.Run, _ func(int) bool) []scoring.Outcome {
			outcomes := make([]scoring.Outcome, len(runs))
			for i, run := range runs {
				rec := storedRecord(run.Domain, 0, 50)
				outcomes[i] = scoring.Outcome{ScoredAt: rec.ScoredAt, Err: f.scores.Write(ctx, rec)}
			}
			return outcomes
		})
	}()
	failed, err := f.queue.Await(ctx, []string{id}, func(int) {})
	cancel()
	if err = errors.Join(err, <-ended); err == nil && len(failed) > 0 {
		err = fmt.Errorf("run %s failed: %+v", id, failed[0])
	}
	return err
}
