package clickhouse

import (
	"context"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/scoring"
	"companyscore/sql"
)

var companySearch = sql.Query("company_search")

// searchRows is the number of rows that are read for each wanted company: a company has a row for
// its domain and for each name that it ever had.
const searchRows = 8

// SearchCompanies returns up to limit companies whose domain or newest name begins with a prefix,
// which must be in lower case. They are sorted by the text that matches.
func (s *Scores) SearchCompanies(ctx context.Context, prefix string, limit int) ([]scoring.Record, error) {
	var rows []struct {
		Domain string `ch:"domain"`
	}
	err := s.db.listBuffered(ctx, &rows, companySearch, ch.Named("prefix", prefix), ch.Named("rows", uint32(limit*searchRows)),
		ch.Named("limit", uint32(limit)))
	if err != nil {
		return nil, fmt.Errorf("search companies: %w", err)
	}
	domains := make([]string, len(rows))
	for i, row := range rows {
		domains[i] = row.Domain
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
