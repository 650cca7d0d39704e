package cmd

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/scoring/backtest"
)

// backtestCommand returns the command.
func backtestCommand() *cobra.Command {
	cfg := backtest.Config{}
	var at, page, limits string
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "backtest FILE.csv|FILE.jsonl|FILE.parquet --outcome COLUMN",
		Short: "Measure scores against outcomes in a file of facts",
		Long: `Score the companies of a file from their facts alone and compare the scores with outcomes in
the same file. Needs no store and no service. docs/facts.md lists the columns of facts; an
outcome column may be one of them or any other. docs/backtest.md explains the figures.

Numbers and market_cap_class are compared by rank. Other values are classes: --good and --bad
name them; for status they are operating and dead.

CSV has a row for each outcome. Invalid rows are reported and left out. Exits 1 if there are any or if a limit is not met.`,
		Example: `  companyscore backtest examples/companies.csv --outcome revenue_usd,status
  companyscore backtest portfolio.csv --outcome exit --good ipo,acquired --bad closed --html report.html`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg.Path = args[0]
			var err error
			if cfg.Now, err = backtestDay(at); err != nil {
				return cli.Usage(err)
			}
			var bounds backtest.Limits
			if limits != "" {
				if bounds, err = backtest.ReadLimits(limits); err != nil {
					return backtestUsage(err)
				}
			}
			stop := cli.Working(cmd.ErrOrStderr(), "scoring "+cfg.Path)
			report, err := backtest.Run(cmd.Context(), cfg)
			if stop(); err != nil {
				return backtestUsage(err)
			}
			checks, err := report.Check(bounds)
			if err != nil {
				return backtestUsage(err)
			}
			for _, fault := range report.Faults {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", cfg.Path, fault)
			}
			if omitted := report.Invalid - len(report.Faults); omitted > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "and %d more\n", omitted)
			}
			if page != "" {
				if err := writeBacktestPage(page, report); err != nil {
					return err
				}
			}
			if err := writeBacktest(cmd.OutOrStdout(), report, checks, format); err != nil {
				return err
			}
			for _, c := range checks {
				if !c.OK {
					return cli.ErrReported
				}
			}
			if report.Invalid > 0 {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVar(&cfg.Outcomes, "outcome", nil, "columns with outcomes, separated by commas")
	cmd.Flags().StringSliceVar(&cfg.Good, "good", nil, "values of the outcome that count as good")
	cmd.Flags().StringSliceVar(&cfg.Bad, "bad", nil, "values of the outcome that count as bad")
	cmd.Flags().StringVar(&at, "at", "", "day for which the companies are scored, YYYY-MM-DD (default today)")
	format.Flag(cmd)
	cmd.Flags().StringVar(&page, "html", "", "write a page with plots to this file")
	cmd.Flags().StringVar(&limits, "limits", "", "JSON file with limits of figures, as examples/limits.json")
	return cmd
}

// backtestDay returns the start of a day, and of today for the empty text.
func backtestDay(text string) (time.Time, error) {
	if text == "" {
		return time.Now().UTC().Truncate(24 * time.Hour), nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return at, fmt.Errorf("--at %q: not a date of the form YYYY-MM-DD", text)
	}
	return at, nil
}

// backtestUsage returns errors about the input as errors of usage.
func backtestUsage(err error) error {
	if errors.Is(err, backtest.ErrInput) {
		return cli.Usage(err)
	}
	return err
}

// writeBacktestPage writes the page with plots to a file.
func writeBacktestPage(path string, report *backtest.Report) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	if err := report.HTML(w); err != nil {
		return err
	}
	return w.Flush()
}

var outcomeColumns = slices.Concat([]cli.Column[backtest.Outcome]{
	{Name: "outcome", Value: func(o backtest.Outcome) any { return o.Column }},
	{Name: "kind", Value: func(o backtest.Outcome) any { return o.Kind }},
	{Name: "companies", Value: func(o backtest.Outcome) any { return o.Companies }},
},
	estimates("spearman", func(f backtest.Figures) *backtest.Estimate { return f.Spearman }),
	estimates("auc", func(f backtest.Figures) *backtest.Estimate { return f.AUC }),
)

// estimates returns the columns of a figure: given the outcome, if it is a fact, and withheld.
func estimates(name string, of func(backtest.Figures) *backtest.Estimate) []cli.Column[backtest.Outcome] {
	value := func(f *backtest.Figures) any {
		if f == nil || of(*f) == nil {
			return nil
		}
		return of(*f).Value
	}
	return []cli.Column[backtest.Outcome]{
		{Name: name, Value: func(o backtest.Outcome) any { return value(&o.Given) }},
		{Name: name + "_withheld", Value: func(o backtest.Outcome) any { return value(o.Withheld) }},
	}
}

// writeBacktest prints the report and the checks.
func writeBacktest(out io.Writer, report *backtest.Report, checks []backtest.Check, format cli.Output) error {
	switch format {
	case cli.JSON:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(struct {
			*backtest.Report
			Checks []backtest.Check `json:"checks,omitempty"`
		}{report, checks})
	case cli.CSV:
		return cli.PrintList(out, format, report.Outcomes, outcomeColumns)
	}
	if err := report.Text(out); err != nil {
		return err
	}
	if len(checks) > 0 {
		fmt.Fprintln(out)
	}
	for _, c := range checks {
		fmt.Fprintln(out, c)
	}
	return nil
}
