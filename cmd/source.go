package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/selection"
	"companyscore/scoring/worker"
)

// sourceRow is a source as `source list` prints it. Facts are read from the own store, so they have no limits.
type sourceRow struct {
	Source string        `json:"source"`
	On     string        `json:"on"`
	Limits []string      `json:"limits"`
	Policy *sourcePolicy `json:"policy,omitempty"`
}

// sourcePolicy is how a live source is asked. Times are in seconds, sizes in bytes.
type sourcePolicy struct {
	Deadline float64 `json:"deadline_s"`
	Connect  float64 `json:"connect_s"`
	Request  float64 `json:"request_s"`
	Retries  int     `json:"retries"`
	Kept     float64 `json:"kept_s"`
	BodyMax  int64   `json:"answer_max_bytes"`
	of       fetch.Policy
}

// sourceRows returns all sources.
func sourceRows(from selection.Config, chosen []string) []sourceRow {
	list := []sourceRow{{Source: scoring.FactsSource, On: from.Status(scoring.FactsSource, chosen), Limits: []string{"own store"}}}
	for _, p := range fetch.Policies {
		list = append(list, sourceRow{p.Source, from.Status(p.Source, chosen), selection.Limits(p.Source),
			&sourcePolicy{p.Deadline.Seconds(), p.Connect.Seconds(), p.Total.Seconds(), p.Retries, p.TTL.Seconds(), int64(p.BodyMax), p}})
	}
	return list
}

// policyColumn returns a column that only live sources have: human for tables, machine for CSV.
func policyColumn(name string, human, machine func(p sourcePolicy) any) []cli.Column[sourceRow] {
	cell := func(value func(sourcePolicy) any) func(sourceRow) any {
		return func(r sourceRow) any {
			if r.Policy == nil {
				return nil
			}
			return value(*r.Policy)
		}
	}
	return []cli.Column[sourceRow]{{Name: name, Value: cell(human), Only: cli.Table}, {Name: name, Value: cell(machine), Only: cli.CSV}}
}

var sourceColumns = slices.Concat(
	[]cli.Column[sourceRow]{
		{Name: "source", Value: func(r sourceRow) any { return r.Source }},
		{Name: "on", Value: func(r sourceRow) any { return r.On }},
	},
	policyColumn("deadline", func(p sourcePolicy) any { return fetch.Short(p.of.Deadline) },
		func(p sourcePolicy) any { return p.Deadline }),
	policyColumn("connect", func(p sourcePolicy) any { return fetch.Short(p.of.Connect) }, func(p sourcePolicy) any { return p.Connect }),
	policyColumn("request", func(p sourcePolicy) any { return fetch.Short(p.of.Total) }, func(p sourcePolicy) any { return p.Request }),
	policyColumn("retries", func(p sourcePolicy) any { return p.Retries }, func(p sourcePolicy) any { return p.Retries }),
	policyColumn("kept", func(p sourcePolicy) any {
		if p.Kept == 0 {
			return "no"
		}
		return fetch.Short(p.of.TTL)
	}, func(p sourcePolicy) any { return p.Kept }),
	policyColumn("answer_max", func(p sourcePolicy) any { return fetch.Size(p.of.BodyMax) }, func(p sourcePolicy) any { return p.BodyMax }),
	[]cli.Column[sourceRow]{{Name: "limits", Value: func(r sourceRow) any { return strings.Join(r.Limits, "; ") }}},
)

// source returns the command `source` with its subcommands.
func (c *program) source() *cobra.Command {
	var from selection.Config
	var format cli.Output
	cmd := &cobra.Command{Use: "source", Short: "List and check data sources"}
	list := &cobra.Command{
		Use: "list", Short: "List data sources with their limits", Args: cobra.NoArgs,
		Example: "  companyscore source list\n  companyscore source list --sources facts,dns --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := from.Names()
			if err != nil {
				return cli.Usage(err)
			}
			return cli.PrintList(cmd.OutOrStdout(), format, sourceRows(from, chosen), sourceColumns)
		},
	}
	from.Flags(list.Flags())
	format.Flag(list)

	var domain string
	var checking selection.Config
	check := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask data sources for one company now",
		Long: `Ask data sources for one company now and print the outcome and duration of each.
Sources that need the identity of the company are asked after those that find it.
Without names all live sources are asked. Nothing is stored.`,
		Example: `  companyscore source check --domain stripe.com --contact you@example.com
  companyscore source check dns tls --domain stripe.com`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: selection.Known()[1:],
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				checking.Chosen = strings.Join(args, ",")
			} else {
				checking.Chosen = strings.Join(selection.Known()[1:], ",")
			}
			host, err := domainname.Parse(domain)
			if err != nil {
				err = fmt.Errorf("--domain %q: %w", domain, err)
			}
			if slices.Contains(args, scoring.FactsSource) {
				err = errors.Join(err, errors.New("facts is not a live source: use `companyscore explain`"))
			}
			if err := errors.Join(err, checking.Validate()); err != nil {
				return cli.Usage(err)
			}
			sources, err := checking.Open(nil, nil, nil, c.logger)
			if err != nil {
				return err
			}
			return checkSources(cmd, sources, host, format)
		},
	}
	checking.Flags(check.Flags())
	format.Flag(check)
	check.Flags().StringVar(&domain, "domain", "example.com", "domain of the company")
	if flag := check.Flags().Lookup("sources"); flag != nil {
		flag.Hidden = true // arguments select sources
	}
	cmd.AddCommand(list, check)
	return cmd
}

// checkedSource is a source as `source check` prints it.
type checkedSource struct {
	Source  string  `json:"source"`
	Outcome string  `json:"outcome"`
	TookMs  float64 `json:"took_ms"`
	Known   int     `json:"signals_known"`
	Said    int     `json:"signals"`
	Claims  int     `json:"claims"`
}

var checkedColumns = []cli.Column[checkedSource]{
	{Name: "source", Value: func(c checkedSource) any { return c.Source }},
	{Name: "outcome", Value: func(c checkedSource) any {
		if c.Outcome == sourceAnswered {
			return cli.Toned{Text: c.Outcome, Tone: cli.Green}
		}
		return cli.Toned{Text: c.Outcome, Tone: cli.Red}
	}},
	{Name: "took_ms", Value: func(c checkedSource) any { return c.TookMs }},
	{Name: "signals_known", Value: func(c checkedSource) any { return c.Known }},
	{Name: "signals", Value: func(c checkedSource) any { return c.Said }},
	{Name: "claims", Value: func(c checkedSource) any { return c.Claims }},
}

// sourceAnswered is the outcome of a source that did not fail.
const sourceAnswered = "answered"

// checkSources asks sources for one company and prints the outcome of each. Failures are logged on
// standard error.
func checkSources(cmd *cobra.Command, sources []source.Source, host string, format cli.Output) error {
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	stop := cli.Working(cmd.ErrOrStderr(), "asking sources about "+host)
	rec, trace, err := worker.Check(cmd.Context(), sources, host, logger)
	stop()
	if err != nil {
		return err
	}
	failed := 0
	var list []checkedSource
	for _, s := range trace.Sources {
		c := checkedSource{Source: s.Source, Outcome: string(s.Outcome), TookMs: float64(s.Took.Microseconds()) / 1000}
		if c.Outcome != sourceAnswered {
			failed++
		}
		for _, o := range trace.Observations {
			if o.Source == s.Source {
				if c.Said++; o.State != scoring.StateMissing {
					c.Known++
				}
			}
		}
		for _, claim := range trace.Claims {
			if claim.Source == s.Source {
				c.Claims++
			}
		}
		list = append(list, c)
	}
	if err := cli.PrintList(cmd.OutOrStdout(), format, list, checkedColumns); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s would be %q, %s, with %.1f %% of the data\n", rec.Domain, rec.CompanyName, rec.Rating,
		rec.CompletenessPct)
	if failed > 0 {
		return fmt.Errorf("%d of %d sources failed: the log above has the reasons, docs/sources.md the limits of each source", failed,
			len(trace.Sources))
	}
	return nil
}
