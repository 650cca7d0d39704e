// Package api holds the shapes of what callers send and get: one struct for each
// body of the HTTP interface, and the cursor of its pages. The live paths and the
// sandbox fill the same structs, so that the two cannot grow apart.
//
// Mode is the first field of every body that has one. It is "sandbox" in answers
// to test keys and left out of all others.
package api

import (
	"encoding/json"
	"time"

	"companyscore/scoring"
)

// Sandbox is the Mode of every answer to a test key.
const Sandbox = "sandbox"

// Cached is the only CacheStatus there is.
const Cached = "cached"

// Time is written as ISO 8601 in UTC with milliseconds.
type Time time.Time

const timeLayout = "2006-01-02T15:04:05.000Z"

// MarshalJSON implements json.Marshaler.
func (t Time) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Time(t).UTC().Format(timeLayout))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Time) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, (*time.Time)(t)) }

// Score is a score: the answer to POST /v1/score when a fresh one is stored, and
// to GET /v1/score/{domain}.
type Score struct {
	Mode         string               `json:"mode,omitempty"`
	Domain       string               `json:"domain"`
	ScoredAt     Time                 `json:"scored_at"`
	Rating       scoring.Rating       `json:"svc_rating"`
	Composite    float64              `json:"composite_score"` // 0 to 100, premium included
	ScalePremium float64              `json:"scale_premium"`   // 0 to 12
	Buckets      scoring.BucketScores `json:"buckets"`
	Rank         *Rank                `json:"rank,omitempty"` // nil until the universe was counted once
	Caller       Caller               `json:"x_svc"`
}

// Rank is a company's place among all that were ever scored.
type Rank struct {
	Percentile int   `json:"percentile"` // 0 to 100
	CohortSize int64 `json:"cohort_size"`
}

// Caller is what a score body says about whoever asked.
type Caller struct {
	Tier                 string  `json:"tier"`
	CacheStatus          string  `json:"cache_status"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Accepted is the answer to a POST that started a run.
type Accepted struct {
	JobID   string `json:"job_id"`
	Status  string `json:"status"`
	Domain  string `json:"domain"`
	PollURL string `json:"poll_url"`
}

// Job is the state of a job.
type Job struct {
	JobID         string  `json:"job_id"`
	Status        string  `json:"status"`
	Domain        string  `json:"domain"`
	CreatedAt     Time    `json:"created_at"`
	CompletedAt   *Time   `json:"completed_at,omitempty"`   // when settled
	Result        *Result `json:"result_ref,omitempty"`     // when complete
	ScoreURL      string  `json:"score_url,omitempty"`      // when complete
	FailureReason string  `json:"failure_reason,omitempty"` // when failed
}

// Result names the record that a job led to.
type Result struct {
	Domain   string `json:"domain"`
	ScoredAt Time   `json:"scored_at"`
}

// History is one page of a company's records, newest first.
type History struct {
	Mode       string          `json:"mode,omitempty"`
	Domain     string          `json:"domain"`
	Records    []HistoryRecord `json:"records"`
	NextCursor string          `json:"next_cursor,omitempty"` // empty on the last page
}

// HistoryRecord is a record without what explains it.
type HistoryRecord struct {
	ScoredAt        Time                 `json:"scored_at"`
	Composite       float64              `json:"composite_score"`
	ScalePremium    float64              `json:"scale_premium"`
	Rating          scoring.Rating       `json:"svc_rating"`
	MomentumIndex   float64              `json:"momentum_index"` // 0 to 100
	Buckets         scoring.BucketScores `json:"buckets"`
	CompletenessPct float64              `json:"data_completeness_pct"` // 0 to 100
}

// Cohort compares a company with the others of its sector, reach and profile.
type Cohort struct {
	Mode        string                              `json:"mode,omitempty"`
	Target      CohortTarget                        `json:"target"`
	Cohort      CohortStats                         `json:"cohort"`
	BucketMeans map[scoring.Bucket]BucketComparison `json:"bucket_means"`
	Members     []Member                            `json:"members"` // at most 200, highest composite first
}

// Member is one company of a cohort.
type Member struct {
	Domain      string          `json:"domain"`
	CompanyName string          `json:"company_name"`
	Composite   float64         `json:"composite_score"`
	Rating      scoring.Rating  `json:"svc_rating"`
	Profile     scoring.Profile `json:"business_profile"`
}

// CohortTarget is the company that is compared.
type CohortTarget struct {
	Member
	Context CohortContext `json:"context"`
}

// CohortContext is what the members have in common besides the profile.
type CohortContext struct {
	Sector   string `json:"sector"`
	GeoScope string `json:"geo_scope"`
}

// CohortStats describes the composites of the cohort, the target left out. All
// numbers are 0 for an empty cohort.
type CohortStats struct {
	Count      int64   `json:"count"`
	Mean       float64 `json:"mean"`
	P50        float64 `json:"p50"`
	P90        float64 `json:"p90"`
	Stddev     float64 `json:"stddev"`
	Min        float64 `json:"min"`
	Max        float64 `json:"max"`
	Rank       int64   `json:"rank"`       // of the target, 1 is the highest composite
	Percentile float64 `json:"percentile"` // share of the others below the target, 0 to 100
}

// BucketComparison sets a bucket of the target beside the mean of the cohort.
type BucketComparison struct {
	Target float64 `json:"target"`
	Cohort float64 `json:"cohort"`
	Delta  float64 `json:"delta"` // target minus cohort
}

// Movers lists whose composite changed most within a window.
type Movers struct {
	Mode        string  `json:"mode,omitempty"`
	Window      string  `json:"window"` // 7d, 30d or 90d
	WindowStart Time    `json:"window_start"`
	WindowEnd   Time    `json:"window_end"`
	Gainers     []Mover `json:"gainers"`   // at most 20, largest change first
	Decliners   []Mover `json:"decliners"` // at most 20, largest change first
}

// Mover is a company whose composite changed.
type Mover struct {
	Domain        string         `json:"domain"`
	CompanyName   string         `json:"company_name"`
	CompositeNow  float64        `json:"composite_now"`
	CompositeThen float64        `json:"composite_then"`
	Delta         float64        `json:"delta"` // now minus then
	RatingNow     scoring.Rating `json:"svc_rating_now"`
	RatingThen    scoring.Rating `json:"svc_rating_then"`
}

// Usage is what an account used in the running month, and what it may use.
type Usage struct {
	Mode        string     `json:"mode,omitempty"`
	UserID      string     `json:"user_id"`
	Period      string     `json:"period"` // YYYY-MM
	Tier        string     `json:"tier"`
	TotalCalls  int64      `json:"total_calls"`
	ColdCalls   int64      `json:"cold_calls"`
	CachedCalls int64      `json:"cached_calls"`
	LastReset   Time       `json:"last_reset"`
	NextReset   Time       `json:"next_reset"`
	TierLimits  TierLimits `json:"tier_limits"`
}

// TierLimits is what a tier includes. A null number means unmetered.
type TierLimits struct {
	CachedCallsIncluded  *int64  `json:"cached_calls_included"`
	ColdCallsIncluded    *int64  `json:"cold_calls_included"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Distribution describes all companies scored under one pipeline version.
type Distribution struct {
	Mode            string   `json:"mode,omitempty"`
	PipelineVersion string   `json:"pipeline_version"`
	Universe        Universe `json:"universe"`
}

// Universe is the statistics of a distribution. All numbers are 0 when nothing
// was scored.
type Universe struct {
	Count         int64                     `json:"count"`
	Mean          float64                   `json:"mean"`
	P50           float64                   `json:"p50"`
	P90           float64                   `json:"p90"`
	Stddev        float64                   `json:"stddev"`
	Min           float64                   `json:"min"`
	Max           float64                   `json:"max"`
	CompositeHist []Bin                     `json:"composite_hist"`     // 20 bins of 5 points
	PremiumHist   []Bin                     `json:"scale_premium_hist"` // 12 bins of 1 point
	Ratings       map[scoring.Rating]int64  `json:"rating_dist"`        // every rating
	Profiles      map[scoring.Profile]int64 `json:"profile_split"`      // every profile
}

// Bin counts the values from the first number of its range up to the second,
// which belongs to the next bin except in the last.
type Bin struct {
	Range string `json:"range"`
	Count int64  `json:"count"`
}

// Error is the body of every answer that is not a success. Callers branch on
// Code, which never changes; Message helps a person and may change.
type Error struct {
	Code    string `json:"error"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
	Tier    string `json:"tier,omitempty"`
}

// Batch is the answer to POST /v1/scores/batch, one item for each domain asked
// for, in their order.
type Batch struct {
	Mode    string      `json:"mode,omitempty"`
	Results []BatchItem `json:"results"`
}

// BatchItem is a stored score, or why there is none.
type BatchItem struct {
	Domain string          `json:"domain"` // canonical; as it was sent if it is no domain
	Status int             `json:"status"` // what GET would answer: 200, 400 or 404
	Score  json.RawMessage `json:"score,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}
