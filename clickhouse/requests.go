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
	requestInsert       = sql.Query("request_insert")
	requestMinuteInsert = sql.Query("request_minute_insert")
	requestFind         = sql.Query("request_find")
	requestList         = sql.Query("request_list")
	requestHistory      = sql.Query("request_history")
)

// requestGroupsMax bounds the groups of the requests of an account.
const requestGroupsMax = uint32(1000)

// Requests stores answered requests and their counts. It is safe for concurrent use.
type Requests struct{ db *DB }

// NewRequests returns the store of requests in db.
func NewRequests(db *DB) *Requests { return &Requests{db} }

type requestRow struct {
	At         time.Time `ch:"at"`
	ID         string    `ch:"id"`
	AccountID  string    `ch:"account_id"`
	KeyID      string    `ch:"key_id"`
	Route      string    `ch:"route"`
	Status     uint16    `ch:"status"`
	ErrorCode  string    `ch:"error_code"`
	AnsweredBy string    `ch:"answered_by"`
	TookUs     uint64    `ch:"took_us"`
	Bytes      uint64    `ch:"bytes"`
	Charged    bool      `ch:"charged"`
	JobID      string    `ch:"job_id"`
	Server     string    `ch:"server"`
	Number     uint64    `ch:"number"`
}

// WriteRequests writes rows with one insert. A repeated write replaces the rows of the first.
func (s *Requests) WriteRequests(ctx context.Context, requests []table.Request) error {
	values := make([]requestRow, len(requests))
	rows := make([]*requestRow, len(requests))
	for i, r := range requests {
		values[i] = requestRow{
			r.At, r.ID, r.AccountID, r.KeyID, r.Route, r.Status, r.ErrorCode, r.AnsweredBy, uint64(r.Took.Microseconds()), r.Bytes,
			r.Charged, r.JobID, r.Server, r.Number,
		}
		rows[i] = &values[i]
	}
	if err := insert(ctx, s.db, requestInsert, rows); err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	return nil
}

type requestMinuteRow struct {
	AccountID  string    `ch:"account_id"`
	Minute     time.Time `ch:"minute"`
	KeyID      string    `ch:"key_id"`
	Route      string    `ch:"route"`
	Status     uint16    `ch:"status"`
	ErrorCode  string    `ch:"error_code"`
	AnsweredBy string    `ch:"answered_by"`
	Server     string    `ch:"server"`
	Calls      uint64    `ch:"calls"`
	Charged    uint64    `ch:"charged"`
	NotStored  uint64    `ch:"not_stored"`
	TookUs     uint64    `ch:"took_us"`
	Bytes      uint64    `ch:"bytes"`
	Version    uint64    `ch:"version"`
}

// WriteRequestCounts writes totals with one insert. Of several rows of one minute, kind and
// server the one with the largest version is valid.
func (s *Requests) WriteRequestCounts(ctx context.Context, counts []table.RequestCount) error {
	values := make([]requestMinuteRow, len(counts))
	rows := make([]*requestMinuteRow, len(counts))
	for i, c := range counts {
		values[i] = requestMinuteRow{
			c.AccountID, c.Minute, c.KeyID, c.Route, c.Status, c.ErrorCode, c.AnsweredBy, c.Server,
			c.Calls, c.Charged, c.NotStored, uint64(c.Took.Microseconds()), c.Bytes, c.Version,
		}
		rows[i] = &values[i]
	}
	if err := insert(ctx, s.db, requestMinuteInsert, rows); err != nil {
		return fmt.Errorf("write counts of requests: %w", err)
	}
	return nil
}

// FindRequests returns the requests of an account with an id that have a row, newest first, up to
// limit. An empty account selects all accounts, and requests without a valid key.
func (s *Requests) FindRequests(ctx context.Context, id, accountID string, limit int) ([]table.Request, error) {
	var rows []requestRow
	if err := s.db.listBuffered(ctx, &rows, requestFind, ch.Named("id", id), ch.Named("account_id", accountID),
		ch.Named("limit", uint32(limit))); err != nil {
		return nil, fmt.Errorf("find request %s: %w", id, err)
	}
	return requests(rows), nil
}

// ListRequests returns the newest requests of an account since an instant that have a row, up to
// limit. An empty key and a zero status select all.
func (s *Requests) ListRequests(ctx context.Context, accountID string, since time.Time, keyID string, status uint16,
	limit int) ([]table.Request, error) {
	var rows []requestRow
	err := s.db.listBuffered(ctx, &rows, requestList, ch.Named("account_id", accountID), ch.Named("since_ms", millis(since)),
		ch.Named("key_id", keyID),
		ch.Named("status", status), ch.Named("limit", uint32(limit)))
	if err != nil {
		return nil, fmt.Errorf("list requests of %s: %w", accountID, err)
	}
	return requests(rows), nil
}

func requests(rows []requestRow) []table.Request {
	found := make([]table.Request, len(rows))
	for i, r := range rows {
		found[i] = table.Request{
			RequestKind: table.RequestKind{AccountID: r.AccountID, KeyID: r.KeyID, Route: r.Route, Status: r.Status, ErrorCode: r.ErrorCode,
				AnsweredBy: r.AnsweredBy},
			ID: r.ID, At: r.At.UTC(), Took: time.Duration(r.TookUs) * time.Microsecond, Bytes: r.Bytes, Charged: r.Charged, JobID: r.JobID,
			Server: r.Server, Number: r.Number,
		}
	}
	return found
}

// RequestGroups returns the requests of an account from a minute until before another, by
// "day", "key", "route" or "status": days in order, other groups by calls, at most
// requestGroupsMax.
func (s *Requests) RequestGroups(ctx context.Context, accountID string, from, to time.Time, by string) ([]table.RequestGroup, error) {
	var rows []struct {
		Group   string `ch:"group"`
		Calls   uint64 `ch:"calls"`
		Charged uint64 `ch:"charged"`
		Errors  uint64 `ch:"errors"`
		TookUs  uint64 `ch:"took_us"`
		Bytes   uint64 `ch:"bytes"`
	}
	err := s.db.listBuffered(ctx, &rows, requestHistory, ch.Named("account_id", accountID), ch.Named("start_ms", millis(from)),
		ch.Named("end_ms", millis(to)),
		ch.Named("by", by), ch.Named("limit", requestGroupsMax))
	if err != nil {
		return nil, fmt.Errorf("read requests of %s: %w", accountID, err)
	}
	groups := make([]table.RequestGroup, len(rows))
	for i, r := range rows {
		groups[i] = table.RequestGroup{Group: r.Group, Calls: r.Calls, Charged: r.Charged, Errors: r.Errors,
			Took: time.Duration(r.TookUs) * time.Microsecond, Bytes: r.Bytes}
	}
	return groups, nil
}
