package meter

import (
	"context"
	"time"
)

// UsageRow is what one account used in one calendar month. It is a total, not
// an increment: of two rows for the same account and period the one with the
// later UpdatedAt is right.
type UsageRow struct {
	AccountID string
	Period    string // YYYY-MM, UTC
	// Tier is the account's tier when it was last seen.
	Tier        string
	CachedCalls uint64
	ColdCalls   uint64
	UpdatedAt   time.Time
}

// ColdCall is one charged cold call. JobID identifies it: a row with the same
// JobID replaces an earlier one, and one that says Refunded always wins.
type ColdCall struct {
	JobID, RunID, AccountID, KeyID, Domain string
	// At is when the call was admitted, in UTC and whole milliseconds.
	At time.Time
	// Refunded says that the call was not answered and that its charge was undone.
	Refunded bool
}

// Ledger is the lasting copy of what Redis counts. The meter writes to it in
// the background, at least once and within a second, and reads it only when
// Redis has no counters for an account: in the account's first call of a month,
// and after Redis lost its data. It may be used concurrently.
type Ledger interface {
	// WriteUsage keeps the rows, each replacing an older one of its account and period.
	WriteUsage(ctx context.Context, rows []UsageRow) error
	// WriteColdCalls keeps the calls, each replacing an older one of its job.
	WriteColdCalls(ctx context.Context, calls []ColdCall) error
	// Usage returns the newest row of an account and period, and the zero row if there is none.
	Usage(ctx context.Context, accountID, period string) (UsageRow, error)
	// ColdCallsSince returns the account's calls with At later than since that
	// were not refunded, in any order.
	ColdCallsSince(ctx context.Context, accountID string, since time.Time) ([]ColdCall, error)
}
