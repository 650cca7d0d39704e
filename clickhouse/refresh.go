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
	demandInsert    = sql.Query("demand_insert")
	refreshDue      = sql.Query("refresh_due")
	refreshCoverage = sql.Query("refresh_coverage")
	scoreUnchanged  = sql.Query("score_unchanged")
)

// demandRow is a row of company_demand.
type demandRow struct {
	Domain    string    `ch:"domain"`
	AskedOn   time.Time `ch:"asked_on"`
	StartedAt time.Time `ch:"started_at"`
}

// NoteAsked writes demand for companies on the UTC day of at. Repeated calls have no
// further effect.
func (db *DB) NoteAsked(ctx context.Context, domains []string, at time.Time) error {
	rows := make([]*demandRow, len(domains))
	for i, domain := range domains {
		rows[i] = &demandRow{Domain: domain, AskedOn: at.UTC().Truncate(24 * time.Hour), StartedAt: toColumn(time.Time{})}
	}
	if err := insert(ctx, db, demandInsert, rows); err != nil {
		return fmt.Errorf("write demand for %d companies: %w", len(domains), err)
	}
	return nil
}

// NoteRefreshed writes that the refresh job started runs for companies at an instant.
func (u *Universe) NoteRefreshed(ctx context.Context, domains []string, at time.Time) error {
	rows := make([]*demandRow, len(domains))
	for i, domain := range domains {
		rows[i] = &demandRow{Domain: domain, AskedOn: toColumn(time.Time{}), StartedAt: at.UTC()}
	}
	if err := insert(ctx, u.db, demandInsert, rows); err != nil {
		return fmt.Errorf("write refreshes of %d companies: %w", len(domains), err)
	}
	return nil
}

// refreshArgs returns the parameters common to both queries of the refresh job.
func refreshArgs(at time.Time, t table.RefreshTargets) []any {
	return []any{
		ch.Named("now_ms", millis(at)), ch.Named("asked_since_ms", millis(at.Add(-table.AskedWithin))),
		ch.Named("asked_ms", t.Ages.Asked.Milliseconds()), ch.Named("others_ms", t.Ages.Others.Milliseconds()),
		ch.Named("live", t.Live), ch.Named("version", scoring.PipelineVersion),
	}
}

// RefreshDue returns up to limit companies that are due for a refresh at an instant, by
// falling ratio of age to target age.
func (u *Universe) RefreshDue(ctx context.Context, at time.Time, t table.RefreshTargets, limit int) ([]string, error) {
	var rows []struct {
		Domain string `ch:"domain"`
	}
	if err := u.db.listBuffered(ctx, &rows, refreshDue, append(refreshArgs(at, t), ch.Named("limit", uint32(limit)))...); err != nil {
		return nil, fmt.Errorf("find companies due for a refresh: %w", err)
	}
	domains := make([]string, len(rows))
	for i, row := range rows {
		domains[i] = row.Domain
	}
	return domains, nil
}

// RefreshCoverage counts the companies that are younger than their target age and those
// due for a refresh at an instant.
func (u *Universe) RefreshCoverage(ctx context.Context, at time.Time, t table.RefreshTargets) (table.RefreshCoverage, error) {
	var row struct {
		Companies uint64    `ch:"companies"`
		Young     uint64    `ch:"young"`
		Due       uint64    `ch:"due"`
		OldestAt  time.Time `ch:"oldest_at"`
	}
	if _, err := u.db.first(ctx, &row, refreshCoverage, refreshArgs(at, t)...); err != nil {
		return table.RefreshCoverage{}, fmt.Errorf("coverage of target ages: %w", err)
	}
	return table.RefreshCoverage{Companies: row.Companies, Young: row.Young, Due: row.Due, Oldest: fromColumn(row.OldestAt)}, nil
}

// Unchanged returns the companies whose newest record is of the current pipeline version
// and not older than their facts. A run with imported facts alone would give the same
// score. Companies without a record are left out.
func (s *Scores) Unchanged(ctx context.Context, domains []string) (map[string]bool, error) {
	type row struct {
		Domain string `ch:"domain"`
	}
	rows, err := listOf[row](ctx, s.db, scoreUnchanged, domains, ch.Named("version", scoring.PipelineVersion))
	if err != nil {
		return nil, fmt.Errorf("find companies without new facts among %d: %w", len(domains), err)
	}
	unchanged := make(map[string]bool, len(rows))
	for _, row := range rows {
		unchanged[row.Domain] = true
	}
	return unchanged, nil
}
