package client

import (
	"context"
	"net/url"
	"time"
)

// Cohort is the comparison of a company with its peers: those of the same sector, reach and profile.
type Cohort struct {
	Response Response     `json:"-"`
	Mode     string       `json:"mode"`
	Target   CohortTarget `json:"target"`
	Cohort   CohortStats  `json:"cohort"`
	// BucketMeans are the four buckets by name, such as team_structure.
	BucketMeans map[string]BucketComparison `json:"bucket_means"`
	// Members are at most 200 peers, highest composite first.
	Members []Company `json:"members"`
}

// Company is one company of a cohort.
type Company struct {
	Domain    string  `json:"domain"`
	Name      string  `json:"company_name"`
	Composite float64 `json:"composite_score"`
	Rating    string  `json:"svc_rating"`
	// Profile is growth, established or unclassified.
	Profile string `json:"business_profile"`
}

// CohortTarget is the company that is compared.
type CohortTarget struct {
	Company
	Context CohortContext `json:"context"`
}

// CohortContext is what the peers have in common, besides the profile.
type CohortContext struct {
	Sector   string `json:"sector"`
	GeoScope string `json:"geo_scope"`
}

// CohortStats are the statistics of the composites of the peers. All are 0 without peers.
type CohortStats struct {
	Count  int64   `json:"count"`
	Mean   float64 `json:"mean"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	Stddev float64 `json:"stddev"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	// Rank is that of the target; 1 is the highest composite.
	Rank int64 `json:"rank"`
	// Percentile is the share of the peers with a lower composite, 0 to 100.
	Percentile float64 `json:"percentile"`
}

// BucketComparison is a bucket of the target and its mean among the peers.
type BucketComparison struct {
	Target float64 `json:"target"`
	Cohort float64 `json:"cohort"`
	// Delta is Target minus Cohort.
	Delta float64 `json:"delta"`
}

// Cohort compares a company with its peers. The error is ErrNotScored if it was never scored.
func (c *Client) Cohort(ctx context.Context, domain string) (Cohort, error) {
	var cohort Cohort
	err := c.get(ctx, "/v1/company/"+url.PathEscape(domain)+"/cohort", &cohort, &cohort.Response)
	return cohort, err
}

// Confidence is how much of the newest score of a company rests on data.
type Confidence struct {
	Response        Response  `json:"-"`
	Mode            string    `json:"mode"`
	Domain          string    `json:"domain"`
	Name            string    `json:"company_name"`
	ScoredAt        time.Time `json:"scored_at"`
	PipelineVersion string    `json:"pipeline_version"`
	// Band is high, medium, low or directional.
	Band string `json:"band"`
	// CompletenessPct is the weighted share of the applicable signals that rest on data, 0 to 100.
	CompletenessPct float64 `json:"data_completeness_pct"`
	// Interval is the likely range of the composite if all signals were known.
	Interval Interval `json:"interval"`
	// ExpectedComposite is the composite with the cohort's mean in the place of what is missing.
	ExpectedComposite    float64 `json:"expected_composite"`
	SignalsTotal         int     `json:"signals_total"`
	SignalsObserved      int     `json:"signals_observed"`
	SignalsNotApplicable int     `json:"signals_not_applicable"`
	// Buckets are the four buckets by name, such as team_structure.
	Buckets map[string]BucketConfidence `json:"buckets"`
	Missing []MissingSignal             `json:"missing_signals"`
	Stale   []StaleSignal               `json:"stale_signals"`
	// NotApplicable are the ids of the signals that mean nothing for the company.
	NotApplicable []string      `json:"not_applicable_signals"`
	Warnings      []DataWarning `json:"data_warnings"`
}

// BucketConfidence is the completeness of one bucket.
type BucketConfidence struct {
	CompletenessPct      float64 `json:"data_completeness_pct"`
	SignalsTotal         int     `json:"signals_total"`
	SignalsObserved      int     `json:"signals_observed"`
	SignalsNotApplicable int     `json:"signals_not_applicable"`
}

// MissingSignal is a signal that counted as neutral, and why.
type MissingSignal struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Bucket string `json:"bucket"`
	// CompositeWeight is its share of the composite before the premium.
	CompositeWeight float64 `json:"composite_weight"`
	Reason          string  `json:"reason"`
}

// StaleSignal is a signal whose observation was carried forward from an earlier run.
type StaleSignal struct {
	ID         string    `json:"id"`
	Source     string    `json:"source"`
	ObservedAt time.Time `json:"observed_at"`
	// AgeDays is the age of the observation when the score was made.
	AgeDays float64 `json:"age_days"`
}

// DataWarning is a source that failed, whose observations are stale, or that found the company defunct.
type DataWarning struct {
	Source string    `json:"source"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
}

// Confidence reads how much of a score rests on data. The error is ErrNotScored if the company was never scored.
func (c *Client) Confidence(ctx context.Context, domain string) (Confidence, error) {
	var confidence Confidence
	err := c.get(ctx, "/v1/company/"+url.PathEscape(domain)+"/confidence", &confidence, &confidence.Response)
	return confidence, err
}

// Window is the time over which movers are measured.
type Window string

// The windows of [Client.Movers].
const (
	Week    Window = "7d"
	Month   Window = "30d"
	Quarter Window = "90d"
)

// Movers are the companies with the largest deltas within a window, at most 20 gainers and 20 decliners, largest delta first.
type Movers struct {
	Response    Response  `json:"-"`
	Mode        string    `json:"mode"`
	Window      Window    `json:"window"`
	WindowStart time.Time `json:"window_start"`
	WindowEnd   time.Time `json:"window_end"`
	Gainers     []Mover   `json:"gainers"`
	Decliners   []Mover   `json:"decliners"`
}

// Mover is a company with its delta.
type Mover struct {
	Domain        string  `json:"domain"`
	Name          string  `json:"company_name"`
	CompositeNow  float64 `json:"composite_now"`
	CompositeThen float64 `json:"composite_then"`
	// Delta is CompositeNow minus CompositeThen.
	Delta      float64 `json:"delta"`
	RatingNow  string  `json:"svc_rating_now"`
	RatingThen string  `json:"svc_rating_then"`
	// Evidence is nil unless the call has [WithEvidence]. Its parts sum to Delta.
	Evidence *Causes `json:"evidence"`
}

// Movers reads the companies with the largest deltas within a window.
func (c *Client) Movers(ctx context.Context, window Window, options ...ReadOption) (Movers, error) {
	query := url.Values{"window": {string(window)}}
	if readOptionsOf(options).evidence {
		query.Set("include", "evidence")
	}
	var movers Movers
	err := c.get(ctx, "/v1/movers?"+query.Encode(), &movers, &movers.Response)
	return movers, err
}

// Distribution is the statistics of all companies of one pipeline version.
type Distribution struct {
	Response        Response `json:"-"`
	Mode            string   `json:"mode"`
	PipelineVersion string   `json:"pipeline_version"`
	Universe        Universe `json:"universe"`
}

// Universe is the statistics of a distribution.
type Universe struct {
	Count         int64            `json:"count"`
	Mean          float64          `json:"mean"`
	P50           float64          `json:"p50"`
	P90           float64          `json:"p90"`
	Stddev        float64          `json:"stddev"`
	Min           float64          `json:"min"`
	Max           float64          `json:"max"`
	CompositeHist []Bin            `json:"composite_hist"`     // 20 bins of 5 points
	PremiumHist   []Bin            `json:"scale_premium_hist"` // 12 bins of 1 point
	Ratings       map[string]int64 `json:"rating_dist"`        // companies by rating
	Profiles      map[string]int64 `json:"profile_split"`      // companies by profile
	// MinDataPct is the completeness below which the operator counts no company, 0 if all count.
	MinDataPct float64 `json:"min_data_pct"`
}

// Bin is the number of companies in a range such as "60-65".
type Bin struct {
	Range string `json:"range"`
	Count int64  `json:"count"`
}

// Distribution reads the statistics of all companies.
func (c *Client) Distribution(ctx context.Context) (Distribution, error) {
	var d Distribution
	err := c.get(ctx, "/v1/distribution", &d, &d.Response)
	return d, err
}

// Usage is what the account used in the current calendar month (UTC).
type Usage struct {
	Response    Response   `json:"-"`
	Mode        string     `json:"mode"`
	AccountID   string     `json:"user_id"`
	Period      string     `json:"period"` // YYYY-MM
	Tier        string     `json:"tier"`
	TotalCalls  int64      `json:"total_calls"`
	ColdCalls   int64      `json:"cold_calls"`
	CachedCalls int64      `json:"cached_calls"`
	LastReset   time.Time  `json:"last_reset"`
	NextReset   time.Time  `json:"next_reset"`
	Limits      TierLimits `json:"tier_limits"`
}

// TierLimits are the monthly limits of a tier. Nil means unmetered.
type TierLimits struct {
	CachedCallsIncluded  *int64  `json:"cached_calls_included"`
	ColdCallsIncluded    *int64  `json:"cold_calls_included"`
	FreshnessWindowHours float64 `json:"freshness_window_hours"`
}

// Usage reads the usage of the account. It is free.
func (c *Client) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	err := c.read(ctx, request{method: "GET", path: "/v1/usage"}, &u, &u.Response)
	return u, err
}

// Manifest describes all signals.
type Manifest struct {
	Response        Response `json:"-"`
	PipelineVersion string   `json:"pipeline_version"`
	Count           int      `json:"count"`
	// NeutralScore is the score of a missing signal.
	NeutralScore float64          `json:"neutral_score"`
	Buckets      []ManifestBucket `json:"buckets"`
	Signals      []Signal         `json:"signals"`
}

// ManifestBucket is one of the four groups of signals.
type ManifestBucket struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Weight float64 `json:"weight"` // share of the composite before the premium
	// Signals is the number of signals in the bucket.
	Signals int `json:"signals"`
}

// Signal describes one signal.
type Signal struct {
	ID     string  `json:"id"`
	Name   string  `json:"name"`
	Bucket string  `json:"bucket"`
	Weight float64 `json:"weight"` // share of the bucket
	// CompositeWeight is the share of the composite before the premium.
	CompositeWeight float64 `json:"composite_weight"`
	Unit            string  `json:"unit"`
	// Direction is higher or lower: which values are better.
	Direction string `json:"direction"`
	// Sources observe the signal, most trusted first.
	Sources       []string      `json:"sources"`
	Normalization Normalization `json:"normalization"`
	// MaxAgeDays is the age until which an observation counts while its source has no news.
	MaxAgeDays      int      `json:"max_age_days"`
	NotApplicableTo []string `json:"not_applicable_to"`
}

// Normalization is how a raw value becomes a score. P10, P50 and P90 are the raw values that score 20, 50 and 80.
type Normalization struct {
	Rule string  `json:"rule"`
	P10  float64 `json:"p10"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	// Absent is the score if the sources report that there is none; nil means that the signal is then missing.
	Absent     *float64 `json:"absent_score"`
	Population string   `json:"population"`
	Basis      string   `json:"basis"`
}

// Signals reads the manifest of the signals. It is the same for all keys.
func (c *Client) Signals(ctx context.Context) (Manifest, error) {
	var m Manifest
	err := c.get(ctx, "/v1/signals", &m, &m.Response)
	return m, err
}
