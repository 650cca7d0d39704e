package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/sql"
)

var (
	auditInsert = sql.Query("audit_insert")
	auditList   = sql.Query("audit_list")
)

type auditRow struct {
	At        time.Time `ch:"at"`
	AccountID string    `ch:"account_id"`
	Operator  bool      `ch:"operator"`
	Session   string    `ch:"session"`
	Address   string    `ch:"address"`
	Action    string    `ch:"action"`
	Subject   string    `ch:"subject"`
	Detail    string    `ch:"detail"`
}

// WriteAudit adds an entry to the audit log. It returns when the entry is durable.
func (a *Accounts) WriteAudit(ctx context.Context, e table.AuditEntry) error {
	row := &auditRow{e.At.UTC(), e.AccountID, e.Operator, e.Session, e.Address, string(e.Action), e.Subject, e.Detail}
	if err := insert(ctx, a.db, auditInsert, []*auditRow{row}); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// Audit returns the newest entries of the audit log, up to limit.
func (a *Accounts) Audit(ctx context.Context, limit int) ([]table.AuditEntry, error) {
	var rows []struct {
		auditRow
		AccountName string `ch:"account_name"`
	}
	if err := a.db.listBuffered(ctx, &rows, auditList, ch.Named("limit", uint32(limit))); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	entries := make([]table.AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = table.AuditEntry{
			At: r.At.UTC(), AccountID: r.AccountID, AccountName: r.AccountName, Operator: r.Operator, Session: r.Session,
			Address: r.Address,
			Action:  table.Action(r.Action), Subject: r.Subject, Detail: r.Detail,
		}
	}
	return entries, nil
}
