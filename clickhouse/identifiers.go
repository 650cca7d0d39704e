package clickhouse

import (
	"context"
	"fmt"

	"companyscore/sql"
)

var factsIdentifiers = sql.Query("facts_identifiers")

// Identifiers calls each with every identifier of every company with facts, in no order. sql/queries/facts_identifiers.sql has the kinds.
// It returns the first error of each.
func (f *Facts) Identifiers(ctx context.Context, each func(domain, kind, value string) error) error {
	err := f.db.each(ctx, factsIdentifiers, nil, func(scan func(...any) error) error {
		var domain, kind, value string
		if err := scan(&domain, &kind, &value); err != nil {
			return err
		}
		return each(domain, kind, value)
	})
	if err != nil {
		return fmt.Errorf("identifiers of companies: %w", err)
	}
	return nil
}
