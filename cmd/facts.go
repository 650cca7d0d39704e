package cmd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/facts"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
	"companyscore/internal/stores"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/selection"
)

func (c *program) facts() *cobra.Command {
	cmd := &cobra.Command{Use: "facts", Short: "Import, show and remove facts of companies"}
	var where config.Stores
	where.Flags(cmd.PersistentFlags())
	// with opens the store of facts for one command.
	with := func(cmd *cobra.Command, do func(ctx context.Context, store *clickhouse.Facts) error) error {
		db, err := stores.OpenClickHouse(cmd.Context(), where, 0)
		if err != nil {
			return err
		}
		defer db.Close()
		return do(cmd.Context(), clickhouse.NewFacts(db))
	}
	cmd.AddCommand(factsImport(with), factsShow(with), factsOrigins(with), factsRemove(with), factsRecipes())
	return cmd
}

// withFacts runs a function with the store of facts.
type withFacts func(cmd *cobra.Command, do func(ctx context.Context, store *clickhouse.Facts) error) error

func factsImport(with withFacts) *cobra.Command {
	var opt facts.Options
	var quiet bool
	var bulk recipeImport
	cmd := &cobra.Command{
		Use:   "import FILE.csv|FILE.jsonl|FILE.parquet | --recipe NAME|FILE.sql FILE...",
		Short: "Import company facts from a file",
		Long: `Import company facts from a CSV, JSONL or Parquet file; docs/facts.md lists the columns.
Facts are kept by company and origin. An import replaces what the same origin said about the
companies in the file before, and nothing else. Valid rows are imported, all at once; invalid rows
are reported with line, column and reason. Exits 1 if any row was invalid.

With --recipe the files are those of a publisher, as downloaded, and together one import. The recipe
decides which rows are imported; one invalid row of its result stops the import, and nothing changes.`,
		Example: "  companyscore facts import examples/companies.csv\n  companyscore facts import suppliers.csv --origin crm\n" +
			"  companyscore facts import --recipe sec-statements 2026q2.zip 2026q3.zip --unmatched unmatched.csv",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if bulk.name != "" {
				return bulk.run(cmd, with, args, opt)
			}
			if len(args) > 1 {
				return cli.Usage(fmt.Errorf("%d files: without --recipe an import has one", len(args)))
			}
			return with(cmd, func(ctx context.Context, store *clickhouse.Facts) error {
				bar := cli.NewBar(cmd.ErrOrStderr(), quiet, "importing", true)
				opt.Progress = func(read, total int64) {
					bar.ChangeMax64(total)
					_ = bar.Set64(read) // an error of the progress bar is ignored
				}
				report, err := facts.Import(ctx, store, args[0], opt)
				_ = bar.Finish()
				if err != nil {
					return err
				}
				if err := printReport(cmd, args[0], report); err != nil {
					return err
				}
				if !quiet && strings.EqualFold(filepath.Ext(args[0]), ".csv") {
					next(cmd, "run", "start", "--from", args[0], "--wait")
				}
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&opt.Origin, "origin", "",
		"origin of all rows (default the recipe, else the column source, else the name of the file)")
	bulk.flags(cmd.Flags())
	cmd.Flags().BoolVar(&quiet, "quiet", false, "show no progress bar and no next step")
	return cmd
}

// printReport prints the result of an import. It returns an error if rows were invalid.
func printReport(cmd *cobra.Command, file string, report facts.Report) error {
	for _, fault := range report.Faults {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", file, fault)
	}
	if report.FaultsOmitted > 0 {
		fmt.Fprintf(cmd.ErrOrStderr(), "and %d more\n", report.FaultsOmitted)
	}
	same := ""
	if n := report.Imported - report.Changed; n > 0 {
		same = fmt.Sprintf(", %d as before", n)
	}
	fmt.Fprintf(cmd.OutOrStdout(), "imported %d of %d rows%s\n", report.Imported, report.Rows, same)
	if len(report.Faults) > 0 {
		return cli.ErrReported
	}
	return nil
}

var verdictColumns = []cli.Column[source.Verdict]{
	{Name: "fact", Value: func(v source.Verdict) any { return v.Fact }},
	{Name: "value", Value: func(v source.Verdict) any { return plainValue(v.Value) }},
	{Name: "unit", Value: func(v source.Verdict) any { return v.Unit }},
	{Name: "origin", Value: func(v source.Verdict) any { return v.Origin }},
	{Name: "as_of", Value: func(v source.Verdict) any { return v.Day }},
	{Name: "counts", Value: func(v source.Verdict) any { return v.Counts }},
	{Name: "why", Value: func(v source.Verdict) any { return v.Why }},
}

// plainValue returns a number with six significant digits, or all digits before the point.
func plainValue(v any) any {
	n, ok := v.(float64)
	switch {
	case !ok:
		return v
	case math.Abs(n) >= 1e6:
		return strconv.FormatFloat(n, 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'g', 6, 64)
}

func factsShow(with withFacts) *cobra.Command {
	var format cli.Output
	var trust []string
	cmd := &cobra.Command{
		Use:   "show DOMAIN",
		Short: "Show all facts of a company, and which of them count",
		Long: `Show every value in the facts of a company with its origin and its day, and why it counts or
not. Within the maximum age of a signal the newest day counts, and on one day the origin that comes
first in --trust. Live sources take part in the same rule; companyscore explain shows them.`,
		Example: "  companyscore facts show apple.com",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domain, err := domainname.Parse(args[0])
			if err != nil {
				return cli.Usage(fmt.Errorf("%q: %w", args[0], err))
			}
			return with(cmd, func(ctx context.Context, store *clickhouse.Facts) error {
				layers, err := store.Get(ctx, domain)
				if err != nil {
					return err
				}
				if len(layers) == 0 && format != cli.JSON {
					return fmt.Errorf("nothing is known about %s: companyscore facts origins lists what was imported", domain)
				}
				return cli.PrintList(cmd.OutOrStdout(), format, source.Verdicts(layers, scoring.Preference{Now: time.Now(), Trust: trust}),
					verdictColumns)
			})
		},
	}
	selection.TrustFlag(cmd.Flags(), &trust)
	format.Flag(cmd)
	return cmd
}

// originRow is an origin as `facts origins` prints it.
type originRow struct {
	Origin    string    `json:"origin"`
	Companies uint64    `json:"companies"`
	Oldest    string    `json:"oldest"`
	Newest    string    `json:"newest"`
	ChangedAt time.Time `json:"changed_at"`
}

var originColumns = []cli.Column[originRow]{
	{Name: "origin", Value: func(r originRow) any { return r.Origin }},
	{Name: "companies", Value: func(r originRow) any { return r.Companies }},
	{Name: "oldest", Value: func(r originRow) any { return r.Oldest }},
	{Name: "newest", Value: func(r originRow) any { return r.Newest }},
	{Name: "changed_at", Value: func(r originRow) any { return r.ChangedAt }},
}

func factsOrigins(with withFacts) *cobra.Command {
	var format cli.Output
	cmd := &cobra.Command{
		Use: "origins", Short: "List the origins of facts with their companies and days", Args: cobra.NoArgs,
		Example: "  companyscore facts origins",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, store *clickhouse.Facts) error {
				origins, err := store.Origins(ctx)
				if err != nil {
					return err
				}
				rows := make([]originRow, len(origins))
				for i, o := range origins {
					rows[i] = originRow{o.Origin, o.Companies, o.Oldest.Format(time.DateOnly), o.Newest.Format(time.DateOnly), o.ChangedAt}
				}
				return cli.PrintList(cmd.OutOrStdout(), format, rows, originColumns)
			})
		},
	}
	format.Flag(cmd)
	return cmd
}

func factsRemove(with withFacts) *cobra.Command {
	var origin string
	cmd := &cobra.Command{
		Use:   "remove --origin NAME",
		Short: "Remove all facts of an origin",
		Long: `Remove all facts of an origin. Those of other origins stay and count again. Scores change with the
next run of a company.`,
		Example: "  companyscore facts remove --origin crm",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return with(cmd, func(ctx context.Context, store *clickhouse.Facts) error {
				if err := store.Recover(ctx); err != nil {
					return err
				}
				removal, err := store.RemoveOrigin(ctx, origin)
				if errors.Is(err, scoring.ErrNotFound) {
					return fmt.Errorf("%w: companyscore facts origins lists all", err)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "removed %d companies of %s\n", removal.Changed, origin)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&origin, "origin", "", "origin to remove")
	if err := cmd.MarkFlagRequired("origin"); err != nil {
		panic("facts remove: " + err.Error()) // the flag was added before
	}
	return cmd
}
