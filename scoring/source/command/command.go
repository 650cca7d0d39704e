// Package command has the commands `companyscore source list` and `companyscore source check`.
package command

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

// row is a source as `source list` prints it. Facts are read from the own store, so they have no limits.
type row struct {
	Source string   `json:"source"`
	On     string   `json:"on"`
	Limits []string `json:"limits"`
	Policy *policy  `json:"policy,omitempty"`
}

// policy is how a live source is asked. Times are in seconds, sizes in bytes.
type policy struct {
	Deadline float64 `json:"deadline_s"`
	Connect  float64 `json:"connect_s"`
	Request  float64 `json:"request_s"`
	Retries  int     `json:"retries"`
	Kept     float64 `json:"kept_s"`
	BodyMax  int64   `json:"answer_max_bytes"`
	of       fetch.Policy
}

// rows returns all sources.
func rows(from selection.Config, chosen []string) []row {
	list := []row{{Source: scoring.FactsSource, On: from.Status(scoring.FactsSource, chosen), Limits: []string{"own store"}}}
	for _, p := range fetch.Policies {
		list = append(list, row{p.Source, from.Status(p.Source, chosen), selection.Limits(p.Source),
			&policy{p.Deadline.Seconds(), p.Connect.Seconds(), p.Total.Seconds(), p.Retries, p.TTL.Seconds(), int64(p.BodyMax), p}})
	}
	return list
}

// of returns a column that only live sources have: human for tables, machine for CSV.
func of(name string, human, machine func(p policy) any) []cli.Column[row] {
	cell := func(value func(policy) any) func(row) any {
		return func(r row) any {
			if r.Policy == nil {
				return nil
			}
			return value(*r.Policy)
		}
	}
	return []cli.Column[row]{{Name: name, Value: cell(human), Only: cli.Table}, {Name: name, Value: cell(machine), Only: cli.CSV}}
}

var columns = slices.Concat(
	[]cli.Column[row]{
		{Name: "source", Value: func(r row) any { return r.Source }},
		{Name: "on", Value: func(r row) any { return r.On }},
	},
	of("deadline", func(p policy) any { return fetch.Short(p.of.Deadline) }, func(p policy) any { return p.Deadline }),
	of("connect", func(p policy) any { return fetch.Short(p.of.Connect) }, func(p policy) any { return p.Connect }),
	of("request", func(p policy) any { return fetch.Short(p.of.Total) }, func(p policy) any { return p.Request }),
	of("retries", func(p policy) any { return p.Retries }, func(p policy) any { return p.Retries }),
	of("kept", func(p policy) any {
		if p.Kept == 0 {
			return "no"
		}
		return fetch.Short(p.of.TTL)
	}, func(p policy) any { return p.Kept }),
	of("answer_max", func(p policy) any { return fetch.Size(p.of.BodyMax) }, func(p policy) any { return p.BodyMax }),
	[]cli.Column[row]{{Name: "limits", Value: func(r row) any { return strings.Join(r.Limits, "; ") }}},
)

// New returns the command `source` with its subcommands. logger is called after flags are parsed.
func New(logger func() *slog.Logger) *cobra.Command {
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
			return cli.PrintList(cmd.OutOrStdout(), format, rows(from, chosen), columns)
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
			sources, err := checking.Open(nil, nil, nil, logger())
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

// checked is a source as `source check` prints it.
type checked struct {
	Source  string  `json:"source"`
	Outcome string  `json:"outcome"`
	TookMs  float64 `json:"took_ms"`
	Known   int     `json:"signals_known"`
	Said    int     `json:"signals"`
	Claims  int     `json:"claims"`
}

var checkedColumns = []cli.Column[checked]{
	{Name: "source", Value: func(c checked) any { return c.Source }},
	{Name: "outcome", Value: func(c checked) any {
		if c.Outcome == answered {
			return cli.Toned{Text: c.Outcome, Tone: cli.Green}
		}
		return cli.Toned{Text: c.Outcome, Tone: cli.Red}
	}},
	{Name: "took_ms", Value: func(c checked) any { return c.TookMs }},
	{Name: "signals_known", Value: func(c checked) any { return c.Known }},
	{Name: "signals", Value: func(c checked) any { return c.Said }},
	{Name: "claims", Value: func(c checked) any { return c.Claims }},
}

// answered is the outcome of a source that did not fail.
const answered = "answered"

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
	var list []checked
	for _, s := range trace.Sources {
		c := checked{Source: s.Source, Outcome: string(s.Outcome), TookMs: float64(s.Took.Microseconds()) / 1000}
		if c.Outcome != answered {
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
	fmt.Fprintf(cmd.ErrOrStderr(), "%s would be %q, %s, with %.1f %% of the data\n", rec.Domain, rec.CompanyName, rec.Rating, rec.CompletenessPct)
	if failed > 0 {
		return fmt.Errorf("%d of %d sources failed: the log above has the reasons, docs/sources.md the limits of each source", failed, len(trace.Sources))
	}
	return nil
}
