package api

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
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

// Page selects records of one company that are older than Before, newest first.
type Page struct {
	Before time.Time // zero for the first page
	Limit  int       // 1 to HistoryMax
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
		body.NextCursor = EncodeCursor(domain, records[len(records)-1].ScoredAt)
	}
	return body
}

// A cursor is base64url of a version byte, the time in unix milliseconds, and a
// check that binds it to the company.
const (
	cursorVersion = 1
	cursorBytes   = 1 + 8 + 4
)

// cursorEncoding is strict, so that each position has exactly one cursor.
var cursorEncoding = base64.RawURLEncoding.Strict()

// EncodeCursor returns the cursor of the page after the record of time last.
func EncodeCursor(domain string, last time.Time) string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, cursorVersion)
	b = binary.BigEndian.AppendUint64(b, uint64(last.UnixMilli()))
	b = binary.BigEndian.AppendUint32(b, cursorCheck(domain, b))
	return cursorEncoding.EncodeToString(b)
}

// DecodeCursor returns the time in a cursor of the company. Its error wraps ErrCursor.
func DecodeCursor(domain, cursor string) (time.Time, error) {
	if len(cursor) > 2*cursorBytes {
		return time.Time{}, fmt.Errorf("%w: too long", ErrCursor)
	}
	b, err := cursorEncoding.DecodeString(cursor)
	if err != nil || len(b) != cursorBytes || b[0] != cursorVersion {
		return time.Time{}, fmt.Errorf("%w: not a cursor", ErrCursor)
	}
	if binary.BigEndian.Uint32(b[9:]) != cursorCheck(domain, b[:9]) {
		return time.Time{}, fmt.Errorf("%w: of another company", ErrCursor)
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(b[1:9]))).UTC(), nil
}

func cursorCheck(domain string, head []byte) uint32 {
	h := fnv.New32a()
	h.Write(head)
	h.Write([]byte(domain))
	return h.Sum32()
}
