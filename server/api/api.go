// Package api defines the answer bodies of the HTTP API, one struct each, and the cursor of
// its pages. Live answers and the sandbox use the same structs.
//
// Mode is the first field of every body that has one. It is "sandbox" in answers to test keys
// and omitted in all others.
package api

import (
	"encoding/json"
	"time"

	"companyscore/scoring"
)

// Sandbox is the Mode of every answer to a test key.
const Sandbox = "sandbox"

// Cached is the only value of CacheStatus.
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

// Score is the answer to GET /v1/score/{domain}, and to POST /v1/score if a fresh score is
// stored.
type Score struct {
	Mode         string               `json:"mode,omitempty"`
	Domain       string               `json:"domain"`
	ScoredAt     Time                 `json:"scored_at"`
	Rating       scoring.Rating       `json:"svc_rating"`
	Composite    float64              `json:"composite_score"` // 0 to 100, premium included
	ScalePremium float64              `json:"scale_premium"`   // 0 to 12
	Buckets      scoring.BucketScores `json:"buckets"`
	Rank         *Rank                `json:"rank,omitempty"`     // nil before the first count, or for another pipeline version
	Evidence     *Evidence            `json:"evidence,omitempty"` // nil unless the caller asked for it
	Caller       Caller               `json:"x_svc"`
}

// Rank is the place of a company among all companies of the current pipeline version.
type Rank struct {
	Percentile int   `json:"percentile"` // share of the others below, ties half; 0 to 100
	CohortSize int64 `json:"cohort_size"`
}

// Evidence is how much of a score rests on data.
type Evidence struct {
	PipelineVersion string           `json:"pipeline_version"`
	RunID           string           `json:"run_id"`
	Band            scoring.Band     `json:"band"`
	CompletenessPct float64          `json:"data_completeness_pct"` // 0 to 100
	Interval        scoring.Interval `json:"interval"`
}

// Caller is the part of a score body that depends on the tier of the caller.
type Caller struct {
	Tier                 string  `json:"tier"`
	CacheStatus          string  `json:"cache_status"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Accepted is the answer to a POST that opened or joined a run.
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
	// Progress is that of the run, some seconds old, absent before the run has asked its sources and once the job is settled.
	Progress *Progress `json:"progress,omitempty"`
}

// Progress is how far a run is.
type Progress struct {
	SourcesDone  int `json:"sources_done"`
	SourcesTotal int `json:"sources_total"`
}

// JobList is the answer to GET /v1/jobs. It has one item per id, in the order of the request.
type JobList struct {
	Jobs []JobItem `json:"jobs"`
}

// JobItem is a job or an error.
type JobItem struct {
	JobID  string `json:"job_id"`
	Status int    `json:"status"` // what GET /v1/jobs/{job_id} would answer: 200, 403 or 404
	Job    *Job   `json:"job,omitempty"`
	Error  *Error `json:"error,omitempty"`
}

// Result identifies the record of a complete job.
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

// HistoryRecord is a summary in a page of history.
type HistoryRecord struct {
	ScoredAt        Time                 `json:"scored_at"`
	Composite       float64              `json:"composite_score"`
	ScalePremium    float64              `json:"scale_premium"`
	Rating          scoring.Rating       `json:"svc_rating"`
	MomentumIndex   float64              `json:"momentum_index"` // 0 to 100
	Buckets         scoring.BucketScores `json:"buckets"`
	CompletenessPct float64              `json:"data_completeness_pct"` // 0 to 100
}

// Cohort is the comparison of a company with its cohort.
type Cohort struct {
	Mode        string                              `json:"mode,omitempty"`
	Target      CohortTarget                        `json:"target"`
	Cohort      CohortStats                         `json:"cohort"`
	BucketMeans map[scoring.Bucket]BucketComparison `json:"bucket_means"`
	Members     []Company                           `json:"members"` // at most 200, highest composite first
}

// Company is one company of a cohort.
type Company struct {
	Domain      string          `json:"domain"`
	CompanyName string          `json:"company_name"`
	Composite   float64         `json:"composite_score"`
	Rating      scoring.Rating  `json:"svc_rating"`
	Profile     scoring.Profile `json:"business_profile"`
}

// CohortTarget is the company that is compared.
type CohortTarget struct {
	Company
	Context CohortContext `json:"context"`
}

// CohortContext holds the sector and the reach of a cohort.
type CohortContext struct {
	Sector   string `json:"sector"`
	GeoScope string `json:"geo_scope"`
}

// CohortStats has the statistics of the composites of a cohort without the target. All
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
	Percentile float64 `json:"percentile"` // share of the others below the target, ties half; 0 to 100
}

// BucketComparison has a bucket of the target and the mean of the cohort.
type BucketComparison struct {
	Target float64 `json:"target"`
	Cohort float64 `json:"cohort"`
	Delta  float64 `json:"delta"` // target minus cohort
}

// Movers has the companies with the largest deltas within a window.
type Movers struct {
	Mode        string  `json:"mode,omitempty"`
	Window      string  `json:"window"` // 7d, 30d or 90d
	WindowStart Time    `json:"window_start"`
	WindowEnd   Time    `json:"window_end"`
	Gainers     []Mover `json:"gainers"`   // at most 20, largest change first
	Decliners   []Mover `json:"decliners"` // at most 20, largest change first
}

// Mover is a company with its delta.
type Mover struct {
	Domain        string         `json:"domain"`
	CompanyName   string         `json:"company_name"`
	CompositeNow  float64        `json:"composite_now"`
	CompositeThen float64        `json:"composite_then"`
	Delta         float64        `json:"delta"` // now minus then
	RatingNow     scoring.Rating `json:"svc_rating_now"`
	RatingThen    scoring.Rating `json:"svc_rating_then"`
	Evidence      *MoverEvidence `json:"evidence,omitempty"`
}

// MoverEvidence is what the delta of a mover is made of. The parts sum to it.
type MoverEvidence struct {
	Observation float64 `json:"observation"`
	Coverage    float64 `json:"coverage"`
	Premium     float64 `json:"premium"`
	Formula     float64 `json:"formula"`
	Defunct     float64 `json:"defunct"`
}

// Usage is the usage of an account in the current month, with its limits.
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

// TierLimits are the limits of a tier. A null number means unmetered.
type TierLimits struct {
	CachedCallsIncluded  *int64  `json:"cached_calls_included"`
	ColdCallsIncluded    *int64  `json:"cold_calls_included"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Distribution has the statistics of all companies of one pipeline version.
type Distribution struct {
	Mode            string   `json:"mode,omitempty"`
	PipelineVersion string   `json:"pipeline_version"`
	Universe        Universe `json:"universe"`
}

// Universe has the statistics of a distribution. All numbers are 0 if there are no
// companies.
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
	// MinDataPct is the completeness below which the operator does not count a company; 0 if all count.
	MinDataPct float64 `json:"min_data_pct,omitempty"`
}

// Bin is the number of values in a range. The range excludes its upper bound, except in the
// last bin.
type Bin struct {
	Range string `json:"range"`
	Count int64  `json:"count"`
}

// Error is the body of every answer that is not a success. Code is stable, for programs.
// Message is for people and may change.
type Error struct {
	Code    string `json:"error"`
	Message string `json:"message"`
	Reason  string `json:"reason,omitempty"`
	Tier    string `json:"tier,omitempty"`
}

// Batch is the answer to POST /v1/scores/batch. It has one item per domain, in the order of
// the request.
type Batch struct {
	Mode    string      `json:"mode,omitempty"`
	Results []BatchItem `json:"results"`
}

// BatchItem is a stored score, a job or an error.
type BatchItem struct {
	Domain string          `json:"domain"` // canonical; as it was sent if it is no domain
	Status int             `json:"status"` // what a request for this company alone would answer: 200, 202, 400, 404 or 429
	Score  json.RawMessage `json:"score,omitempty"`
	Job    *Accepted       `json:"job,omitempty"` // in the answer to POST /v1/scores only
	Error  *Error          `json:"error,omitempty"`
}

// Bulk is the answer to POST /v1/scores. Its results are in the order of the request. In a dry run they have neither scores nor jobs.
type Bulk struct {
	Mode    string      `json:"mode,omitempty"`
	DryRun  bool        `json:"dry_run,omitempty"`
	Summary BulkSummary `json:"summary"`
	Results []BatchItem `json:"results"`
}

// BulkSummary counts the companies of a call for many.
type BulkSummary struct {
	Stored  int `json:"stored"`  // answered with a stored score: a cached call each
	Started int `json:"started"` // a cold call each
	Refused int `json:"refused"` // by a limit: not charged
}
