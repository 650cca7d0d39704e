package clickhouse

import (
	"context"
	"fmt"

	"companyscore/sql"
)

var compactions = []string{
	sql.Query("compact_score_latest"), sql.Query("compact_company_facts"), sql.Query("compact_company_demand"),
	sql.Query("compact_account"), sql.Query("compact_api_key"), sql.Query("compact_api_key_use"),
}

// Compact merges the tables that keep the newest row per key, so that reads scan fewer
// rows. Results of reads do not depend on it.
func (db *DB) Compact(ctx context.Context) error {
	for _, query := range compactions {
		if err := db.exec(ctx, query); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	return nil
}
