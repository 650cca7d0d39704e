package main

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/selection"
	"companyscore/scoring/worker"
)

func (c *program) source() *cobra.Command {
	var from selection.Config
	cmd := &cobra.Command{Use: "source", Short: "List and check data sources"}
	list := &cobra.Command{
		Use: "list", Short: "List data sources with their limits", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := from.Names()
			if err != nil {
				return cli.Usage(err)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SOURCE\tON\tDEADLINE\tCONNECT\tREQUEST\tRETRIES\tKEPT\tANSWER MAX\tLIMITS")
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t\town store\n", scoring.FactsSource, from.Status(scoring.FactsSource, chosen))
			for _, p := range fetch.Policies {
				kept := "no"
				if p.TTL > 0 {
					kept = fetch.Short(p.TTL)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.Source, from.Status(p.Source, chosen), fetch.Short(p.Deadline), fetch.Short(p.Connect), fetch.Short(p.Total), p.Retries, kept, fetch.Size(p.BodyMax), strings.Join(selection.Limits(p.Source), "; "))
			}
			return w.Flush()
		},
	}
	from.Flags(list.Flags())

	var domain string
	var checking selection.Config
	check := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask data sources for one company now",
		Long: `Ask data sources for one company now and print the outcome and duration of each.
Sources that need the identity of the company are asked after those that find it.
Without names all live sources are asked. Nothing is stored.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				checking.Chosen = strings.Join(args, ",")
			} else {
				checking.Chosen = strings.Join(selection.Known()[1:], ",")
			}
			host, err := domainname.Parse(domain)
			chosen, unknown := checking.Names()
			if slices.Contains(chosen, scoring.FactsSource) {
				unknown = errors.Join(unknown, errors.New("facts is not a live source: use `companyscore explain`"))
			}
			if err := errors.Join(err, unknown, checking.Validate()); err != nil {
				return cli.Usage(err)
			}
			sources, err := checking.Open(nil, nil, nil, c.logger)
			if err != nil {
				return err
			}
			return checkSources(cmd, sources, host)
		},
	}
	checking.Flags(check.Flags())
	check.Flags().StringVar(&domain, "domain", "example.com", "domain of the company")
	if flag := check.Flags().Lookup("sources"); flag != nil {
		flag.Hidden = true // arguments select sources
	}
	cmd.AddCommand(list, check)
	return cmd
}

// checkSources asks sources for one company and prints a line for each. Failures are logged on
// standard error.
func checkSources(cmd *cobra.Command, sources []source.Source, host string) error {
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	rec, trace, err := worker.Check(cmd.Context(), sources, host, logger)
	if err != nil {
		return err
	}
	out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "SOURCE\tOUTCOME\tTOOK\tSIGNALS KNOWN\tCLAIMS")
	failed := 0
	for _, s := range trace.Sources {
		if s.Outcome != "answered" {
			failed++
		}
		said, known, claims := 0, 0, 0
		for _, o := range trace.Observations {
			if o.Source == s.Source {
				if said++; o.State != scoring.StateMissing {
					known++
				}
			}
		}
		for _, claim := range trace.Claims {
			if claim.Source == s.Source {
				claims++
			}
		}
		fmt.Fprintf(out, "%s\t%s\t%s\t%d of %d\t%d\n", s.Source, s.Outcome, s.Took, known, said, claims)
	}
	fmt.Fprintf(out, "\n%s would be %q, %s, with %.1f %% of the data\n", rec.Domain, rec.CompanyName, rec.Rating, rec.CompletenessPct)
	if err := out.Flush(); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d sources failed", failed, len(trace.Sources))
	}
	return nil
}
