package cmd

import (
	"strconv"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/scoring/backtest"
)

// curvesCommand returns the command.
func curvesCommand() *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "curves FILE.csv...",
		Short: "Count the percentiles of signals in files, beside those of their curves",
		Long: `Count the 10th, 50th and 90th percentile of each column signal:<id> of CSV files, from the worst
company to the best, and print them beside those of the curve, which score 20, 50 and 80. Files of
facts have such columns. A row is a company. With a column revenue_usd, only companies with a
revenue of at least 1,000,000 US dollars count. Needs no store and no service.`,
		Example: "  companyscore curves examples/statements.csv",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			counts, err := backtest.CountCurves(args)
			if err != nil {
				return backtestUsage(err)
			}
			return cli.PrintList(cmd.OutOrStdout(), format, counts, curveColumns)
		},
	}
	format.Flag(cmd)
	return cmd
}

var curveColumns = []cli.Column[backtest.CurveCount]{
	{Name: "signal", Value: func(c backtest.CurveCount) any { return c.Signal }},
	{Name: "companies", Value: func(c backtest.CurveCount) any { return c.Companies }},
	{Name: "p10", Value: func(c backtest.CurveCount) any { return rawValue(c.Counted[0]) }},
	{Name: "p50", Value: func(c backtest.CurveCount) any { return rawValue(c.Counted[1]) }},
	{Name: "p90", Value: func(c backtest.CurveCount) any { return rawValue(c.Counted[2]) }},
	{Name: "curve_p10", Value: func(c backtest.CurveCount) any { return rawValue(c.Curve[0]) }},
	{Name: "curve_p50", Value: func(c backtest.CurveCount) any { return rawValue(c.Curve[1]) }},
	{Name: "curve_p90", Value: func(c backtest.CurveCount) any { return rawValue(c.Curve[2]) }},
}

// rawValue returns a raw value with four digits.
func rawValue(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
