package api

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"companyscore/scoring"
)

func TestPartsMakeBodyOfScore(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	tenth := func() float64 { return float64(rng.IntN(1001)) / 10 }
	for i := range 500 {
		rec := scoring.Record{
			Domain: "a<>&é.com", ScoredAt: time.UnixMilli(rng.Int64N(4e12)), Rating: scoring.RatingElite, Composite: tenth(),
			ScalePremium: tenth() / 10,
			Buckets: scoring.BucketScores{TeamStructure: tenth(), MarketPosition: tenth(), MomentumTailwinds: tenth(),
				FinancialHealth: tenth()},
		}
		body := Score{
			Domain: rec.Domain, ScoredAt: Time(rec.ScoredAt), Rating: rec.Rating, Composite: rec.Composite, ScalePremium: rec.ScalePremium,
			Buckets: rec.Buckets,
			Caller:  Caller{Tier: "starter", CacheStatus: Cached, FreshnessWindowHours: 0.25},
		}
		if i%2 == 0 {
			body.Mode = Sandbox
		}
		if i%3 > 0 {
			body.Rank = &Rank{Percentile: rng.IntN(101), CohortSize: rng.Int64N(1e9)}
		}
		if i%5 > 1 {
			rec.PipelineVersion, rec.RunID, rec.Confidence, rec.CompletenessPct = "v1", "<run>", scoring.BandLow, tenth()
			rec.Interval = scoring.Interval{Low: tenth(), High: tenth(), Level: scoring.IntervalLevel}
			evidence := NewEvidence(rec)
			body.Evidence = &evidence
		}
		want, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendScore(nil, body.Mode, ScoreHead(rec), body.Rank, body.Evidence,
			ScoreTail(body.Caller)); string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}
