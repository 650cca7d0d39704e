package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	var asJSON bool
	var since string
	cmd := &cobra.Command{
		Use:   "explain DOMAIN",
		Short: "Explain the newest score of a company, signal by signal",
		Long: `Explain the newest score of a company: each of the 67 signals with its raw value,
normalised score, weight, contribution to the base and source; the steps from the base
to the grade; the identity of the company with its evidence; the outcome of each source.

With --since, split the change of the score since a day by cause instead: observation,
coverage, premium, formula and the signals whose contribution changed.`,
		Example: `  companyscore explain apple.com
  companyscore explain apple.com --since 2026-05-01 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domain, err := domainname.Parse(args[0])
			if err != nil {
				return cli.Usage(err)
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
				return printed(cmd, asJSON, explain.NewChange(before, rec))
			}
			trace, err := traces.Trace(cmd.Context(), domain, rec.ScoredAt)
			if err != nil && !errors.Is(err, scoring.ErrNotFound) {
				return err
			}
			return printed(cmd, asJSON, explain.New(rec, trace, time.Now()))
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().StringVar(&since, "since", "", "explain the change since the newest score of this day or before it, YYYY-MM-DD")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with all observations of all sources")
	return cmd
}

// printed prints an explanation as text or as JSON.
func printed(cmd *cobra.Command, asJSON bool, x interface{ Text(io.Writer) error }) error {
	if !asJSON {
		return x.Text(cmd.OutOrStdout())
	}
	encoder := json.NewEncoder(cmd.OutOrStdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(x)
}
