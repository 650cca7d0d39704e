// Package scoring defines a company's score and computes it. It is pure: it reads no clock,
// network or store, and imports only the standard library.
//
// Scoring starts from observations of the 67 signals in the manifest. Each one is normalised to a
// signal score of 0 to 100, relative to a reference population whose median scores 50. Weighted
// means of signal scores are the four bucket scores. A weighted sum of the buckets, plus a premium
// for scale, is the composite. A missing signal scores a neutral 50 and lowers the completeness of
// the record. A signal that means nothing for the company's sector is left out.
package scoring

import (
	"errors"
	"time"
)

// PipelineVersion is the version of the formulas and the manifest. Records of different versions
// are not comparable.
const PipelineVersion = "v2"

// SignalCount is the number of signals in the manifest.
const SignalCount = 67

// Neutral is the score of a missing signal.
const Neutral = 50.0

// ErrNotFound means that a store has no such score, facts or run.
var ErrNotFound = errors.New("not found")

// ErrUnregistered means that the domain is not registered, so there is nothing to score. The run
// is not retried.
var ErrUnregistered = errors.New("the domain is not registered")

// Bucket is one of the four groups of signals.
type Bucket string

// The buckets, in display order.
const (
	TeamStructure     Bucket = "team_structure"
	MarketPosition    Bucket = "market_position"
	MomentumTailwinds Bucket = "momentum_tailwinds"
	FinancialHealth   Bucket = "financial_health"
)

// BucketScores is one number per bucket: a score or a completeness percentage, 0 to 100.
type BucketScores struct {
	TeamStructure     float64 `json:"team_structure"`
	MarketPosition    float64 `json:"market_position"`
	MomentumTailwinds float64 `json:"momentum_tailwinds"`
	FinancialHealth   float64 `json:"financial_health"`
}

// State is the state of a signal in one run.
type State string

// The states of a signal. Absent means that no source failed and none found a value. Not
// applicable is a state of scored signals only: the signal means nothing for the company.
const (
	StateOK            State = "ok"
	StateAbsent        State = "absent"
	StateMissing       State = "missing"
	StateNotApplicable State = "not_applicable"
)

// Reason is why a signal is missing, empty if it is not.
type Reason string

// The reasons of missing signals.
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

// Observation is the value of one signal from one source.
type Observation struct {
	// Signal is the signal's id in the manifest.
	Signal string
	State  State
	// Raw is the value in the signal's unit; only for StateOK.
	Raw float64
	// Source is the key of the source, such as "wikidata" or "facts".
	Source string
	// Origin is the origin of imported facts, empty for other sources.
	Origin string
	// Reason is only for StateMissing.
	Reason Reason
	// Low and High are the ends of the range that holds the value; both are 0 if Raw is exact.
	Low, High float64
	// At is when the value was observed, for imported facts the day for which they are valid. It is
	// zero for the instant of the run.
	At time.Time
}

// Warning is the failure of a source in a run, or WarningStale or WarningDefunct.
type Warning struct {
	Source string `json:"source"`
	// Code is WarningStale, WarningDefunct, or one of timeout, rate_limited, http_error, parse_error,
	// too_large, blocked_address, blocked_by_robots, dns_failure, internal_error.
	Code string    `json:"code"`
	At   time.Time `json:"at"`
}

// The codes of warnings that are not failures.
const (
	// WarningStale means that observations of the source were carried forward from an earlier run. At
	// is the time of the oldest.
	WarningStale = "stale"
	// WarningDefunct means that the source found the company dissolved, dead or its domain parked. The
	// composite is then at most DefunctMax.
	WarningDefunct = "defunct"
)

// failure reports whether the warning is the failure of a source.
func (w Warning) failure() bool { return w.Code != WarningStale && w.Code != WarningDefunct }

// Identity is what is known about the company's identity. The zero value means unknown.
type Identity struct {
	// Name is the company name; empty derives one from the domain.
	Name string
	// Country is the ISO 3166-1 alpha-2 code of the headquarters. If it is not a code, the
	// country-code TLD of the domain decides.
	Country string
	// Industries are industry labels in English, most trusted first.
	Industries []string
	// SIC is the four-digit Standard Industrial Classification code, 0 if unknown.
	SIC int
	// Site is text of the company's own pages, for the sector vote.
	Site SiteText
	// HiringRegions is the number of world regions in the open roles.
	HiringRegions int
}

// SiteText is the text of a company's site for the sector vote.
type SiteText struct {
	Title, Description, Headings, Structured, Links string
}

// Input is the input of one scoring. Score does not change it.
type Input struct {
	// Domain is the canonical domain to score.
	Domain string
	RunID  string
	// Now is the instant of the run; it becomes ScoredAt.
	Now time.Time
	// Observations are in any order, several for one signal; see Preference.
	Observations []Observation
	// Trust is that of Preference.
	Trust    []string
	Identity Identity
	// Warnings are failures of sources, and WarningDefunct if a source found the company defunct.
	Warnings []Warning
	// Answered are the sources that answered in this run. The observations of others are carried
	// forward from Previous.
	Answered []string
	// Previous is the newest earlier record of the company with its signals, nil if there is none.
	Previous *Record
	// Spreads are those of the universe, for the interval; nil are those of the reference population.
	Spreads *Spreads
	// Reference is the earlier record for the momentum index, nil if there is none. See
	// ReferenceAge.
	Reference *Reference
}

// Reference is the part of an earlier record that the momentum index uses.
type Reference struct {
	ScoredAt time.Time
	Base     float64
}

// Earlier is what a new record uses of the company's earlier ones.
type Earlier struct {
	// Reference is nil if there is none.
	Reference *Reference
	// Previous is the newest record with signals, at most PreviousMaxAge old; nil if there is none.
	Previous *Record
}

// Profile is the business profile of a company.
type Profile string

// The profiles.
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

// Band is how much of a score rests on data.
type Band string

// The bands, highest first.
const (
	BandHigh        Band = "high"
	BandMedium      Band = "medium"
	BandLow         Band = "low"
	BandDirectional Band = "directional"
	// BandNone is the band that the evidence of a score has if the score rests on no data, see [Record.HasData].
	// Records never have it.
	BandNone Band = "none"
)

// SignalScore is one signal inside a record.
type SignalScore struct {
	ID    string
	State State
	// Raw is the value before normalisation, in the signal's unit. It is 0 unless the state is
	// StateOK.
	Raw float64
	// Score is 0 to 100, exactly Neutral if missing or not applicable.
	Score float64
	// Source is the chosen source, empty if there is none. Origin is that of its facts, empty for
	// another source.
	Source, Origin string
	Reason         Reason
	// ObservedAt is when the value was observed, zero if there is none. It is before the record's
	// ScoredAt if the value is of an earlier day, or if it was carried forward: the signal is then
	// old.
	ObservedAt time.Time
	// carried is set if the observation was carried forward.
	carried bool
	// doubt is the standard deviation of the score, from the range of the value or from sources that
	// disagree; 0 if there is neither.
	doubt float64
}

// Known reports whether the signal rests on an observation.
func (s SignalScore) Known() bool { return s.State == StateOK || s.State == StateAbsent }

// Old reports whether the value is of an earlier day than a record scored at scoredAt.
func (s SignalScore) Old(scoredAt time.Time) bool { return s.age(scoredAt) > 0 }

// age returns the age of the observation in a record scored at scoredAt, 0 if there is none.
func (s SignalScore) age(scoredAt time.Time) time.Duration {
	if !s.Known() || s.ObservedAt.IsZero() {
		return 0
	}
	return max(0, scoredAt.Sub(s.ObservedAt))
}

// Record is one score of one company.
type Record struct {
	Domain      string
	CompanyName string
	// RunID is the id of the run.
	RunID           string
	PipelineVersion string
	// ScoredAt is in UTC with millisecond precision. Domain and ScoredAt identify a record.
	ScoredAt time.Time
	// Composite is 0 to 100 with one decimal, premium included.
	Composite float64
	// Base is the weighted sum of the bucket scores before rounding, without the premium.
	Base float64
	// ScalePremium is 0 to 12 with one decimal.
	ScalePremium float64
	// Interval is the likely range of the composite if all signals were known.
	Interval Interval
	// ExpectedComposite is the composite with the cohort's mean in the place of what is missing, 0 to
	// 100 with one decimal.
	ExpectedComposite float64
	Rating            Rating
	// Buckets are scores of 0 to 100 with one decimal.
	Buckets  BucketScores
	Profile  Profile
	Sector   string
	GeoScope string
	// Country is the code of the headquarters' country, "EU" for an unknown country in the
	// European Union, empty if unknown.
	Country string
	// MomentumIndex is 0 to 100 with one decimal.
	MomentumIndex float64
	// CompletenessPct is the weighted share of the applicable signals that are not missing, 0 to 100
	// with one decimal.
	CompletenessPct float64
	// BucketCompleteness is CompletenessPct within each bucket.
	BucketCompleteness BucketScores
	Confidence         Band
	// Signals has all 67 signals in manifest order.
	Signals  []SignalScore
	Warnings []Warning
}

// CompanyFacts is what one origin says about one company: a layer of its facts. A nil number and an
// empty string mean unknown. Amounts are in US dollars.
type CompanyFacts struct {
	Domain string
	// Origin is the name of the file, list or provider. Facts are kept by domain and origin.
	Origin      string
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
	// MarketCapClass is the class of market value, empty if unknown. See MarketCapClasses.
	MarketCapClass  string
	PERatio         *float64
	PriceSales      *float64
	PriceBook       *float64
	FundingTotalUSD *float64
	FundingRounds   *float64
	// LastFundingDate is the day of the last funding round, zero if unknown.
	LastFundingDate time.Time
	Founders        *float64
	// HiringRegions is the number of world regions in which the company hires.
	HiringRegions int
	// Listed is nil if unknown.
	Listed *bool
	// Ticker is the symbol on Exchange. CIK is the number of a filer with the SEC, in digits without
	// leading zeros. GitHub is the login of an organisation, Wikidata the id of an item.
	Ticker, Exchange, CIK, LEI, ISIN, GitHub, Wikidata string
	// Signals are raw values by signal id. They replace derived ones.
	Signals map[string]float64
	// AtLeast names the columns of import files whose values are lower bounds.
	AtLeast []string
	// Source is where the row came from, in the words of the file. AsOf is the day for which it is
	// valid, zero if unknown.
	Source string
	AsOf   time.Time
}

// RunState is the state of a run.
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

// Final reports whether the state can no longer change.
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
	LaneAPI     Lane = "api"     // calls of customers; accounts take turns
	LaneRefresh Lane = "refresh" // runs of the refresh job
	LaneBulk    Lane = "bulk"    // runs that operators start
)

// Lanes lists every lane.
var Lanes = []Lane{LaneAPI, LaneRefresh, LaneBulk}

// Run is one cold run: it makes one record of one domain. Several jobs can wait for one run.
type Run struct {
	ID     string
	Domain string
	State  RunState
	// Lane is the lane of the run.
	Lane       Lane
	CreatedAt  time.Time
	StartedAt  time.Time // start of the first attempt; becomes the record's ScoredAt
	FinishedAt time.Time
	// ScoredAt is the ScoredAt of the record, zero if there is none.
	ScoredAt time.Time
	Attempts int
	// Error is the cause of a failure, for operators; customers never see it.
	Error string
	// Progress is that of the current attempt, some seconds old; it is zero before the first report.
	Progress Progress
}

// Progress is how far an attempt at a run is.
type Progress struct {
	// Done is the number of sources that have ended, of the Total that the run asks.
	Done, Total int
}

// Span selects records of one company.
type Span struct {
	// From and To are the times of the first record and of one after the last, zero for no bound.
	From, To time.Time
	// OldestFirst returns the oldest records first instead of the newest.
	OldestFirst bool
}

// Outcome is the result of one attempt at a run.
type Outcome struct {
	// ScoredAt is the ScoredAt of the record, zero if there is none.
	ScoredAt time.Time
	Err      error
}
