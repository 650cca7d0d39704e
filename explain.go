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
		Short: "Show where the newest score of a company comes from, signal by signal",
		Long: `Show where the newest score of a company comes from: each of the 67 signals with its
raw value, normalised score, weight, contribution to the base and source; the way
from there to the grade; who the company was taken for, and why; how the sources fared.`,
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
				return fmt.Errorf("%s was never scored: score it with `companyscore run start %s --wait`", domain, domain)
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object, with everything every source said")
	return cmd
}
