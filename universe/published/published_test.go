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

func snapshot(companies int) universe.Snapshot {
	records := make([]scoring.Record, companies)
	for i := range records {
		records[i] = scoring.Record{Domain: string(rune('a'+i)) + ".com", Composite: 50, Profile: scoring.ProfileGrowth}
	}
	return universe.Count(records, time.Now())
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
	if err := Publish(t.Context(), client, snapshot(3), 1); err != nil {
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
	for err := Publish(t.Context(), client, snapshot(4), 1); err != nil; err = Publish(t.Context(), client, snapshot(4), 1) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	eventually(t, early, 4)
	eventually(t, late, 4)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, snapshot(5), 1); err != nil { // an emptied Redis forgets the fence too
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
	if err := Publish(t.Context(), client, snapshot(2), 7); err != nil {
		t.Fatal(err)
	}
	if err := Publish(t.Context(), client, snapshot(1), 6); !errors.Is(err, ErrOvertaken) {
		t.Fatalf("a leader of before: %v", err)
	}
	s, found, err := Read(t.Context(), client)
	if err != nil || !found || len(s.Groups) != 1 || s.Groups[0].Steps[0].Count != 2 {
		t.Errorf("published is %+v, %v, %v", s, found, err)
	}
}
