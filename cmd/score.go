package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
)

// scoreCommand returns the command.
func scoreCommand() *cobra.Command {
	cfg := client.Config{}
	var data string
	var format cli.Output
	var force bool
	cmd := &cobra.Command{
		Use:   "score DOMAIN...",
		Short: "Get scores of companies from the service",
		Long: `Get scores of companies from the service as a customer: post each domain, poll the job if
a run was started, print the score with its evidence. The argument "-" reads domains from standard input,
one per line. Exits 1 if any company has no score. Give the key in COMPANYSCORE_KEY: every user of the machine
can see arguments. --output json prints the JSON of the service, one score per line.`,
		Example: `  export COMPANYSCORE_KEY=svc_live_...
  companyscore score apple.com zapier.com
  companyscore score - --output csv < domains.txt > scores.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domains := args
			if len(args) == 1 && args[0] == "-" {
				var err error
				if domains, err = domainname.ReadFile("-", cmd.InOrStdin()); err != nil {
					return err
				}
				if len(domains) == 0 {
					return cli.Usage(errors.New("standard input has no domains: give one per line"))
				}
			}
			if cfg.URL == "" {
				cfg.URL = "http://127.0.0.1:8080"
				if rt, err := config.ReadRuntime(data); err == nil {
					cfg.URL = rt.BaseURL
				}
			}
			if cfg.Key == "" {
				return cli.Usage(errors.New("no API key: set COMPANYSCORE_KEY; `up` prints the keys of a demo account, and `companyscore " +
					"key create` makes one"))
			}
			clearProgress := showPolls(&cfg, cmd.ErrOrStderr())
			service, err := client.New(cfg)
			if err != nil {
				return cli.Usage(err)
			}
			options := []client.StartOption{client.WithEvidence()}
			if force {
				options = append(options, client.ForceFresh())
			}
			var scores []client.Score
			for _, domain := range domains {
				s, err := service.ScoreAndWait(cmd.Context(), domain, options...)
				clearProgress()
				switch {
				case err != nil:
					text := strings.ReplaceAll(err.Error(), " See /docs/", " See "+cfg.URL+"/docs/")
					fmt.Fprintf(cmd.ErrOrStderr(), "%s: %s%s\n", domain, text, scoreAdvice(err, cfg.URL))
					if errors.Is(err, client.ErrUnauthorized) || cmd.Context().Err() != nil {
						return cli.ErrReported // so would all others
					}
				case format == cli.JSON:
					fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(s.Response.Body))
					fallthrough
				default:
					scores = append(scores, s)
				}
			}
			if format == cli.CSV || format != cli.JSON && len(scores) > 0 {
				if err := cli.PrintList(cmd.OutOrStdout(), format, scores, scoreColumns); err != nil {
					return err
				}
			}
			if len(scores) < len(domains) {
				return cli.ErrReported
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&cfg.Key, "key", "", "API key; prefer the variable, because other users can see arguments")
	cmd.Flags().StringVar(&cfg.URL, "url", "",
		"address of the service (default: of the running `up` of --data, else http://127.0.0.1:8080)")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of a running `up`")
	cmd.Flags().BoolVar(&force, "force-fresh", false, "start a run even if a fresh score is stored (enterprise tier)")
	format.Flag(cmd)
	return cmd
}

var scoreColumns = []cli.Column[client.Score]{
	{Name: "domain", Value: func(s client.Score) any { return s.Domain }},
	{Name: "rating", Value: func(s client.Score) any { return s.Rating }},
	{Name: "score", Only: cli.Table, Value: func(s client.Score) any {
		if s.Evidence == nil {
			return s.Composite
		}
		return fmt.Sprintf("%.1f, likely %.0f to %.0f", s.Composite, s.Evidence.Interval.Low, s.Evidence.Interval.High)
	}},
	{Name: "composite", Only: cli.CSV, Value: func(s client.Score) any { return s.Composite }},
	{Name: "low", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).Interval.Low }},
	{Name: "high", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).Interval.High }},
	{Name: "data_completeness_pct", Only: cli.CSV, Value: func(s client.Score) any { return scoreEvidence(s).CompletenessPct }},
	{Name: "premium", Value: func(s client.Score) any { return s.Premium }},
	{Name: "team", Value: func(s client.Score) any { return s.Buckets.Team }},
	{Name: "market", Value: func(s client.Score) any { return s.Buckets.Market }},
	{Name: "momentum", Value: func(s client.Score) any { return s.Buckets.Momentum }},
	{Name: "finance", Value: func(s client.Score) any { return s.Buckets.Finance }},
	{Name: "scored_at", Value: func(s client.Score) any { return s.ScoredAt }},
}

// scoreEvidence returns the evidence of a score, the zero value if a service without evidence answered.
func scoreEvidence(s client.Score) client.Evidence {
	if s.Evidence == nil {
		return client.Evidence{}
	}
	return *s.Evidence
}

// showPolls makes the client show on a terminal which run it waits for. It returns what clears the line.
func showPolls(cfg *client.Config, w io.Writer) (clearLine func()) {
	if !cli.IsTerminal(w) {
		return func() {}
	}
	w = cli.Control(w)
	cfg.OnPoll = func(j client.Job, waited time.Duration) {
		fmt.Fprintf(w, "\r\033[K%s: scoring, %d s", cli.Printable(j.Domain), int(waited.Seconds()))
	}
	return func() { fmt.Fprint(w, "\r\033[K") }
}

// scoreAdvice returns what to do about an error, empty if its text has that.
func scoreAdvice(err error, url string) string {
	var refused *client.Error
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		return " `companyscore key list` shows the keys, `companyscore key create` makes one."
	case errors.Is(err, client.ErrFreeTier):
		return " `companyscore account set-tier` changes the tier."
	case errors.As(err, &refused):
		return ""
	case errors.As(err, new(*client.RunError)):
		return "; `companyscore run list --state all` shows the cause"
	case errors.As(err, new(*client.PendingError)):
		return "; repeat the command later"
	}
	return fmt.Sprintf("; check that the service runs at %s (`companyscore up`), or use --url or --data", url)
}
