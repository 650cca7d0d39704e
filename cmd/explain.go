package cmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
	"companyscore/internal/stores"
	"companyscore/scoring"
	"companyscore/scoring/explain"
)

func (c *program) explain() *cobra.Command {
	var where config.Stores
	var format cli.Output
	var since string
	cmd := &cobra.Command{
		Use:   "explain DOMAIN",
		Short: "Explain the newest score of a company, signal by signal",
		Long: `Explain the newest score of a company: each of the 67 signals with value, score, weight,
contribution and source, the steps to the grade, the identity with its evidence, and the
sources. With --since 2026-05-01, split the change of the score since that day by cause. JSON has all observations of all
sources too, CSV a row for each signal.`,
		Example: "  companyscore explain apple.com\n  companyscore explain apple.com --since 2026-05-01 --output csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domain, err := domainname.Parse(args[0])
			if err != nil {
				return cli.Usage(fmt.Errorf("%q: %w", args[0], err))
			}
			var day time.Time
			if since != "" {
				if day, err = time.Parse(time.DateOnly, since); err != nil {
					return cli.Usage(fmt.Errorf("--since %q: use a day such as 2026-05-01", since))
				}
			}
			db, err := stores.OpenClickHouse(cmd.Context(), where, 0)
			if err != nil {
				return err
			}
			defer db.Close()
			scores, traces := clickhouse.NewScores(db, clickhouse.WriterConfig{}), clickhouse.NewTraces(db, clickhouse.WriterConfig{})
			defer func() { _ = errors.Join(scores.Close(cmd.Context()), traces.Close(cmd.Context())) }() // nothing was written
			rec, err := scores.Latest(cmd.Context(), domain)
			if errors.Is(err, scoring.ErrNotFound) {
				return fmt.Errorf("%s was never scored: run `companyscore run start %s --wait`", domain, domain)
			}
			if err != nil {
				return err
			}
			if since != "" {
				before, err := scores.At(cmd.Context(), domain, day)
				if errors.Is(err, scoring.ErrNotFound) {
					return fmt.Errorf("%s has no score from before %s: choose a later day", domain, since)
				}
				if err != nil {
					return err
				}
				return explain.Print(cmd.OutOrStdout(), explain.NewChange(before, rec), format)
			}
			trace, err := traces.Trace(cmd.Context(), domain, rec.ScoredAt)
			if err != nil && !errors.Is(err, scoring.ErrNotFound) {
				return err
			}
			return explain.Print(cmd.OutOrStdout(), explain.New(rec, trace, time.Now()), format)
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().StringVar(&since, "since", "", "explain the change since the newest score from before this day in UTC, YYYY-MM-DD")
	format.Flag(cmd)
	return cmd
}
