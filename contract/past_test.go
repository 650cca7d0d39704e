package contract

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/internal/redis"
	"companyscore/scoring"
)

const day = 24 * time.Hour

// millis is the layout of times in answers.
const millis = "2006-01-02T15:04:05.000Z"

// record returns a record of some age with equal buckets.
func record(domain string, age time.Duration, composite float64) scoring.Record {
	return scoring.Record{
		Domain: domain, CompanyName: "Company " + domain, RunID: "01a1fc94-05cf-764e-800e-9c3462621484",
		PipelineVersion: scoring.PipelineVersion,
		ScoredAt:        time.Now().Add(-age).UTC().Truncate(time.Millisecond), Composite: composite, Base: composite,
		Rating: scoring.RatingOf(composite),
		Buckets: scoring.BucketScores{TeamStructure: composite, MarketPosition: composite, MomentumTailwinds: composite,
			FinancialHealth: composite},
		Profile: scoring.ProfileUnclassified, Sector: "other", GeoScope: "global", MomentumIndex: 50, Confidence: scoring.BandDirectional,
		Interval:          scoring.Interval{Low: max(composite-10, 0), High: min(composite+10, 100), Level: scoring.IntervalLevel},
		ExpectedComposite: composite,
	}
}

// in returns the record with another sector, scope and profile.
func in(rec scoring.Record, sector, scope string, profile scoring.Profile) scoring.Record {
	rec.Sector, rec.GeoScope, rec.Profile = sector, scope, profile
	return rec
}

// remember writes records of the past.
func (s *system) remember(t *testing.T, records []scoring.Record) {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: s.runtime.ClickHouseURL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	scores := clickhouse.NewScores(db, clickhouse.WriterConfig{})
	var writes sync.WaitGroup
	for _, rec := range records {
		writes.Go(func() {
			if err := scores.Write(t.Context(), rec); err != nil {
				t.Errorf("write the record of %s: %v", rec.Domain, err)
			}
		})
	}
	writes.Wait()
	if err := scores.Close(t.Context()); err != nil || t.Failed() {
		t.Fatalf("the past is not written: %v", err)
	}
}

// redis returns a connection to the Redis of the system.
func (s *system) redis(t *testing.T) goredis.UniversalClient {
	t.Helper()
	rdb, err := redis.Open(t.Context(), s.runtime.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// TestPast tests what depends on old scores, with the default limits.
func TestPast(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	s.emptyUniverse()
	p := newPast()
	last := len(p.records) - 1
	s.remember(t, p.records[:last])
	// The movers of the empty universe stay published until the next run; deleting them starts one.
	published := s.redis(t)
	if err := published.Del(t.Context(), redis.Universe()).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the movers of the past are published", func() bool {
		return published.HExists(t.Context(), redis.Universe(), "movers").Val()
	})
	s.remember(t, p.records[last:]) // a server that counts it also has the movers
	growth := s.customer(t, "growth")
	eventually(t, "the past is counted", func() bool {
		return s.get(t, "/v1/distribution", growth.live).number("universe.count") >= float64(len(p.latest))
	})
	s.countedPast(p, growth)
	s.longHistory(p, growth)
	s.freshness()
	s.slidingWindows()
}

// emptyUniverse must run before the first score.
func (s suite) emptyUniverse() {
	c := s.customer(s.T, "starter")
	eventually(s.T, "the empty universe is counted", func() bool { return s.get(s.T, "/v1/distribution", c.live).status == 200 })
	s.rule("4.8", "without any score all counts are 0, and all bins are there", func(t *testing.T) {
		r := s.get(t, "/v1/distribution", c.live).wants(t, 200, "")
		for _, name := range []string{"count", "mean", "p50", "p90", "stddev", "min", "max"} {
			if r.at("universe."+name) != 0.0 {
				t.Errorf("%s is %v", name, r.at("universe."+name))
			}
		}
		for path, n := range map[string]int{"universe.composite_hist": 20, "universe.scale_premium_hist": 12} {
			bins := r.list(path)
			if len(bins) != n {
				t.Errorf("%s has %d bins", path, len(bins))
			}
			for _, bin := range bins {
				if bin.(map[string]any)["count"] != 0.0 {
					t.Errorf("%s: %v", path, bin)
				}
			}
		}
	})
	s.rule("4.8", "ratings and profiles nobody has are there with 0", func(t *testing.T) {
		r := s.get(t, "/v1/distribution", c.live).wants(t, 200, "")
		for path, names := range map[string][]string{
			"universe.rating_dist":   {"SVC-1", "SVC-1+", "SVC-2", "SVC-2+", "SVC-3", "SVC-4", "SVC-5"},
			"universe.profile_split": {"established", "growth", "unclassified"},
		} {
			counts := r.at(path).(map[string]any)
			if !slices.Equal(slices.Sorted(maps.Keys(counts)), names) {
				t.Errorf("%s is %v", path, counts)
			}
			for name, n := range counts {
				if n != 0.0 {
					t.Errorf("%v of %s", n, name)
				}
			}
		}
	})
}

// past has the records of the companies of the tests.
type past struct {
	records []scoring.Record
	latest  map[string]scoring.Record // the newest of each domain under the current pipeline version
}

const (
	peers      = 230 // of the company in the cohort tests
	historyLen = 502
	rising     = 25
)

func newPast() *past {
	p := &past{latest: make(map[string]scoring.Record)}
	add := func(rec scoring.Record) {
		p.records = append(p.records, rec)
		if old, known := p.latest[rec.Domain]; rec.PipelineVersion == scoring.PipelineVersion &&
			(!known || old.ScoredAt.Before(rec.ScoredAt)) {
			p.latest[rec.Domain] = rec
		}
	}
	for i := range peers {
		rec := in(record(fmt.Sprintf("peer-%03d.com", i), 2*day, float64(100+i*3)/10), "aerospace", "global", scoring.ProfileGrowth)
		rec.Buckets.TeamStructure, rec.Buckets.FinancialHealth = float64(i%50), float64(100-i%7)
		rec.ScalePremium = float64(i%121) / 10
		add(rec)
	}
	add(in(record("peer-000.com", 3*day, 99), "aerospace", "global", scoring.ProfileGrowth)) // a newer record replaces it
	target := in(record("target.com", day, 40), "aerospace", "global", scoring.ProfileGrowth)
	target.Buckets = scoring.BucketScores{TeamStructure: 10.5, MarketPosition: 20.3, MomentumTailwinds: 90.1, FinancialHealth: 77.7}
	add(target)
	for i, other := range []struct {
		sector, scope string
		profile       scoring.Profile
	}{
		{"aerospace", "europe", scoring.ProfileGrowth}, {"aerospace", "global", scoring.ProfileEstablished},
		{"biotech", "global", scoring.ProfileGrowth}, {"aerospace", "global", scoring.ProfileUnclassified},
	} {
		add(in(record(fmt.Sprintf("stranger-%d.com", i), day, 95), other.sector, other.scope, other.profile))
	}
	add(in(record("alone.com", day, 60), "shipping", "africa", scoring.ProfileEstablished))
	for i := range historyLen {
		rec := record("long-history.com", time.Duration(i)*day+time.Minute, float64(i%1000)/10)
		rec.ScalePremium, rec.MomentumIndex, rec.CompletenessPct = float64(i%13), float64(i%101), float64(i%97)
		rec.Rating = scoring.RatingOf(rec.Composite)
		add(rec)
	}
	for i := range rising {
		up, down := fmt.Sprintf("riser-%02d.com", i), fmt.Sprintf("faller-%02d.com", i)
		for _, age := range []time.Duration{200 * day, 60 * day, 20 * day, 3 * day} {
			step := float64(i+1) * age.Hours() / 2400 // older scores are further away
			add(record(up, age, math.Round((60-step)*10)/10))
			add(record(down, age, math.Round((40+step)*10)/10))
		}
	}
	add(record("new-inside.com", 2*day, 90))
	add(record("new-inside.com", 4*day, 10)) // no record before any window
	add(record("only-before.com", 120*day, 10))
	add(record("only-before.com", 100*day, 90)) // no record within a window
	add(record("standing-still.com", 100*day, 55))
	add(record("standing-still.com", day, 55))
	old := record("old-pipeline.com", day, 88)
	old.PipelineVersion = "v0"
	add(old)
	for _, w := range windows {
		add(record(w.tier+"-young.com", w.length-5*time.Minute, 50))
		add(record(w.tier+"-old.com", w.length+time.Second, 50))
	}
	add(record("ancient.com", 400*day, 12.3))
	warned := record("warned.com", day, 50)
	staleAt := warned.ScoredAt.Add(-36 * time.Hour)
	for i, signal := range scoring.Manifest() {
		score := scoring.SignalScore{ID: signal.ID, State: scoring.StateMissing, Score: scoring.Neutral,
			Reason: scoring.ReasonSourceTimeout}
		switch {
		case i == 1 || i == 33:
			score = scoring.SignalScore{ID: signal.ID, State: scoring.StateNotApplicable, Score: scoring.Neutral}
		case i == 64:
			score = scoring.SignalScore{ID: signal.ID, State: scoring.StateOK, Score: scoring.Neutral, Source: signal.Sources[0],
				ObservedAt: staleAt}
		case i%2 == 0:
			score = scoring.SignalScore{ID: signal.ID, State: scoring.StateOK, Score: scoring.Neutral, Source: signal.Sources[0],
				ObservedAt: warned.ScoredAt}
		}
		warned.Signals = append(warned.Signals, score)
	}
	warned.Warnings = []scoring.Warning{
		{Source: "web", Code: "timeout", At: warned.ScoredAt}, {Source: "rdap", Code: scoring.WarningStale, At: staleAt},
		{Source: "wikidata", Code: scoring.WarningDefunct, At: warned.ScoredAt},
	}
	warned.CompletenessPct, warned.Confidence = 48.2, scoring.BandLow
	warned.Interval, warned.ExpectedComposite = scoring.Interval{Low: 41.3, High: 60.4, Level: scoring.IntervalLevel}, 51.2
	add(warned)
	return p
}

// windows are the freshness windows by tier.
var windows = []struct {
	tier   string
	length time.Duration
}{{"starter", day}, {"growth", 6 * time.Hour}, {"scale", time.Hour}, {"enterprise", 15 * time.Minute}}

// near reports whether two numbers are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }

// sameStats compares statistics in an answer with those of the composites, in any order.
func sameStats(t *testing.T, r reply, at string, composites []float64) {
	t.Helper()
	slices.Sort(composites)
	n := float64(len(composites))
	var sum, squares float64
	for _, c := range composites {
		sum += c
	}
	for _, c := range composites {
		squares += (c - sum/n) * (c - sum/n)
	}
	share := func(pct float64) float64 { return composites[int(math.Ceil(n*pct/100))-1] }
	for name, want := range map[string]float64{
		"count": n, "mean": sum / n, "p50": share(50), "p90": share(90), "stddev": math.Sqrt(squares / n),
		"min": composites[0], "max": composites[len(composites)-1],
	} {
		if got := r.number(at + "." + name); !near(got, want) {
			t.Errorf("%s is %v, the records say %v", name, got, want)
		}
	}
}

// countedPast compares the statistics with the records. It must run before the first score.
func (s suite) countedPast(p *past, who customer) {
	distribution := s.get(s.T, "/v1/distribution", who.live).wants(s.T, 200, "")
	s.rule("4.8", "statistics, histograms, ratings and profiles are those of the newest record of each company", func(t *testing.T) {
		var composites []float64
		bins, premiums := make([]float64, 20), make([]float64, 12)
		ratings, profiles := make(map[string]float64), make(map[string]float64)
		for _, rec := range p.latest {
			composites = append(composites, rec.Composite)
			bins[min(int(rec.Composite/5), 19)]++
			premiums[min(int(rec.ScalePremium), 11)]++
			ratings[string(rec.Rating)]++
			profiles[string(rec.Profile)]++
		}
		sameStats(t, distribution, "universe", composites)
		for path, want := range map[string][]float64{"universe.composite_hist": bins, "universe.scale_premium_hist": premiums} {
			for i, bin := range distribution.list(path) {
				if got := bin.(map[string]any)["count"]; got != want[i] {
					t.Errorf("%s: %v, want %v", path, bin, want[i])
				}
			}
		}
		for path, want := range map[string]map[string]float64{"universe.rating_dist": ratings, "universe.profile_split": profiles} {
			for name, got := range distribution.at(path).(map[string]any) {
				if got != want[name] {
					t.Errorf("%s: %v of %s, want %v", path, got, name, want[name])
				}
			}
		}
	})
	s.rule("4.8", "records of another pipeline version are not in the universe", func(t *testing.T) {
		if got := distribution.number("universe.count"); got != float64(len(p.latest)) {
			t.Errorf("%v companies, want %d", got, len(p.latest))
		}
		if r := s.get(t, "/v1/score/old-pipeline.com", who.live).wants(t, 200, ""); r.at("rank") != nil {
			t.Errorf("it has a rank: %s", r.raw)
		}
		if r := s.get(t, "/v1/company/old-pipeline.com/cohort", who.live).wants(t, 200, ""); r.number("cohort.count") != 0 ||
			len(r.list("members")) != 0 {
			t.Errorf("it has a cohort: %s", r.raw)
		}
	})
	s.rule("4.8", "equal requests get equal bodies from memory", func(t *testing.T) {
		if again := s.get(t, "/v1/distribution", who.live); again.raw != distribution.raw {
			t.Errorf("first %s, then %s", distribution.raw, again.raw)
		}
	})
	s.rule("2.3", "rank is the place in the whole universe, not in the cohort", func(t *testing.T) {
		for _, domain := range []string{"target.com", "stranger-0.com", "starter-old.com", "ancient.com", "alone.com"} {
			var below, equal int
			for _, rec := range p.latest {
				switch {
				case rec.Composite < p.latest[domain].Composite:
					below++
				case rec.Composite == p.latest[domain].Composite && rec.Domain != domain:
					equal++
				}
			}
			r := s.get(t, "/v1/score/"+domain, who.live).wants(t, 200, "")
			want := 100 * (2*below + equal) / (2 * (len(p.latest) - 1)) // the middle of a tie
			if r.number("rank.percentile") != float64(want) || r.number("rank.cohort_size") != float64(len(p.latest)) {
				t.Errorf("%s: rank %v, want percentile %d of %d", domain, r.at("rank"), want, len(p.latest))
			}
		}
	})
	s.cohorts(p, who)
	s.movers(p, who)
}

func (s suite) cohorts(p *past, who customer) {
	r := s.get(s.T, "/v1/company/target.com/cohort", who.live).wants(s.T, 200, "")
	target := p.latest["target.com"]
	var group []scoring.Record
	for _, rec := range p.latest {
		if rec.Sector == target.Sector && rec.GeoScope == target.GeoScope && rec.Profile == target.Profile && rec.Domain != target.Domain {
			group = append(group, rec)
		}
	}
	slices.SortFunc(group, func(a, b scoring.Record) int {
		return cmp.Or(cmp.Compare(b.Composite, a.Composite), cmp.Compare(a.Domain, b.Domain))
	})
	s.rule("4.5", "peers have the sector, the scope and the profile of the target, and only their newest record counts",
		func(t *testing.T) {
			composites := make([]float64, len(group))
			for i, rec := range group {
				composites[i] = rec.Composite
			}
			sameStats(t, r, "cohort", composites)
			if r.number("cohort.count") != peers {
				t.Errorf("%v peers, want %d", r.at("cohort.count"), peers)
			}
		})
	s.rule("4.5", "rank and percentile leave the target out", func(t *testing.T) {
		var below, above float64
		for _, rec := range group {
			if rec.Composite < target.Composite {
				below++
			}
			if rec.Composite > target.Composite {
				above++
			}
		}
		percentile := 100 * (below + (peers-below-above)/2) / peers // the middle of a tie
		if r.number("cohort.rank") != above+1 || !near(r.number("cohort.percentile"), percentile) {
			t.Errorf("rank %v, percentile %v, want %v and %v", r.at("cohort.rank"), r.at("cohort.percentile"), above+1, percentile)
		}
	})
	s.rule("4.5", "the target is shown with name, score, rating, profile and context", func(t *testing.T) {
		want := fmt.Sprint(map[string]any{
			"domain": target.Domain, "company_name": target.CompanyName, "composite_score": target.Composite,
			"svc_rating":       string(target.Rating),
			"business_profile": "growth", "context": map[string]any{"sector": "aerospace", "geo_scope": "global"},
		})
		if got := fmt.Sprint(r.at("target")); got != want {
			t.Errorf("target %s, want %s", got, want)
		}
	})
	s.rule("4.5", "the buckets of the target stand beside the means of all peers", func(t *testing.T) {
		for _, bucket := range scoring.Buckets() {
			var sum float64
			for _, rec := range group {
				sum += rec.Buckets.Get(bucket)
			}
			own, mean := target.Buckets.Get(bucket), sum/peers
			b := "bucket_means." + string(bucket)
			if r.number(b+".target") != own || !near(r.number(b+".cohort"), mean) || !near(r.number(b+".delta"), own-mean) {
				t.Errorf("%s is %v, want %v and %v", b, r.at(b), own, mean)
			}
		}
	})
	s.rule("4.5", "of more than 200 members the 200 highest are listed", func(t *testing.T) {
		members := r.list("members")
		if len(members) != 200 {
			t.Fatalf("%d members", len(members))
		}
		for i, m := range members {
			if m.(map[string]any)["domain"] != group[i].Domain || m.(map[string]any)["composite_score"] != group[i].Composite {
				t.Fatalf("member %d is %v, want %s with %v", i, m, group[i].Domain, group[i].Composite)
			}
		}
	})
	s.rule("4.5", "a classified target without peers has count 0", func(t *testing.T) {
		alone := s.get(t, "/v1/company/alone.com/cohort", who.live).wants(t, 200, "")
		if alone.number("cohort.count") != 0 || len(alone.list("members")) != 0 || alone.text("target.business_profile") != "established" {
			t.Errorf("got %s", alone.raw)
		}
	})
	s.rule("4.5", "an unclassified target has no peers, though others share sector and scope", func(t *testing.T) {
		if r := s.get(t, "/v1/company/riser-01.com/cohort", who.live).wants(t, 200, ""); r.number("cohort.count") != 0 {
			t.Errorf("got %s", r.raw)
		}
	})
}

// moved is the delta of a company within a window, from its records.
type moved struct {
	domain          string
	now, then, diff float64
}

func (s suite) movers(p *past, who customer) {
	bodies := make(map[string]string)
	for _, window := range []struct {
		name   string
		length time.Duration
	}{{"7d", 7 * day}, {"30d", 30 * day}, {"90d", 90 * day}} {
		r := s.get(s.T, "/v1/movers?window="+window.name, who.live).wants(s.T, 200, "")
		bodies[window.name] = r.raw
		s.rule("4.6", "gainers and decliners of "+window.name+" are the 20 largest changes of companies scored before and within",
			func(t *testing.T) {
				begin, err := time.Parse(time.RFC3339, r.text("window_start"))
				if err != nil {
					t.Fatal(err)
				}
				before, within := make(map[string]scoring.Record), make(map[string]scoring.Record)
				for _, rec := range p.records {
					seen := within
					if rec.ScoredAt.Before(begin) {
						seen = before
					}
					if old, ok := seen[rec.Domain]; rec.PipelineVersion == scoring.PipelineVersion &&
						(!ok || old.ScoredAt.Before(rec.ScoredAt)) {
						seen[rec.Domain] = rec
					}
				}
				var up, down []moved
				for domain, last := range within {
					first, ok := before[domain]
					m := moved{domain, last.Composite, first.Composite, math.Round((last.Composite-first.Composite)*10) / 10}
					if ok && m.diff > 0 {
						up = append(up, m)
					}
					if ok && m.diff < 0 {
						down = append(down, m)
					}
				}
				for path, want := range map[string][]moved{"gainers": up, "decliners": down} {
					slices.SortFunc(want, func(a, b moved) int {
						return cmp.Or(cmp.Compare(math.Abs(b.diff), math.Abs(a.diff)), cmp.Compare(a.domain, b.domain))
					})
					if len(want) <= 20 {
						t.Fatalf("%d %s are too few to test with", len(want), path)
					}
					if len(r.list(path)) != 20 {
						t.Fatalf("%d %s", len(r.list(path)), path)
					}
					for i, item := range r.list(path) {
						m := item.(map[string]any)
						w := want[i]
						if m["domain"] != w.domain || m["composite_now"] != w.now || m["composite_then"] != w.then ||
							!near(m["delta"].(float64), w.diff) ||
							m["svc_rating_now"] != string(scoring.RatingOf(w.now)) ||
							m["svc_rating_then"] != string(scoring.RatingOf(w.then)) || m["company_name"] != "Company "+w.domain {
							t.Fatalf("%s %d is %v, want %+v", path, i, m, w)
						}
					}
				}
			})
	}
	s.rule("4.6", "parameters for pages have no effect", func(t *testing.T) {
		for _, more := range []string{"&limit=1", "&cursor=x", "&page=2"} {
			if r := s.get(t, "/v1/movers?window=30d"+more, who.live).wants(t, 200, ""); r.raw != bodies["30d"] {
				t.Errorf("with %s: %s", more, r.raw)
			}
		}
	})
	s.rule("decided: evidence", "the evidence of a mover sums to its delta, and plain movers have none", func(t *testing.T) {
		for window := range bodies {
			plain := s.get(t, "/v1/movers?window="+window, who.live).wants(t, 200, "")
			r := s.get(t, "/v1/movers?window="+window+"&include=evidence", who.live).wants(t, 200, "")
			for _, side := range []string{"gainers", "decliners"} {
				for i, item := range r.list(side) {
					m := item.(map[string]any)
					sum := 0.0
					for _, part := range m["evidence"].(map[string]any) {
						sum += part.(float64)
					}
					if !near(sum, m["delta"].(float64)) {
						t.Errorf("%s %s %d: parts sum to %v of %v", window, side, i, sum, m["delta"])
					}
					delete(m, "evidence")
					if other := plain.list(side)[i].(map[string]any); !maps.Equal(m, other) {
						t.Errorf("%s %s %d: %v, plain %v", window, side, i, m, other)
					}
				}
			}
		}
		s.get(t, "/v1/movers?window=7d&include=signals", who.live).wants(t, 400, "include must be one of ['evidence']")
	})
	s.rule("4.6", "for 5 minutes equal requests get equal bodies, whatever is scored meanwhile", func(t *testing.T) {
		s.remember(t, []scoring.Record{record("riser-00.com", 0, 99.9), record("late-riser.com", 100*day, 1),
			record("late-riser.com", 0, 99)})
		count := s.get(t, "/v1/distribution", who.live).number("universe.count")
		eventually(t, "the new record is counted", func() bool {
			return s.get(t, "/v1/distribution", who.live).number("universe.count") > count
		})
		for window, body := range bodies {
			r := s.get(t, "/v1/movers?window="+window, who.live).wants(t, 200, "")
			var age int
			if n, err := fmt.Sscanf(r.header.Get("Cache-Control"), "private, max-age=%d", &age); n != 1 || err != nil || age > 300 {
				t.Errorf("Cache-Control is %q", r.header.Get("Cache-Control"))
			}
			if r.raw != body {
				t.Errorf("%s: first %.200s, then %.200s", window, body, r.raw)
			}
		}
	})
}

func (s suite) longHistory(p *past, who customer) {
	var want []scoring.Record
	for _, rec := range p.records {
		if rec.Domain == "long-history.com" {
			want = append(want, rec)
		}
	}
	slices.SortFunc(want, func(a, b scoring.Record) int { return b.ScoredAt.Compare(a.ScoredAt) })
	const path = "/v1/score/long-history.com/history"
	s.rule("4.4", "a page holds 100 records unless asked otherwise, and at most 500", func(t *testing.T) {
		for query, n := range map[string]int{"": 100, "?limit=100": 100, "?limit=500": 500, "?limit=7": 7} {
			r := s.get(t, path+query, who.live).wants(t, 200, "")
			if len(r.list("records")) != n || r.text("next_cursor") == "" {
				t.Errorf("%q: %d records, next_cursor %q", query, len(r.list("records")), r.text("next_cursor"))
			}
		}
	})
	s.rule("2.6", "a history record has its seven fields and no more, as they were scored", func(t *testing.T) {
		r := s.get(t, path+"?limit=500", who.live).wants(t, 200, "")
		for i, item := range r.list("records") {
			got, rec := item.(map[string]any), want[i]
			fields := []string{"buckets", "composite_score", "data_completeness_pct", "momentum_index", "scale_premium", "scored_at",
				"svc_rating"}
			if !slices.Equal(slices.Sorted(maps.Keys(got)), fields) {
				t.Fatalf("record %d has %v", i, slices.Sorted(maps.Keys(got)))
			}
			if got["scored_at"] != rec.ScoredAt.Format("2006-01-02T15:04:05.000Z") || got["composite_score"] != rec.Composite ||
				got["scale_premium"] != rec.ScalePremium ||
				got["svc_rating"] != string(rec.Rating) || got["momentum_index"] != rec.MomentumIndex ||
				got["data_completeness_pct"] != rec.CompletenessPct {
				t.Fatalf("record %d is %v, want %+v", i, got, rec)
			}
		}
	})
	s.rule("4.4", "the cursor leads through every record once, and the last page has none", func(t *testing.T) {
		i := 0
		for cursor := ""; ; {
			r := s.get(t, path+"?limit=201"+cursor, who.live).wants(t, 200, "")
			for _, item := range r.list("records") {
				if item.(map[string]any)["scored_at"] != want[i].ScoredAt.Format("2006-01-02T15:04:05.000Z") {
					t.Fatalf("record %d is %v", i, item)
				}
				i++
			}
			if r.at("next_cursor") == nil {
				break
			}
			cursor = "&cursor=" + r.text("next_cursor")
		}
		if i != len(want) {
			t.Errorf("%d records, want %d", i, len(want))
		}
	})
	s.rule("4.4", "a page that ends with the last record has no cursor", func(t *testing.T) {
		first := s.get(t, path+"?limit=2", who.live)
		if r := s.get(t, path+"?limit=500&cursor="+first.text("next_cursor"), who.live).wants(t, 200, ""); len(r.list("records")) != 500 ||
			r.at("next_cursor") != nil {
			t.Errorf("%d records, next_cursor %v", len(r.list("records")), r.at("next_cursor"))
		}
	})
	s.rule("7 rule 3", "a source that failed is a data warning, and the score is there", func(t *testing.T) {
		s.get(t, "/v1/score/warned.com", who.live).wants(t, 200, "")
		r := s.get(t, "/v1/company/warned.com/confidence", who.live).wants(t, 200, "")
		at := p.latest["warned.com"].ScoredAt.Format(millis)
		staleAt := p.latest["warned.com"].ScoredAt.Add(-36 * time.Hour).Format(millis)
		want := fmt.Sprint([]any{
			map[string]any{"source": "web", "reason": "timeout", "at": at}, map[string]any{"source": "rdap", "reason": "stale",
				"at": staleAt},
			map[string]any{"source": "wikidata", "reason": "defunct", "at": at},
		})
		if got := fmt.Sprint(r.list("data_warnings")); got != want || r.text("band") != "low" ||
			r.number("data_completeness_pct") != 48.2 ||
			len(r.list("missing_signals")) != 31 || r.number("signals_observed") != 34 {
			t.Errorf("warnings %s, want %s; %.300s", got, want, r.raw)
		}
	})
	s.rule("decided: evidence", "confidence lists what is stale with its age, and apart from the missing what means nothing",
		func(t *testing.T) {
			r := s.get(t, "/v1/company/warned.com/confidence", who.live).wants(t, 200, "")
			manifest := scoring.Manifest()
			staleAt := p.latest["warned.com"].ScoredAt.Add(-36 * time.Hour).Format(millis)
			stale := fmt.Sprint([]any{map[string]any{"id": manifest[64].ID, "source": manifest[64].Sources[0], "observed_at": staleAt,
				"age_days": 1.5}})
			if got := fmt.Sprint(r.list("stale_signals")); got != stale {
				t.Errorf("stale signals %s, want %s", got, stale)
			}
			if got, want := fmt.Sprint(r.list("not_applicable_signals")), fmt.Sprint([]any{manifest[1].ID, manifest[33].ID}); got != want ||
				r.number("signals_not_applicable") != 2 {
				t.Errorf("not applicable %s, want %s", got, want)
			}
			if got, want := fmt.Sprint(r.at("interval")),
				fmt.Sprint(map[string]any{"low": 41.3, "high": 60.4, "level": 90.0}); got != want || r.at("expected_composite") != 51.2 {
				t.Errorf("interval %s, want %s; expected composite %v", got, want, r.at("expected_composite"))
			}
			var observed, left float64
			for bucket := range r.at("buckets").(map[string]any) {
				observed += r.number("buckets." + bucket + ".signals_observed")
				left += r.number("buckets." + bucket + ".signals_not_applicable")
			}
			if observed != 34 || left != 2 {
				t.Errorf("the buckets have %v observed signals and %v not applicable", observed, left)
			}
		})
	s.rule("decided: evidence", "an old score has the evidence of its own run", func(t *testing.T) {
		for range 2 { // from the store, then from memory
			r := s.get(t, "/v1/score/warned.com?include=evidence", who.live).wants(t, 200, "")
			want := map[string]any{
				"pipeline_version": scoring.PipelineVersion, "run_id": p.latest["warned.com"].RunID, "band": "low",
				"data_completeness_pct": 48.2,
				"interval":              map[string]any{"low": 41.3, "high": 60.4, "level": 90.0},
			}
			if got := r.at("evidence"); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("evidence %v, want %v", got, want)
			}
		}
	})
}

// freshness must be the last test: it rescores companies of the past.
func (s suite) freshness() {
	for _, w := range windows {
		s.rule("8.1", "a "+w.tier+" caller gets a stored score of up to "+w.length.String()+", and a run after that", func(t *testing.T) {
			c := s.customer(t, w.tier)
			r := s.score(t, c.live, w.tier+"-young.com").wants(t, 200, "")
			if r.number("x_svc.freshness_window_hours") != w.length.Hours() {
				t.Errorf("x_svc is %v", r.at("x_svc"))
			}
			if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 0 || u.number("cached_calls") != 1 {
				t.Errorf("a fresh score cost %s", u.raw)
			}
			s.score(t, c.live, w.tier+"-old.com").wants(t, 202, "")
			if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 1 || u.number("cached_calls") != 1 {
				t.Errorf("a run cost %s", u.raw)
			}
		})
	}
	s.rule("4.2", "a stored score is read however old it is, and no run follows", func(t *testing.T) {
		c := s.customer(t, "enterprise")
		r := s.get(t, "/v1/score/ancient.com", c.live).wants(t, 200, "")
		if r.number("composite_score") != 12.3 || r.text("x_svc.cache_status") != "cached" {
			t.Errorf("got %s", r.raw)
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 0 || u.number("cached_calls") != 1 {
			t.Errorf("reading cost %s", u.raw)
		}
	})
	s.rule("4.2", "only a GET that returns a score counts: no HEAD, no 304, no 404", func(t *testing.T) {
		c := s.customer(t, "starter")
		r := s.get(t, "/v1/score/ancient.com", c.live).wants(t, 200, "")
		if head := s.call(t, "HEAD", "/v1/score/ancient.com", c.live, ""); head.status != 200 || head.raw != "" {
			t.Errorf("HEAD: %d %q", head.status, head.raw)
		}
		if again := s.get(t, "/v1/score/ancient.com", c.live, "If-None-Match", r.header.Get("ETag")); again.status != 304 {
			t.Errorf("with its tag: %d", again.status)
		}
		s.get(t, "/v1/score/never-heard-of.com", c.live).wants(t, 404, "no score available for this domain")
		if u := s.get(t, "/v1/usage", c.live); u.number("cached_calls") != 1 {
			t.Errorf("got %s", u.raw)
		}
	})
	s.rule("4.1 rule 3", "nobody is paid back for a run that is not polled, or that failed", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.pause(t, "worker")
		s.score(t, c.live, "abandoned-company.com").wants(t, 202, "")
		id := s.score(t, c.live, "doomed-company.com").wants(t, 202, "").text("job_id")
		run, err := s.redis(t).HGet(t.Context(), redis.Job(id), "run").Result()
		if err != nil {
			t.Fatal(err)
		}
		s.cli(t, "run", "abort", run)
		if job := s.poll(t, c.live, id); job.text("status") != "failed" {
			t.Errorf("got %s", job.raw)
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 2 {
			t.Errorf("got %s", u.raw)
		}
	})
}

// retryAfter checks that Retry-After is the time until an instant in seconds, rounded up. The
// request was sent between two instants.
func retryAfter(t *testing.T, r reply, until, asked, answered time.Time) {
	t.Helper()
	seconds := func(at time.Time) int { return max(1, int(math.Ceil(until.Sub(at).Seconds()))) }
	got, err := strconv.Atoi(r.header.Get("Retry-After"))
	if err != nil || got < seconds(answered) || got > seconds(asked) {
		t.Errorf("Retry-After is %q, want %d", r.header.Get("Retry-After"), seconds(answered))
	}
}

// slidingWindows fills the windows of the breakers with calls of the past.
func (s suite) slidingWindows() {
	rdb := s.redis(s.T)
	// fill writes calls into a window: n of an age, and one older call that leaves first.
	fill := func(t *testing.T, window string, n int, age, oldest time.Duration) (leaves time.Time) {
		t.Helper()
		now := time.Now()
		first := now.Add(-oldest).Truncate(time.Millisecond)
		calls := []goredis.Z{{Score: float64(first.UnixMilli()), Member: "first"}}
		for i := range n {
			calls = append(calls, goredis.Z{Score: float64(now.Add(-age).UnixMilli()), Member: fmt.Sprintf("call-%d", i)})
		}
		if err := rdb.ZAdd(t.Context(), window, calls...).Err(); err != nil {
			t.Fatal(err)
		}
		return first
	}
	s.rule("8.2 rule 2", "a key that made 200 cold calls in an hour waits until the first leaves the hour", func(t *testing.T) {
		c := s.customer(t, "growth")
		first := fill(t, redis.ColdKeyWindow(c.liveID), 199, 30*time.Minute, time.Hour-90*time.Second)
		asked := time.Now()
		r := s.score(t, c.live, "breaker-key.com").wants(t, 429, "rate limited")
		if r.text("reason") != "per_key_cold_1h" {
			t.Errorf("got %s", r.raw)
		}
		retryAfter(t, r, first.Add(time.Hour), asked, time.Now())
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 0 {
			t.Errorf("a rejected call was charged: %s", u.raw)
		}
		other, _ := s.key(t, c.account, "live")
		s.score(t, other, "breaker-key.com").wants(t, 202, "")
	})
	s.rule("8.2 rule 2", "the hour slides: what was called before it does not count", func(t *testing.T) {
		c := s.customer(t, "growth")
		fill(t, redis.ColdKeyWindow(c.liveID), 199, 30*time.Minute, time.Hour+time.Second)
		s.score(t, c.live, "breaker-slides.com").wants(t, 202, "")
		s.score(t, c.live, "breaker-slides-2.com").wants(t, 429, "rate limited")
	})
	s.rule("8.2 rule 3", "an account with twice its monthly budget in 24 hours waits, whatever the key", func(t *testing.T) {
		c := s.customer(t, "starter")
		first := fill(t, redis.ColdAccountWindow(c.account), 199, 2*time.Hour, day-42*time.Minute)
		other, _ := s.key(t, c.account, "live")
		for _, key := range []string{c.live, other} {
			asked := time.Now()
			r := s.score(t, key, "breaker-account.com").wants(t, 429, "rate limited")
			if r.text("reason") != "account_cold_24h" {
				t.Errorf("got %s", r.raw)
			}
			retryAfter(t, r, first.Add(day), asked, time.Now())
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 0 {
			t.Errorf("a rejected call was charged: %s", u.raw)
		}
		if r := s.get(t, "/v1/score/ancient.com", c.live); r.status != 200 {
			t.Errorf("reading is stopped, too: %s", r.raw)
		}
	})
	s.rule("8.2 rule 3", "the 24 hours slide", func(t *testing.T) {
		c := s.customer(t, "starter")
		fill(t, redis.ColdAccountWindow(c.account), 199, 2*time.Hour, day+time.Second)
		s.score(t, c.live, "breaker-day-slides.com").wants(t, 202, "")
		s.score(t, c.live, "breaker-day-slides-2.com").wants(t, 429, "rate limited")
	})
	s.rule("8.2 rule 3", "an unmetered account has no such limit", func(t *testing.T) {
		c := s.customer(t, "enterprise")
		fill(t, redis.ColdAccountWindow(c.account), 1000, 2*time.Hour, 3*time.Hour)
		s.score(t, c.live, "breaker-unmetered.com").wants(t, 202, "")
	})
	s.rule("8.2 rule 1", "a full budget is exhausted until the month ends, to the second", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		if err := rdb.Set(t.Context(), redis.ColdMonth(c.account, redis.Period(time.Now())), 99, day).Err(); err != nil {
			t.Fatal(err)
		}
		s.score(t, c.live, "last-of-budget.com").wants(t, 202, "")
		asked := time.Now()
		r := s.score(t, c.live, "beyond-budget.com").wants(t, 429, "cold_budget_exhausted")
		year, month, _ := asked.UTC().Date()
		retryAfter(t, r, time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC), asked, time.Now())
		if r.text("reason") != "monthly_cap" {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("2.7", "an error has error and message, and a reason when a limit was reached only", func(t *testing.T) {
		c := s.customer(t, "starter")
		var fields map[string]json.RawMessage
		r := s.get(t, "/v1/score/never-heard-of.com", c.live).wants(t, 404, "no score available for this domain")
		decode(t, r.raw, &fields)
		if !slices.Equal(slices.Sorted(maps.Keys(fields)), []string{"error", "message"}) {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("7", "a compressed body is refused before it is unpacked", func(t *testing.T) {
		c := s.customer(t, "free")
		for _, encoding := range []string{"br", "gzip", "deflate", "zstd", "gzip, br", "unheard-of"} {
			s.call(t, "POST", "/v1/score", c.test, `{"domain":"acme.test"}`, "Content-Encoding", encoding).wants(t, 415,
				"content encoding not supported")
			for _, path := range []string{"/v1/scores", "/v1/scores/batch"} {
				s.call(t, "POST", path, c.test, `{"domains":["acme.test"]}`, "Content-Encoding", encoding).wants(t, 415,
					"content encoding not supported")
			}
		}
		s.call(t, "POST", "/v1/score", c.test, `{"domain":"acme.test"}`, "Content-Encoding", "identity").wants(t, 200, "")
	})
}
