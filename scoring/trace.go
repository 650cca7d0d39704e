package scoring

import "time"

// ClaimKind is the kind of a claim.
type ClaimKind string

// Claim is one statement of a source about the company's identity, with its evidence.
type Claim struct {
	Kind  ClaimKind `json:"kind"`
	Value string    `json:"value"`
	// Source is the key of the source.
	Source string `json:"source"`
	// Via is how the source found the claim, if its trust depends on that: jsonld, site_name,
	// title, key (an exact identifier) or name.
	Via string `json:"via,omitempty"`
	// Evidence is one sentence for readers, such as "official website of Q312 is
	// https://www.apple.com/".
	Evidence string `json:"evidence"`
}

// Trace is what a run observed, per source, including observations that were not chosen.
type Trace struct {
	// Domain and ScoredAt are those of the record.
	Domain   string
	ScoredAt time.Time
	RunID    string
	// Sources is the outcome of each source that ran.
	Sources      []SourceTrace
	Observations []Observation
	// Claims are sorted by kind and trust.
	Claims []Claim
	// Values are by "source.name", such as "jobs.open_roles".
	Values map[string]float64
}

// SourceTrace is the outcome of one source in a run.
type SourceTrace struct {
	Source string `json:"source"`
	// Outcome is "answered" or a warning code.
	Outcome string `json:"outcome"`
	// Took is the time of the source, in whole milliseconds.
	Took time.Duration `json:"-"`
}

// Past is the values of one earlier run.
type Past struct {
	At time.Time
	// Values are by "source.name", such as "jobs.open_roles".
	Values map[string]float64
	// Claims are those of the newest earlier run; nil in other ones.
	Claims []Claim
}

// PastMaxAge is the age of the oldest run whose values and claims a run reads.
const PastMaxAge = 130 * 24 * time.Hour

// SourceHealth is how often a source answered in several runs.
type SourceHealth struct {
	Source          string
	Asked, Answered uint64
	// Mean is the mean duration with all waiting.
	Mean time.Duration
	// Failures are the most frequent outcomes other than an answer.
	Failures []string
}
