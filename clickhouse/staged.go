package clickhouse

import (
	"context"
	"fmt"
	"slices"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/sql"
)

var (
	factsStagedBound = sql.Query("facts_staged_bound")
	factsStagedPage  = sql.Query("facts_staged_page")
)

const (
	// stagedPage is the number of staged layers that are compared at once: some 50 MB.
	stagedPage = 20_000
	// lastDomain sorts after all domains.
	lastDomain = "~"
)

// stagedRow is a present or a staged layer. Its embedded columns are those of a layer.
type stagedRow struct {
	factsRow
	Content uint64 `ch:"content"`
	Staged  bool   `ch:"staged"`
}

// StagedChanges calls page with the companies of an import whose layers the commit will change, in the order of
// their domains, one page after the other. It returns the first error of page. The import must not be committed.
func (f *Facts) StagedChanges(ctx context.Context, importID string, page func([]table.FactsChange) error) error {
	for after := ""; after != lastDomain; {
		var bound struct {
			Domain string `ch:"domain"`
		}
		args := []any{ch.Named("import", importID), ch.Named("after", after)}
		more, err := f.db.first(ctx, &bound, factsStagedBound, append(args, ch.Named("rows", stagedPage-1))...)
		if err != nil {
			return fmt.Errorf("read staged layers of import %s: %w", importID, err)
		}
		if after = lastDomain; more {
			after = bound.Domain
		}
		var rows []stagedRow
		if err := f.db.list(ctx, &rows, factsStagedPage, append(args, ch.Named("last", after))...); err != nil {
			return fmt.Errorf("read staged layers of import %s: %w", importID, err)
		}
		if changes := changesOf(rows); len(changes) > 0 {
			if err := page(changes); err != nil {
				return err
			}
		}
	}
	return nil
}

// changesOf returns the changes of companies from their rows, which are sorted by domain, origin and staged.
func changesOf(rows []stagedRow) (all []table.FactsChange) {
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r stagedRow) bool { return r.Domain != rows[0].Domain })
		if n < 0 {
			n = len(rows)
		}
		if change := changeOf(rows[:n]); change.Domain != "" {
			all = append(all, change)
		}
		rows = rows[n:]
	}
	return all
}

// changeOf returns the change of one company, the zero value if there is none.
func changeOf(rows []stagedRow) (change table.FactsChange) {
	changed := false
	for i, r := range rows {
		present, staged := !r.Staged && !r.Removed, r.Staged
		replaced := !staged && i+1 < len(rows) && rows[i+1].Origin == r.Origin
		if present {
			change.Before = append(change.Before, r.facts())
		}
		if staged || present && !replaced {
			change.After = append(change.After, r.facts())
		}
		if staged {
			same := i > 0 && rows[i-1].Origin == r.Origin && !rows[i-1].Removed && rows[i-1].Content == r.Content
			changed = changed || !same
		}
	}
	if !changed {
		return table.FactsChange{}
	}
	change.Domain = rows[0].Domain
	return change
}
