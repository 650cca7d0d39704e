package api

import (
	"errors"
	"testing"
	"time"

	"companyscore/scoring"
)

func TestNextCursorOnlyWhenMoreFollows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 0, 0, 0, 123e6, time.UTC)
	var records []scoring.Record
	for i := range 3 {
		records = append(records, scoring.Record{ScoredAt: at.Add(-time.Duration(i) * time.Hour)})
	}
	page := NewHistory("acme.com", Page{Limit: 2}, records)
	if len(page.Records) != 2 {
		t.Fatalf("%d records, want 2", len(page.Records))
	}
	before, err := DecodeCursor("acme.com", false, page.NextCursor)
	if err != nil || !before.Equal(records[1].ScoredAt) {
		t.Errorf("cursor stands for %v (%v), want %v", before, err, records[1].ScoredAt)
	}
	if page := NewHistory("acme.com", Page{Limit: 3}, records); page.NextCursor != "" {
		t.Errorf("the last page has cursor %q", page.NextCursor)
	}
}

func TestCursorsOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	good := EncodeCursor("acme.com", false, time.UnixMilli(1_700_000_000_123))
	for _, cursor := range []string{"", "x", "AAAA", good + "A", good[1:], good[:len(good)-1] + "!", "++++", "ÿ"} {
		if _, err := DecodeCursor("acme.com", false, cursor); !errors.Is(err, ErrCursor) {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	if _, err := DecodeCursor("other.com", false, good); !errors.Is(err, ErrCursor) {
		t.Errorf("another company's cursor: %v", err)
	}
	if _, err := DecodeCursor("acme.com", true, good); !errors.Is(err, ErrCursor) {
		t.Errorf("a cursor of the other order: %v", err)
	}
}

func FuzzCursor(f *testing.F) {
	f.Add("acme.com", true, EncodeCursor("acme.com", false, time.UnixMilli(1)))
	f.Add("acme.com", false, "AQAAAYvPVTN7")
	f.Fuzz(func(t *testing.T, domain string, oldestFirst bool, cursor string) {
		at, err := DecodeCursor(domain, oldestFirst, cursor)
		if err != nil {
			if !errors.Is(err, ErrCursor) {
				t.Fatal(err)
			}
			return
		}
		if again := EncodeCursor(domain, oldestFirst, at); again != cursor {
			t.Fatalf("%q stands for %v, which is written %q", cursor, at, again)
		}
	})
}
