package account

import "time"

// MonthUsage is what one account used in one calendar month. It is a total, not
// an increment: of two rows for the same account and period the one with the
// later UpdatedAt is right.
type MonthUsage struct {
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
