package worker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// planned is a fake source with a plan.
type planned struct {
	name  string
	plan  source.Plan
	fetch func(ctx context.Context, req source.Request) (source.Result, error)
}

func (p planned) Name() string      { return p.name }
func (p planned) Plan() source.Plan { return p.plan }
func (p planned) Fetch(ctx context.Context, req source.Request) (source.Result, error) {
	return p.fetch(ctx, req)
}

// after is a fake source that answers after d.
func after(name string, d time.Duration, waits ...string) planned {
	return planned{name, source.Plan{After: waits}, func(ctx context.Context, _ source.Request) (source.Result, error) {
		select {
		case <-time.After(d):
			return source.Result{Claims: []source.Claim{claim(source.Name, "by "+name, name)}}, nil
		case <-ctx.Done():
			return source.Result{}, ctx.Err()
		}
	}}
}

func TestSourcesSeeWhatTheyWaitedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var seen source.Request
		var began time.Duration
		start := time.Now()
		sec := planned{"sec", source.Plan{After: []string{"wikidata", "web"}}, func(_ context.Context, req source.Request) (source.Result,
			error) {
			seen, began = req, time.Since(start)
			return source.Result{}, nil
		}}
		wikidata := planned{"wikidata", source.Plan{}, func(context.Context, source.Request) (source.Result, error) {
			time.Sleep(3 * time.Second)
			return source.Result{
				Claims:       []source.Claim{claim(source.Name, "Example", "wikidata"), claim(source.CIK, "42", "wikidata")},
				Observations: []scoring.Observation{{Signal: "employee_count", State: scoring.StateOK, Raw: 250, Source: "wikidata"}},
			}, nil
		}}
		facts := says("facts", []source.Claim{claim(source.Name, "Imported", "facts")}, "open_roles", 3)
		h := &history{past: []scoring.Past{{At: run.StartedAt.AddDate(0, 0, -90), Values: map[string]float64{"jobs.open_roles": 5}}}}
		rec, _, err := work(t, h, sec, fails("web", context.DeadlineExceeded), wikidata, facts, after("hn", 10*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if began != 3*time.Second {
			t.Errorf("began after %s, want 3 s", began)
		}
		if got := seen.Company.All(source.Name); !slices.Equal(got, []string{"Imported", "Example"}) ||
			seen.Company.Get(source.CIK) != "42" {
			t.Errorf("claims seen: %q, %q", got, seen.Company.Get(source.CIK))
		}
		if !seen.HasAnswered("wikidata") || seen.HasAnswered("web") || seen.HasAnswered("hn") {
			t.Errorf("answered: %q", seen.Answered)
		}
		if raw, ok := seen.Raw("employee_count"); !ok || raw != 250 {
			t.Errorf("Raw = %v, %v", raw, ok)
		}
		if v, _, ok := seen.Before("jobs.open_roles", 60*24*time.Hour, 120*24*time.Hour); !ok || v != 5 {
			t.Errorf("Before = %v, %v", v, ok)
		}
		if _, _, ok := seen.Before("jobs.open_roles", 10*24*time.Hour, 60*24*time.Hour); ok {
			t.Error("a value of 90 days ago counts as 10 to 60 days old")
		}
		if rec.CompanyName != "Imported" || seen.Registrable != "example.com" {
			t.Errorf("name %q, registrable %q", rec.CompanyName, seen.Registrable)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("the run took %s, want the 10 s of the slowest source", took)
		}
	})
}

func TestPlanRejectsCyclicWaits(t *testing.T) {
	t.Parallel()
	_, err := tryWorker(after("web", 0, "sec"), after("sec", 0, "web"), after("dns", 0))
	if err == nil || !strings.Contains(err.Error(), "web, sec") {
		t.Errorf("New = %v, want both names", err)
	}
	if _, err := tryWorker(after("web", 0, "web"), after("sec", 0, "wikidata")); err != nil {
		t.Errorf("a source that waits for itself or for nobody: %v", err)
	}
}

func TestSourceThatIsOffIsSkipped(t *testing.T) {
	t.Parallel()
	off := planned{"github", source.Plan{Off: "needs a token"}, func(context.Context, source.Request) (source.Result, error) {
		t.Error("asked")
		return source.Result{}, nil
	}}
	rec, _, err := work(t, &history{}, off, after("jobs", 0, "github"))
	if err != nil {
		t.Fatal(err)
	}
	if s := signal(rec, "github_followers"); s.Reason != scoring.ReasonSourceDisabled || len(rec.Warnings) != 0 {
		t.Errorf("signal %+v, warnings %v", s, rec.Warnings)
	}
	if s := signal(rec, "open_roles"); s.Reason != scoring.ReasonNotFound {
		t.Errorf("signal of a source that said nothing = %+v", s)
	}
}

func TestEachSourceHasItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		slow := after("ct", time.Hour)
		slow.plan.Deadline = 6 * time.Second
		partial := planned{"web", source.Plan{Deadline: 4 * time.Second}, func(ctx context.Context, _ source.Request) (source.Result,
			error) {
			<-ctx.Done()
			return source.Result{
				Observations: []scoring.Observation{
					{Signal: "product_surface", State: scoring.StateOK, Raw: 3, Source: "web"},
					{Signal: "customer_proof", State: scoring.StateAbsent, Source: "web"},
				},
			}, fmt.Errorf("next page: %w", ctx.Err())
		}}
		rec, _, err := work(t, &history{}, slow, partial)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != 6*time.Second {
			t.Errorf("took %s, want 6 s", took)
		}
		if len(rec.Warnings) != 2 || rec.Warnings[0].Code != "timeout" || rec.Warnings[0].At.Sub(rec.ScoredAt) != 6*time.Second {
			t.Errorf("warnings %+v", rec.Warnings)
		}
		// Results before the failure stand; the rest is missing with the reason of the failure.
		if s := signal(rec, "product_surface"); s.Raw != 3 {
			t.Errorf("said before the failure: %+v", s)
		}
		if s := signal(rec, "customer_proof"); s.State != scoring.StateAbsent {
			t.Errorf("absence said before the failure: %+v", s)
		}
		if s := signal(rec, "site_size_urls"); s.Reason != scoring.ReasonSourceTimeout {
			t.Errorf("not said before the failure: %+v", s)
		}
	})
}

func TestSourcesEndBeforeRunDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		stop := make(chan struct{})
		deaf := planned{"hn", source.Plan{Deadline: 80 * time.Second}, func(context.Context, source.Request) (source.Result, error) {
			<-stop
			return source.Result{}, nil
		}}
		chain := []source.Source{deaf, after("wikidata", time.Hour), after("web", time.Hour, "wikidata"), after("sec", time.Hour, "web"),
			after("jobs", time.Hour, "sec")}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		h := &history{}
		if err := only(newWorker(t, h, chain...).Run(ctx, []scoring.Run{run}, noneLost)).Err; err != nil {
			t.Fatal(err)
		}
		close(stop)
		if took := time.Since(start); took > 86*time.Second {
			t.Errorf("took %s, want no more than 85 s and a moment", took)
		}
		if rec := h.records[0]; len(rec.Warnings) != 5 || rec.CompletenessPct != 0 {
			t.Errorf("%d warnings, completeness %v", len(rec.Warnings), rec.CompletenessPct)
		}
	})
}

func TestUnregisteredDomainFailsTheRun(t *testing.T) {
	t.Parallel()
	no := func(name string) planned {
		return planned{name, source.Plan{}, func(context.Context, source.Request) (source.Result, error) {
			return source.Result{Unregistered: true}, nil
		}}
	}
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		h := &history{}
		_, _, err := work(t, h, no("dns"), no("rdap"), after("web", time.Minute))
		if !errors.Is(err, scoring.ErrUnregistered) || len(h.records) != 0 || time.Since(start) != 0 {
			t.Errorf("Run = %v, %d records, after %s", err, len(h.records), time.Since(start))
		}
	})
	for name, other := range map[string]source.Source{
		"registry knows it": after("rdap", 0), "registry fails": fails("rdap", errAway), "no registry asked": after("hn", 0),
		"another source": no("web"),
	} {
		if _, _, err := work(t, &history{}, no("dns"), other); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTraceIsStoredWithRecord(t *testing.T) {
	t.Parallel()
	h := &history{}
	jobs := planned{"jobs", source.Plan{}, func(context.Context, source.Request) (source.Result, error) {
		return source.Result{
			Observations: []scoring.Observation{{Signal: "open_roles", State: scoring.StateOK, Raw: 7, Source: "jobs"}},
			Claims:       []source.Claim{claim(source.JobBoard, "lever/x", "jobs")}, Values: map[string]float64{source.ValueOpenRoles: 7,
				source.ValueHiringRegions: 3},
		}, nil
	}}
	rec, _, err := work(t, h, jobs, fails("ct", &source.Error{Code: "rate_limited", Err: errAway}))
	if err != nil || len(h.traces) != 1 {
		t.Fatalf("%d traces, %v", len(h.traces), err)
	}
	got := h.traces[0]
	if got.Domain != rec.Domain || !got.ScoredAt.Equal(rec.ScoredAt) || got.RunID != rec.RunID {
		t.Errorf("trace of %s at %s by %s", got.Domain, got.ScoredAt, got.RunID)
	}
	if got.Values["jobs.open_roles"] != 7 || len(got.Claims) != 1 || len(got.Sources) != 2 || got.Sources[0].Outcome != "answered" ||
		got.Sources[1].Outcome != "rate_limited" {
		t.Errorf("trace = %+v", got)
	}
	h = &history{}
	if _, _, err := work(t, h, says("facts", nil, "employee_count", 3)); err != nil || len(h.traces) != 0 {
		t.Errorf("facts alone leave %d traces, %v; want none", len(h.traces), err)
	}
}
