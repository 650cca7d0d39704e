package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"
	"time"
)

// HistoryRecord is a past score of a company.
type HistoryRecord struct {
	ScoredAt  time.Time `json:"scored_at"`
	Composite float64   `json:"composite_score"`
	Premium   float64   `json:"scale_premium"`
	Rating    string    `json:"svc_rating"`
	// MomentumIndex is from 0 to 100.
	MomentumIndex   float64 `json:"momentum_index"`
	Buckets         Buckets `json:"buckets"`
	CompletenessPct float64 `json:"data_completeness_pct"`
}

// HistoryPage is a page of past scores.
type HistoryPage struct {
	Response Response        `json:"-"`
	Mode     string          `json:"mode"`
	Domain   string          `json:"domain"`
	Records  []HistoryRecord `json:"records"`
	// NextCursor is the cursor of the next page, empty on the last one.
	NextCursor string `json:"next_cursor"`
}

// historyPageMax is the number of records that the service returns in one page at most.
const historyPageMax = 500

// HistoryOption is an option of calls that read past scores.
type HistoryOption func(url.Values)

// From leaves out records before an instant.
func From(at time.Time) HistoryOption {
	return func(query url.Values) { query.Set("from", at.UTC().Format(time.RFC3339Nano)) }
}

// Until leaves out records of an instant and later.
func Until(at time.Time) HistoryOption {
	return func(query url.Values) { query.Set("to", at.UTC().Format(time.RFC3339Nano)) }
}

// OldestFirst reads the oldest records first instead of the newest.
func OldestFirst() HistoryOption { return func(query url.Values) { query.Set("order", "oldest") } }

// HistoryPage reads one page of past scores. cursor is empty for the first page; it belongs to the options with which it was got. limit
// is from 1 to 500, zero for the default of the service.
func (c *Client) HistoryPage(ctx context.Context, domain, cursor string, limit int, options ...HistoryOption) (HistoryPage, error) {
	query := make(url.Values)
	for _, option := range options {
		option(query)
	}
	if limit != 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	if cursor != "" {
		query.Set("cursor", cursor)
	}
	path := "/v1/score/" + url.PathEscape(domain) + "/history"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var page HistoryPage
	err := c.get(ctx, path, &page, &page.Response)
	return page, err
}

// History yields the past scores of a company, newest first. It reads a page of 500 when it is needed. After an error, which it yields with
// a zero record, it ends.
func (c *Client) History(ctx context.Context, domain string, options ...HistoryOption) iter.Seq2[HistoryRecord, error] {
	return func(yield func(HistoryRecord, error) bool) {
		for cursor := ""; ; {
			page, err := c.HistoryPage(ctx, domain, cursor, historyPageMax, options...)
			if err != nil {
				yield(HistoryRecord{}, err)
				return
			}
			for _, r := range page.Records {
				if !yield(r, nil) {
					return
				}
			}
			if cursor = page.NextCursor; cursor == "" {
				return
			}
		}
	}
}

// Changes is the difference between two records of a company. Observation, Coverage, Premium, Formula and Defunct sum to Delta.
type Changes struct {
	Response Response     `json:"-"`
	Mode     string       `json:"mode"`
	Domain   string       `json:"domain"`
	From     ChangeRecord `json:"from"`
	To       ChangeRecord `json:"to"`
	// Delta is the composite of To minus that of From.
	Delta float64 `json:"delta"`
	Causes
	// Signals are the signals whose contribution changed, largest change first.
	Signals []SignalChange `json:"signals"`
}

// Causes are the parts of a delta by cause, in points.
type Causes struct {
	// Observation is due to signals that both records know: the company changed.
	Observation float64 `json:"observation"`
	// Coverage is due to signals that one record lacks: what is known about the company changed.
	Coverage float64 `json:"coverage"`
	Premium  float64 `json:"premium"`
	// Formula is the whole delta if the pipeline versions differ.
	Formula float64 `json:"formula"`
	// Defunct is the whole delta if the company was defunct in one of the records only.
	Defunct float64 `json:"defunct"`
}

// ChangeRecord is a record that is compared.
type ChangeRecord struct {
	ScoredAt  time.Time `json:"scored_at"`
	Composite float64   `json:"composite_score"`
	Premium   float64   `json:"scale_premium"`
	Rating    string    `json:"svc_rating"`
}

// SignalChange is the change of one signal.
type SignalChange struct {
	ID     string      `json:"id"`
	Before SignalState `json:"before"`
	After  SignalState `json:"after"`
	// Contribution is the change of the composite in points.
	Contribution float64 `json:"contribution"`
}

// SignalState is a signal in one record.
type SignalState struct {
	// State is ok, absent, missing or not_applicable.
	State string `json:"state"`
	// Raw is nil unless a value was observed.
	Raw   *float64 `json:"raw"`
	Score float64  `json:"score"`
}

// Changes compares the newest records of a company at or before two instants. A zero from means 30 days before to, a zero to means now.
func (c *Client) Changes(ctx context.Context, domain string, from, to time.Time) (Changes, error) {
	query := make(url.Values)
	if !from.IsZero() {
		query.Set("from", from.UTC().Format(time.RFC3339Nano))
	}
	if !to.IsZero() {
		query.Set("to", to.UTC().Format(time.RFC3339Nano))
	}
	path := "/v1/score/" + url.PathEscape(domain) + "/changes"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	var changes Changes
	err := c.get(ctx, path, &changes, &changes.Response)
	return changes, err
}
