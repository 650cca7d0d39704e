package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
)

func (c *program) facts() *cobra.Command {
	cmd := &cobra.Command{Use: "facts", Short: "Import what you already know about companies"}
	var where config.Stores
	var quiet bool
	imp := &cobra.Command{
		Use:   "import FILE.csv|FILE.jsonl|FILE.parquet",
		Short: "Import company facts from a file",
		Long: `Import company facts from a CSV, JSONL or Parquet file; docs/facts.md explains the columns.
Good rows go in, bad rows are reported with line, column and reason. Importing a
company again replaces it. Exits 1 when any row was bad.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := stores.OpenClickHouse(cmd.Context(), where, 0)
			if err != nil {
				return err
			}
			defer db.Close()
			bar := cli.NewBar(cmd.ErrOrStderr(), quiet, "importing", true)
			report, err := facts.Import(cmd.Context(), clickhouse.NewFacts(db), args[0], func(read, total int64) {
				bar.ChangeMax64(total)
				_ = bar.Set64(read) // a bar that cannot be drawn is no reason to stop
			})
			_ = bar.Finish()
			if err != nil {
				return err
			}
			for _, fault := range report.Faults {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", args[0], fault)
			}
			if report.FaultsOmitted > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "and %d more\n", report.FaultsOmitted)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "imported %d of %d rows\n", report.Imported, report.Rows)
			if len(report.Faults) > 0 {
				return cli.ErrReported
			}
			return nil
		},
	}
	where.Flags(imp.Flags())
	imp.Flags().BoolVar(&quiet, "quiet", false, "draw no progress bar")
	cmd.AddCommand(imp)
	return cmd
}
