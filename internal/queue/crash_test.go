package queue_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/test/extent"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

// The test binary is a worker that is going to be killed when the first of these
// variables holds the URL of a Redis. With the second it works in a hurry and writes
// what it does to that Redis; without, it never ends a run.
const (
	victimURL  = "QUEUE_TEST_VICTIM_REDIS_URL"
	victimBusy = "QUEUE_TEST_VICTIM_IS_BUSY"
)

func runVictim() {
	client, err := redis.Open(context.Background(), os.Getenv(victimURL))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cfg, handler := queue.ServerConfig{Log: &runLog{}}, each(func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
	if os.Getenv(victimBusy) != "" {
		book := &logbook{client}
		cfg = queue.ServerConfig{Log: book, Concurrency: 400, Group: 100, Lease: time.Second, Sweep: 200 * time.Millisecond}
		handler = book.work
	}
	q, err := queue.New(client, queue.Config{Attempts: manyAttempts, Logger: quiet})
	if err != nil {
		os.Exit(1)
	}
	server, err := queue.NewServer(q, cfg)
	if err != nil {
		os.Exit(1)
	}
	_ = server.Run(context.Background(), handler)
}

func startVictim(t *testing.T, url string, env ...string) *exec.Cmd {
	t.Helper()
	victim := exec.Command(os.Args[0])
	victim.Env = append(append(os.Environ(), victimURL+"="+url), env...)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	return victim
}

func TestKilledWorkerIsTakenOver(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	server := stores.Redis(t)
	q := newQueue(t, server.URL, queue.Config{})
	victim := startVictim(t, server.URL)
	run := start(t, q, "acme.com")[0]
	before := waitFor(t, q, run.ID, scoring.RunRunning)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	var calls sync.Map
	work(t, q, queue.ServerConfig{}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		if _, again := calls.LoadOrStore(run.Attempts, true); again {
			t.Errorf("attempt %d was made twice", run.Attempts)
		}
		return run.StartedAt, nil
	})
	after := waitFor(t, q, run.ID, scoring.RunSucceeded)
	t.Logf("taken over and done %s after the kill", time.Since(killed).Round(10*time.Millisecond))
	if after.Attempts != 2 || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("run after takeover = %+v, want a second attempt with StartedAt %s", after, before.StartedAt)
	}
}

// silent configures a worker that extends no leases and sweeps only by Reclaim.
var silent = queue.ServerConfig{Lease: time.Hour, Sweep: time.Hour, Grace: time.Millisecond, Log: &runLog{}}

// loseLease makes the lease of a run expire and reclaims the run.
func loseLease(t *testing.T, client goredis.UniversalClient, q *queue.Queue, id string) {
	t.Helper()
	sweeping, err := queue.NewServer(q, silent)
	if err != nil {
		t.Fatal(err)
	}
	lost := goredis.Z{Score: 1, Member: id}
	if err := client.ZAddXX(t.Context(), redis.Leases(), lost).Err(); err != nil {
		t.Fatal(err)
	}
	if err := sweeping.Reclaim(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestRunThatKillsItsWorkersFails(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{Attempts: 2})
	began := make(chan struct{}, 2)
	work(t, q, silent, func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		began <- struct{}{}
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
	run := start(t, q, "acme.com")[0]
	for range 2 {
		<-began
		loseLease(t, client, q, run.ID)
	}
	if ended := isNow(t, q, run.ID, scoring.RunFailed); ended.Attempts != 2 || ended.Error == "" {
		t.Errorf("run = %+v, want 2 attempts and an explanation", ended)
	}
}

func TestWorkSurvivesKilledRedis(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{})
	log := &runLog{}
	running, finish := make(chan struct{}, 100), make(chan struct{})
	work(t, q, queue.ServerConfig{Log: log, Concurrency: 5}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		running <- struct{}{}
		<-finish
		return run.StartedAt, nil
	})
	domains := make([]string, 40)
	for i := range domains {
		domains[i] = fmt.Sprintf("company%d.com", i)
	}
	runs := start(t, q, domains...)
	for range 4 {
		<-running
	}
	// Under "everysec" a write acknowledged while an fsync is in flight is not in
	// the file yet; what is tested here is an outage, not a loss.
	if err := client.ConfigSet(t.Context(), "appendfsync", "always").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.Incr(t.Context(), "durable").Err(); err != nil {
		t.Fatal(err)
	}
	server.Kill(t)
	close(finish) // four runs end while Redis is away
	for _, run := range runs {
		waitFor(t, q, run.ID, scoring.RunSucceeded)
	}
	wait.Until(t, "all runs are logged", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.runs) == len(runs)
	})
	if n := open(t, q); n != 0 {
		t.Errorf("%d runs are open, want none", n)
	}
}

func TestAttemptThatLostItsRun(t *testing.T) {
	t.Parallel()
	f := func(name string, stalledErr error, want int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := stores.Redis(t)
			client := connect(t, server.URL)
			q := newQueue(t, server.URL, queue.Config{})
			began := make(chan scoring.Run, 2)
			resume, finish, returned := make(chan struct{}), make(chan struct{}), make(chan struct{}, 2)
			stop := work(t, q, silent, func(_ context.Context, run scoring.Run) (time.Time, error) {
				began <- run
				defer func() { returned <- struct{}{} }()
				if run.Attempts == 1 {
					<-resume
					return run.StartedAt, stalledErr
				}
				<-finish
				return run.StartedAt, nil
			})
			run := start(t, q, "acme.com")[0]
			first := <-began
			loseLease(t, client, q, run.ID)
			second := <-began
			if !first.StartedAt.Equal(second.StartedAt) {
				t.Errorf("attempts have StartedAt %s and %s", first.StartedAt, second.StartedAt)
			}
			close(resume)
			<-returned
			if stalledErr != nil { // it may neither fail the run nor put it back
				if got, err := q.Get(t.Context(), run.ID); err != nil || got.State != scoring.RunRunning {
					t.Errorf("run after its former attempt failed = %+v, %v; want it running", got, err)
				}
				close(finish)
			}
			ended := waitFor(t, q, run.ID, scoring.RunSucceeded)
			if stalledErr == nil {
				close(finish)
				<-returned
				if err := stop(); err != nil { // the second attempt is concluded
					t.Fatal(err)
				}
				if again := isNow(t, q, run.ID, scoring.RunSucceeded); again != ended {
					t.Errorf("run ended twice: %+v, then %+v", ended, again)
				}
			}
			if ended.Attempts != want {
				t.Errorf("run took %d attempts, want %d", ended.Attempts, want)
			}
		})
	}
	f("its failure does not count", fmt.Errorf("stalled"), 2)
	f("its success counts, once", nil, 2)
}

// killRuns is how many runs TestWorkersKilledAtRandom does.
//
//	go test ./internal/queue -run KilledAtRandom -kill-runs 100000 -v
var killRuns = flag.Int("kill-runs", 4000, "runs of TestWorkersKilledAtRandom")

// manyAttempts is more than a run can lose to killed workers in a test.
const manyAttempts = 1000

// Lists in which a logbook keeps what happens.
const bookRecords, bookEnds = "test:records", "test:ends"

// logbook is a store of records and a run log in Redis.
type logbook struct{ client goredis.UniversalClient }

// work makes records of runs: it takes a moment, writes them, and takes another.
func (b *logbook) work(ctx context.Context, runs []scoring.Run, _ func(int) bool) []scoring.Outcome {
	pause := func() {
		select {
		case <-time.After(time.Duration(rand.IntN(50)) * time.Millisecond):
		case <-ctx.Done():
		}
	}
	pause()
	outcomes := make([]scoring.Outcome, len(runs))
	_, err := b.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, run := range runs {
			pipe.RPush(ctx, bookRecords, fmt.Sprint(run.ID, " ", run.Domain, " ", run.StartedAt.UnixMilli()))
		}
		return nil
	})
	for i, run := range runs {
		outcomes[i] = scoring.Outcome{ScoredAt: run.StartedAt, Err: err}
	}
	pause()
	return outcomes
}

// WriteRuns notes the ends of runs.
func (b *logbook) WriteRuns(ctx context.Context, runs []scoring.Run) error {
	_, err := b.client.Pipelined(ctx, func(pipe goredis.Pipeliner) error {
		for _, run := range runs {
			pipe.RPush(ctx, bookEnds, fmt.Sprint(run.ID, " ", run.State, " ", run.FinishedAt.UnixMilli(), " ", run.ScoredAt.UnixMilli()))
		}
		return nil
	})
	return err
}

// TestWorkersKilledAtRandom kills workers again and again until all runs have ended.
// Each run then has ended once, with a record of the start of its first attempt: the
// record may have been written several times, but always the same one.
func TestWorkersKilledAtRandom(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	server := stores.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{})
	domains := make([]string, *killRuns)
	for i := range domains {
		domains[i] = fmt.Sprintf("company%d.com", i)
	}
	ids := make(map[string]string) // by run
	for i, lane := range scoring.Lanes {
		part := domains[i*len(domains)/len(scoring.Lanes) : (i+1)*len(domains)/len(scoring.Lanes)]
		started, err := q.Start(t.Context(), lane, part...)
		if err != nil {
			t.Fatal(err)
		}
		for j, id := range started {
			ids[id] = part[j]
		}
	}
	victims := make([]*exec.Cmd, 3)
	for i := range victims {
		victims[i] = startVictim(t, server.URL, victimBusy+"=1")
	}
	kills, killsMax := 0, max(40, *killRuns/100) // on a busy machine most victims die before they end a run
	for open(t, q) > 0 && kills < killsMax {
		i := rand.IntN(len(victims))
		wait.Until(t, "a worker has a run, or all have ended", func() bool {
			return client.Exists(t.Context(), redis.Leases()).Val() > 0 || open(t, q) == 0
		})
		// Nothing is waited for: at some moment in the next while, whatever it then does.
		time.Sleep(time.Duration(100+rand.IntN(400)) * time.Millisecond)
		if err := victims[i].Process.Kill(); err != nil {
			t.Fatal(err)
		}
		victims[i].Wait()
		victims[i] = startVictim(t, server.URL, victimBusy+"=1")
		kills++
	}
	wait.Until(t, "no run is open", func() bool { return open(t, q) == 0 })
	wait.Until(t, "all runs are logged", func() bool {
		return client.SCard(context.WithoutCancel(t.Context()), redis.RunLog()).Val() == 0
	})
	entries := func(list string) map[string][]string {
		found := make(map[string][]string)
		for _, entry := range client.LRange(t.Context(), list, 0, -1).Val() {
			id, rest, _ := strings.Cut(entry, " ")
			if !slices.Contains(found[id], rest) {
				found[id] = append(found[id], rest)
			}
		}
		return found
	}
	records, ends, again := entries(bookRecords), entries(bookEnds), 0
	runs, err := q.GetMany(t.Context(), slices.Collect(maps.Keys(ids))...)
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		record := fmt.Sprint(ids[run.ID], " ", run.StartedAt.UnixMilli())
		end := fmt.Sprint("succeeded ", run.FinishedAt.UnixMilli(), " ", run.StartedAt.UnixMilli())
		if run.State != scoring.RunSucceeded || !slices.Equal(records[run.ID], []string{record}) ||
			!slices.Equal(ends[run.ID], []string{end}) {
			t.Fatalf("run %+v has records %q and ends %q, want one of each", run, records[run.ID], ends[run.ID])
		}
		if run.Attempts > 1 {
			again++
		}
	}
	if len(runs) != *killRuns || len(ends) != *killRuns {
		t.Errorf("%d runs of %d, %d ends", len(runs), *killRuns, len(ends))
	}
	for _, list := range []string{redis.Leases(), redis.Retries(), redis.Lane("api"), redis.Turns("api")} {
		if client.Exists(t.Context(), list).Val() != 0 {
			t.Errorf("%s is left behind", list)
		}
	}
	t.Logf("%d workers were killed over %d runs, of which %d took several attempts", kills, len(runs), again)
	if kills > 3 && again == 0 {
		t.Error("no kill interrupted a run: the test shows nothing")
	}
}
