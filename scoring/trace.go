package scoring

import "time"

// ClaimKind says what a claim is about.
type ClaimKind string

// Claim is one statement of a source about who the company is, with its evidence.
type Claim struct {
	Kind  ClaimKind `json:"kind"`
	Value string    `json:"value"`
	// Source is the key of the source that makes the claim.
	Source string `json:"source"`
	// Via says in which way the source found it, where that decides how far it is
	// trusted: jsonld, site_name, title, key (joined by an exact identifier) or name.
	Via string `json:"via,omitempty"`
	// Evidence tells a reader in one sentence why it is believed, such as
	// "official website of Q312 is https://www.apple.com/".
	Evidence string `json:"evidence"`
}

// Trace is what a run learnt on its way to a record: everything that was said,
// not only what was believed.
type Trace struct {
	// Domain and ScoredAt are those of the record.
	Domain   string
	ScoredAt time.Time
	RunID    string
	// Sources says how each source fared, those that were asked only.
	Sources      []SourceTrace
	Observations []Observation
	// Claims stand in the order of trust, kind by kind.
	Claims []Claim
	// Values are by "source.name", such as "jobs.open_roles".
	Values map[string]float64
}

// SourceTrace is how one source fared in a run.
type SourceTrace struct {
	Source string `json:"source"`
	// Outcome is "answered" or the code of a warning.
	Outcome string `json:"outcome"`
	// Took is the time the source needed, in whole milliseconds.
	Took time.Duration `json:"-"`
}

// Past are the values of one earlier run.
type Past struct {
	At time.Time
	// Values are by "source.name", such as "jobs.open_roles".
	Values map[string]float64
}

// PastMaxAge is how far back a run looks at the values of earlier ones.
const PastMaxAge = 130 * 24 * time.Hour
