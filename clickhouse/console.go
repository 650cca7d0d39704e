package clickhouse

import (
	"context"
	"fmt"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/account"
	"companyscore/scoring"
	"companyscore/sql"
)

var (
	companySearch = sql.Query("company_search")
	auditInsert   = sql.Query("audit_insert")
	auditList     = sql.Query("audit_list")
	requestList   = sql.Query("request_list")
	sourceHealth  = sql.Query("source_health")
)

// searchRows is the number of rows that are read for each wanted company: a company has a row for
// its domain and its names, and the same ones again until parts merge.
const searchRows = 8

// SearchCompanies returns up to limit companies whose domain or name begins with a prefix, which
// must be in lower case. They are sorted by the text that matches.
func (s *Scores) SearchCompanies(ctx context.Context, prefix string, limit int) ([]scoring.Record, error) {
	var rows []struct {
		Text   string `ch:"text"`
		Domain string `ch:"domain"`
	}
	if err := s.db.few(ctx, &rows, companySearch, ch.Named("prefix", prefix), ch.Named("limit", uint32(limit*searchRows))); err != nil {
		return nil, fmt.Errorf("search companies: %w", err)
	}
	var domains []string
	seen := make(map[string]bool)
	for _, row := range rows {
		if !seen[row.Domain] && len(domains) < limit {
			seen[row.Domain] = true
			domains = append(domains, row.Domain)
		}
	}
	if len(domains) == 0 {
		return nil, nil
	}
	heads, err := s.LatestHeads(ctx, domains)
	if err != nil {
		return nil, err
	}
	found := make([]scoring.Record, 0, len(domains))
	for _, domain := range domains {
		if rec, ok := heads[domain]; ok {
			found = append(found, rec)
		}
	}
	return found, nil
}

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
func (a *Accounts) WriteAudit(ctx context.Context, e account.AuditEntry) error {
	row := &auditRow{e.At.UTC(), e.AccountID, e.Operator, e.Session, e.Address, string(e.Action), e.Subject, e.Detail}
	if err := insert(ctx, a.db, auditInsert, []*auditRow{row}); err != nil {
		return fmt.Errorf("write audit log: %w", err)
	}
	return nil
}

// Audit returns the newest entries of the audit log, up to limit.
func (a *Accounts) Audit(ctx context.Context, limit int) ([]account.AuditEntry, error) {
	var rows []struct {
		auditRow
		AccountName string `ch:"account_name"`
	}
	if err := a.db.few(ctx, &rows, auditList, ch.Named("limit", uint32(limit))); err != nil {
		return nil, fmt.Errorf("read audit log: %w", err)
	}
	entries := make([]account.AuditEntry, len(rows))
	for i, r := range rows {
		entries[i] = account.AuditEntry{
			At: r.At.UTC(), AccountID: r.AccountID, AccountName: r.AccountName, Operator: r.Operator, Session: r.Session, Address: r.Address,
			Action: account.Action(r.Action), Subject: r.Subject, Detail: r.Detail,
		}
	}
	return entries, nil
}

// ListRequests returns the newest requests of an account since an instant that have a row, up to
// limit. An empty key and a zero status select all.
func (s *Requests) ListRequests(ctx context.Context, accountID string, since time.Time, keyID string, status uint16, limit int) ([]account.Request, error) {
	var rows []requestRow
	err := s.db.few(ctx, &rows, requestList, ch.Named("account_id", accountID), ch.Named("since_ms", millis(since)), ch.Named("key_id", keyID),
		ch.Named("status", status), ch.Named("limit", uint32(limit)))
	if err != nil {
		return nil, fmt.Errorf("list requests of %s: %w", accountID, err)
	}
	return requests(rows), nil
}

// SourceHealth returns how often each source answered in the newest runs since an instant, up to
// runs of them.
func (db *DB) SourceHealth(ctx context.Context, since time.Time, runs int) ([]scoring.SourceHealth, error) {
	var rows []struct {
		Source   string   `ch:"source"`
		Asked    uint64   `ch:"asked"`
		Answered uint64   `ch:"answered"`
		MeanMs   float64  `ch:"mean_ms"`
		Failures []string `ch:"failures"`
	}
	if err := db.few(ctx, &rows, sourceHealth, ch.Named("since_ms", millis(since)), ch.Named("runs", uint32(runs))); err != nil {
		return nil, fmt.Errorf("read the health of sources: %w", err)
	}
	health := make([]scoring.SourceHealth, len(rows))
	for i, r := range rows {
		health[i] = scoring.SourceHealth{Source: r.Source, Asked: r.Asked, Answered: r.Answered, Mean: time.Duration(r.MeanMs * float64(time.Millisecond)), Failures: r.Failures}
	}
	return health, nil
}
