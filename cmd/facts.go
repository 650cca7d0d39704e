package cmd

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
	cmd := &cobra.Command{Use: "facts", Short: "Import facts of companies"}
	var where config.Stores
	var quiet bool
	imp := &cobra.Command{
		Use:   "import FILE.csv|FILE.jsonl|FILE.parquet",
		Short: "Import company facts from a file",
		Long: `Import company facts from a CSV, JSONL or Parquet file; docs/facts.md lists the columns.
Valid rows are imported; invalid rows are reported with line, column and reason. A second
import of a company replaces its row. Exits 1 if any row was invalid.`,
		Example: "  companyscore facts import examples/companies.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			db, err := stores.OpenClickHouse(cmd.Context(), where, 0)
			if err != nil {
				return err
			}
			defer db.Close()
			bar := cli.NewBar(cmd.ErrOrStderr(), quiet, "importing", true)
			report, err := facts.Import(cmd.Context(), clickhouse.NewFacts(db), args[0], func(read, total int64) {
				bar.ChangeMax64(total)
				_ = bar.Set64(read) // an error of the progress bar is ignored
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
	imp.Flags().BoolVar(&quiet, "quiet", false, "show no progress bar")
	cmd.AddCommand(imp)
	return cmd
}
