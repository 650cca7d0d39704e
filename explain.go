package main

import (
	"encoding/json"
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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain DOMAIN",
		Short: "Explain the newest score of a company, signal by signal",
		Long: `Explain the newest score of a company: each of the 67 signals with its raw value,
normalised score, weight, contribution to the base and source; the steps from the base
to the grade; the identity of the company with its evidence; the outcome of each source.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domain, err := domainname.Parse(args[0])
			if err != nil {
				return cli.Usage(err)
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
			trace, err := traces.Trace(cmd.Context(), domain, rec.ScoredAt)
			if err != nil && !errors.Is(err, scoring.ErrNotFound) {
				return err
			}
			x := explain.New(rec, trace, time.Now())
			if asJSON {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(x)
			}
			return x.Text(cmd.OutOrStdout())
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with all observations of all sources")
	return cmd
}
