package seed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"companyscore/clickhouse"
	"companyscore/internal/domainname"
	"companyscore/internal/seed"
	"companyscore/internal/table"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/sql"
)

func TestMain(m *testing.M) {
	seed.SetPartMax(2000)
	stores.Main(m)
}

var until = time.Date(2026, 5, 1, 12, 0, 0, 123e6, time.UTC)

func plan(domains, records int, signals seed.Signals) seed.Spec {
	return seed.Spec{Universe: seed.Universe{Seed: 7, Domains: domains, Records: records, Until: until}, Signals: signals}
}

// database is a migrated one of a test's own.
type database struct {
	*clickhouse.DB
	address string
}

func open(t testing.TB) database {
	t.Helper()
	address := stores.ClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return database{db, address}
}

// ask returns the answer to a query, in text.
func (db database) ask(t testing.TB, query string) string {
	t.Helper()
	u, err := url.Parse(db.address)
	if err != nil {
		t.Fatal(err)
	}
	public := u.Path[1:]
	u.RawQuery, u.Path = url.Values{"database": {sql.Private(public)}}.Encode(), "/"
	query = strings.ReplaceAll(query, " v1_", " "+public+".v1_")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(query))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v %s", query, err, text)
	}
	return strings.TrimSpace(string(text))
}

func write(t *testing.T, db seed.Store, spec seed.Spec) {
	t.Helper()
	if _, err := seed.Write(t.Context(), db, spec, false, nil); err != nil {
		t.Fatal(err)
	}
}

// check compares the stored records with those of the package, per company.
func check(t *testing.T, db database, spec seed.Spec, companies ...uint64) {
	t.Helper()
	scores := clickhouse.NewScores(db.DB, clickhouse.WriterConfig{})
	t.Cleanup(func() { _ = scores.Close(context.Background()) })
	cast := seed.NewCast(spec.Seed)
	for _, i := range companies {
		var want []scoring.Record
		for j := range spec.Records {
			rec := cast.Record(spec.Universe, i, j)
			rec.BucketCompleteness, rec.Signals, rec.Warnings = scoring.BucketScores{}, nil, nil
			want = append(want, rec)
		}
		got, err := scores.History(t.Context(), seed.Domain(spec.Seed, i), scoring.Span{}, spec.Records+1)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("company %d: %s", i, diff)
		}
		whole, err := scores.Latest(t.Context(), seed.Domain(spec.Seed, i))
		if err != nil {
			t.Fatal(err)
		}
		newest := cast.Record(spec.Universe, i, 0)
		if spec.Signals == seed.SignalsNone {
			newest.Signals = nil
		}
		if diff := cmp.Diff(newest, whole, cmpopts.IgnoreUnexported(scoring.SignalScore{})); diff != "" {
			t.Fatalf("youngest record of company %d: %s", i, diff)
		}
	}
}

func TestStoreMatchesSeed(t *testing.T) {
	t.Parallel()
	db := open(t)
	spec := plan(2000, 5, seed.SignalsNewest)
	write(t, db, spec)
	n, err := db.CountRecords(t.Context())
	if err != nil || n != 10_000 {
		t.Errorf("%d records, %v; want 10000", n, err)
	}
	companies := []uint64{0, 1, 1999}
	for range 30 {
		companies = append(companies, rand.Uint64N(2000))
	}
	check(t, db, spec, companies...)
}

func TestSignalsOfAllOrOfNone(t *testing.T) {
	t.Parallel()
	for _, signals := range []seed.Signals{seed.SignalsAll, seed.SignalsNone} {
		db := open(t)
		spec := plan(10, 3, signals)
		write(t, db, spec)
		check(t, db, spec, 0, 5, 9)
		want := map[seed.Signals]string{seed.SignalsAll: "30", seed.SignalsNone: "0"}[signals]
		if with := db.ask(t, "SELECT countIf(length(`signal.id`) = 67) FROM score_history"); with != want {
			t.Errorf("signals %s: %s records have theirs, want %s", signals, with, want)
		}
	}
}

// failing fails to write parts after some.
type failing struct {
	seed.Store
	after atomic.Int64
}

var errFull = errors.New("disk is full")

func (f *failing) SeedRecords(ctx context.Context, p table.SeedPart) error {
	if f.after.Add(-1) < 0 {
		return errFull
	}
	return f.Store.SeedRecords(ctx, p)
}

func TestInterruptedUniverseIsFinishedAndGrows(t *testing.T) {
	t.Parallel()
	db := open(t)
	spec := plan(6000, 1, seed.SignalsNone)
	full := &failing{Store: db}
	full.after.Store(2)
	_, err := seed.Write(t.Context(), full, spec, false, nil)
	if !errors.Is(err, errFull) {
		t.Fatalf("got %v, want %v", err, errFull)
	}
	other := spec
	other.Domains = 500
	if _, err := seed.Write(t.Context(), db, other, false, nil); err == nil || !strings.Contains(err.Error(), "6000") {
		t.Errorf("another size while one is begun: %v", err)
	}
	write(t, db, spec)
	spec.Domains = 6500
	spec.Until = time.Time{} // the one of the beginning
	write(t, db, spec)
	spec.Until = until
	check(t, db, spec, 0, 1000, 5999, 6000, 6499)
	if got := db.ask(t, "SELECT uniqExact(domain), count() FROM v1_score_latest"); got != "6500\t6500" {
		t.Errorf("companies and newest scores: %s; want 6500 of both", got)
	}
	other = spec
	other.Records = 2
	if _, err := seed.Write(t.Context(), db, other, false, nil); err == nil || !strings.Contains(err.Error(), "seed 7, 1 records") {
		t.Errorf("another universe: %v", err)
	}
	if before, err := seed.Write(t.Context(), db, spec, false, nil); err != nil || before.Domains != 6500 || !before.Whole() {
		t.Errorf("once more: %+v, %v", before, err)
	}
}

func TestForeignRecordsAreNotMixedIn(t *testing.T) {
	t.Parallel()
	db := open(t)
	scores := clickhouse.NewScores(db.DB, clickhouse.WriterConfig{})
	defer scores.Close(t.Context())
	rec, err := scoring.Score(scoring.Input{Domain: "example.com", Now: until})
	if err != nil {
		t.Fatal(err)
	}
	if err := scores.Write(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
	spec := plan(5, 2, seed.SignalsNewest)
	if _, err := seed.Write(t.Context(), db, spec, false, nil); !errors.Is(err, seed.ErrNotEmpty) {
		t.Fatalf("got %v, want %v", err, seed.ErrNotEmpty)
	}
	if _, err := seed.Write(t.Context(), db, spec, true, nil); err != nil {
		t.Fatal(err)
	}
	check(t, db, spec, 0, 4)
}

func TestDomainsAreUniqueAndValid(t *testing.T) {
	t.Parallel()
	const n = 1 << 20
	names := seed.NewNames(3)
	seen := make(map[string]uint64, n)
	for i := range uint64(n) {
		d := string(names.AppendDomain(nil, i))
		if other, ok := seen[d]; ok {
			t.Fatalf("companies %d and %d are both %s", other, i, d)
		}
		seen[d] = i
		if i%1000 == 0 {
			if got, err := domainname.Parse(d); err != nil || got != d {
				t.Errorf("%s is read as %q, %v", d, got, err)
			}
		}
	}
	for _, i := range []uint64{n, n + 1, 5 * n, seed.DomainsMax - 1} {
		d := seed.Domain(3, i)
		want := fmt.Sprintf("-%d.", i>>20)
		if _, ok := seen[d]; ok || !strings.Contains(d, want) {
			t.Errorf("company %d is %s", i, d)
		}
	}
	if seed.Domain(3, 0) == seed.Domain(4, 0) {
		t.Error("the seed makes no difference")
	}
}

func TestHistoriesAreThoseOfCompanies(t *testing.T) {
	t.Parallel()
	u := plan(1, 8, seed.SignalsNone).Universe
	cast := seed.NewCast(u.Seed)
	var first, next, moved, steps float64
	var firsts, nexts []float64
	for i := range uint64(2000) {
		var before scoring.Record
		for j := range u.Records {
			rec := cast.Record(u, i, j)
			if !rec.ScoredAt.Equal(rec.ScoredAt.Truncate(time.Millisecond)) || rec.ScoredAt.After(until) {
				t.Fatalf("company %d, record %d: made %v", i, j, rec.ScoredAt)
			}
			if j > 0 {
				gap := before.ScoredAt.Sub(rec.ScoredAt)
				if gap < scoring.ReferenceMinAge || gap > 40*24*time.Hour {
					t.Fatalf("company %d: %v between records %d and %d", i, gap, j-1, j)
				}
				if steps++; max(before.Composite-rec.Composite, rec.Composite-before.Composite) >= 4 {
					moved++
				}
				firsts, nexts = append(firsts, before.Composite), append(nexts, rec.Composite)
				first += before.Composite
				next += rec.Composite
			}
			before = rec
		}
	}
	var cov, v1, v2 float64
	for k := range firsts {
		a, b := firsts[k]-first/steps, nexts[k]-next/steps
		cov, v1, v2 = cov+a*b, v1+a*a, v2+b*b
	}
	if r2 := cov * cov / (v1 * v2); r2 < 0.9 {
		t.Errorf("neighbouring records correlate with r2 = %.2f, want 0.9 or more", r2)
	}
	if share := moved / steps; share < 0.005 || share > 0.06 {
		t.Errorf("%.1f %% of the steps are large, want a few", 100*share)
	}
}

// TestUniverseLooksLikeRealCompanies checks the shape of a generated universe, so that load tests have
// realistic cohorts, grades and intervals.
func TestUniverseLooksLikeRealCompanies(t *testing.T) {
	t.Parallel()
	u := plan(1, 1, seed.SignalsNone).Universe
	cast := seed.NewCast(u.Seed)
	const n = 1500
	var sum, squares, premiums, width float64
	ratings, bands, cohorts := make(map[scoring.Rating]int), make(map[scoring.Band]int), make(map[scoring.CohortKey]int)
	composites := make(map[float64]int)
	for i := range uint64(n) {
		rec := cast.Record(u, i, 0)
		if rec.Interval.Low > rec.Composite || rec.Interval.High < rec.Composite || rec.Interval.Level != scoring.IntervalLevel {
			t.Errorf("%s: composite %v, interval %+v", rec.Domain, rec.Composite, rec.Interval)
		}
		for _, s := range rec.Signals {
			if s.Old(rec.ScoredAt) || s.Known() != s.ObservedAt.Equal(rec.ScoredAt) {
				t.Fatalf("%s: signal %+v of a record scored at %v", rec.Domain, s, rec.ScoredAt)
			}
		}
		sum, squares = sum+rec.Composite, squares+rec.Composite*rec.Composite
		if rec.ScalePremium >= 1 {
			premiums++
		}
		width += rec.Interval.High - rec.Interval.Low
		ratings[rec.Rating]++
		bands[rec.Confidence]++
		cohorts[scoring.KeyOf(rec)]++
		composites[rec.Composite]++
	}
	mean := sum / n
	if deviation := math.Sqrt(squares/n - mean*mean); mean < 40 || mean > 60 || deviation < 7 || deviation > 15 {
		t.Errorf("composites have mean %.1f and deviation %.1f", mean, deviation)
	}
	if share := premiums / n; share < 0.08 || share > 0.4 {
		t.Errorf("%.0f %% of the companies have a premium of a point or more", 100*share)
	}
	if width /= n; width < 5 || width > 25 {
		t.Errorf("intervals are %.1f points wide", width)
	}
	if len(ratings) != len(scoring.Ratings()) || len(bands) != 4 || len(cohorts) < 100 {
		t.Errorf("ratings %v, bands %v, %d cohorts", ratings, bands, len(cohorts))
	}
	for composite, count := range composites {
		if count > n/50 {
			t.Errorf("%d of %d companies have %v", count, n, composite)
		}
	}
}

func TestWhatThePlanRefuses(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*seed.Spec){
		"no companies":    func(spec *seed.Spec) { spec.Domains = 0 },
		"too many":        func(spec *seed.Spec) { spec.Domains = seed.DomainsMax + 1 },
		"no records":      func(spec *seed.Spec) { spec.Records = 0 },
		"too many of one": func(spec *seed.Spec) { spec.Records = seed.RecordsMax + 1 },
		"no end":          func(spec *seed.Spec) { spec.Until = time.Time{} },
		"odd end":         func(spec *seed.Spec) { spec.Until = until.Add(1) },
		"odd signals":     func(spec *seed.Spec) { spec.Signals = "some" },
	} {
		spec := plan(1, 1, seed.SignalsNone)
		spoil(&spec)
		if err := spec.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if err := plan(1, 1, seed.SignalsNone).Validate(); err != nil {
		t.Error(err)
	}
}

// TestStatisticsAreThoseExpected compares the computation in Go with simple SQL.
func TestStatisticsAreThoseExpected(t *testing.T) {
	t.Parallel()
	db := open(t)
	spec := plan(2000, 6, seed.SignalsNone)
	write(t, db, spec)
	at := until.Add(time.Hour)
	want := seed.Expect(spec.Universe, at)
	const stats = `count(), avg(composite), stddevPop(composite), min(composite), max(composite), quantileExactLow(0.5)(composite), arraySort(groupArray(composite))[intDiv(9 * count() + 9, 10)]`
	line := func(s seed.Stats) string {
		return fmt.Sprintf("%d\t%v\t%v\t%v\t%v\t%v\t%v", s.Count, s.Mean, s.Stddev, s.Min, s.Max, s.P50, s.P90)
	}
	f := func(query, want string) {
		t.Helper()
		if diff := cmp.Diff(fields(want), fields(db.ask(t, query)), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s:\n%s", query, diff)
		}
	}
	f("SELECT "+stats+" FROM v1_score_latest", line(want.Stats))
	f("SELECT count() FROM v1_score_history", fmt.Sprint(want.Records))
	for k, n := range want.CompositeHist {
		f(fmt.Sprintf("SELECT countIf(least(intDiv(toUInt32(round(composite * 10)), 50), 19) = %d) FROM v1_score_latest", k), fmt.Sprint(n))
	}
	for k, n := range want.PremiumHist {
		f(fmt.Sprintf("SELECT countIf(least(floor(scale_premium), 11) = %d) FROM v1_score_latest", k), fmt.Sprint(n))
	}
	for rating, n := range want.Ratings {
		f("SELECT count() FROM v1_score_latest WHERE rating = '"+rating+"'", fmt.Sprint(n))
	}
	for profile, n := range want.Profiles {
		f("SELECT count() FROM v1_score_latest WHERE profile = '"+profile+"'", fmt.Sprint(n))
	}
	var cohorts []string
	for _, c := range want.Cohorts {
		m := c.BucketMeans
		cohorts = append(cohorts, fmt.Sprintf("%s\t%s\t%s\t%s\t%v\t%v\t%v\t%v", c.Sector, c.GeoScope, c.Profile, line(c.Stats),
			m.TeamStructure, m.MarketPosition, m.MomentumTailwinds, m.FinancialHealth))
	}
	f("SELECT sector, geo_scope, profile, "+stats+
		", avg(team_structure), avg(market_position), avg(momentum_tailwinds), avg(financial_health)"+
		" FROM v1_score_latest GROUP BY sector, geo_scope, profile ORDER BY sector, geo_scope, toString(profile)",
		strings.Join(cohorts, "\n"))
	for _, m := range want.Movers {
		if len(m.Gainers) != 20 || len(m.Decliners) != 20 || m.Moved == 0 {
			t.Errorf("%d days: %d gainers, %d decliners, %d moved", m.Days, len(m.Gainers), len(m.Decliners), m.Moved)
		}
		deltas := fmt.Sprintf(`FROM (
			SELECT domain, argMaxIf(composite, scored_at, scored_at >= start) AS now, argMaxIf(composite, scored_at, scored_at < start) AS then, round((now - then) * 10) AS delta,
				countIf(scored_at >= start) AS within, countIf(scored_at < start) AS before
			FROM (SELECT *, fromUnixTimestamp64Milli(%d, 'UTC') AS start FROM v1_score_history) GROUP BY domain HAVING within > 0 AND before > 0)`, at.AddDate(0, 0, -m.Days).UnixMilli())
		f("SELECT count(), countIf(abs(delta) >= 50) "+deltas, fmt.Sprintf("%d\t%d", m.Eligible, m.Moved))
		for side, list := range map[string][]seed.ExpectedMover{"delta DESC": m.Gainers, "delta": m.Decliners} {
			var lines []string
			for _, c := range list {
				lines = append(lines, fmt.Sprintf("%s\t%v\t%v", c.Domain, c.Now, c.Then))
			}
			f("SELECT domain, now, then "+deltas+" ORDER BY "+side+", domain LIMIT 20", strings.Join(lines, "\n"))
		}
	}
}

// fields takes an answer apart: lines of texts and of numbers.
func fields(answer string) (lines [][]any) {
	for line := range strings.Lines(answer) {
		var fields []any
		for _, text := range strings.Split(strings.TrimSpace(line), "\t") {
			if x, err := strconv.ParseFloat(text, 64); err == nil {
				fields = append(fields, x)
			} else {
				fields = append(fields, text)
			}
		}
		lines = append(lines, fields)
	}
	return lines
}
