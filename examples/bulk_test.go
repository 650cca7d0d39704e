package examples_test

import (
	"errors"
	"io"
	"testing"
	"time"

	"companyscore/facts"
)

// TestBulk reads every row of bulk/facts.csv and counts them by origin, as bulk/README.md lists them.
func TestBulk(t *testing.T) {
	t.Parallel()
	rows, err := facts.Open("bulk/facts.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	rows.SetLayer("", time.Date(2026, 8, 23, 0, 0, 0, 0, time.UTC))
	count := map[string]int{}
	for {
		company, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		count[company.Origin]++
	}
	for origin, want := range map[string]int{"cik-domains": 1751, "tickers": 4064, "sp500-constituents": 342, "sp500-financials": 317,
		"diodb": 146, "bounty-wildcards": 83} {
		if count[origin] != want {
			t.Errorf("%d rows of %s, want %d", count[origin], origin, want)
		}
	}
}
