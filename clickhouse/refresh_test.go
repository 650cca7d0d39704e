package clickhouse_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// aged is a company with the inputs of the refresh job. Zero times mean never.
type aged struct {
	domain                   string
	scored, current          time.Time // newest record, and newest of the current version
	imported, asked, started time.Time
}

// target returns the target age of a company.
func (a aged) target(at time.Time, t table.RefreshTargets) time.Duration {
	if !a.asked.IsZero() && !a.asked.Truncate(24*time.Hour).Before(at.Add(-table.AskedWithin).Truncate(24*time.Hour)) {
		return t.Ages.Asked
	}
	return t.Ages.Others
}

// waits returns the ratio of age to target age, and whether the company is due.
func (a aged) waits(at time.Time, t table.RefreshTargets) (float64, bool) {
	last, target := a.scored, a.target(at, t)
	if a.started.After(last) {
		last = a.started
	}
	news := t.Live || a.imported.After(a.scored) || a.scored.After(a.current)
	return float64(at.Sub(last)) / float64(target), !a.scored.IsZero() && at.Sub(last) > target && news
}

// TestRefreshQueriesEqualAnIndependentComputation compares due companies, their order and the
// coverage with a computation per company in Go.
func TestRefreshQueriesEqualAnIndependentComputation(t *testing.T) {
	t.Parallel()
	db := open(t)
	u, scores := clickhouse.NewUniverse(db), clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { scores.Close(t.Context()) })
	rng := rand.New(rand.NewPCG(7, 7))
	at := time.Now().UTC().Truncate(time.Millisecond)
	ago := func(most time.Duration) time.Time {
		return at.Add(-time.Duration(rng.Int64N(int64(most)))).Truncate(time.Millisecond)
	}
	var h history
	var records []written
	var imports [][]any
	asked, askedAtOnce := ago(29*24*time.Hour), []string(nil)
	started, startedAtOnce := []time.Time{ago(time.Hour), ago(3 * 24 * time.Hour), ago(10 * 24 * time.Hour)}, make(map[time.Time][]string)
	var universe []aged
	for i := range 400 {
		a := aged{domain: fmt.Sprintf("c%d.test", i)}
		for range rng.IntN(4) { // none for some, which are no companies yet
			rec := anyRecord(rng, a.domain, ago(20*24*time.Hour))
			if rng.IntN(3) == 0 {
				rec.PipelineVersion = "v0"
			} else if rec.ScoredAt.After(a.current) {
				a.current = rec.ScoredAt
			}
			if rec.ScoredAt.After(a.scored) {
				a.scored = rec.ScoredAt
			}
			records = append(records, written{rec, at})
		}
		if rng.IntN(2) == 0 {
			a.imported = ago(20 * 24 * time.Hour)
			imports = append(imports, []any{a.domain, a.imported}, []any{a.domain, a.imported.Add(-time.Hour)})
		}
		if rng.IntN(2) == 0 {
			a.asked = ago(60 * 24 * time.Hour)
			if i%10 == 0 { // each insert is a part
				for _, day := range []time.Time{a.asked.Add(-48 * time.Hour), a.asked} {
					if err := db.NoteAsked(t.Context(), []string{a.domain}, day); err != nil {
						t.Fatal(err)
					}
				}
			} else {
				a.asked = asked
				askedAtOnce = append(askedAtOnce, a.domain)
			}
		}
		if rng.IntN(3) == 0 {
			a.started = started[rng.IntN(len(started))]
			startedAtOnce[a.started] = append(startedAtOnce[a.started], a.domain)
		}
		universe = append(universe, a)
	}
	for part := range slices.Chunk(records, 50) { // parts that are not all merged
		h.write(t, db, part...)
	}
	if err := db.NoteAsked(t.Context(), askedAtOnce, asked); err != nil {
		t.Fatal(err)
	}
	for when, domains := range startedAtOnce {
		if err := u.NoteRefreshed(t.Context(), domains, when); err != nil {
			t.Fatal(err)
		}
	}
	insert, err := db.Conn().PrepareBatch(t.Context(), "INSERT INTO company_facts (domain, imported_at)")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range imports {
		if err := insert.Append(row...); err != nil {
			t.Fatal(err)
		}
	}
	if err := insert.Send(); err != nil {
		t.Fatal(err)
	}
	for _, targets := range []table.RefreshTargets{
		{Ages: table.RefreshAges{Asked: 24 * time.Hour, Others: 7 * 24 * time.Hour}, Live: true},
		{Ages: table.RefreshAges{Asked: 24 * time.Hour, Others: 7 * 24 * time.Hour}},
		{Ages: table.RefreshAges{Asked: 48 * time.Hour, Others: time.Minute}},
	} {
		var due []aged
		var want table.RefreshCoverage
		for _, a := range universe {
			if a.scored.IsZero() {
				continue
			}
			want.Companies++
			if at.Sub(a.scored) <= a.target(at, targets) {
				want.Young++
			}
			if want.Oldest.IsZero() || a.scored.Before(want.Oldest) {
				want.Oldest = a.scored
			}
			if _, ok := a.waits(at, targets); ok {
				due = append(due, a)
			}
		}
		want.Due = uint64(len(due))
		slices.SortFunc(due, func(a, b aged) int {
			x, _ := a.waits(at, targets)
			y, _ := b.waits(at, targets)
			return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.domain, b.domain))
		})
		got, err := u.RefreshCoverage(t.Context(), at, targets)
		if err != nil || got != want {
			t.Errorf("%+v: coverage %+v, %v; want %+v", targets, got, err, want)
		}
		if want.Due < 20 || want.Young == 0 || want.Young == want.Companies {
			t.Errorf("%+v: %+v compares little", targets, want)
		}
		for _, limit := range []int{10, 1000} {
			domains, err := u.RefreshDue(t.Context(), at, targets, limit)
			if err != nil || len(domains) != min(limit, len(due)) {
				t.Fatalf("%+v: %d due of at most %d, %v; want of %d", targets, len(domains), limit, err, len(due))
			}
			for i, domain := range domains {
				if domain != due[i].domain {
					t.Fatalf("%+v: number %d is %s, want %s", targets, i, domain, due[i].domain)
				}
			}
		}
	}
	var all []string
	for _, a := range universe {
		all = append(all, a.domain)
	}
	unchanged, err := scores.Unchanged(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for _, a := range universe {
		want := !a.scored.IsZero() && !a.imported.After(a.scored) && !a.scored.After(a.current)
		if unchanged[a.domain] != want {
			t.Errorf("%+v: unchanged %v, want %v", a, unchanged[a.domain], want)
		}
		if want {
			same++
		}
	}
	if same < 50 || same > 350 {
		t.Errorf("%d of %d are unchanged, which compares little", same, len(universe))
	}
}

func TestCoverageOfNoCompanies(t *testing.T) {
	t.Parallel()
	u := clickhouse.NewUniverse(open(t))
	targets := table.RefreshTargets{Ages: table.RefreshAges{Asked: time.Hour, Others: time.Hour}}
	if got, err := u.RefreshCoverage(t.Context(), time.Now(), targets); err != nil || got != (table.RefreshCoverage{}) || got.Share() != 1 {
		t.Errorf("coverage of nothing = %+v, %v", got, err)
	}
}

// TestImportedFactsAreNewerThanRecords checks that an import makes scored companies
// due for a refresh.
func TestImportedFactsAreNewerThanRecords(t *testing.T) {
	t.Parallel()
	db := open(t)
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	t.Cleanup(func() { scores.Close(t.Context()) })
	record := func() {
		t.Helper()
		rec := scoring.Record{Domain: "acme.com", PipelineVersion: scoring.PipelineVersion, ScoredAt: time.Now(),
			Confidence: scoring.BandLow, Profile: scoring.ProfileGrowth, Rating: scoring.Rating5}
		if err := scores.Write(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(want bool) {
		t.Helper()
		if got, err := scores.Unchanged(t.Context(), []string{"acme.com"}); err != nil || got["acme.com"] != want {
			t.Fatalf("unchanged %v, %v; want %v", got, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "facts.csv")
	if err := os.WriteFile(path, []byte(strings.Join([]string{"domain,employees", "acme.com,10", ""}, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() {
		t.Helper()
		if report, err := facts.Import(t.Context(), clickhouse.NewFacts(db), path, facts.Options{}); err != nil || report.Imported != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
	}
	wants(false) // never scored
	record()
	wants(true) // without facts
	load()
	wants(false)
	record()
	wants(true)
	load()
	wants(true) // the same facts
	if err := os.WriteFile(path, []byte("domain,employees\nacme.com,11\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load()
	wants(false)
	record()
	wants(true)
	if _, err := clickhouse.NewFacts(db).RemoveOrigin(t.Context(), "facts"); err != nil {
		t.Fatal(err)
	}
	wants(false)
}

// TestCoverageIsInTheView compares v1_freshness with the recorded coverage.
func TestCoverageIsInTheView(t *testing.T) {
	t.Parallel()
	db := open(t)
	u := clickhouse.NewUniverse(db)
	const query = `SELECT concat(ifNull(toString(refresh_at), '-'), ' ', ifNull(toString(refresh_young_share), '-'), ' ', ifNull(toString(refresh_due), '-'), ' ', ifNull(toString(refresh_oldest_at), '-'))
		FROM v1_freshness WHERE is_current`
	wants := func(want string) {
		t.Helper()
		if got := column(t, db, query); !slices.Equal(got, []string{want}) {
			t.Errorf("v1_freshness says %q, want %q", got, want)
		}
	}
	wants("- - - -")
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	record := func(id string, at time.Time, outcome table.BatchOutcome, c table.RefreshCoverage) {
		t.Helper()
		run := table.BatchRun{ID: id, Job: "refresh", StartedAt: at, Outcome: outcome, Companies: c.Companies,
			Refresh: &table.Refreshed{RefreshCoverage: c}}
		if err := u.WriteRuns(t.Context(), []table.BatchRun{run, {ID: id + "x", Job: "count", StartedAt: at.Add(time.Hour),
			Outcome: table.BatchOK, Companies: 9}}); err != nil {
			t.Fatal(err)
		}
	}
	record("a", noon, table.BatchOK, table.RefreshCoverage{Companies: 8, Young: 2, Due: 5, Oldest: noon.AddDate(0, 0, -9)})
	wants("2026-05-01 12:00:00.000 0.25 5 2026-04-22 12:00:00.000")
	record("b", noon.Add(time.Minute), table.BatchOK, table.RefreshCoverage{Companies: 8, Young: 6, Due: 1, Oldest: noon.AddDate(0, 0, -8)})
	record("c", noon.Add(2*time.Minute), table.BatchFailed, table.RefreshCoverage{})
	wants("2026-05-01 12:01:00.000 0.75 1 2026-04-23 12:00:00.000")
	record("d", noon.Add(3*time.Minute), table.BatchOK, table.RefreshCoverage{})
	wants("2026-05-01 12:03:00.000 - 0 -")
}
