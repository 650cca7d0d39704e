package meter

import (
	"context"
	"time"

	"companyscore/server/account"
)

// ColdCall is one charged cold call.
type ColdCall struct {
	JobID, RunID, AccountID, KeyID, Domain string
	At                                     time.Time
	// Refunded says that the charge was taken back.
	Refunded bool
}

// UsageRow holds the running totals of an account in one calendar month.
type UsageRow struct {
	AccountID   string
	Period      string // YYYY-MM
	Tier        account.Tier
	CachedCalls uint64
	ColdCalls   uint64
	UpdatedAt   time.Time
}

// Ledger is the durable copy of what accounts consumed. Writing a row again is
// harmless. It is called from one goroutine at a time for writes and from many
// for reads.
type Ledger interface {
	WriteColdCalls(ctx context.Context, calls []ColdCall) error
	WriteUsage(ctx context.Context, rows []UsageRow) error
	// ColdCount is the number of charged calls of an account with from <= At.
	ColdCount(ctx context.Context, accountID string, from time.Time) (uint64, error)
	// ColdCalls returns the charged calls of an account with since <= At.
	ColdCalls(ctx context.Context, accountID string, since time.Time) ([]ColdCall, error)
	// CachedCalls is the last known total of a month (YYYY-MM), 0 when there is none.
	CachedCalls(ctx context.Context, accountID, period string) (uint64, error)
}
