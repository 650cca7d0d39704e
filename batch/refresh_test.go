package batch_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/batch"
	"companyscore/batch/jobs"
	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/scorecache"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/worker"
)

// site is a refresh job with real stores.
type site struct {
	*testing.T
	db     *clickhouse.DB
	client goredis.UniversalClient
	queue  *queue.Queue
	scores *clickhouse.Scores
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t}
	var err error
	if s.db, err = clickhouse.Open(t.Context(), clickhouse.Config{URL: stores.ClickHouse(t)}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.db.Close() })
	if _, err := s.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.client, err = redis.Open(t.Context(), stores.Redis(t).URL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.client.Close() })
	if s.queue, err = queue.New(s.client, queue.Config{}); err != nil {
		t.Fatal(err)
	}
	s.scores = clickhouse.NewScores(s.db, clickhouse.WriterConfig{})
	t.Cleanup(func() { s.scores.Close(context.Background()) })
	return s
}

// record writes records of a given age.
func (s *site) record(age time.Duration, version string, domains ...string) {
	s.Helper()
	records := make([]scoring.Record, len(domains))
	for i, domain := range domains {
		records[i] = scoring.Record{
			Domain: domain, PipelineVersion: version, ScoredAt: time.Now().Add(-age).UTC().Truncate(time.Millisecond),
			Confidence: scoring.BandLow, Profile: scoring.ProfileGrowth, Rating: scoring.Rating5,
		}
	}
	for _, err := range s.scores.WriteGroup(s.Context(), records) {
		if err != nil {
			s.Fatal(err)
		}
	}
}

// refresh runs the job once and returns its result.
func (s *site) refresh(live bool, pace float64) table.Refreshed {
	s.Helper()
	off := batch.Schedules{Count: "off", Movers: "off", Refresh: "off", Housekeeping: "off", Spreads: "off", Inbox: "off",
		CountEpoch:  time.Minute,
		MoversEpoch: time.Minute}
	r, err := batch.New(batch.Config{
		Store: clickhouse.NewUniverse(s.db), Redis: s.client, Logger: slog.New(slog.DiscardHandler), Schedules: off,
		Refresh: batch.Refresh{RefreshTargets: table.RefreshTargets{Ages: table.RefreshAges{Asked: 24 * time.Hour, Others: 168 * time.Hour},
			Live: live}, Pace: pace, Queue: s.queue},
	})
	if err != nil {
		s.Fatal(err)
	}
	if err := r.Once(s.Context(), []string{"refresh"}, func(line string) { s.Log(line) }); err != nil {
		s.Fatal(err)
	}
	all, err := jobs.ReadStatus(s.Context(), s.client)
	if err != nil || all["refresh"].Refresh == nil {
		s.Fatalf("status %+v, %v", all, err)
	}
	return *all["refresh"].Refresh
}

// waiting returns the domains of the waiting runs in the lane of the job, in order.
func (s *site) waiting() []string {
	s.Helper()
	runs, err := s.queue.List(s.Context(), scoring.RunQueued, 100_000)
	if err != nil {
		s.Fatal(err)
	}
	var domains []string
	for _, run := range runs {
		if run.Lane != scoring.LaneRefresh {
			s.Errorf("run of %s waits in lane %s", run.Domain, run.Lane)
		}
		domains = append(domains, run.Domain)
	}
	return domains
}

func names(n int) []string {
	domains := make([]string, n)
	for i := range domains {
		domains[i] = fmt.Sprintf("company%04d.com", i)
	}
	return domains
}

func TestRefreshStartsWhatIsDueOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(2*24*time.Hour, scoring.PipelineVersion, "wanted.com", "unwanted.com")
	s.record(8*24*time.Hour, scoring.PipelineVersion, "old.com")
	s.record(time.Hour, scoring.PipelineVersion, "young.com")
	if err := s.db.NoteAsked(t.Context(), []string{"wanted.com", "young.com"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := s.refresh(true, 0); got.Companies != 4 || got.Young != 2 || got.Due != 2 || got.Started != 2 {
		t.Errorf("first run saw %+v", got)
	}
	waiting := s.waiting()
	slices.Sort(waiting)
	if want := []string{"old.com", "wanted.com"}; !slices.Equal(waiting, want) {
		t.Errorf("%v wait, want %v", waiting, want)
	}
	// Lost or failed runs are not started again within the target age.
	if err := s.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := s.refresh(true, 0); got.Companies != 4 || got.Young != 2 || got.Due != 0 || got.Started != 0 {
		t.Errorf("second run saw %+v", got)
	}
	if keys, err := s.client.Keys(t.Context(), "*month*").Result(); err != nil || len(keys) != 0 {
		t.Errorf("a refresh charged an account: %v, %v", keys, err)
	}
}

func TestRefreshKeepsPaceAndShortLane(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(30*24*time.Hour, scoring.PipelineVersion, names(1500)...)
	// At one run per second, missed runs of ten minutes are made up, and as many may wait.
	if got := s.refresh(true, 1); got.Started != 600 || got.Due != 1500 {
		t.Fatalf("first run %+v, want 600 started", got)
	}
	if got := s.refresh(true, 1); got.Started != 0 || got.Due != 900 {
		t.Errorf("second run %+v, want none started", got)
	}
	before := func(ago time.Duration) {
		t.Helper()
		if err := s.client.Set(t.Context(), redis.RefreshPaced(), time.Now().Add(-ago).UnixMilli(), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	before(5 * time.Minute)
	if got := s.refresh(true, 1); got.Started != 0 {
		t.Errorf("%d started while 600 wait", got.Started)
	}
	for _, run := range s.open(100) {
		if err := s.queue.Abort(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.refresh(true, 1); got.Started != 100 {
		t.Errorf("%d started with room for 100", got.Started)
	}
	for _, run := range s.open(1000) {
		if err := s.queue.Abort(t.Context(), run); err != nil {
			t.Fatal(err)
		}
	}
	before(30*time.Second + 500*time.Millisecond)
	if got := s.refresh(true, 1); got.Started < 30 || got.Started > 40 {
		t.Errorf("%d started after 30 s at one a second", got.Started)
	}
	before(-time.Hour) // the clock went back
	if got := s.refresh(true, 1); got.Started != 0 {
		t.Errorf("%d started ahead of the pace", got.Started)
	}
	// At four runs per hour, one starts now and the next after 15 minutes.
	if err := s.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	const slow = 4.0 / 3600
	for i, want := range []uint64{1, 0} {
		if got := s.refresh(true, slow); got.Started != want {
			t.Errorf("run %d at four an hour started %d, want %d", i, got.Started, want)
		}
	}
	if err := s.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if got := s.refresh(true, 0); got.Started != got.Due || got.Due < 700 {
		t.Errorf("without a limit %+v, want all that are due started", got)
	}
}

// open returns the ids of up to n waiting runs.
func (s *site) open(n int) []string {
	s.Helper()
	runs, err := s.queue.List(s.Context(), scoring.RunQueued, n)
	if err != nil {
		s.Fatal(err)
	}
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	return ids
}

// kept stores the scores of a worker.
type kept struct {
	*clickhouse.Scores
	client goredis.UniversalClient
}

func (k kept) Publish(ctx context.Context, recs ...scoring.Record) error {
	return scorecache.Put(ctx, k.client, recs...)
}

// work runs a worker with facts alone until the runs have ended, and returns them.
func (s *site) work(ids ...string) []scoring.Run {
	s.Helper()
	w, err := worker.New([]source.Source{source.Facts{Store: clickhouse.NewFacts(s.db)}}, kept{s.scores, s.client}, nil,
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	if err != nil {
		s.Fatal(err)
	}
	server, err := queue.NewServer(s.queue, queue.ServerConfig{Log: s.db, Concurrency: 64, Group: 16})
	if err != nil {
		s.Fatal(err)
	}
	ctx, stop := context.WithTimeout(s.Context(), wait.Max)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, w.Run) }()
	var runs []scoring.Run
	for tick := time.NewTicker(10 * time.Millisecond); ; <-tick.C {
		if runs, err = s.queue.GetMany(ctx, ids...); err != nil {
			s.Fatal(err)
		}
		if !slices.ContainsFunc(runs, func(r scoring.Run) bool { return !r.State.Final() }) {
			break
		}
	}
	stop()
	if err := <-ended; err != nil {
		s.Fatal(err)
	}
	return runs
}

// TestFactsRefreshRecordsOnlyChanges tests job, lane and worker together.
func TestFactsRefreshRecordsOnlyChanges(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	month := 30 * 24 * time.Hour
	s.record(month, scoring.PipelineVersion, "new.com", "nothing.com")
	s.record(month, "v0", "outdated.com")
	s.record(time.Hour, scoring.PipelineVersion, "young.com")
	path := filepath.Join(t.TempDir(), "facts.csv")
	if err := os.WriteFile(path, []byte("domain,employees\nsame.com,10\nnew.com,20\nyoung.com,30\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if report, err := facts.Import(t.Context(), clickhouse.NewFacts(s.db), path, facts.Options{}); err != nil || report.Imported != 3 {
		t.Fatalf("%+v, %v", report, err)
	}
	s.record(0, scoring.PipelineVersion, "same.com") // scored from these facts
	if got := s.refresh(false, 0); got.Companies != 5 || got.Young != 2 || got.Due != 2 || got.Started != 2 {
		t.Errorf("by facts alone the job saw %+v, want 2 due: new.com and outdated.com", got)
	}
	waiting := s.waiting()
	slices.Sort(waiting)
	if want := []string{"new.com", "outdated.com"}; !slices.Equal(waiting, want) {
		t.Errorf("%v wait, want %v", waiting, want)
	}
	// Runs without new facts, as after a run between start and claim.
	idle, err := s.queue.Start(t.Context(), scoring.LaneRefresh, "same.com", "nothing.com")
	if err != nil {
		t.Fatal(err)
	}
	runs := s.work(s.open(10)...)
	if len(runs) != 4 {
		t.Fatalf("%d runs, want 4", len(runs))
	}
	for _, run := range runs {
		bare := slices.Contains(idle, run.ID)
		if run.State != scoring.RunSucceeded || run.ScoredAt.IsZero() != bare || run.Attempts != 1 {
			t.Errorf("run of %s ended as %+v, want a success without a record %v", run.Domain, run, bare)
		}
		records, err := s.scores.History(t.Context(), run.Domain, scoring.Span{}, 10)
		if want := map[bool]int{true: 1, false: 2}[bare]; err != nil || len(records) != want {
			t.Errorf("%s has %d records, %v; want %d", run.Domain, len(records), err, want)
		}
	}
	if got := s.refresh(false, 0); got.Young != 4 || got.Due != 0 || got.Started != 0 {
		t.Errorf("afterwards the job saw %+v, want nothing to do", got)
	}
	logged, err := s.db.Runs(t.Context(), 10)
	if err != nil || len(logged) != 4 {
		t.Errorf("%d runs are in the log, %v; want 4", len(logged), err)
	}
}

// TestJoinedRefreshMakesARecord has a caller join a waiting refresh run without new facts.
func TestJoinedRefreshMakesARecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.record(time.Hour, scoring.PipelineVersion, "alone.com", "joined.com")
	ids, err := s.queue.Start(t.Context(), scoring.LaneRefresh, "alone.com", "joined.com")
	if err != nil {
		t.Fatal(err)
	}
	joined, err := s.queue.Start(t.Context(), scoring.LaneBulk, "joined.com")
	if err != nil || joined[0] != ids[1] {
		t.Fatalf("joined %v, %v; want %s", joined, err, ids[1])
	}
	runs := s.work(ids...)
	if !runs[0].ScoredAt.IsZero() || runs[1].ScoredAt.IsZero() || runs[1].Lane != scoring.LaneBulk {
		t.Errorf("runs ended as %+v; want a record of the one that was joined", runs)
	}
}
