package snapshot

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/universe"
)

func TestMain(m *testing.M) { stores.Main(m) }

// counts returns counts of a number of companies.
func counts(companies int) universe.Counts {
	rec := scoring.Record{Domain: "a.com", CompanyName: "A", Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth,
		Composite: 50.1, ScalePremium: 3}
	c := universe.Count(slices.Repeat([]scoring.Record{rec}, companies), time.UnixMilli(1_780_000_000_000).UTC())
	c.Recent = []uint64{1, 1 << 63}
	return c
}

// eventually waits until a follower has a number of companies.
func eventually(t *testing.T, f *Follower, companies int64) {
	t.Helper()
	wait.Until(t, fmt.Sprintf("the follower counts %d companies", companies), func() bool {
		tables := f.Tables(time.Now())
		return tables != nil && tables.Distribution().Count == companies
	})
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
	if early.Tables(time.Now()) != nil {
		t.Fatal("there are tables before any were published")
	}
	if err := PublishCounts(t.Context(), client, counts(3), 1, NextEpoch); err != nil {
		t.Fatal(err)
	}
	eventually(t, early, 3)
	late := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer late.Close()
	if late.Tables(time.Now()) == nil {
		t.Fatal("a new follower does not begin with what is published")
	}
	server.Kill(t)
	if early.Tables(time.Now()) == nil {
		t.Error("tables are gone with Redis")
	}
	for err := PublishCounts(t.Context(), client, counts(4), 1, NextEpoch); err != nil; err = PublishCounts(t.Context(), client, counts(4),
		1, NextEpoch) {
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	eventually(t, early, 4)
	eventually(t, late, 4)
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := PublishCounts(t.Context(), client, counts(5), 1, NextEpoch); err != nil { // an emptied Redis has no fence either
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
		Start: time.UnixMilli(1).UTC(), End: time.UnixMilli(2).UTC(),
		Gainers: []universe.Mover{{Company: universe.Company{Domain: "a.com", Name: "A", Composite: 50.1}, Then: 40}},
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
	if err := PublishMovers(t.Context(), client, want.Movers, 9, NextEpoch); err != nil {
		t.Fatal(err)
	}
	read()
	follower := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer follower.Close()
	if follower.Tables(time.Now()) != nil {
		t.Error("there are tables without counts")
	}
	want.Counts = counts(2)
	if err := PublishCounts(t.Context(), client, want.Counts, 1, NextEpoch); err != nil { // each part has its own fence
		t.Fatal(err)
	}
	read()
	eventually(t, follower, 2)
	if diff := cmp.Diff(want.Movers, follower.Tables(time.Now()).Movers()); diff != "" {
		t.Error(diff)
	}
	if err := client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	kept := want.Movers
	want.Movers, want.Counts = universe.Movers{}, counts(3)
	if err := PublishCounts(t.Context(), client, want.Counts, 1, NextEpoch); err != nil {
		t.Fatal(err)
	}
	read() // an epoch that was not before
	eventually(t, follower, 3)
	if diff := cmp.Diff(kept, follower.Tables(time.Now()).Movers()); diff != "" {
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
	if err := PublishCounts(t.Context(), client, counts(2), 7, NextEpoch); err != nil {
		t.Fatal(err)
	}
	if err := PublishCounts(t.Context(), client, counts(1), 6, NextEpoch); !errors.Is(err, ErrOvertaken) {
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
	if err := PublishCounts(t.Context(), nil, wrong, 1, NextEpoch); err == nil {
		t.Error("they are published")
	}
}

// TestServersAdoptAtEndOfEpoch publishes several counts in one epoch. Followers use the first until the
// epoch ends and then the last, also a follower that began in between.
func TestServersAdoptAtEndOfEpoch(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	const epoch = time.Hour
	publish := func(companies int, when Adoption) {
		t.Helper()
		c := counts(companies)
		c.Epoch = epoch
		if err := PublishCounts(t.Context(), client, c, 1, when); err != nil {
			t.Fatal(err)
		}
	}
	use := func(f *Follower, at time.Time, companies int64) {
		t.Helper()
		if got := f.Tables(at).Distribution().Count; got != companies {
			t.Errorf("%d companies at %s, want %d", got, at, companies)
		}
	}
	soon := func() (before, end time.Time) { // the last adoption may be less than notice ahead
		end = universe.Adopted(epoch, time.Now().Add(notice))
		return end.Add(-time.Millisecond), end
	}
	publish(3, NextEpoch) // the first of all
	early := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer early.Close()
	use(early, time.Now(), 3)
	publish(4, NextEpoch)
	publish(5, NextEpoch)
	late := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer late.Close()
	before, end := soon()
	wait.Until(t, "the follower has the last tables", func() bool { return early.Tables(end).Distribution().Count == 5 })
	for _, f := range []*Follower{early, late} {
		use(f, time.Now(), 3)
		use(f, before, 3)
		use(f, end, 5)
		use(f, end.Add(epoch), 5)
	}
	publish(6, AtOnce)
	eventually(t, early, 6)
	use(early, end, 6)
	publish(7, NextEpoch)
	if got, _, err := Read(t.Context(), client); err != nil || got.Counts.Companies() != 7 {
		t.Errorf("the newest is of %d companies, %v", got.Counts.Companies(), err)
	}
	eventually(t, late, 6)
}

// TestWaitingCountsAreNotPutOff publishes counts in the last seconds of an epoch, after those that wait
// for its end.
func TestWaitingCountsAreNotPutOff(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := PublishCounts(t.Context(), client, counts(3), 1, NextEpoch); err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(notice / 2) // as if another process had published long before
	waiting := counts(4)
	waiting.Epoch = time.Hour
	if err := PublishCounts(t.Context(), client, waiting, 1, NextEpoch); err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), redis.Universe(), "counts_from", end.UnixMilli()).Err(); err != nil {
		t.Fatal(err)
	}
	late := counts(5)
	late.Epoch = time.Hour
	if err := PublishCounts(t.Context(), client, late, 1, NextEpoch); err != nil {
		t.Fatal(err)
	}
	f := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
	defer f.Close()
	if got := f.Tables(end).Distribution().Count; got != 4 {
		t.Errorf("%d companies after the epoch, want 4", got)
	}
}

// TestPartsHaveEpochsOfTheirOwn adopts movers and counts at different instants.
func TestPartsHaveEpochsOfTheirOwn(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_780_000_000_000)
	movers := func(version string) universe.Movers { return universe.Movers{PipelineVersion: version} }
	p := parts{
		counts: part[universe.Counts]{newest: counts(2), before: counts(1), from: now.Add(10 * time.Minute)},
		movers: part[universe.Movers]{newest: movers("new"), before: movers("old"), from: now.Add(5 * time.Minute)},
	}
	ahead, err := p.ahead(now)
	if err != nil {
		t.Fatal(err)
	}
	f := &Follower{}
	f.ahead.Store(&ahead)
	for _, step := range []struct {
		after     time.Duration
		companies int64
		movers    string
	}{{0, 1, "old"}, {5*time.Minute - time.Millisecond, 1, "old"}, {5 * time.Minute, 1, "new"}, {10*time.Minute - time.Millisecond, 1,
		"new"}, {10 * time.Minute, 2, "new"}} {
		for _, forget := range []bool{false, true} {
			if forget {
				f.forget(now.Add(step.after))
			}
			tables := f.Tables(now.Add(step.after))
			if tables.Distribution().Count != step.companies || tables.Movers().PipelineVersion != step.movers {
				t.Errorf("after %s: %d companies, %s movers, want %+v", step.after, tables.Distribution().Count,
					tables.Movers().PipelineVersion, step)
			}
		}
	}
	if len(*f.ahead.Load()) != 1 {
		t.Errorf("%d tables are kept", len(*f.ahead.Load()))
	}
}

// TestWhatIsNotDamagedIsServed damages fields of the snapshot one by one. A server that starts then has
// the counts and movers that can be read, and the next publication replaces the damage.
func TestWhatIsNotDamagedIsServed(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	movers := func(version string) universe.Movers {
		return universe.Movers{PipelineVersion: version, Epoch: time.Hour, Lists: map[universe.Window]universe.MoverList{universe.Week: {}}}
	}
	for _, c := range []struct {
		field     string
		companies int64  // in use after the damage, 0 if there are no tables
		movers    string // in use after the damage
	}{
		{"movers", 3, "before"}, {"movers_before", 3, "newest"}, {"movers_from", 3, "newest"}, {"movers_fence", 3, "before"},
		{"counts", 0, ""}, {"counts_from", 3, "before"}, {"counts_fence", 3, "before"}, {"revision", 3, "before"},
	} {
		t.Run(c.field, func(t *testing.T) {
			publish := func(m universe.Movers, companies int) {
				t.Helper()
				if err := errors.Join(PublishMovers(t.Context(), client, m, 1, NextEpoch),
					PublishCounts(t.Context(), client, counts(companies), 1, NextEpoch)); err != nil {
					t.Fatal(err)
				}
			}
			use := func(companies int64, movers string) {
				t.Helper()
				f := Follow(t.Context(), client, slog.New(slog.DiscardHandler))
				defer f.Close()
				tables := f.Tables(time.Now())
				if companies == 0 {
					if tables != nil {
						t.Error("there are tables without counts")
					}
					return
				}
				if tables == nil || tables.Distribution().Count != companies || tables.Movers().PipelineVersion != movers {
					t.Fatalf("a server has %+v, want %d companies and the movers %q", tables, companies, movers)
				}
			}
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			publish(movers("before"), 3)
			publish(movers("newest"), 3)
			if err := client.HSet(t.Context(), redis.Universe(), c.field, "damaged").Err(); err != nil {
				t.Fatal(err)
			}
			use(c.companies, c.movers)
			found, err := HasMovers(t.Context(), client)
			if damaged := c.field == "movers"; err != nil || found == damaged {
				t.Errorf("movers can be read: %v, %v", found, err)
			}
			again := movers("again")
			again.Epoch = 0 // adopted at once
			publish(again, 4)
			use(4, "again")
		})
	}
}
