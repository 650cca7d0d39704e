package api

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"companyscore/scoring"
)

// The bounds of a history page.
const (
	HistoryDefault = 100
	HistoryMax     = 500
)

// ErrCursor means that a cursor is malformed or belongs to another company.
var ErrCursor = errors.New("invalid cursor")

// Page selects records of one company.
type Page struct {
	scoring.Span
	Limit int // 1 to HistoryMax
}

// After narrows the page to the records that follow one of the given time.
func (p *Page) After(last time.Time) {
	switch {
	case p.OldestFirst:
		p.From = last.Add(time.Millisecond)
	case p.To.IsZero() || last.Before(p.To):
		p.To = last
	}
}

// NewHistory returns a page of records. records must be read with a limit of page.Limit+1:
// an extra record means that another page follows.
func NewHistory(domain string, page Page, records []scoring.Record) History {
	body := History{Domain: domain, Records: []HistoryRecord{}}
	more := len(records) > page.Limit
	if more {
		records = records[:page.Limit]
	}
	for _, rec := range records {
		body.Records = append(body.Records, HistoryRecord{
			ScoredAt: Time(rec.ScoredAt), Composite: rec.Composite, ScalePremium: rec.ScalePremium, Rating: rec.Rating,
			MomentumIndex: rec.MomentumIndex, Buckets: rec.Buckets, CompletenessPct: rec.CompletenessPct,
		})
	}
	if more {
		body.NextCursor = EncodeCursor(domain, page.OldestFirst, records[len(records)-1].ScoredAt)
	}
	return body
}

// HistoryFormat writes the records of a page. The zero value stands for the body in JSON.
type HistoryFormat struct {
	ContentType string
	Write       func(page History) ([]byte, error)
}

// HistoryFormats are the formats of a page by name.
var HistoryFormats = map[string]HistoryFormat{
	"json":   {},
	"ndjson": {"application/x-ndjson", writeLines},
	"csv":    {"text/csv; charset=utf-8", writeCSV},
}

// writeLines writes each record as JSON on a line of its own.
func writeLines(page History) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	for _, rec := range page.Records {
		if err := encoder.Encode(rec); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// writeCSV writes a line of names and one for each record. The domain comes first, so that the files of several
// companies can be joined.
func writeCSV(page History) ([]byte, error) {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	number := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
	rows := [][]string{{"domain", "scored_at", "composite_score", "scale_premium", "svc_rating", "momentum_index", "team_structure",
		"market_position", "momentum_tailwinds", "financial_health", "data_completeness_pct"}}
	for _, rec := range page.Records {
		b := rec.Buckets
		rows = append(rows, []string{page.Domain, time.Time(rec.ScoredAt).UTC().Format(timeLayout), number(rec.Composite),
			number(rec.ScalePremium), string(rec.Rating), number(rec.MomentumIndex), number(b.TeamStructure),
			number(b.MarketPosition), number(b.MomentumTailwinds), number(b.FinancialHealth), number(rec.CompletenessPct)})
	}
	err := w.WriteAll(rows)
	return out.Bytes(), err
}

// A cursor is base64url of a version byte, the time in unix milliseconds, and a
// check that binds it to the company and to the order.
const (
	cursorVersion = 1
	cursorBytes   = 1 + 8 + 4
)

// cursorEncoding is strict, so that each position has exactly one cursor.
var cursorEncoding = base64.RawURLEncoding.Strict()

// EncodeCursor returns the cursor of the page after the record of time last, in an order of records.
func EncodeCursor(domain string, oldestFirst bool, last time.Time) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(last.UnixMilli()))
	b = binary.BigEndian.AppendUint32(b, cursorCheck(domain, oldestFirst, b))
	return cursorEncoding.EncodeToString(b)
}

// DecodeCursor returns the time in a cursor of the company and order. Its error wraps ErrCursor.
func DecodeCursor(domain string, oldestFirst bool, cursor string) (time.Time, error) {
	if len(cursor) > 2*cursorBytes {
		return time.Time{}, fmt.Errorf("%w: too long", ErrCursor)
	}
	b, err := cursorEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion {
		return time.Time{}, fmt.Errorf("%w: not a cursor", ErrCursor)
	}
	if binary.BigEndian.Uint32(b[9:]) != cursorCheck(domain, oldestFirst, b[:9]) {
		return time.Time{}, fmt.Errorf("%w: of another company or order", ErrCursor)
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[1:9]))).UTC(), nil
}

func cursorCheck(domain string, oldestFirst bool, head []byte) uint32 {
	h := fnv.New32a()
	h.Write(head)
	h.Write([]byte(domain))
	if oldestFirst {
		h.Write([]byte(" oldest")) // no domain has a space
	}
	return h.Sum32()
}
