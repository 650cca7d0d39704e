package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/test/stores"
	"companyscore/scoring"
	"companyscore/server/api"
	"companyscore/server/cache"
	"companyscore/server/keys"
	"companyscore/sql"
	"companyscore/universe"
)

func TestMain(m *testing.M) { stores.Main(m) }

var cohortStatuses = withDomain("GET /v1/company/%s/cohort", withBytes("GET /v1/company/stored.com/cohort", "", []attempt{
	{name: "company with peers", key: "growth", request: "GET /v1/company/stored.com/cohort", want: 200,
		has: []string{`"cohort":{"count":2,`, `"members":[{"domain":"peer.com"`}, sends: []string{"Cache-Control", "private, max-age=60"}},
	{name: "company without peers", key: "growth", request: "GET /v1/company/alone.com/cohort", want: 200,
		has: []string{`"cohort":{"count":0,`, `"members":[]`}},
	{name: "company without a score", key: "growth", request: "GET /v1/company/never.com/cohort", want: 404, code: "no_history"},
	{name: "nothing counted yet", on: uncounted, key: "growth", request: "GET /v1/company/stored.com/cohort", want: 503,
		code: "universe not counted yet", sends: []string{"Retry-After", "5", "Cache-Control", "no-store"}},
	{name: "test key before the first count", on: uncounted, key: "sandbox", request: "GET /v1/company/cohort.test/cohort", want: 200,
		has: []string{`"count":12`}},
}))

func TestCohortStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/company/{domain}/cohort", cohortStatuses)
}

var moversStatuses = withCommon("GET /v1/movers?window=7d", []attempt{
	{name: "gainer", key: "growth", request: "GET /v1/movers?window=7d", want: 200, has: []string{`"gainers":[{"domain":"stored.com"`,
		`"delta":3.2`, `"decliners":[]`}, sends: []string{"Cache-Control", "private, max-age=300"}},
	{name: "nobody moved", key: "free", request: "GET /v1/movers?window=90d", want: 200,
		has: []string{`"gainers":[]`, `"window_start":"2026-01-31T12:00:00.000Z"`}},
	{name: "known tag", key: "growth", request: "GET /v1/movers?window=7d", headers: []string{"If-None-Match", "*"}, want: 304,
		sends: []string{"Vary", "Accept-Encoding"}},
	{name: "gainer with evidence", key: "growth", request: "GET /v1/movers?window=7d&include=evidence", want: 200,
		has: []string{`"svc_rating_then":"SVC-2+","evidence":{"observation":3.2,"coverage":0,"premium":0,"formula":0,"defunct":0}}`}},
	{name: "unknown include", key: "growth", request: "GET /v1/movers?window=7d&include=signals", want: 400,
		code: "include must be one of ['evidence']"},
	{name: "no window", key: "growth", request: "GET /v1/movers", want: 400, code: "window must be one of ['7d','30d','90d']"},
	{name: "unknown window", key: "sandbox", request: "GET /v1/movers?window=8d", want: 400,
		code: "window must be one of ['7d','30d','90d']"},
	{name: "nothing counted yet", on: uncounted, key: "growth", request: "GET /v1/movers?window=7d", want: 503,
		code: "universe not counted yet", sends: []string{"Retry-After", "5"}},
	{name: "test key before the first count", on: uncounted, key: "sandbox", request: "GET /v1/movers?window=30d", want: 200,
		has: []string{`"mode":"sandbox"`}, sends: []string{"Server-Timing", "sandbox"}},
})

func TestMoversStatuses(t *testing.T) { tryStatuses(t, "GET /v1/movers", moversStatuses) }

var distributionStatuses = withCommon("GET /v1/distribution", []attempt{
	{name: "all companies", key: "growth", request: "GET /v1/distribution", want: 200, has: []string{`"universe":{"count":4,`},
		sends: []string{"Cache-Control", "private, max-age=600"}},
	{name: "known tag", key: "growth", request: "GET /v1/distribution", headers: []string{"If-None-Match", "*"}, want: 304,
		sends: []string{"Vary", "Accept-Encoding"}},
	{name: "nothing counted yet", on: uncounted, key: "growth", request: "GET /v1/distribution", want: 503,
		code: "universe not counted yet", sends: []string{"Retry-After", "5"}},
	{name: "test key before the first count", on: uncounted, key: "sandbox", request: "GET /v1/distribution", want: 200,
		has: []string{`"mode":"sandbox"`, `"count":12`}, sends: []string{"Server-Timing", "sandbox"}},
})

func TestDistributionStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/distribution", distributionStatuses)
}

// past is a store whose records were written at instants of the test's choice.
type past struct {
	*clickhouse.Scores
	url *url.URL
	db  *clickhouse.DB
}

func newPast(t *testing.T) *past {
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
	p := &past{Scores: clickhouse.NewScores(db, clickhouse.WriterConfig{}), db: db}
	t.Cleanup(func() { _ = p.Close(context.WithoutCancel(t.Context())) })
	if p.url, err = url.Parse(address); err != nil {
		t.Fatal(err)
	}
	p.url.RawQuery = "database=" + sql.Private(strings.Trim(p.url.Path, "/"))
	p.url.Path = "/"
	return p
}

// write stores records with one insert, as if each had been written at its WrittenAt.
func (p *past) write(t *testing.T, records ...universe.Stored) {
	t.Helper()
	query := strings.Builder{}
	query.WriteString("INSERT INTO score_history (domain, scored_at, pipeline_version, company_name, sector, geo_scope, profile, rating, " +
		"composite, " +
		"team_structure, market_position, momentum_tailwinds, financial_health, completeness_pct, confidence, written_at) VALUES ")
	for _, r := range records {
		fmt.Fprintf(&query, "('%s', fromUnixTimestamp64Milli(%d), '%s', '%s', '%s', '%s', '%s', '%s', %v, %v, %v, %v, %v, %v, 'low', "+
			"fromUnixTimestamp64Milli(%d)) ",
			r.Domain, r.ScoredAt.UnixMilli(), r.PipelineVersion, r.CompanyName, r.Sector, r.GeoScope, r.Profile, r.Rating, r.Composite,
			r.Buckets.TeamStructure, r.Buckets.MarketPosition, r.Buckets.MomentumTailwinds, r.Buckets.FinancialHealth,
			r.CompletenessPct, r.WrittenAt.UnixMilli())
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url.String(), strings.NewReader(query.String()))
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		t.Fatalf("%s", text)
	}
}

// count is the server's view of what was written until now, of records with a completeness of at least minDataPct.
func (p *past) count(t *testing.T, minDataPct float64) *universe.Tables {
	t.Helper()
	counts, err := clickhouse.NewUniverse(p.db).Count(t.Context(), noon, minDataPct)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := universe.New(universe.Snapshot{Counts: counts})
	if err != nil {
		t.Fatal(err)
	}
	return tables
}

// cohortOf asks a server of its own for a cohort.
func (p *past) cohortOf(t *testing.T, tables *universe.Tables, domain string) (body string) {
	t.Helper()
	s, err := New(Dependencies{
		Keys: &as{Mode: account.Live, Account: account.Account{Plan: account.Starter}}, Scores: p, Universe: counted{tables},
		Meter: unlimited{},
		Cache: cache.New(64<<20, nil, p, nobody, slog.New(slog.DiscardHandler)), Jobs: struct{ Jobs }{}, Calls: new(ColdCalls),
		RequestCounts: struct{ RequestCounts }{}, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/company/"+domain+"/cohort", nil)
	req.Header.Set("X-API-Key", "any")
	res := do(t, s, req)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", domain, res.StatusCode, text, err)
	}
	return string(text)
}

// TestCohortLeavesOutWhatWasCounted holds cohort answers against a slow look at all
// companies: the target is as it is now, its peers are as they were counted, and the target
// is not among them, whenever it was scored and written. Companies with too little data are not counted.
func TestCohortLeavesOutWhatWasCounted(t *testing.T) {
	t.Parallel()
	for _, minDataPct := range []float64{0, 30} {
		t.Run(fmt.Sprint("from ", minDataPct, " % on"), func(t *testing.T) {
			t.Parallel()
			testCohortOfCounted(t, minDataPct)
		})
	}
}

func testCohortOfCounted(t *testing.T, minDataPct float64) {
	p := newPast(t)
	rng := rand.New(rand.NewPCG(1, 2))
	const companies = 40
	newest, counted := make(map[string]scoring.Record), make(map[string]scoring.Record)
	scored := make(map[time.Time]bool)
	some := func(n int, writtenBefore func() time.Duration) (records []universe.Stored) {
		for range n {
			at := noon.Add(time.Minute - time.Duration(rng.IntN(100*24*60))*time.Minute)
			for scored[at] {
				at = at.Add(time.Millisecond)
			}
			scored[at] = true
			tenth := func() float64 { return float64(rng.IntN(1001)) / 10 }
			rec := scoring.Record{
				Domain: fmt.Sprintf("c%d.com", rng.IntN(companies)), CompanyName: "A company", PipelineVersion: scoring.PipelineVersion,
				ScoredAt: at, Composite: tenth(), CompletenessPct: tenth(),
				Sector: []string{"software", "media"}[rng.IntN(2)], GeoScope: "global", Profile: scoring.ProfileGrowth,
				Buckets: scoring.BucketScores{TeamStructure: tenth(), MarketPosition: tenth(), MomentumTailwinds: tenth(),
					FinancialHealth: tenth()},
			}
			rec.Rating = scoring.RatingOf(rec.Composite)
			if rng.IntN(20) == 0 {
				rec.PipelineVersion = "v0"
			}
			records = append(records, universe.Stored{Record: rec, WrittenAt: noon.Add(-writtenBefore())})
			if newest[rec.Domain].ScoredAt.Before(at) {
				newest[rec.Domain] = rec
			}
		}
		return records
	}
	// long before the count
	before := append(some(90, func() time.Duration { return 2*time.Minute + time.Duration(rng.IntN(1e6))*time.Second }),
		some(30, func() time.Duration { return time.Duration(rng.IntN(60_000)) * time.Millisecond })...) // just before it
	for _, r := range before {
		if r.PipelineVersion == scoring.PipelineVersion && counted[r.Domain].ScoredAt.Before(r.ScoredAt) {
			counted[r.Domain] = r.Record
		}
	}
	maps.DeleteFunc(counted, func(_ string, rec scoring.Record) bool { return rec.CompletenessPct < minDataPct })
	p.write(t, before...)
	tables := p.count(t, minDataPct)
	p.write(t, some(30, func() time.Duration { return time.Duration(rng.IntN(50_000)) * time.Millisecond })...) // in flight at the count
	p.write(t, some(30, func() time.Duration { return -time.Duration(rng.IntN(1000)) * time.Second })...)       // after it

	for domain, target := range newest {
		var got api.Cohort
		if err := json.Unmarshal([]byte(p.cohortOf(t, tables, domain)), &got); err != nil {
			t.Fatal(err)
		}
		var n, sum, team, below, above float64
		for other, rec := range counted {
			if other == domain || scoring.KeyOf(rec) != scoring.KeyOf(target) || target.PipelineVersion != scoring.PipelineVersion {
				continue
			}
			n++
			sum += rec.Composite
			team += rec.Buckets.TeamStructure
			if rec.Composite < target.Composite {
				below++
			}
			if rec.Composite > target.Composite {
				above++
			}
		}
		if got.Target.Composite != target.Composite || got.Target.Context.Sector != target.Sector {
			t.Errorf("target %s is %+v, want %+v", domain, got.Target, target)
		}
		c := got.Cohort
		if float64(c.Count) != n || float64(len(got.Members)) != n {
			t.Errorf("%s has %d peers and %d members, want %v", domain, c.Count, len(got.Members), n)
		} else if n > 0 && (math.Abs(c.Mean-sum/n) > 1e-9 || float64(c.Rank) != above+1 ||
			math.Abs(c.Percentile-50*(n+below-above)/n) > 1e-9 ||
			math.Abs(got.BucketMeans[scoring.TeamStructure].Cohort-team/n) > 1e-9) {
			t.Errorf("%s among %v peers: %+v, want mean %v, rank %v, percentile %v", domain, n, c, sum/n, above+1, 50*(n+below-above)/n)
		}
		for _, m := range got.Members {
			if m.Domain == domain || m.Composite != counted[m.Domain].Composite {
				t.Errorf("%s has the member %+v, counted as %v", domain, m, counted[m.Domain].Composite)
			}
		}
	}
}

// TestCohortOfNoPeers holds the bodies of companies that have no peers: of another pipeline
// version, of an unknown sector, of an unknown reach, and without a profile.
func TestCohortOfNoPeers(t *testing.T) {
	t.Parallel()
	p := newPast(t)
	rec := scoring.Record{
		PipelineVersion: scoring.PipelineVersion, CompanyName: "A company", ScoredAt: noon.Add(-time.Hour), Composite: 50,
		Rating: scoring.Rating3,
		Sector: "software", GeoScope: "global", Profile: scoring.ProfileGrowth,
	}
	spoilt := map[string]func(*scoring.Record){
		"version": func(r *scoring.Record) { r.PipelineVersion = "v0" },
		"sector":  func(r *scoring.Record) { r.Sector = scoring.Unknown },
		"reach":   func(r *scoring.Record) { r.GeoScope = scoring.Unknown },
		"profile": func(r *scoring.Record) { r.Profile = scoring.ProfileUnclassified },
	}
	for name, spoil := range spoilt {
		for i := range 3 {
			r := rec
			r.Domain = fmt.Sprintf("%s-%d.com", name, i)
			spoil(&r)
			p.write(t, universe.Stored{Record: r, WrittenAt: r.ScoredAt})
		}
	}
	tables := p.count(t, 0)
	if n := tables.Distribution().Count; n != 9 {
		t.Errorf("%d companies are counted, want 9", n)
	}
	for name, spoil := range spoilt {
		r := rec
		spoil(&r)
		const none = `{"target":0,"cohort":0,"delta":0}`
		want := fmt.Sprintf(`{"target":{"domain":"%s-0.com","company_name":"A company","composite_score":50,"svc_rating":"SVC-3","business_profile":%q,"context":{"sector":%q,"geo_scope":%q}},`+
			`"cohort":{"count":0,"mean":0,"p50":0,"p90":0,"stddev":0,"min":0,"max":0,"rank":0,"percentile":0},`+
			`"bucket_means":{"financial_health":%[5]s,"market_position":%[5]s,"momentum_tailwinds":%[5]s,"team_structure":%[5]s},"members":[]}`, name, r.Profile, r.Sector, r.GeoScope, none)
		if got := p.cohortOf(t, tables, name+"-0.com"); got != want {
			t.Errorf("%s:\n%s, want\n%s", name, got, want)
		}
	}
}

// TestSandboxInvariant checks the guard of live tables against a test key. The error is logged with
// the key and the account.
func TestSandboxInvariant(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newServer(t, panicking{}, &log)
	_, err := s.live(keys.Caller{Mode: account.Test, KeyID: "the-key", Account: account.Account{ID: "the-account"}})
	c := s.app.AcquireCtx(new(fasthttp.RequestCtx))
	defer s.app.ReleaseCtx(c)
	if p := s.problemOf(c, err); p != &errSandboxInvariant {
		t.Errorf("got %v", p)
	}
	for _, want := range []string{errSandboxInvariant.Code, "the-key", "the-account"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %s: %s", want, log.String())
		}
	}
}

// TestScoresThatAreNotCounted asks for scores with too little data to be counted: they have no rank, and the distribution names the limit.
func TestScoresThatAreNotCounted(t *testing.T) {
	t.Parallel()
	known := scoring.Record{PipelineVersion: scoring.PipelineVersion, Domain: "known.com", Composite: 60, CompletenessPct: 1,
		Profile: scoring.ProfileGrowth}
	unknown := scoring.Record{PipelineVersion: scoring.PipelineVersion, Domain: "unknown.com", Composite: 50}
	for minDataPct, ranked := range map[float64]bool{0: true, 1: false} {
		counts := universe.Count([]scoring.Record{known}, noon)
		counts.MinDataPct = minDataPct
		tables, err := universe.New(universe.Snapshot{Counts: counts})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := rankOf(cache.NewEntry(known), tables); !ok {
			t.Errorf("limit %v: a score with data has no rank", minDataPct)
		}
		if _, ok := rankOf(cache.NewEntry(unknown), tables); ok != ranked {
			t.Errorf("limit %v: a score without data has a rank: %v", minDataPct, ok)
		}
		text, err := json.Marshal(api.NewDistribution(tables))
		if err != nil {
			t.Fatal(err)
		}
		if named := strings.Contains(string(text), `"min_data_pct":1`); named == ranked {
			t.Errorf("limit %v: %s", minDataPct, text)
		}
	}
	if band := cache.NewEntry(unknown).Evidence().Band; band != scoring.BandNone {
		t.Errorf("the evidence of a score without data has the band %s", band)
	}
}
