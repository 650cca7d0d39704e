package published

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/testenv"
	"companyscore/scoring"
	"companyscore/universe"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// tally is one of so many companies.
func tally(t *testing.T, companies int64) *universe.Tally {
	t.Helper()
	out := universe.NewTally(scoring.PipelineVersion, 1, universe.Limits{})
	change := universe.Change{
		Note: 1, Position: 1, Records: uint64(companies), At: time.Now(), Names: map[uint64]universe.GroupKey{1: {Sector: "software", Profile: scoring.ProfileGrowth}},
		Steps: []universe.StepChange{{Cohort: 1, Step: 5000, Count: companies}},
	}
	change.Premium[0] = companies
	if err := out.Add(change); err != nil {
		t.Fatal(err)
	}
	return out
}

// eventually waits until a follower counts so many companies.
func eventually(t *testing.T, f *Follower, companies int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		if tables := f.Tables(); tables != nil && tables.Distribution().Count == companies {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the follower never counted %d companies", companies)
		}
	}
}

func TestFollowersGetWhatIsPublishedAndKeepItThroughAnOutage(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	early := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer early.Close()
	if early.Tables() != nil {
		t.Fatal("there are tables before any were published")
	}
	if err := Publish(t.Context(), client, tally(t, 3), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, early, 3)
	late := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer late.Close()
	if late.Tables() == nil {
		t.Fatal("a new follower does not begin with what is published")
	}
	server.Kill(t)
	if early.Tables() == nil {
		t.Error("tables are gone with Redis")
	}
	for err := Publish(t.Context(), client, tally(t, 4), 1); err != nil; err = Publish(t.Context(), client, tally(t, 4), 1) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	eventually(t, early, 4)
	eventually(t, late, 4)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, tally(t, 5), 1); err != nil { // an emptied Redis forgets the fence too
		t.Fatal(err)
	}
	eventually(t, early, 5)
}

func TestLateLeaderPublishesNothing(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), testenv.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := Publish(t.Context(), client, tally(t, 2), 7); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, tally(t, 1), 6); !errors.Is(err, ErrOvertaken) {
		t.Fatalf("a leader of before: %v", err)
	}
	got, err := Read(t.Context(), client)
	if err != nil || got == nil || got.Companies() != 2 {
		t.Errorf("published is %+v, %v", got, err)
	}
}
