package main

import (
	"bytes"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
)

func (c *program) score() *cobra.Command {
	var key, base, data string
	var asJSON, force bool
	cmd := &cobra.Command{
		Use:   "score DOMAIN...",
		Short: "Get scores of companies from the service",
		Long: `Get scores of companies from the service as a customer: post each domain, poll the job if
a run was started, print the score with its evidence. The argument "-" reads domains from standard input,
one per line. Exits 1 if any company has no score.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domains := args
			if len(args) == 1 && args[0] == "-" {
				var err error
				if domains, err = domainname.ReadFile("-", cmd.InOrStdin()); err != nil {
					return err
				}
			}
			if base == "" {
				base = "http://127.0.0.1:8080"
				if rt, err := config.ReadRuntime(data); err == nil {
					base = rt.BaseURL
				}
			}
			if key == "" {
				return cli.Usage(errors.New("no API key: use --key or COMPANYSCORE_KEY"))
			}
			service := client.Client{URL: base, Key: key, Evidence: true}
			clearProgress := func() {}
			if terminal := cmd.ErrOrStderr(); cli.IsTerminal(terminal) {
				service.Progress = func(domain string, waited time.Duration) {
					fmt.Fprintf(terminal, "\r\033[K%s: scoring, %d s", domain, int(waited.Seconds()))
				}
				clearProgress = func() { fmt.Fprint(terminal, "\r\033[K") }
			}
			failed := false
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
			if !asJSON {
				fmt.Fprintln(w, "DOMAIN\tRATING\tSCORE\tPREMIUM\tTEAM\tMARKET\tMOMENTUM\tFINANCE\tSCORED AT\t")
			}
			for _, domain := range domains {
				s, err := service.Score(cmd.Context(), domain, force)
				clearProgress()
				switch {
				case err != nil:
					failed = true
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %v\n", domain, err)
				case asJSON:
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(s.Body))
				default:
					score := fmt.Sprintf("%.1f", s.Composite)
					if s.Evidence != nil {
						score += fmt.Sprintf(", likely %.0f to %.0f", s.Evidence.Interval.Low, s.Evidence.Interval.High)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", s.Domain, s.Rating, score, s.Premium,
						s.Buckets.Team, s.Buckets.Market, s.Buckets.Momentum, s.Buckets.Finance, s.ScoredAt.Format(time.DateTime))
				}
			}
			if !asJSON {
				if err := w.Flush(); err != nil {
					return err
				}
			}
			if failed {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "API key")
	cmd.Flags().StringVar(&base, "url", "", "address of the service (default: of the running `up` of --data, else http://127.0.0.1:8080)")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of a running `up`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the JSON of the service with the evidence, one score per line")
	cmd.Flags().BoolVar(&force, "force-fresh", false, "start a run even if a fresh score is stored (enterprise tier)")
	return cmd
}
