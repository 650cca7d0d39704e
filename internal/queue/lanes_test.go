package queue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

// line is a queue whose runs are claimed by hand.
type line struct {
	*testing.T
	queue  *queue.Queue
	server *queue.Server
	client goredis.UniversalClient
}

func newLine(t *testing.T, weights queue.Weights) *line {
	t.Helper()
	url := stores.Redis(t).URL
	q := newQueue(t, url, queue.Config{})
	cfg := silent
	cfg.Weights = weights
	server, err := queue.NewServer(q, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &line{t, q, server, connect(t, url)}
}

// add opens n runs of an owner and returns their ids. Their domains begin with the owner's name.
func (l *line) add(lane scoring.Lane, owner string, n int) []string {
	l.Helper()
	domains := make([]string, n)
	for i := range domains {
		domains[i] = fmt.Sprintf("%s-%s.com", owner, queue.NewRunID())
	}
	ids, err := l.queue.StartFor(l.Context(), lane, owner, domains...)
	if err != nil {
		l.Fatal(err)
	}
	return ids
}

// claim claims up to most runs and returns the ids.
func (l *line) claim(most int) []string {
	l.Helper()
	runs, err := l.server.Claim(l.Context(), most)
	if err != nil {
		l.Fatal(err)
	}
	ids := make([]string, len(runs))
	for i, run := range runs {
		ids[i] = run.ID
	}
	return ids
}

func TestBusyAccountDelaysNoOther(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	flood := l.add(scoring.LaneAPI, "flood", 10_000)
	if got := l.claim(100); !slices.Equal(got, flood[:100]) {
		t.Fatal("the calls of one account are not claimed in their order")
	}
	lone := l.add(scoring.LaneAPI, "lone", 1)
	if got := l.claim(2); !slices.Contains(got, lone[0]) {
		t.Errorf("claimed %v behind a flood, want the lone call %s among them", got, lone[0])
	}
}

// TestAccountsTakeTurns starts and claims runs at random. While several accounts have
// runs waiting, each gets as many as the others: start-time fair queues differ by 2 at
// most over any time, and turns that are counted from the clock by 2 more.
func TestAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	random := rand.New(rand.NewPCG(1, 2))
	owners := []string{"a", "b", "c"}
	owner := make(map[string]string) // by run id
	waiting := make(map[string]int)
	add := func(who string, n int) {
		for _, id := range l.add(scoring.LaneAPI, who, n) {
			owner[id] = who
		}
		waiting[who] += n
	}
	for round := range 30 {
		for _, who := range owners {
			add(who, 1+random.IntN(40))
		}
		begun := make(map[string]int) // since all of them wait
		for {
			least := min(waiting["a"], waiting["b"], waiting["c"])
			if least <= 10 {
				break
			}
			for _, id := range l.claim(1 + random.IntN(min(least, 7))) {
				begun[owner[id]]++
				waiting[owner[id]]--
			}
			for _, who := range owners {
				if ahead := begun[who] - min(begun["a"], begun["b"], begun["c"]); ahead > 4 {
					t.Fatalf("round %d: %s is %d runs ahead of another: %v", round, who, ahead, begun)
				}
			}
			if random.IntN(3) == 0 {
				add(owners[random.IntN(3)], random.IntN(10)+1)
			}
		}
	}
}

func TestWeightsShareTheSlots(t *testing.T) {
	t.Parallel()
	l := newLine(t, queue.Weights{scoring.LaneAPI: 8, scoring.LaneRefresh: 1, scoring.LaneBulk: 2})
	lanes := make(map[string]scoring.Lane)
	for _, lane := range scoring.Lanes {
		for _, id := range l.add(lane, "owner", 1100) {
			lanes[id] = lane
		}
	}
	claimed := make(map[scoring.Lane]int)
	for _, most := range slices.Concat(slices.Repeat([]int{1}, 400), slices.Repeat([]int{70}, 10)) {
		for _, id := range l.claim(most) {
			claimed[lanes[id]]++
		}
	}
	// Of 1,100 draws, six standard deviations are 89, 60 and 77.
	for lane, want := range map[scoring.Lane]int{scoring.LaneAPI: 800, scoring.LaneRefresh: 100, scoring.LaneBulk: 200} {
		if got := claimed[lane]; got < want-90 || got > want+90 {
			t.Errorf("%d of 1,100 slots went to lane %s, want about %d", got, lane, want)
		}
	}
}

func TestLaneOfWeightZeroGetsRest(t *testing.T) {
	t.Parallel()
	l := newLine(t, queue.Weights{scoring.LaneAPI: 1})
	bulk := l.add(scoring.LaneBulk, "operator", 10)
	api := l.add(scoring.LaneAPI, "account", 5)
	if got := l.claim(3); !slices.Equal(got, api[:3]) {
		t.Errorf("claimed %v, want the first of the api lane %v", got, api[:3])
	}
	if got := l.claim(4); !slices.Equal(got, append(slices.Clone(api[3:]), bulk[:2]...)) {
		t.Errorf("claimed %v, want the rest of the api lane and then bulk", got)
	}
	if got := l.claim(100); !slices.Equal(got, bulk[2:]) {
		t.Errorf("claimed %v, want the rest of bulk %v", got, bulk[2:])
	}
}

func TestWeightsThatCannotBe(t *testing.T) {
	t.Parallel()
	for name, weights := range map[string]queue.Weights{
		"unknown lane": {"slow": 1}, "negative": {scoring.LaneAPI: 1, scoring.LaneBulk: -1}, "all 0": {scoring.LaneAPI: 0},
	} {
		if err := weights.Validate(); err == nil {
			t.Errorf("%s: %v are accepted", name, weights)
		}
		if _, err := queue.NewServer(newQueue(t, stores.Redis(t).URL, queue.Config{}),
			queue.ServerConfig{Log: &runLog{}, Weights: weights}); err == nil {
			t.Errorf("%s: a worker starts with %v", name, weights)
		}
	}
	l := newLine(t, nil)
	if _, err := l.queue.Start(t.Context(), "slow", "a.com"); err == nil {
		t.Error("a run starts in an unknown lane")
	}
}

func TestCallTakesRunIntoItsLane(t *testing.T) {
	t.Parallel()
	l := newLine(t, queue.Weights{scoring.LaneAPI: 1})
	ids := l.add(scoring.LaneBulk, "operator", 3)
	run, err := l.queue.Get(t.Context(), ids[2])
	if err != nil {
		t.Fatal(err)
	}
	join := func(lane scoring.Lane, owner string, want scoring.Lane) {
		t.Helper()
		joined, err := l.queue.StartFor(t.Context(), lane, owner, run.Domain)
		if err != nil || joined[0] != run.ID {
			t.Fatalf("joined %v, %v; want run %s", joined, err, run.ID)
		}
		if got, err := l.queue.Get(t.Context(), run.ID); err != nil || got.Lane != want {
			t.Errorf("run that was joined from %s is in lane %s (%v), want %s", lane, got.Lane, err, want)
		}
	}
	join(scoring.LaneRefresh, "operator", scoring.LaneBulk)
	join(scoring.LaneAPI, "account", scoring.LaneAPI)
	join(scoring.LaneBulk, "operator", scoring.LaneAPI)
	if got := l.claim(10); !slices.Equal(got, []string{ids[2], ids[0], ids[1]}) {
		t.Errorf("claimed %v, want the joined run first and each once", got)
	}
	if n := l.client.Exists(t.Context(), redis.Turns("api"), redis.Turns("bulk")).Val(); n != 0 {
		t.Error("turns of an empty lane are left behind")
	}
}

func TestStatusCountsLanes(t *testing.T) {
	t.Parallel()
	l := newLine(t, queue.Weights{scoring.LaneRefresh: 1})
	first := l.add(scoring.LaneRefresh, "operator", 3)
	l.add(scoring.LaneAPI, "account", 2)
	l.claim(1)
	second, err := l.queue.Get(t.Context(), first[1])
	if err != nil {
		t.Fatal(err)
	}
	status, err := l.queue.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if status.Running != 1 || status.Retrying != 0 || status.Open() != 5 || len(status.Lanes) != len(scoring.Lanes) {
		t.Errorf("Status() = %+v", status)
	}
	for _, lane := range status.Lanes {
		switch lane.Lane {
		case scoring.LaneRefresh:
			if lane.Waiting != 2 || !lane.NextCreatedAt.Equal(second.CreatedAt) {
				t.Errorf("lane = %+v, want 2 waiting, the next since %s", lane, second.CreatedAt)
			}
		case scoring.LaneBulk:
			if lane.Waiting != 0 || !lane.NextCreatedAt.IsZero() {
				t.Errorf("empty lane = %+v", lane)
			}
		}
	}
}

// A clock of Redis that goes back must not extend a pause.
func TestRetryIgnoresClockSetBack(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	id := l.add(scoring.LaneBulk, "operator", 1)[0]
	l.claim(1)
	if err := l.client.ZRem(t.Context(), redis.Leases(), id).Err(); err != nil {
		t.Fatal(err)
	}
	retry := func(in time.Duration) {
		at := goredis.Z{Score: float64(time.Now().Add(in).UnixMilli()), Member: id}
		if err := errors.Join(l.client.HSet(t.Context(), redis.Run(id), "state", "queued").Err(),
			l.client.ZAdd(t.Context(), redis.Retries(), at).Err()); err != nil {
			t.Fatal(err)
		}
	}
	retry(5 * time.Second)
	if got := l.claim(1); len(got) != 0 {
		t.Errorf("claimed %v before its pause is over", got)
	}
	retry(time.Hour)
	if got := l.claim(1); !slices.Equal(got, []string{id}) {
		t.Errorf("claimed %v, want the run whose pause lasts longer than any", got)
	}
}

func TestRunThatExpiredIsPassedOver(t *testing.T) {
	t.Parallel()
	l := newLine(t, nil)
	ids := l.add(scoring.LaneBulk, "operator", 3)
	if err := l.client.Del(t.Context(), redis.Run(ids[0])).Err(); err != nil {
		t.Fatal(err)
	}
	if got := l.claim(3); !slices.Equal(got, ids[1:]) {
		t.Errorf("claimed %v, want those that exist %v", got, ids[1:])
	}
	if n := l.client.Exists(t.Context(), redis.Lane("bulk"), redis.Turns("bulk")).Val(); n != 0 {
		t.Error("the expired run is still in its lane")
	}
}

func TestGroupsAreOfOneLane(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	for _, lane := range scoring.Lanes {
		domains := make([]string, 25)
		for i := range domains {
			domains[i] = fmt.Sprintf("%s%d.com", lane, i)
		}
		if _, err := q.Start(t.Context(), lane, domains...); err != nil {
			t.Fatal(err)
		}
	}
	sizes := make(chan int, 75)
	workGroups(t, q, queue.ServerConfig{Concurrency: 100, Group: 10}, func(_ context.Context, runs []scoring.Run,
		_ func(int) bool) []scoring.Outcome {
		sizes <- len(runs)
		for _, run := range runs {
			if run.Lane != runs[0].Lane {
				t.Errorf("a group has runs of lanes %s and %s", runs[0].Lane, run.Lane)
			}
		}
		return make([]scoring.Outcome, len(runs))
	})
	wait.Until(t, "no run is open", func() bool { return open(t, q) == 0 })
	close(sizes)
	for size := range sizes {
		if size > 10 {
			t.Errorf("a group of %d runs, want at most 10", size)
		}
	}
}

// Bulk runs may take minutes each. A customer's call begins all the same.
func TestBulkLeavesRoomForCalls(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	began := make(chan scoring.Lane, 30)
	end := make(chan struct{})
	work(t, q, queue.ServerConfig{Concurrency: 8}, func(_ context.Context, run scoring.Run) (time.Time, error) {
		began <- run.Lane
		<-end
		return run.StartedAt, nil
	})
	defer close(end)
	domains := make([]string, 20)
	for i := range domains {
		domains[i] = fmt.Sprintf("company%d.com", i)
	}
	start(t, q, domains...)
	for range 6 {
		<-began
	}
	for i := range 2 {
		if _, err := q.StartFor(t.Context(), scoring.LaneAPI, "account", fmt.Sprintf("call%d.com", i)); err != nil {
			t.Fatal(err)
		}
		if lane := <-began; lane != scoring.LaneAPI {
			t.Fatalf("a run of lane %s began, want the call", lane)
		}
	}
	if status, err := q.Status(t.Context()); err != nil || status.Running != 8 {
		t.Errorf("Status() = %+v, %v; want 8 running", status, err)
	}
}

// Runs of a group end each for itself.
func TestGroupOutcomes(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	q := newQueue(t, server.URL, queue.Config{Attempts: 2})
	runs := start(t, q, "good.com", "bad.com", "aborted.com", "unregistered.com")
	log := &runLog{}
	began := make(chan struct{}, 3)
	cfg := beating(log)
	cfg.Concurrency, cfg.Group, cfg.RetryDelay = 16, 4, time.Millisecond
	workGroups(t, q, cfg,
		func(ctx context.Context, runs []scoring.Run, lost func(int) bool) []scoring.Outcome {
			began <- struct{}{}
			outcomes := make([]scoring.Outcome, len(runs))
			for i, run := range runs {
				outcomes[i].ScoredAt = run.StartedAt
				switch run.Domain {
				case "bad.com":
					outcomes[i].Err = errors.New("bad row")
				case "unregistered.com":
					outcomes[i].Err = scoring.ErrUnregistered
				case "aborted.com":
					for !lost(i) {
						select {
						case <-ctx.Done():
							t.Errorf("the whole group was stopped: %v", context.Cause(ctx))
							return outcomes
						case <-time.After(10 * time.Millisecond):
						}
					}
					outcomes[i].Err = errors.New("lost")
				}
			}
			return outcomes
		})
	<-began
	if err := q.Abort(t.Context(), runs[2].ID); err != nil {
		t.Fatal(err)
	}
	waitFor(t, q, runs[0].ID, scoring.RunSucceeded)
	if bad := waitFor(t, q, runs[1].ID, scoring.RunFailed); bad.Attempts != 2 || bad.Error != "bad row" {
		t.Errorf("bad run = %+v, want 2 attempts", bad)
	}
	waitFor(t, q, runs[2].ID, scoring.RunAborted)
	waitFor(t, q, runs[3].ID, scoring.RunFailed)
}

func TestGroupThatPanicsIsTriedAgain(t *testing.T) {
	t.Parallel()
	q := newQueue(t, stores.Redis(t).URL, queue.Config{})
	runs := start(t, q, "a.com", "b.com")
	workGroups(t, q, queue.ServerConfig{Concurrency: 40, Group: 10, RetryDelay: time.Millisecond},
		func(_ context.Context, runs []scoring.Run, _ func(int) bool) []scoring.Outcome {
			if runs[0].Attempts == 1 {
				panic("boom")
			}
			return make([]scoring.Outcome, len(runs))
		})
	for _, run := range runs {
		waitFor(t, q, run.ID, scoring.RunSucceeded)
	}
}

// TestJoinedRefreshEndsWithRecord has runs of the refresh lane end without a
// record: one that a caller joined while it was worked on is done once more.
func TestJoinedRefreshEndsWithRecord(t *testing.T) {
	t.Parallel()
	for _, lane := range []scoring.Lane{scoring.LaneAPI, scoring.LaneBulk} {
		q := newQueue(t, stores.Redis(t).URL, queue.Config{})
		ids, err := q.Start(t.Context(), scoring.LaneRefresh, "alone.com", "joined.com")
		if err != nil {
			t.Fatal(err)
		}
		at := time.Now().UTC().Truncate(time.Millisecond)
		var lanes []scoring.Lane // of the attempts at joined.com
		cfg := queue.ServerConfig{Lease: time.Hour, Sweep: time.Hour}
		work(t, q, cfg, func(ctx context.Context, run scoring.Run) (time.Time, error) {
			if run.Domain == "alone.com" {
				return time.Time{}, nil
			}
			lanes = append(lanes, run.Lane)
			if run.Lane != scoring.LaneRefresh {
				return at, nil
			}
			joined, err := q.StartFor(ctx, lane, "acme", "joined.com")
			if err == nil && joined[0] != ids[1] {
				err = fmt.Errorf("started run %s beside %s", joined[0], ids[1])
			}
			return time.Time{}, err
		})
		var runs []scoring.Run
		wait.Until(t, "both runs end", func() bool {
			var err error
			runs, err = q.GetMany(t.Context(), ids...)
			return err == nil && runs[0].State.Final() && runs[1].State.Final()
		})
		if r := runs[0]; r.State != scoring.RunSucceeded || !r.ScoredAt.IsZero() || r.Attempts != 1 {
			t.Errorf("refresh that nobody joined ended as %+v, want a success without a record", r)
		}
		if r := runs[1]; r.State != scoring.RunSucceeded || !r.ScoredAt.Equal(at) || r.Attempts != 1 || r.Lane != lane {
			t.Errorf("refresh that was joined in lane %s ended as %+v, want a record", lane, r)
		}
		if want := []scoring.Lane{scoring.LaneRefresh, lane}; !slices.Equal(lanes, want) {
			t.Errorf("attempts were of lanes %v, want %v", lanes, want)
		}
	}
}
