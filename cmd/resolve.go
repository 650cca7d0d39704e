package cmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/facts/resolve"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
)

var answerColumns = []cli.Column[resolve.Answer]{
	{Name: "input", Value: func(a resolve.Answer) any { return a.Input }},
	{Name: "kind", Value: func(a resolve.Answer) any { return string(a.Kind) }},
	{Name: "domain", Value: func(a resolve.Answer) any { return a.Domain }},
	{Name: "company_name", Value: func(a resolve.Answer) any { return a.CompanyName }},
	{Name: "likelihood", Value: func(a resolve.Answer) any { return percent(a.Likelihood) }},
	{Name: "ambiguous", Value: func(a resolve.Answer) any { return a.Ambiguous }},
	{Name: "others", Value: func(a resolve.Answer) any {
		others := make([]string, len(a.Others))
		for i, c := range a.Others {
			others[i] = c.Domain + " " + percent(c.Likelihood)
		}
		return strings.Join(others, "|")
	}},
}

// percent returns a likelihood with two digits, such as 0.95.
func percent(likelihood float64) string { return strconv.FormatFloat(likelihood, 'f', 2, 64) }

func (c *program) resolve() *cobra.Command {
	var where config.Stores
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "resolve FILE|-",
		Short: "Find the domains of names, tickers, CIKs, LEIs or ISINs",
		Long: `Find the domains of companies by name, ticker, CIK, LEI or ISIN, with a likelihood, 0 to 1, among the
companies that have facts or a score. Nothing is asked outside the store.

FILE, or standard input for -, has one of them per line. With a header that names a column name, ticker,
cik, lei or isin it is a CSV, and that column counts; a column exchange belongs to the tickers. Without a
header the form tells the kind: US0378331005 is an ISIN, 320193 a CIK, AAPL or NASDAQ:AAPL a ticker, and
all else a name. A file called .csv without a header is read by its first column. 100,000 lines at most.

Identifiers have a likelihood of 0.99; several domains with one share it, and the answer is ambiguous. So
is a ticker that several have, unless the exchange tells. Names are compared without case, punctuation and
legal form; docs/facts.md has the likelihoods. A line that asks for nothing is reported with its
number, and the command exits 1.`,
		Example: "  companyscore resolve suppliers.csv --output csv\n  echo 'Apple, Inc.' | companyscore resolve -",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			queries, faults, err := readQueries(cmd.InOrStdin(), args[0])
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			matcher := resolve.NewMatcher(queries)
			if err := matchKnown(cmd.Context(), where, matcher); err != nil {
				return err
			}
			if err := cli.PrintList(cmd.OutOrStdout(), format, matcher.Answers(), answerColumns); err != nil {
				return err
			}
			for _, fault := range faults {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s\n", args[0], fault)
			}
			if len(faults) > 0 {
				return cli.ErrReported
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	format.Flag(cmd)
	return cmd
}

// readQueries reads the questions in a file, or in stdin for -.
func readQueries(stdin io.Reader, name string) ([]resolve.Query, []resolve.Fault, error) {
	if name == "-" {
		return resolve.Read(stdin, false)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	return resolve.Read(file, strings.HasSuffix(strings.ToLower(name), ".csv"))
}

// resolveTimeout bounds the read of all companies.
const resolveTimeout = 10 * time.Minute

// matchKnown compares the questions with all companies of the store.
func matchKnown(ctx context.Context, where config.Stores, matcher *resolve.Matcher) error {
	db, err := stores.OpenClickHouse(ctx, where, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	return clickhouse.NewFacts(db).Known(ctx, func(c resolve.Company) error {
		matcher.Add(c)
		return nil
	})
}
