package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/sql"
)

var (
	usageInsert = sql.Query("usage_insert")
	usageGet    = sql.Query("usage_get")
	coldInsert  = sql.Query("cold_insert")
	coldSince   = sql.Query("cold_since")
	runInsert   = sql.Query("run_insert")
	runList     = sql.Query("run_list")
)

// Usage stores the usage and the ledger of accounts. It is safe for concurrent use.
type Usage struct{ db *DB }

// NewUsage returns the store of usage in db.
func NewUsage(db *DB) *Usage { return &Usage{db} }

type usageRow struct {
	Period      time.Time `ch:"period"`
	AccountID   string    `ch:"account_id"`
	Tier        string    `ch:"tier"`
	CachedCalls uint64    `ch:"cached_calls"`
	ColdCalls   uint64    `ch:"cold_calls"`
	UpdatedAt   time.Time `ch:"updated_at"`
}

// WriteUsage appends running totals. The newest row of an account and month is valid.
func (u *Usage) WriteUsage(ctx context.Context, usage []table.MonthUsage) error {
	rows := make([]*usageRow, len(usage))
	for i, r := range usage {
		period, err := parsePeriod(r.Period)
		if err != nil {
			return err
		}
		rows[i] = &usageRow{period, r.AccountID, r.Plan, r.CachedCalls, r.ColdCalls, r.UpdatedAt}
	}
	if err := insert(ctx, u.db, usageInsert, rows); err != nil {
		return fmt.Errorf("write usage: %w", err)
	}
	return nil
}

// Usage returns the newest totals of a month (YYYY-MM), or the zero value if there are
// none.
func (u *Usage) Usage(ctx context.Context, accountID, period string) (table.MonthUsage, error) {
	month, err := parsePeriod(period)
	if err != nil {
		return table.MonthUsage{}, err
	}
	var row struct {
		Tier        string    `ch:"tier"`
		CachedCalls uint64    `ch:"cached_calls"`
		ColdCalls   uint64    `ch:"cold_calls"`
		UpdatedAt   time.Time `ch:"updated_at"`
	}
	found, err := u.db.first(ctx, &row, usageGet, ch.Named("account_id", accountID), ch.Named("period", month.Format(time.DateOnly)))
	if err != nil {
		return table.MonthUsage{}, fmt.Errorf("read usage of %s in %s: %w", accountID, period, err)
	}
	if !found {
		return table.MonthUsage{}, nil
	}
	return table.MonthUsage{
		AccountID: accountID, Period: period, Plan: row.Tier,
		CachedCalls: row.CachedCalls, ColdCalls: row.ColdCalls, UpdatedAt: row.UpdatedAt.UTC(),
	}, nil
}

func parsePeriod(period string) (time.Time, error) {
	month, err := time.Parse("2006-01", period)
	if err != nil {
		return time.Time{}, fmt.Errorf("period %q: use YYYY-MM", period)
	}
	return month, nil
}

type coldRow struct {
	At        time.Time `ch:"at"`
	JobID     string    `ch:"job_id"`
	RunID     string    `ch:"run_id"`
	AccountID string    `ch:"account_id"`
	KeyID     string    `ch:"key_id"`
	Domain    string    `ch:"domain"`
	Refunded  bool      `ch:"refunded"`
}

// WriteColdCalls writes calls to the ledger. A refunded row replaces the row of the same
// call that is not refunded.
func (u *Usage) WriteColdCalls(ctx context.Context, calls []table.ColdCall) error {
	rows := make([]*coldRow, len(calls))
	for i, c := range calls {
		rows[i] = &coldRow{c.At, c.JobID, c.RunID, c.AccountID, c.KeyID, c.Domain, c.Refunded}
	}
	if err := insert(ctx, u.db, coldInsert, rows); err != nil {
		return fmt.Errorf("write cold calls: %w", err)
	}
	return nil
}

// ColdCallsSince returns the calls of an account after an instant, oldest first, without
// refunded ones.
func (u *Usage) ColdCallsSince(ctx context.Context, accountID string, at time.Time) ([]table.ColdCall, error) {
	var rows []struct {
		At     time.Time `ch:"at"`
		JobID  string    `ch:"job_id"`
		RunID  string    `ch:"run_id"`
		KeyID  string    `ch:"key_id"`
		Domain string    `ch:"domain"`
	}
	if err := u.db.list(ctx, &rows, coldSince, ch.Named("account_id", accountID), ch.Named("since_ms", millis(at))); err != nil {
		return nil, fmt.Errorf("read cold calls of %s: %w", accountID, err)
	}
	calls := make([]table.ColdCall, len(rows))
	for i, r := range rows {
		calls[i] = table.ColdCall{JobID: r.JobID, RunID: r.RunID, AccountID: accountID, KeyID: r.KeyID, Domain: r.Domain, At: r.At.UTC()}
	}
	return calls, nil
}

type runRow struct {
	CreatedAt  time.Time `ch:"created_at"`
	ID         string    `ch:"id"`
	Domain     string    `ch:"domain"`
	State      string    `ch:"state"`
	Lane       string    `ch:"lane"`
	StartedAt  time.Time `ch:"started_at"`
	FinishedAt time.Time `ch:"finished_at"`
	ScoredAt   time.Time `ch:"scored_at"`
	Attempts   uint16    `ch:"attempts"`
	Error      string    `ch:"error"`
}

// WriteRuns writes runs to the run log. Of several rows of one run, a final state wins,
// then the highest number of attempts.
func (db *DB) WriteRuns(ctx context.Context, runs []scoring.Run) error {
	type row struct {
		runRow
		Revision uint32 `ch:"revision"`
	}
	rows := make([]*row, len(runs))
	for i, r := range runs {
		revision := uint32(r.Attempts)
		if r.State.Final() {
			revision += 1 << 16
		}
		rows[i] = &row{runRow{
			r.CreatedAt, r.ID, r.Domain, string(r.State), string(r.Lane), toColumn(r.StartedAt), toColumn(r.FinishedAt),
			toColumn(r.ScoredAt), uint16(r.Attempts), r.Error,
		}, revision}
	}
	if err := insert(ctx, db, runInsert, rows); err != nil {
		return fmt.Errorf("write run log: %w", err)
	}
	return nil
}

// Runs returns the newest runs of the run log, up to limit.
func (db *DB) Runs(ctx context.Context, limit int) ([]scoring.Run, error) {
	var rows []runRow
	if err := db.list(ctx, &rows, runList, ch.Named("limit", uint32(limit))); err != nil {
		return nil, fmt.Errorf("read run log: %w", err)
	}
	runs := make([]scoring.Run, len(rows))
	for i, r := range rows {
		runs[i] = scoring.Run{
			ID: r.ID, Domain: r.Domain, State: scoring.RunState(r.State), Lane: scoring.Lane(r.Lane), CreatedAt: r.CreatedAt.UTC(),
			StartedAt: fromColumn(r.StartedAt), FinishedAt: fromColumn(r.FinishedAt), ScoredAt: fromColumn(r.ScoredAt),
			Attempts: int(r.Attempts), Error: r.Error,
		}
	}
	return runs, nil
}
