package clickhouse_test

import (
	"encoding/csv"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"companyscore/clickhouse"
	"companyscore/internal/test/golden"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
)

// knownCompany is a company in the universe of the worked queries.
type knownCompany struct {
	domain, name, sector, geo, country string
	profile                            scoring.Profile
	premium, completeness, momentum    float64
	confidence                         scoring.Band
	buckets                            scoring.BucketScores
	composites                         map[int]float64 // by age in days
	raws                               map[string]float64
}

var knownCompanies = []knownCompany{
	{"apple.com", "Example", "software", "europe", "DE", scoring.ProfileGrowth, 2, 70, 62, scoring.BandMedium,
		scoring.BucketScores{TeamStructure: 60, MarketPosition: 50, MomentumTailwinds: 62, FinancialHealth: 40},
		map[int]float64{1: 55, 35: 48, 70: 47.5, 100: 44}, map[string]float64{"open_roles": 12, "employee_count": 90000}},
	{"alpha.com", "Alpha", "software", "europe", "DE", scoring.ProfileGrowth, 0, 90, 50, scoring.BandHigh,
		scoring.BucketScores{TeamStructure: 40, MarketPosition: 40, MomentumTailwinds: 50, FinancialHealth: 50},
		map[int]float64{2: 45, 40: 52, 99: 50}, map[string]float64{"employee_count": 100000}},
	{"beta.com", "Beta", "software", "europe", "FR", scoring.ProfileGrowth, 6, 88, 70, scoring.BandHigh,
		scoring.BucketScores{TeamStructure: 70, MarketPosition: 60, MomentumTailwinds: 70, FinancialHealth: 60},
		map[int]float64{3: 70, 20: 69, 95: 60}, map[string]float64{"employee_count": 250000}},
	{"gamma.com", "Gamma", "software", "europe", "FR", scoring.ProfileGrowth, 0, 30, 60, scoring.BandDirectional,
		scoring.BucketScores{TeamStructure: 55, MarketPosition: 55, MomentumTailwinds: 60, FinancialHealth: 50}, map[int]float64{4: 55},
		nil},
	{"delta.com", "Delta", "software", "global", "US", scoring.ProfileEstablished, 11.5, 95, 55, scoring.BandHigh,
		scoring.BucketScores{TeamStructure: 80, MarketPosition: 85, MomentumTailwinds: 55, FinancialHealth: 80},
		map[int]float64{5: 86.5, 45: 86.5}, map[string]float64{"open_roles": 700, "employee_count": 120000}},
	{"bank.com", "Bank", "financial_services", "north_america", "US", scoring.ProfileEstablished, 8, 80, 48, scoring.BandMedium,
		scoring.BucketScores{TeamStructure: 60, MarketPosition: 60, MomentumTailwinds: 48, FinancialHealth: 65},
		map[int]float64{6: 66, 50: 72, 120: 80}, nil},
	{"trust.com", "Trust", "financial_services", "north_america", "US", scoring.ProfileEstablished, 0, 50, 40, scoring.BandLow,
		scoring.BucketScores{TeamStructure: 30, MarketPosition: 30, MomentumTailwinds: 40, FinancialHealth: 30},
		map[int]float64{33: 31, 70: 36}, nil},
	{"shop.com", "Shop", "ecommerce_retail", "unknown", "", scoring.ProfileUnclassified, 0, 45, 50, scoring.BandLow,
		scoring.BucketScores{TeamStructure: 50, MarketPosition: 50, MomentumTailwinds: 50, FinancialHealth: 50}, map[int]float64{7: 50},
		nil},
}

// openServer starts an engine of the test's own and returns it with a migrated database.
func openServer(t *testing.T) (*stores.ClickHouseServer, *clickhouse.DB) {
	t.Helper()
	server := stores.StartClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL("companyscore")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server, db
}

// known fills a database and returns it with the time to which ages of records refer. Some
// records have two copies, and some have another version, which only the history view may show.
func known(t *testing.T) (server *stores.ClickHouseServer, db *clickhouse.DB, now time.Time) {
	t.Helper()
	server, db = openServer(t)
	now = time.Now().UTC().Truncate(time.Second).Add(-time.Second) // so a record of a day ago is older than 24 hours
	var records, outdated []scoring.Record
	for _, c := range knownCompanies {
		for days, composite := range c.composites {
			in := scoring.Input{Domain: c.domain, RunID: fmt.Sprintf("%s %d", c.domain, days), Now: now.AddDate(0, 0, -days)}
			for signal, raw := range c.raws {
				in.Observations = append(in.Observations, scoring.Observation{Signal: signal, State: scoring.StateOK, Raw: raw,
					Source: "facts"})
			}
			in.Observations = append(in.Observations, scoring.Observation{Signal: "news_volume_90d", State: scoring.StateMissing,
				Source: "gdelt", Reason: scoring.ReasonSourceTimeout})
			rec, err := scoring.Score(in)
			if err != nil {
				t.Fatal(err)
			}
			rec.CompanyName, rec.Sector, rec.GeoScope, rec.Country, rec.Profile = c.name, c.sector, c.geo, c.country, c.profile
			rec.Composite, rec.Rating, rec.ScalePremium, rec.Base = composite, scoring.RatingOf(composite), c.premium, composite-c.premium
			rec.CompletenessPct, rec.Confidence, rec.MomentumIndex, rec.Buckets = c.completeness, c.confidence, c.momentum, c.buckets
			old := rec
			old.PipelineVersion, old.Composite, old.ScoredAt = "v0", 1, rec.ScoredAt.AddDate(0, 0, -200)
			records, outdated = append(records, rec), append(outdated, old)
		}
	}
	if err := db.PutRecords(t.Context(), outdated); err != nil {
		t.Fatal(err)
	}
	// Rows that the records replace, written an hour before, merged or not.
	if err := db.Conn().Exec(t.Context(),
		`INSERT INTO score_history SELECT * REPLACE ('`+scoring.PipelineVersion+`' AS pipeline_version, scored_at + INTERVAL 200 DAY AS scored_at,
		99 AS composite, 'SVC-1+' AS rating, written_at - INTERVAL 1 HOUR AS written_at) FROM score_history`); err != nil {
		t.Fatal(err)
	}
	if err := db.PutRecords(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	at := func(days int, more time.Duration) int64 { return now.AddDate(0, 0, -days).Add(more).UnixMilli() }
	for _, statement := range []string{
		fmt.Sprintf(
			`INSERT INTO run_log (created_at, id, domain, state, lane, started_at, finished_at, scored_at, attempts, error, revision) VALUES
			(%[1]d, 'r1', 'apple.com', 'running', 'api', %[1]d, 0, 0, 1, '', 1), (%[1]d, 'r1', 'apple.com', 'succeeded', 'api', %[1]d, %[2]d, %[1]d, 1, '', 2),
			(%[1]d, 'r2', 'alpha.com', 'succeeded', 'api', %[1]d, %[3]d, %[1]d, 2, '', 2), (%[1]d, 'r3', 'beta.com', 'failed', 'bulk', %[1]d, %[3]d, 0, 4, 'worker lost in attempt 4', 9),
			(%[1]d, 'r4', 'gamma.com', 'queued', 'api', 0, 0, 0, 0, '', 1)`, at(1, 0), at(1, 30*time.Second), at(1, 45*time.Second)),
		fmt.Sprintf(`INSERT INTO batch_run (started_at, job, id, fence, took_ms, read_rows, read_bytes, peak_memory_bytes, companies, outcome, error) VALUES
			(%d, 'count', 'b1', 1, 900, 10, 1000, 5, 8, 'ok', ''), (%d, 'count', 'b2', 2, 100, 1, 10, 5, 8, 'ok', ''), (%d, 'movers', 'b3', 2, 7, 0, 0, 0, 0, 'failed', 'store is gone')`,
			at(1, 0), at(0, -time.Minute), at(0, -time.Minute)),
		fmt.Sprintf(
			`INSERT INTO batch_run (started_at, job, id, fence, took_ms, companies, young, due, started, oldest_scored_at, outcome) VALUES
			(%d, 'refresh', 'b4', 1, 30, 8, 6, 1, 1, %d, 'ok')`, at(0, -time.Minute), at(9, 0)),
		fmt.Sprintf(`INSERT INTO usage (period, account_id, tier, cached_calls, cold_calls, updated_at) VALUES
			(toStartOfMonth(toDateTime(%[1]d)), 'a', 'starter', 10, 1, %[3]d), (toStartOfMonth(toDateTime(%[1]d)), 'a', 'growth', 25, 3, %[2]d), (toStartOfMonth(toDateTime(%[1]d)), 'b', 'free', 5, 0, %[2]d)`,
			now.Unix(), now.UnixMilli(), now.UnixMilli()-1),
	} {
		if err := db.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return server, db, now
}

// asAnalyst sends a statement as the analyst and returns status and answer.
func asAnalyst(t *testing.T, server *stores.ClickHouseServer, query, format string) (int, string) {
	t.Helper()
	u, err := url.Parse(server.AnalystURL("companyscore"))
	if err != nil {
		t.Fatal(err)
	}
	u.Path, u.RawQuery = "/", url.Values{"database": {"companyscore"}, "default_format": {format}}.Encode()
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
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

var workedQuery = regexp.MustCompile(`(?s)^-- [A-Z][^\n]*\?\n(?:-- [^\n]*\n)*-- Columns: (.*?)\n((?:SELECT|WITH) .*)$`)

// TestWorkedQueriesAnswerAsKnown runs every query of docs/sql as the analyst on a few
// companies and compares the answers with a golden file.
func TestWorkedQueriesAnswerAsKnown(t *testing.T) {
	t.Parallel()
	server, _, now := known(t)
	files, err := filepath.Glob("../docs/sql/*.sql")
	if err != nil || len(files) < 25 {
		t.Fatalf("%d worked queries, %v; want 25 at least", len(files), err)
	}
	var labels []string
	for days := 0; days <= 400; days++ { // times are written as days before now
		labels = append(labels, now.AddDate(0, 0, -days).Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%dd", days))
	}
	relative := strings.NewReplacer(labels...)
	// Answers per day and month depend on the calendar.
	byDay, byMonth := map[string]int{}, map[string]int{}
	var days, months []string
	for _, c := range knownCompanies {
		first := 0
		for d := range c.composites {
			first = max(first, d)
			if d < 14 {
				byDay[now.AddDate(0, 0, -d).Format("2006-01-02")]++
			}
		}
		byMonth[now.AddDate(0, 0, -first-200).Format("2006-01")+"-01"]++
	}
	for d := range 14 {
		if day := now.AddDate(0, 0, -d).Format("2006-01-02"); byDay[day] > 0 {
			days = append(days, fmt.Sprintf("%s\t%d\t%d\n", day, byDay[day], byDay[day]))
		}
	}
	first := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
	for m := 11; m >= 0; m-- {
		if month := first.AddDate(0, -m, 0).Format("2006-01-02"); byMonth[month] > 0 {
			months = append(months, fmt.Sprintf("%s\t%d\n", month, byMonth[month]))
		}
	}
	calendar := map[string]string{
		"scores-per-day": strings.Join(days, ""),
		"new-companies":  strings.Join(months, ""),
		"usage-by-day":   now.Format("2006-01-02") + "\t2\t30\t3\n",
	}
	var answers strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := workedQuery.FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s: begin with the question, what the answer shows and the columns, then the query", path)
			continue
		}
		status, answer := asAnalyst(t, server, m[2], "TSVWithNames")
		if status != http.StatusOK {
			t.Errorf("%s: %s", path, answer)
			continue
		}
		columns, rows, _ := strings.Cut(answer, "\n")
		if want := strings.Join(strings.Split(strings.ReplaceAll(m[1], "\n-- ", " "), ", "), "\t"); columns != want {
			t.Errorf("%s: columns %q, promised are %q", path, columns, want)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".sql")
		if want, ok := calendar[name[3:]]; ok {
			if rows != want {
				t.Errorf("%s: got\n%swant\n%s", path, rows, want)
			}
			continue
		}
		if rows == "" {
			t.Errorf("%s: the answer is empty and so proves nothing", path)
		}
		fmt.Fprintf(&answers, "== %s\n%s\n", name, relative.Replace(rows))
	}
	golden.Compare(t, "testdata/worked_queries.golden", answers.String())
}

// TestExportsAreWholeFiles checks the export formats.
func TestExportsAreWholeFiles(t *testing.T) {
	t.Parallel()
	server, _, _ := known(t)
	query := "SELECT * FROM v1_score_latest ORDER BY domain"
	status, file := asAnalyst(t, server, query, "Parquet")
	if status != http.StatusOK || !strings.HasPrefix(file, "PAR1") || !strings.HasSuffix(file, "PAR1") {
		t.Fatalf("Parquet: status %d, %d bytes", status, len(file))
	}
	parquetFile, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil || parquetFile.NumRows() != int64(len(knownCompanies)) {
		t.Errorf("Parquet: %v, want %d rows", err, len(knownCompanies))
	}
	status, file = asAnalyst(t, server, query, "CSVWithNames")
	lines, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	if err != nil || status != http.StatusOK || len(lines) != len(knownCompanies)+1 || lines[0][0] != "domain" ||
		lines[1][0] != "alpha.com" {
		t.Errorf("CSV: status %d, %v: %v", status, err, lines)
	}
}

// TestViewsReadLittleForOneDomain checks that a condition on the domain uses the sort
// key.
func TestViewsReadLittleForOneDomain(t *testing.T) {
	t.Parallel()
	_, db, _ := known(t)
	for _, view := range []string{"v1_score_latest", "v1_score_history", "v1_signal", "v1_signal_latest", "v1_mover", "v1_rating_change"} {
		plan := strings.Join(column(t, db, "EXPLAIN indexes = 1 SELECT * FROM "+view+" WHERE domain = 'apple.com'"), "\n")
		if !strings.Contains(plan, "(domain in ['apple.com', 'apple.com'])") {
			t.Errorf("%s does not look up a domain:\n%s", view, plan)
		}
	}
}

// TestSQLKnowsCurrentVersion compares the newest version in the migrations with
// that of the formulas.
func TestSQLKnowsCurrentVersion(t *testing.T) {
	t.Parallel()
	db := open(t)
	if got := column(t, db, "SELECT pipeline_version FROM v1_freshness WHERE is_current"); len(got) != 1 ||
		got[0] != scoring.PipelineVersion {
		t.Errorf("SQL takes %q for current, the program makes records of %s: add a migration that inserts it into pipeline_version", got,
			scoring.PipelineVersion)
	}
}
