package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/worker"
)

func (c *program) source() *cobra.Command {
	var from sourceConfig
	cmd := &cobra.Command{Use: "source", Short: "List data sources and their limits, and check that they answer"}
	list := &cobra.Command{
		Use: "list", Short: "List data sources: which are on, and how they are asked", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := from.chosen()
			if err != nil {
				return cli.Usage(err)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SOURCE\tON\tDEADLINE\tCONNECT\tREQUEST\tRETRIES\tKEPT\tANSWER MAX\tLIMITS")
			fmt.Fprintf(w, "%s\t%s\t\t\t\t\t\t\tour own store\n", scoring.FactsSource, yesNo(slices.Contains(chosen, scoring.FactsSource), "not chosen"))
			for _, p := range fetch.Policies {
				kept := "no"
				if p.TTL > 0 {
					kept = fetch.Short(p.TTL)
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.Source, from.on(p.Source, chosen), fetch.Short(p.Deadline), fetch.Short(p.Connect), fetch.Short(p.Total), p.Retries, kept, fetch.Size(p.BodyMax), strings.Join(limitsOf(p.Source, os.Getenv), "; "))
			}
			return w.Flush()
		},
	}
	from.flags(list)

	var domain string
	var checking sourceConfig
	check := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask data sources about one company, now",
		Long: `Ask data sources about one company, now, and show what each says and how long it takes.
Sources that need to know who the company is are asked after those that find out.
Without names all live sources are asked. Nothing is stored.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				checking.names = strings.Join(args, ",")
			} else {
				checking.names = strings.Join(knownSources()[1:], ",")
			}
			host, err := domainname.Parse(domain)
			chosen, unknown := checking.chosen()
			if slices.Contains(chosen, scoring.FactsSource) {
				unknown = errors.Join(unknown, errors.New("facts are our own: look at them with `companyscore explain`"))
			}
			if err := errors.Join(err, unknown, checking.check()); err != nil {
				return cli.Usage(err)
			}
			client, err := checking.client(nil, nil, c.logger)
			if err != nil {
				return err
			}
			sources := slices.DeleteFunc(source.Live(client, checking.ranks, c.logger), func(s source.Source) bool { return !slices.Contains(chosen, s.Name()) })
			return checkSources(cmd, sources, host)
		},
	}
	checking.flags(check)
	check.Flags().StringVar(&domain, "domain", "example.com", "company to ask about")
	if flag := check.Flags().Lookup("sources"); flag != nil {
		flag.Hidden = true // the arguments say which
	}
	cmd.AddCommand(list, check)
	return cmd
}

// on says whether a source is asked, and why not.
func (c *sourceConfig) on(name string, chosen []string) string {
	switch {
	case !slices.Contains(chosen, name):
		return "no: not chosen"
	case c.contact == "":
		return "no: needs --contact"
	}
	return "yes"
}

func yesNo(yes bool, why string) string {
	if yes {
		return "yes"
	}
	return "no: " + why
}

// limitsOf describes the limits of a source's servers. Getenv tells of tokens.
func limitsOf(name string, getenv func(string) string) []string {
	var quotas, lines []string
	for _, e := range fetch.Endpoints {
		quota := e.Quota
		if e.Token != "" && getenv(e.Token) != "" {
			quota = e.TokenQuota
		}
		if e.Source == name && !slices.Contains(quotas, quota) {
			quotas = append(quotas, quota)
		}
	}
	for _, q := range fetch.Quotas {
		if q.Name == name || slices.Contains(quotas, q.Name) {
			lines = append(lines, q.String())
		}
	}
	return lines
}

// checkSources asks sources, each after those it waits for, and prints what they
// said. Failures are told in full on standard error.
func checkSources(cmd *cobra.Command, sources []source.Source, host string) error {
	told := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	w, err := worker.New(sources, noHistory{}, nil, prometheus.NewRegistry(), told)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(cmd.Context())
	wait := runBackground(ctx, sources)
	rec, trace, err := w.Score(ctx, scoring.Run{ID: "check", Domain: host, StartedAt: time.Now()})
	stop()
	wait()
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

// noHistory is the history of a check, which scores and stores nothing.
type noHistory struct{ worker.History }

func (noHistory) Reference(context.Context, string, time.Time) (*scoring.Reference, error) {
	return nil, nil
}
