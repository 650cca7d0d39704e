package meter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"companyscore/internal/account"
	"companyscore/internal/queue"
	"companyscore/scoring"
)

func TestDefaultLimitsAreTheTable(t *testing.T) {
	t.Parallel()
	f := func(plan account.Plan, window time.Duration, cached, cold int64) {
		t.Helper()
		got := DefaultLimits().Plans[plan]
		if got.FreshnessWindow != window || *got.CachedCallsIncluded != cached || *got.ColdCallsIncluded != cold {
			t.Errorf("limits of %s = %+v", plan, got)
		}
	}
	f(account.Free, 7*24*time.Hour, 1_000, 0)
	f(account.Starter, 24*time.Hour, 10_000, 100)
	f(account.Growth, 6*time.Hour, 100_000, 1_000)
	f(account.Scale, time.Hour, 1_000_000, 10_000)
	if got := DefaultLimits().Plans[account.Enterprise]; got != (PlanLimits{FreshnessWindow: 15 * time.Minute}) {
		t.Errorf("limits of enterprise = %+v, want unmetered", got)
	}
	if diff := cmp.Diff(queue.DefaultWeights(), DefaultLimits().Lanes); diff != "" {
		t.Errorf("the lanes differ from those of the queue (-want +got):\n%s", diff)
	}
}

func TestFileChangesOnlyWhatItNames(t *testing.T) {
	t.Parallel()
	f := func(text string, change func(*Limits)) {
		t.Helper()
		want := DefaultLimits()
		change(&want)
		path := filepath.Join(t.TempDir(), "tiers.yaml")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := LoadLimits(path)
		if err != nil {
			t.Errorf("LoadLimits(%q) = %v", text, err)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("LoadLimits(%q) differs (-want +got):\n%s", text, diff)
		}
	}
	five := int64(5)
	f("", func(*Limits) {})
	f("# nothing\n", func(*Limits) {})
	f("tiers: {starter: {cold_calls_included: 5}}", func(l *Limits) {
		limits := l.Plans[account.Starter]
		limits.ColdCallsIncluded = &five
		l.Plans[account.Starter] = limits
	})
	f("tiers:\n  growth:\n    cold_calls_included: null\n    freshness_window: 90s\n", func(l *Limits) {
		limits := l.Plans[account.Growth]
		limits.ColdCallsIncluded, limits.FreshnessWindow = nil, 90*time.Second
		l.Plans[account.Growth] = limits
	})
	f("breakers: {cold_per_key: {limit: 5}}", func(l *Limits) { l.Breakers.ColdPerKey.Limit = 5 })
	f("breakers: {cold_per_account: {budget_multiple: 5, window: 1h}}", func(l *Limits) {
		l.Breakers.ColdPerAccount.BudgetMultiple, l.Breakers.ColdPerAccount.Window = 5, time.Hour
	})
	f("job_ttl: 1h\nrun_deadline: 5s", func(l *Limits) { l.JobTTL, l.RunDeadline = time.Hour, 5*time.Second })
	f("lanes: {bulk: 0, api: 5}", func(l *Limits) { l.Lanes[scoring.LaneBulk], l.Lanes[scoring.LaneAPI] = 0, 5 })
	f("tiers: {starter: &s {cold_calls_included: 5, cached_calls_included: 5, freshness_window: 1h}, growth: *s}", func(l *Limits) {
		limits := PlanLimits{FreshnessWindow: time.Hour, CachedCallsIncluded: &five, ColdCallsIncluded: &five}
		l.Plans[account.Starter], l.Plans[account.Growth] = limits, limits
	})
	if got, err := LoadLimits(""); err != nil || !cmp.Equal(got, DefaultLimits()) {
		t.Errorf("LoadLimits without a file = %+v, %v; want the defaults", got, err)
	}
}

func TestFileFaultsAreNamed(t *testing.T) {
	t.Parallel()
	f := func(text string, want ...string) {
		t.Helper()
		_, err := parseLimits([]byte(text))
		if err == nil {
			t.Errorf("parseLimits(%q) gave no error", text)
			return
		}
		for _, fault := range want {
			if !strings.Contains(err.Error(), fault) {
				t.Errorf("the faults of %q lack %q:\n%s", text, fault, err)
			}
		}
	}
	f(strings.TrimSpace(`
tiers:
  starter:
    freshness_window: soon
    cold_calls: 5
  gold: {}
  growth:
breakers:
  cold_per_key: {limit: many}
  cold_per_account: {budget_multiple: 2.5, window: null}
job_ttl: 30
jobs: 5
`),
		"line 3: cannot unmarshal !!str `soon` into time.Duration",
		"line 4: field cold_calls not found",
		"line 5: field gold not found",
		`line 6: growth must not be ""`,
		"line 8: cannot unmarshal !!str `many` into int64",
		`line 9: budget_multiple must not be "2.5"`,
		`line 9: window must not be "null"`,
		"line 10: cannot unmarshal !!int `30` into time.Duration",
		"line 11: field jobs not found")
	f(`
tiers: {starter: {cached_calls_included: -1}, scale: {cold_calls_included: 9999999999999}}
breakers: {cold_per_key: {limit: 0, window: -1h}, cold_per_account: {budget_multiple: 1001}}
run_deadline: 0s
lanes: {api: -1, bulk: 1001}
`,
		"tiers.starter.cached_calls_included must be a whole number of 0",
		"tiers.scale.cold_calls_included must be a whole number of 0 to",
		"breakers.cold_per_key.limit must be a whole number of 1 to",
		"breakers.cold_per_key.window must be more than 0 and at most 87600h",
		"breakers.cold_per_account.budget_multiple must be a whole number of 1 to 1000",
		"run_deadline must be more than 0",
		"lanes.api must be a whole number of 0 to 1000", "lanes.bulk must be")
	f("job_ttl: 1h\njob_ttl: 2h", `line 2: mapping key "job_ttl" already defined`)
	f("tiers: []", "line 1: cannot unmarshal !!seq into")
	f("7", "line 1: cannot unmarshal !!int `7` into")
	f("job_ttl: 1h\n---\njob_ttl: 1h", "must hold one document")
	f("tiers: {starter", "yaml:")
	f("lanes: {refresh: 1.5, bulk: many}", `line 1: refresh must not be "1.5"`, "line 1: cannot unmarshal !!str `many`")
	f("lanes:\n  slow: 1", `lane "slow": use one of ["api" "refresh" "bulk"]`)
	f("lanes: {api: 0, refresh: 0, bulk: 0}", "lanes: at least one lane must have a weight above 0")
	if _, err := LoadLimits(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "none.yaml") {
		t.Errorf("LoadLimits of no file = %v, want an error that names it", err)
	}
	path := filepath.Join(t.TempDir(), "tiers.yaml")
	must(t, os.WriteFile(path, []byte("jobs: 5"), 0o600))
	if _, err := LoadLimits(path); err == nil || !strings.Contains(err.Error(), path) ||
		!strings.Contains(err.Error(), "\njob_ttl: 720h\n") {
		t.Errorf("LoadLimits of a bad file = %v, want an error that names it and shows the defaults", err)
	}
}

func FuzzParseLimits(f *testing.F) {
	f.Add("tiers: {starter: {cold_calls_included: null}}\nbreakers: {cold_per_key: {limit: 1, window: 1h}}\njob_ttl: 1h")
	f.Add("lanes: {api: 0, bulk: 3}")
	f.Add("a: &a [*a]")
	f.Add("---\n---")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := parseLimits([]byte(text))
		if err != nil {
			return
		}
		for _, name := range account.Plans {
			limits, ok := l.Plans[name]
			if !ok || limits.FreshnessWindow <= 0 || (limits.ColdCallsIncluded != nil && *limits.ColdCallsIncluded < 0) {
				t.Errorf("parseLimits(%q) gave tier %s limits %+v", text, name, limits)
			}
		}
		if err := l.Lanes.Validate(); err != nil || len(l.Lanes) != len(scoring.Lanes) {
			t.Errorf("parseLimits(%q) gave the lanes %v: %v", text, l.Lanes, err)
		}
		if l.JobTTL <= 0 || l.RunDeadline <= 0 || l.Breakers.ColdPerKey.Limit < 1 || l.Breakers.ColdPerAccount.BudgetMultiple < 1 {
			t.Errorf("parseLimits(%q) = %+v", text, l)
		}
	})
}
