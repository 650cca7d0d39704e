package clickhouse_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"companyscore/clickhouse"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
)

func traces(t testing.TB, db *clickhouse.DB) *clickhouse.Traces {
	tr := clickhouse.NewTraces(db, clickhouse.WriterConfig{})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
		defer cancel()
		if err := tr.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return tr
}

func trace(domain string, at time.Time, roles float64) scoring.Trace {
	return scoring.Trace{
		Domain: domain, ScoredAt: at, RunID: "run",
		Sources: []scoring.SourceTrace{{Source: "jobs", Outcome: "answered", Took: 1234 * time.Millisecond},
			{Source: "ct", Outcome: "timeout", Took: 20 * time.Second}},
		Observations: []scoring.Observation{
			{Signal: "open_roles", State: scoring.StateOK, Raw: roles, Source: "jobs"},
			{Signal: "subdomain_breadth", State: scoring.StateMissing, Source: "ct", Reason: scoring.ReasonSourceTimeout},
		},
		Claims: []scoring.Claim{{Kind: "name", Value: `Example "É" Inc`, Source: "web", Via: "jsonld",
			Evidence: "structured data of https://example.com/"}},
		Values: map[string]float64{"jobs.open_roles": roles, "ct.names": 0},
	}
}

func TestTraceComesBackAsItWas(t *testing.T) {
	t.Parallel()
	tr := traces(t, open(t))
	if err := tr.WriteTrace(t.Context(), trace("example.com", noon, 3)); err != nil {
		t.Fatal(err)
	}
	// A second attempt of the run replaces the trace of the first one.
	want := trace("example.com", noon, 4)
	if err := tr.WriteTrace(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Trace(t.Context(), "example.com", noon)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("trace (-written +read):\n%s", diff)
	}
	if _, err := tr.Trace(t.Context(), "example.com", noon.Add(time.Millisecond)); !errors.Is(err, scoring.ErrNotFound) {
		t.Errorf("trace of another run: %v, want ErrNotFound", err)
	}
}

func TestPastIsRecentAndOfDomain(t *testing.T) {
	t.Parallel()
	tr := traces(t, open(t))
	at := map[float64]time.Time{1: noon.AddDate(0, 0, -131), 2: noon.AddDate(0, 0, -90), 3: noon.AddDate(0, 0, -1), 4: noon}
	var writing errgroup.Group
	for roles, when := range at {
		writing.Go(func() error { return tr.WriteTrace(t.Context(), trace("example.com", when, roles)) })
		writing.Go(func() error { return tr.WriteTrace(t.Context(), trace("example.org", when, 99)) })
	}
	if err := writing.Wait(); err != nil {
		t.Fatal(err)
	}
	if err := tr.WriteTrace(t.Context(), trace("example.com", at[3], 5)); err != nil { // once more
		t.Fatal(err)
	}
	past, err := tr.Past(t.Context(), "example.com", noon)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range past {
		got = append(got, fmt.Sprint(p.At.Format(time.DateOnly), p.Values["jobs.open_roles"]))
	}
	want := []string{fmt.Sprint(at[3].Format(time.DateOnly), 5.0), fmt.Sprint(at[2].Format(time.DateOnly), 2.0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("past (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(trace("example.com", noon, 1).Claims, past[0].Claims); diff != "" || past[1].Claims != nil {
		t.Errorf("claims of the newest (-want +got):\n%s\nof the other: %v", diff, past[1].Claims)
	}
}

func TestSourceHealthCountsNewestRuns(t *testing.T) {
	t.Parallel()
	db := open(t)
	tr := traces(t, db)
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i, domain := range []string{"old.com", "a.com", "b.com"} {
		at := now.Add(time.Duration(i-3) * time.Minute)
		if err := tr.WriteTrace(t.Context(), trace(domain, at, 3)); err != nil {
			t.Fatal(err)
		}
		run := scoring.Run{ID: domain, Domain: domain, State: scoring.RunSucceeded, Lane: scoring.LaneAPI, CreatedAt: at, StartedAt: at,
			FinishedAt: at, ScoredAt: at, Attempts: 1}
		if err := db.WriteRuns(t.Context(), []scoring.Run{run}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := db.SourceHealth(t.Context(), now.Add(-time.Hour), 2)
	want := []scoring.SourceHealth{
		{Source: "ct", Asked: 2, Answered: 0, Mean: 20 * time.Second, Failures: []string{"timeout"}},
		{Source: "jobs", Asked: 2, Answered: 2, Mean: 1234 * time.Millisecond, Failures: []string{}},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("health of the newest two runs: %v\n%s", err, diff)
	}
}
