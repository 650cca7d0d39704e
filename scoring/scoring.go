// Package scoring is the domain: what a company's score is made of and how it
// is computed. It is pure. It reads no clock, no network and no store, and it
// imports nothing but the standard library.
//
// A score starts from observations, one for each of the 67 signals of the
// manifest. Each observation is normalised to a signal score of 0 to 100;
// weighted sums of those make four bucket scores; a weighted sum of the buckets
// plus a premium for proven scale makes the composite. Whatever nobody could
// observe counts as a neutral 50 and lowers the completeness that is reported
// next to the score.
package scoring

import (
	"errors"
	"time"
)

// PipelineVersion names the generation of the formulas and the manifest.
// Records of different versions must not be compared with each other.
const PipelineVersion = "v1"

// SignalCount is the number of signals in the manifest.
const SignalCount = 67

// Neutral is the score of a signal nobody could observe.
const Neutral = 50.0

// ErrNotFound says that a store holds no such thing: no score, no facts, no run.
var ErrNotFound = errors.New("not found")

// ErrUnregistered says that nobody owns the domain, so that there is nothing to
// score. It will be no different a moment later: a run is not tried again.
var ErrUnregistered = errors.New("the domain is not registered")

// Bucket is one of the four groups of signals.
type Bucket string

// The buckets, in the order in which they are shown.
const (
	TeamStructure     Bucket = "team_structure"
	MarketPosition    Bucket = "market_position"
	MomentumTailwinds Bucket = "momentum_tailwinds"
	FinancialHealth   Bucket = "financial_health"
)

// BucketScores holds one number per bucket. What the numbers mean (scores of 0
// to 100, percentages of completeness) is said where the type is used.
type BucketScores struct {
	TeamStructure     float64 `json:"team_structure"`
	MarketPosition    float64 `json:"market_position"`
	MomentumTailwinds float64 `json:"momentum_tailwinds"`
	FinancialHealth   float64 `json:"financial_health"`
}

// State says what became of a signal in one run.
type State string

// The states of a signal. Absent means that the sources that could know
// answered, and answered "there is none".
const (
	StateOK      State = "ok"
	StateAbsent  State = "absent"
	StateMissing State = "missing"
)

// Reason says why a signal is missing. It is empty for a signal that is not.
type Reason string

// The reasons for which a signal can be missing.
const (
	ReasonNotFound            Reason = "not_found"
	ReasonNotApplicable       Reason = "not_applicable"
	ReasonInsufficientHistory Reason = "insufficient_history"
	ReasonUnresolvedIdentity  Reason = "unresolved_identity"
	ReasonAmbiguousName       Reason = "ambiguous_name"
	ReasonUnsupportedProvider Reason = "unsupported_provider"
	ReasonBlockedByRobots     Reason = "blocked_by_robots"
	ReasonSourceTimeout       Reason = "source_timeout"
	ReasonSourceError         Reason = "source_error"
	ReasonSourceRateLimited   Reason = "source_rate_limited"
	ReasonSourceDisabled      Reason = "source_disabled"
)

// Observation is what one source says about one signal.
type Observation struct {
	// Signal is the signal's id in the manifest.
	Signal string
	State  State
	// Raw is the value in the signal's unit; it is read only when State is StateOK.
	Raw float64
	// Source is the key of the source that answered, such as "wikidata" or "facts".
	Source string
	// Reason is read only when State is StateMissing.
	Reason Reason
}

// Warning records that a source failed during a run.
type Warning struct {
	Source string `json:"source"`
	// Code is one of timeout, rate_limited, http_error, parse_error, too_large,
	// blocked_address, blocked_by_robots, dns_failure, internal_error.
	Code string    `json:"code"`
	At   time.Time `json:"at"`
}

// Identity is what the sources learnt about who the company is. The zero value
// means that nothing is known.
type Identity struct {
	// Name is the best company name found; empty means derive one from the domain.
	Name string
	// Country is the ISO 3166-1 alpha-2 code of the headquarters. When it is
	// empty or no code the domain's ending decides.
	Country string
	// Industries are industry labels in English, most trusted first.
	Industries []string
	// SIC is the four-digit Standard Industrial Classification code, 0 when unknown.
	SIC int
	// Site is text of the company's own pages, for the sector vote.
	Site SiteText
	// HiringRegions counts the world regions named by open roles.
	HiringRegions int
}

// SiteText is the text of a company's site that votes on its sector.
type SiteText struct {
	Title, Description, Headings, Structured, Links string
}

// Input is everything one scoring reads. Score does not change it.
type Input struct {
	// Domain is the canonical host name that is scored.
	Domain string
	RunID  string
	// Now is the instant of the run; it becomes ScoredAt.
	Now time.Time
	// Observations may stand in any order, several for one signal. A known value
	// wins over an absence, and an absence over missing, except that it is not
	// believed when another source of the signal was asked and failed. Between
	// equals FactsSource wins, then the source listed first in the manifest,
	// then sources that the manifest does not list.
	Observations []Observation
	Identity     Identity
	Warnings     []Warning
	// Reference is the earlier record the momentum index compares with, nil if
	// none. See ReferenceAge for which one that is.
	Reference *Reference
}

// Reference is the part of an earlier record that the momentum index reads.
type Reference struct {
	ScoredAt time.Time
	Base     float64
}

// Profile is the business profile of a company.
type Profile string

// The profiles. They decide how much of the scale premium can be earned.
const (
	ProfileEstablished  Profile = "established"
	ProfileGrowth       Profile = "growth"
	ProfileUnclassified Profile = "unclassified"
)

// Rating is the grade of a composite score.
type Rating string

// The grades, highest first.
const (
	RatingElite Rating = "SVC-1+"
	Rating1     Rating = "SVC-1"
	Rating2Plus Rating = "SVC-2+"
	Rating2     Rating = "SVC-2"
	Rating3     Rating = "SVC-3"
	Rating4     Rating = "SVC-4"
	Rating5     Rating = "SVC-5"
)

// Band says how far a score rests on data.
type Band string

// The bands, most trustworthy first.
const (
	BandHigh        Band = "high"
	BandMedium      Band = "medium"
	BandLow         Band = "low"
	BandDirectional Band = "directional"
)

// SignalScore is one signal inside a record.
type SignalScore struct {
	ID    string
	State State
	// Raw is the value that was normalised, in the signal's unit. For an
	// absence it is the manifest's value for "none". It is 0 when missing.
	Raw float64
	// Score is 0 to 100, exactly Neutral when missing.
	Score float64
	// Source is the source that was believed, empty when none spoke.
	Source string
	Reason Reason
}

// Record is one score of one company.
type Record struct {
	Domain      string
	CompanyName string
	// RunID is the run that made the record.
	RunID           string
	PipelineVersion string
	// ScoredAt is in UTC and whole milliseconds. Domain and ScoredAt identify a record.
	ScoredAt time.Time
	// Composite is 0 to 100, one decimal, premium included.
	Composite float64
	// Base is the weighted sum of the unrounded bucket scores, premium not included.
	Base float64
	// ScalePremium is 0 to 12, one decimal.
	ScalePremium float64
	Rating       Rating
	// Buckets are scores of 0 to 100, one decimal.
	Buckets  BucketScores
	Profile  Profile
	Sector   string
	GeoScope string
	// Country is the code of the headquarters' country, "EU" for a seat somewhere
	// in the European Union, empty when unknown.
	Country string
	// MomentumIndex is 0 to 100, one decimal.
	MomentumIndex float64
	// CompletenessPct is the weighted share of signals that rest on data, 0 to 100, one decimal.
	CompletenessPct float64
	// BucketCompleteness is the same within each bucket.
	BucketCompleteness BucketScores
	Confidence         Band
	// Signals holds all 67 signals in manifest order.
	Signals  []SignalScore
	Warnings []Warning
}

// CompanyFacts is what an operator imported about one company. A nil number and
// an empty string mean unknown. Money is in US dollars.
type CompanyFacts struct {
	Domain      string
	CompanyName string
	// Country is an ISO 3166-1 alpha-2 code.
	Country, Region, City string
	Industry              string
	Categories            []string
	SIC                   int
	FoundedYear           int
	Status                string
	Employees             *float64
	RevenueUSD            *float64
	TotalAssetsUSD        *float64
	EBITDAUSD             *float64
	MarketCapUSD          *float64
	PERatio               *float64
	PriceSales            *float64
	PriceBook             *float64
	FundingTotalUSD       *float64
	FundingRounds         *float64
	Founders              *float64
	// HiringRegions counts the world regions in which the company hires.
	HiringRegions int
	// Listed is nil when unknown.
	Listed *bool
	// Signals are raw signal values by signal id; they win over derived ones.
	Signals map[string]float64
	// Source names where the row came from, AsOf the day it was true (zero when unknown).
	Source string
	AsOf   time.Time
}

// RunState says how far a run has come.
type RunState string

// The states of a run. All but the first two are final.
const (
	RunQueued    RunState = "queued"
	RunRunning   RunState = "running"
	RunSucceeded RunState = "succeeded"
	RunFailed    RunState = "failed"
	RunTimedOut  RunState = "timed_out"
	RunAborted   RunState = "aborted"
)

// Final reports whether a run in this state will never change again.
func (s RunState) Final() bool {
	switch s {
	case RunSucceeded, RunFailed, RunTimedOut, RunAborted:
		return true
	}
	return false
}

// Lane is a priority class of waiting runs.
type Lane string

// The lanes.
const (
	LaneAPI     Lane = "api"     // customers' calls; accounts take turns
	LaneRefresh Lane = "refresh" // runs of the refresh job
	LaneBulk    Lane = "bulk"    // runs that operators start
)

// Lanes lists every lane.
var Lanes = []Lane{LaneAPI, LaneRefresh, LaneBulk}

// Run is one cold run: the making of one record for one domain. Several jobs
// may wait for the same run.
type Run struct {
	ID     string
	Domain string
	State  RunState
	// Lane is where the run waits or waited last.
	Lane       Lane
	CreatedAt  time.Time
	StartedAt  time.Time // of the first attempt; becomes the record's ScoredAt
	FinishedAt time.Time
	// ScoredAt is the ScoredAt of the record, zero when the run made none.
	ScoredAt time.Time
	Attempts int
	// Error is an operator's explanation of a failure; it is never shown to customers.
	Error string
}

// Outcome is what became of one attempt at a run.
type Outcome struct {
	// ScoredAt is the ScoredAt of the record, zero when the attempt made none.
	ScoredAt time.Time
	Err      error
}
