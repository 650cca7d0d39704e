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

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/scoring"
	"companyscore/scoring/source"
)

// manyFacts has facts of all companies whose domain begins with a letter before m. It fails its
// first calls while away is positive.
type manyFacts struct {
	away  int
	calls int // of GetMany
	asked int // domains in them
}

func (m *manyFacts) Get(_ context.Context, domain string) ([]scoring.CompanyFacts, error) {
	if domain >= "m" {
		return nil, nil
	}
	staff := float64(len(domain))
	return []scoring.CompanyFacts{{Domain: domain, CompanyName: "Company " + domain, Country: "US", Employees: &staff, FoundedYear: 1999,
		HiringRegions: 4}}, nil
}

func (m *manyFacts) GetMany(ctx context.Context, domains []string) (map[string][]scoring.CompanyFacts, error) {
	m.calls++
	m.asked += len(domains)
	if m.away > 0 {
		m.away--
		return nil, errAway
	}
	found := make(map[string][]scoring.CompanyFacts)
	for _, domain := range domains {
		if layers, err := m.Get(ctx, domain); err == nil && layers != nil {
			found[domain] = layers
		}
	}
	return found, nil
}

// alone is facts as a source without groups.
type alone struct{ source.Source }

func groupOf(domains ...string) []scoring.Run {
	runs := make([]scoring.Run, len(domains))
	for i, domain := range domains {
		runs[i] = scoring.Run{ID: fmt.Sprint("run", i), Domain: domain, StartedAt: run.StartedAt.Add(time.Duration(i) * time.Second)}
	}
	return runs
}

func TestGroupEqualsSingleRuns(t *testing.T) {
	t.Parallel()
	runs := groupOf("acme.com", "zoo.com", "bigger-company.de")
	earlier := scoring.Earlier{Reference: &scoring.Reference{ScoredAt: run.StartedAt.AddDate(0, 0, -30), Base: 20}}
	store := &manyFacts{}
	grouped := &history{earlier: earlier, earlierOf: "acme.com"}
	w := newWorker(t, grouped, source.Facts{Store: store})
	if !w.Grouped() {
		t.Fatal("facts alone are not asked for in groups")
	}
	outcomes := w.Run(t.Context(), runs, noneLost)
	if store.calls != 1 || store.asked != len(runs) {
		t.Errorf("%d questions for %d facts, want one for %d", store.calls, store.asked, len(runs))
	}
	for i, r := range runs {
		own := &history{}
		if r.Domain == "acme.com" {
			own.earlier = earlier
		}
		single := newWorker(t, own, alone{source.Facts{Store: store}})
		if single.Grouped() {
			t.Fatal("a source that answers for one company at a time is asked for a group")
		}
		want := only(single.Run(t.Context(), []scoring.Run{r}, noneLost))
		if outcomes[i] != want || want.Err != nil {
			t.Errorf("%s: outcome %+v in a group, %+v alone", r.Domain, outcomes[i], want)
		}
		if diff := cmp.Diff(own.records[0], grouped.records[i], cmpopts.IgnoreUnexported(scoring.SignalScore{})); diff != "" {
			t.Errorf("%s: record in a group differs from that alone:\n%s", r.Domain, diff)
		}
	}
	if want := []string{"acme.com", "zoo.com", "bigger-company.de"}; !slices.Equal(grouped.published, want) {
		t.Errorf("published %v, want %v", grouped.published, want)
	}
	if len(grouped.traces) != 0 {
		t.Errorf("facts alone leave %d traces, want none", len(grouped.traces))
	}
}

func TestBadRunOfGroupFailsAlone(t *testing.T) {
	t.Parallel()
	h := &history{refuses: "refused.com"}
	runs := groupOf("good.com", "refused.com", "", "lost.com", "better.com") // scoring refuses an empty domain
	outcomes := newWorker(t, h, source.Facts{Store: &manyFacts{}}).Run(t.Context(), runs, func(i int) bool { return i == 3 })
	for i, wrong := range []bool{false, true, true, true, false} {
		if out := outcomes[i]; (out.Err != nil) != wrong || out.ScoredAt.IsZero() != wrong {
			t.Errorf("run %d of %q = %+v, want an error %v", i, runs[i].Domain, out, wrong)
		}
	}
	if !errors.Is(outcomes[1].Err, errRefused) {
		t.Errorf("refused record = %v", outcomes[1].Err)
	}
	if want := []string{"good.com", "better.com"}; !slices.Equal(h.published, want) {
		t.Errorf("published %v, want %v", h.published, want)
	}
	for _, rec := range h.records {
		if rec.Domain == "lost.com" {
			t.Error("a record was written of a run that was aborted")
		}
	}
}

func TestGroupRetriesStoreOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &history{fails: 3}
		outcomes := newWorker(t, h, source.Facts{Store: &manyFacts{away: 2}}).Run(t.Context(), groupOf("a.com", "b.com"), noneLost)
		for i, out := range outcomes {
			if out.Err != nil || signal(h.records[i], "employee_count").Raw != 5 || len(h.records[i].Warnings) != 0 {
				t.Errorf("run %d: %v, employees %+v", i, out.Err, signal(h.records[i], "employee_count"))
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		h := &history{}
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		outcomes := newWorker(t, h, source.Facts{Store: &manyFacts{away: 1000}}).Run(ctx, groupOf("a.com", "b.com"), noneLost)
		for _, out := range outcomes {
			if !errors.Is(out.Err, context.DeadlineExceeded) || !strings.Contains(out.Err.Error(), errAway.Error()) || len(h.records) != 0 {
				t.Errorf("outcome %v with %d records; want the deadline, its cause and none", out.Err, len(h.records))
			}
		}
	})
}

func TestRefreshWithoutNewsMakesNoRecord(t *testing.T) {
	t.Parallel()
	refreshes := func(domains ...string) []scoring.Run {
		runs := groupOf(domains...)
		for i := range runs {
			runs[i].Lane = scoring.LaneRefresh
		}
		return runs
	}
	h := &history{unchanged: []string{"same.com", "too.com"}}
	w := newWorker(t, h, source.Facts{Store: &manyFacts{}})
	outcomes := w.Run(t.Context(), refreshes("same.com", "new.com", "too.com", "lost.com"), func(i int) bool { return i == 3 })
	for i, out := range outcomes {
		if (out.Err != nil) != (i == 3) || out.ScoredAt.IsZero() != (i != 1) {
			t.Errorf("refresh %d = %+v, want a record of the second alone and the last one lost", i, out)
		}
	}
	if want := []string{"new.com"}; !slices.Equal(h.published, want) || len(h.records) != 1 {
		t.Errorf("published %v of %d records, want %v", h.published, len(h.records), want)
	}
	// Whoever else asks for a company gets a record of it.
	if out := only(w.Run(t.Context(), groupOf("same.com"), noneLost)); out.Err != nil || out.ScoredAt.IsZero() {
		t.Errorf("run of a customer = %+v, want a record", out)
	}
	// Other sources than facts may know something new at any time.
	own := &history{unchanged: []string{"same.com"}}
	if out := only(newWorker(t, own, alone{source.Facts{Store: &manyFacts{}}}).Run(t.Context(), refreshes("same.com"),
		noneLost)); out.Err != nil || out.ScoredAt.IsZero() {
		t.Errorf("refresh by other sources = %+v, want a record", out)
	}
	synctest.Test(t, func(t *testing.T) {
		h := &history{unchanged: []string{"same.com"}, fails: 2}
		if out := only(newWorker(t, h, source.Facts{Store: &manyFacts{}}).Run(t.Context(), refreshes("same.com"),
			noneLost)); out.Err != nil || !out.ScoredAt.IsZero() {
			t.Errorf("refresh while the store was away = %+v, want an end without a record", out)
		}
	})
}
