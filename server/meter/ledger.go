package meter

import (
	"context"
	"time"

	"companyscore/internal/account"
)

// Ledger is the lasting copy of what Redis counts. The meter writes to it in
// the background, at least once and within a second, and reads it only when
// Redis has no counters for an account: in the account's first call of a month,
// and after Redis lost its data. It may be used concurrently.
type Ledger interface {
	// WriteUsage keeps the rows, each replacing an older one of its account and period.
	WriteUsage(ctx context.Context, rows []account.MonthUsage) error
	// WriteColdCalls keeps the calls, each replacing an older one of its job.
	WriteColdCalls(ctx context.Context, calls []account.ColdCall) error
	// Usage returns the newest row of an account and period, and the zero row if there is none.
	Usage(ctx context.Context, accountID, period string) (account.MonthUsage, error)
	// ColdCallsSince returns the account's calls with At later than since that
	// were not refunded, in any order.
	ColdCallsSince(ctx context.Context, accountID string, since time.Time) ([]account.ColdCall, error)
}
