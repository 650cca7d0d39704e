package up

import (
	"context"
	"fmt"

	"companyscore/clickhouse"
	"companyscore/examples"
	"companyscore/facts"
	"companyscore/scoring"
)

// loadExamples imports the example companies and starts their runs, unless any company has a score.
func (u *run) loadExamples(ctx context.Context) error {
	if scored, err := clickhouse.NewUniverse(u.stores.DB).AnyScore(ctx); err != nil || scored {
		return err
	}
	store := clickhouse.NewFacts(u.stores.DB)
	for _, file := range examples.Files {
		report, err := facts.ImportCSV(ctx, store, file.Name, file.Text, facts.Options{})
		if err != nil {
			return err
		}
		if len(report.Faults) > 0 {
			return fmt.Errorf("import %s: %w", file.Name, report.Faults[0])
		}
	}
	q, err := u.stores.Queue(u.cfg.Server.Limits, u.logger)
	if err != nil {
		return err
	}
	domains := examples.Domains(examples.Files...)
	if _, err := q.Start(ctx, scoring.LaneBulk, domains...); err != nil {
		return fmt.Errorf("start runs of examples: %w", err)
	}
	_, err = fmt.Fprintf(u.cfg.Out, "\n%d example companies are imported and scored now; `%s facts origins` lists where their "+
		"facts are from\n", len(domains), self())
	return err
}
