package worker_test

import (
	"context"
	"testing"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

func TestFailedSourceKeepsItsLastAnswer(t *testing.T) {
	t.Parallel()
	h := &history{}
	jobs, wikidata := says("jobs", nil, "open_roles", 12), says("wikidata", nil, "employee_count", 250)
	first, _, err := work(t, h, jobs, wikidata)
	if err != nil {
		t.Fatal(err)
	}
	first.ScoredAt = first.ScoredAt.Add(-time.Hour)
	for i := range first.Signals {
		if !first.Signals[i].ObservedAt.IsZero() {
			first.Signals[i].ObservedAt = first.ScoredAt
		}
	}
	h.earlier = scoring.Earlier{Previous: &first}
	second, _, err := work(t, h, fails("jobs", context.DeadlineExceeded), wikidata)
	if err != nil {
		t.Fatal(err)
	}
	roles, employees := signal(second, "open_roles"), signal(second, "employee_count")
	if roles.Raw != 12 || !roles.ObservedAt.Equal(first.ScoredAt) || !roles.Old(second.ScoredAt) || employees.Old(second.ScoredAt) ||
		second.Composite != first.Composite {
		t.Errorf("roles %+v, employees %+v, composite %v, before %v", roles, employees, second.Composite, first.Composite)
	}
	codes := make(map[string]string)
	for _, w := range second.Warnings {
		codes[w.Code] = w.Source
	}
	if len(codes) != 2 || codes["timeout"] != "jobs" || codes[scoring.WarningStale] != "jobs" {
		t.Errorf("warnings = %v, want the failure and the age", second.Warnings)
	}
	// The source answers again, that there are none.
	third, _, err := work(t, h, fake{"jobs", func(context.Context) (source.Result, error) {
		return source.Result{Observations: []scoring.Observation{{Signal: "open_roles", State: scoring.StateAbsent, Source: "jobs"}}}, nil
	}}, wikidata)
	if err != nil || signal(third, "open_roles").State != scoring.StateAbsent || len(third.Warnings) != 0 {
		t.Errorf("roles %+v with warnings %v, %v; want an absence without any", signal(third, "open_roles"), third.Warnings, err)
	}
}

func TestGroupCarriesWhatFactsLack(t *testing.T) {
	t.Parallel()
	h := &history{}
	first, _, err := work(t, h, says("jobs", nil, "open_roles", 12))
	if err != nil {
		t.Fatal(err)
	}
	first.Domain = "acme.com"
	grouped := &history{earlier: scoring.Earlier{Previous: &first}, earlierOf: "acme.com"}
	runs := groupOf("acme.com", "zoo.com")
	for i := range runs {
		runs[i].StartedAt = runs[i].StartedAt.Add(time.Hour)
	}
	newWorker(t, grouped, source.Facts{Store: &manyFacts{}}).Run(t.Context(), runs, noneLost)
	if rec := grouped.records[0]; signal(rec, "open_roles").Raw != 12 || signal(rec, "employee_count").Raw != 8 {
		t.Errorf("roles %+v, employees %+v", signal(rec, "open_roles"), signal(rec, "employee_count"))
	}
	if rec := grouped.records[1]; signal(rec, "open_roles").Known() {
		t.Errorf("roles of another company: %+v", signal(rec, "open_roles"))
	}
}

// The sources that wait for a failed one are asked about the company that it found last.
func TestFailedSourceKeepsItsClaims(t *testing.T) {
	t.Parallel()
	h := &history{past: []scoring.Past{{At: run.StartedAt.Add(-time.Hour), Claims: []scoring.Claim{
		claim(source.LEI, "5299000BRINDLEWORKS1", "wikidata"), claim(source.Name, "Old", "wikidata"),
		claim(source.Name, "Brindle Works", "web"),
	}}}}
	var asked source.Company
	gleif := planned{"gleif", source.Plan{After: []string{"wikidata", "web"}}, func(_ context.Context, req source.Request) (source.Result,
		error) {
		asked = req.Company
		return source.Result{}, nil
	}}
	partial := planned{"wikidata", source.Plan{}, func(context.Context, source.Request) (source.Result, error) {
		return source.Result{Claims: []source.Claim{claim(source.Name, "New", "wikidata")}}, context.DeadlineExceeded
	}}
	if _, _, err := work(t, h, partial, says("web", nil, "product_surface", 2), gleif); err != nil {
		t.Fatal(err)
	}
	if asked.Get(source.LEI) != "5299000BRINDLEWORKS1" || len(asked.All(source.Name)) != 1 || asked.Get(source.Name) != "New" {
		t.Errorf("asked about %v; want the old identifier of the source that failed, its new name, and nothing old of the one that "+
			"answered", asked.Claims())
	}
	var kept bool
	for _, c := range h.traces[0].Claims {
		kept = kept || c.Kind == source.LEI
	}
	if !kept {
		t.Errorf("the trace has %v, and not the kept identifier", h.traces[0].Claims)
	}
}
