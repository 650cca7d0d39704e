package meter

import (
	"context"
	"time"

	"companyscore/internal/table"
)

// Ledger is the durable copy of the counts in Redis. The meter writes to it in the
// background, at least once, normally within a second. The meter reads it only if Redis
// has no counts for an account: at the first call of a month, or after Redis lost data.
// Implementations must be safe for concurrent use.
type Ledger interface {
	// WriteUsage writes rows. A row replaces an older one of its account and period.
	WriteUsage(ctx context.Context, rows []table.MonthUsage) error
	// WriteColdCalls writes calls. A call replaces an older one of its job.
	WriteColdCalls(ctx context.Context, calls []table.ColdCall) error
	// Usage returns the newest row of an account and period, the zero row if there is none.
	Usage(ctx context.Context, accountID, period string) (table.MonthUsage, error)
	// ColdCallsSince returns the calls of an account with At later than since, without
	// refunded ones, in any order.
	ColdCallsSince(ctx context.Context, accountID string, since time.Time) ([]table.ColdCall, error)
}
