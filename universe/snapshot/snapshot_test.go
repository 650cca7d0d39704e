package snapshot

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/universe"
)

func TestMain(m *testing.M) { stores.Main(m) }

// counts returns counts of a number of companies.
func counts(companies int) universe.Counts {
	rec := scoring.Record{Domain: "a.com", CompanyName: "A", Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth, Composite: 50.1, ScalePremium: 3}
	c := universe.Count(slices.Repeat([]scoring.Record{rec}, companies), time.UnixMilli(1_780_000_000_000).UTC())
	c.Recent = []uint64{1, 1 << 63}
	return c
}

// eventually waits until a follower has a number of companies.
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

func TestFollowersKeepTablesThroughOutage(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
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
	if err := PublishCounts(t.Context(), client, counts(3), 1); err != nil {
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
	for err := PublishCounts(t.Context(), client, counts(4), 1); err != nil; err = PublishCounts(t.Context(), client, counts(4), 1) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	eventually(t, early, 4)
	eventually(t, late, 4)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := PublishCounts(t.Context(), client, counts(5), 1); err != nil { // an emptied Redis has no fence either
		t.Fatal(err)
	}
	eventually(t, early, 5)
}

func TestPartsArePublishedAlone(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	want := universe.Snapshot{Movers: universe.Movers{PipelineVersion: "v1", Lists: map[universe.Window]universe.MoverList{universe.Week: {
		Start: time.UnixMilli(1).UTC(), End: time.UnixMilli(2).UTC(), Gainers: []universe.Mover{{Company: universe.Company{Domain: "a.com", Name: "A", Composite: 50.1}, Then: 40}},
	}}}}
	last := int64(0)
	read := func() {
		t.Helper()
		got, epoch, err := Read(t.Context(), client)
		if err != nil || epoch <= last {
			t.Fatalf("epoch %d after %d, %v", epoch, last, err)
		}
		last = epoch
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	}
	if got, epoch, err := Read(t.Context(), client); err != nil || epoch != 0 || !cmp.Equal(got, universe.Snapshot{}) {
		t.Fatalf("nothing published: %+v of epoch %d, %v", got, epoch, err)
	}
	if err := PublishMovers(t.Context(), client, want.Movers, 9); err != nil {
		t.Fatal(err)
	}
	read()
	follower := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer follower.Close()
	if follower.Tables() != nil {
		t.Error("there are tables without counts")
	}
	want.Counts = counts(2)
	if err := PublishCounts(t.Context(), client, want.Counts, 1); err != nil { // each part has its own fence
		t.Fatal(err)
	}
	read()
	eventually(t, follower, 2)
	if diff := cmp.Diff(want.Movers, follower.Tables().Movers()); diff != "" {
		t.Error(diff)
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	kept := want.Movers
	want.Movers, want.Counts = universe.Movers{}, counts(3)
	if err := PublishCounts(t.Context(), client, want.Counts, 1); err != nil {
		t.Fatal(err)
	}
	read() // an epoch that was not before
	eventually(t, follower, 3)
	if diff := cmp.Diff(kept, follower.Tables().Movers()); diff != "" {
		t.Errorf("the follower lost the movers: %s", diff)
	}
}

func TestLateLeaderPublishesNothing(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := PublishCounts(t.Context(), client, counts(2), 7); err != nil {
		t.Fatal(err)
	}
	if err := PublishCounts(t.Context(), client, counts(1), 6); !errors.Is(err, ErrOvertaken) {
		t.Fatalf("a leader of before: %v", err)
	}
	got, _, err := Read(t.Context(), client)
	if err != nil || got.Counts.PremiumHist[3] != 2 {
		t.Errorf("published is %+v, %v", got, err)
	}
}

func TestInconsistentCountsAreNotPublished(t *testing.T) {
	t.Parallel()
	wrong := counts(2)
	wrong.PremiumHist[0]++
	if err := PublishCounts(t.Context(), nil, wrong, 1); err == nil {
		t.Error("they are published")
	}
}
