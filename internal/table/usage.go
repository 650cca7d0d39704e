package table

import "time"

// MonthUsage is the usage of one account in one calendar month. It is a total, not an
// increment: the row with the latest UpdatedAt replaces others of its account and period.
type MonthUsage struct {
	AccountID string
	Period    string // YYYY-MM, UTC
	// Plan is the account's plan when it was last seen.
	Plan        string
	CachedCalls uint64
	ColdCalls   uint64
	UpdatedAt   time.Time
}

// ColdCall is one charged cold call. A row replaces an earlier one with the same JobID,
// unless the earlier one is refunded.
type ColdCall struct {
	JobID, RunID, AccountID, KeyID, Domain string
	// At is the time of the admission, in UTC and whole milliseconds.
	At time.Time
	// Refunded means that the charge was refunded, as its outcome was unknown.
	Refunded bool
}
