package clickhouse

import (
	"context"
	"fmt"

	"companyscore/facts/resolve"
	"companyscore/sql"
)

var resolveCompanies = sql.Query("resolve_companies")

// Known calls each with what identifies every company that has facts or a score, in no order; a company can come twice. It returns the
// first error of each.
func (f *Facts) Known(ctx context.Context, each func(resolve.Company) error) error {
	err := f.db.each(ctx, resolveCompanies, nil, func(scan func(...any) error) error {
		var c resolve.Company
		if err := scan(&c.Domain, &c.Name, &c.Names, &c.Tickers, &c.CIKs, &c.LEIs, &c.ISINs); err != nil {
			return err
		}
		return each(c)
	})
	if err != nil {
		return fmt.Errorf("names and identifiers of companies: %w", err)
	}
	return nil
}
