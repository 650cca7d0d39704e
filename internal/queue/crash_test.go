package queue_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/testenv"
	"companyscore/scoring"
)

// victimURL tells the test binary to be a worker that is going to be killed.
const victimURL = "QUEUE_TEST_VICTIM_REDIS_URL"

// runVictim takes runs and never ends one.
func runVictim() {
	client, err := redis.Open(context.Background(), os.Getenv(victimURL))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	q, err := queue.New(client, queue.Config{Logger: quiet})
	if err != nil {
		os.Exit(1)
	}
	server, err := queue.NewServer(q, queue.ServerConfig{Log: &runLog{}})
	if err != nil {
		os.Exit(1)
	}
	_ = server.Run(context.Background(), func(ctx context.Context, _ scoring.Run) (time.Time, error) {
		<-ctx.Done()
		return time.Time{}, ctx.Err()
	})
}

func TestKilledWorkerIsTakenOver(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	q := newQueue(t, server.URL, queue.Config{})
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), victimURL+"="+server.URL)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { victim.Process.Kill(); victim.Wait() })
	run := start(t, q, "acme.com")[0]
	before := waitFor(t, q, run.ID, scoring.RunRunning, 15*time.Second)
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
	after := waitFor(t, q, run.ID, scoring.RunSucceeded, 30*time.Second)
	t.Logf("taken over and done %s after the kill", time.Since(killed).Round(10*time.Millisecond))
	if after.Attempts != 2 || !after.StartedAt.Equal(before.StartedAt) {
		t.Errorf("run after takeover = %+v, want a second attempt with StartedAt %s", after, before.StartedAt)
	}
}

// silent is a worker that extends no leases and sweeps only when told to.
var silent = queue.ServerConfig{Lease: time.Hour, Sweep: time.Hour, Grace: time.Millisecond, Log: &runLog{}}

// loseLease lets the lease of a run run out and has it reclaimed.
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
	t.Parallel()
	server := testenv.Redis(t)
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
	if ended := waitFor(t, q, run.ID, scoring.RunFailed, 0); ended.Attempts != 2 || ended.Error == "" {
		t.Errorf("run = %+v, want 2 attempts and an explanation", ended)
	}
}

func TestWorkSurvivesKilledRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client := connect(t, server.URL)
	q := newQueue(t, server.URL, queue.Config{})
	log := &runLog{}
	running, finish := make(chan struct{}, 100), make(chan struct{})
	work(t, q, queue.ServerConfig{Log: log, Concurrency: 4}, func(_ context.Context, run scoring.Run) (time.Time, error) {
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
	// Under "everysec" a write acknowledged while an fsync is under way is not in
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
		waitFor(t, q, run.ID, scoring.RunSucceeded, 60*time.Second)
	}
	eventually(t, 30*time.Second, "all runs are logged", func() bool {
		log.mu.Lock()
		defer log.mu.Unlock()
		return len(log.runs) == len(runs)
	})
	if n, err := q.Open(t.Context()); n != 0 || err != nil {
		t.Errorf("Open() = %d, %v; want none", n, err)
	}
}

func TestAttemptThatLostItsRun(t *testing.T) {
	t.Parallel()
	f := func(name string, stalledErr error, want int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := testenv.Redis(t)
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
			ended := waitFor(t, q, run.ID, scoring.RunSucceeded, 5*time.Second)
			if stalledErr == nil {
				close(finish)
				<-returned
				if err := stop(); err != nil { // the second attempt is concluded
					t.Fatal(err)
				}
				if again := waitFor(t, q, run.ID, scoring.RunSucceeded, 0); again != ended {
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
