package cmd

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/domainname"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/recording"
	"companyscore/scoring/source/selection"
	"companyscore/scoring/worker"
)

// checkedDomain is the company of `source check` without --domain. It is listed and has public code
// and open roles, so that each provider has something about it.
const checkedDomain = "mongodb.com"

func (c *program) sourceCheck() *cobra.Command {
	var domain string
	var from selection.Config
	var format cli.Output
	check := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask data sources for one company now",
		Long: `Ask each data source once for one company and print what came back: whether the
source was reached, the media types and the duration of its answers, limits in
their headers, and what was understood.
Sources that need the identity of the company are asked after those that find it.
Without names all live sources are asked. Nothing is stored.
It exits 1 if a source failed, changed, or was not understood.`,
		Example: `  companyscore source check --domain stripe.com --contact you@example.com
  companyscore source check dns tls --domain stripe.com`,
		Args:      cobra.ArbitraryArgs,
		ValidArgs: selection.Known()[1:],
		RunE: func(cmd *cobra.Command, args []string) error {
			from.Chosen = strings.Join(args, ",")
			if len(args) == 0 {
				from.Chosen = strings.Join(selection.Known()[1:], ",")
			}
			host, err := domainname.Parse(domain)
			if err != nil {
				err = fmt.Errorf("--domain %q: %w", domain, err)
			}
			if slices.Contains(args, scoring.FactsSource) {
				err = errors.Join(err, errors.New("facts is not a live source: use `companyscore explain`"))
			}
			if err := errors.Join(err, from.Validate()); err != nil {
				return cli.Usage(err)
			}
			recorder := recording.NewRecorder(time.Now())
			defer recorder.Close()
			sources, err := from.OpenLive(recorder, c.logger)
			if err != nil {
				return err
			}
			stop := cli.Working(cmd.ErrOrStderr(), "asking sources about "+host)
			checked, err := worker.Check(cmd.Context(), sources, []string{host}, func(int) time.Time {
				at := time.Now()
				recorder.Begin(host, at)
				return at
			}, failureLogger(cmd))
			stop()
			if err != nil {
				return err
			}
			if checked[0].Err != nil {
				return checked[0].Err
			}
			list := checkedSources(recorder.Exchanges(), found([]string{host}, checked))
			if err := printChecked(cmd, format, list, checked); err != nil {
				return err
			}
			return judge(list)
		},
	}
	from.Flags(check.Flags())
	format.Flag(check)
	check.Flags().StringVar(&domain, "domain", checkedDomain, "domain of the company")
	if flag := check.Flags().Lookup("sources"); flag != nil {
		flag.Hidden = true // arguments select sources
	}
	return check
}

// failureLogger logs why sources failed on standard error.
func failureLogger(cmd *cobra.Command) *slog.Logger {
	return slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// found returns what was found about each company.
func found(domains []string, checked []worker.Checked) []recording.Found {
	list := make([]recording.Found, len(checked))
	for i, c := range checked {
		list[i] = recording.FoundOf(domains[i], c.Trace, c.Err)
	}
	return list
}

// checkedSource is a source as `source check` prints it.
type checkedSource struct {
	Domain  string `json:"domain"`
	Source  string `json:"source"`
	Outcome string `json:"outcome"`
	// Verdict is one of the constants below.
	Verdict    string   `json:"verdict"`
	Reached    bool     `json:"reached"`
	Requests   int      `json:"requests"`
	MediaTypes []string `json:"media_types"`
	TookMs     float64  `json:"took_ms"`
	Limits     []string `json:"limits"`
	Known      int      `json:"signals_known"`
	Said       int      `json:"signals"`
	Claims     int      `json:"claims"`
	// Observations have those that need several sources at the first of them.
	Observations []recording.Observation `json:"observations"`
	Claimed      []scoring.Claim         `json:"claimed"`
	Values       map[string]float64      `json:"values,omitempty"`
}

// The verdicts on a source. Only the first two are good.
const (
	verdictUnderstood = "understood"
	verdictNotAsked   = "not asked"          // it needs an identity that no source found, or a kept answer was used
	verdictNothing    = "nothing understood" // it answered, and not one signal or claim came of it
	verdictChanged    = "changed"            // the media type or the shape of an answer is not the expected one
	verdictLimited    = "limited"            // a limit of the provider, or the wait for a turn
	verdictRefused    = "refused"            // robots.txt, or a status that refuses
	verdictNotReached = "not reached"
)

// sourceAnswered is the outcome of a source that did not fail.
const sourceAnswered = "answered"

var checkedColumns = []cli.Column[checkedSource]{
	{Name: "source", Value: func(c checkedSource) any { return c.Source }},
	{Name: "outcome", Value: func(c checkedSource) any { return c.Outcome }, Only: cli.CSV},
	{Name: "verdict", Value: func(c checkedSource) any {
		if c.good() {
			return cli.Toned{Text: c.Verdict, Tone: cli.Green}
		}
		return cli.Toned{Text: c.Verdict, Tone: cli.Red}
	}},
	{Name: "reached", Value: func(c checkedSource) any {
		if c.Reached {
			return "yes"
		}
		return "no"
	}},
	{Name: "media_types", Value: func(c checkedSource) any { return orDash(strings.Join(c.MediaTypes, ", ")) }},
	{Name: "took_ms", Value: func(c checkedSource) any { return int(c.TookMs) }},
	{Name: "limits", Value: func(c checkedSource) any { return orDash(strings.Join(c.Limits, "; ")) }},
	{Name: "understood", Value: func(c checkedSource) any {
		return fmt.Sprintf("%d of %d signals, %d claims", c.Known, c.Said, c.Claims)
	}, Only: cli.Table},
	{Name: "signals_known", Value: func(c checkedSource) any { return c.Known }, Only: cli.CSV},
	{Name: "signals", Value: func(c checkedSource) any { return c.Said }, Only: cli.CSV},
	{Name: "claims", Value: func(c checkedSource) any { return c.Claims }, Only: cli.CSV},
	{Name: "not_understood", Value: func(c checkedSource) any { return orDash(c.notUnderstood()) }},
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

func (c checkedSource) good() bool {
	return c.Verdict == verdictUnderstood || c.Verdict == verdictNotAsked
}

// notUnderstood returns the code of the failure and the number of missing signals for each reason.
func (c checkedSource) notUnderstood() string {
	counts := make(map[scoring.Reason]int)
	var reasons []scoring.Reason
	for _, o := range c.Observations {
		if o.State == scoring.StateMissing {
			if counts[o.Reason]++; counts[o.Reason] == 1 {
				reasons = append(reasons, o.Reason)
			}
		}
	}
	slices.Sort(reasons)
	var parts []string
	if c.Outcome != sourceAnswered {
		parts = append(parts, c.Outcome)
	}
	for _, reason := range reasons {
		parts = append(parts, fmt.Sprintf("%d %s", counts[reason], reason))
	}
	return strings.Join(parts, ", ")
}

// checkedSources returns a row for each source of each company.
func checkedSources(exchanges []recording.Exchange, found []recording.Found) []checkedSource {
	var list []checkedSource
	for _, f := range found {
		for _, s := range f.Sources {
			seen := recording.SeenOf(exchanges, s.Source, f.Domain)
			c := checkedSource{Domain: f.Domain, Source: s.Source, Outcome: s.Outcome, Reached: seen.Reached, Requests: seen.Requests,
				MediaTypes: append([]string{}, seen.Types...), TookMs: float64(seen.Took.Milliseconds()),
				Limits: append([]string{}, seen.Limits...), Observations: []recording.Observation{}, Claimed: []scoring.Claim{}}
			c.read(f)
			c.Verdict = c.judge()
			list = append(list, c)
		}
	}
	return list
}

// read adds what came of the answers of the source.
func (c *checkedSource) read(f recording.Found) {
	for _, o := range f.Observations {
		if first, _, _ := strings.Cut(o.Source, "|"); first == c.Source {
			c.Observations = append(c.Observations, o)
		}
		if o.Source == c.Source {
			if c.Said++; o.State != scoring.StateMissing {
				c.Known++
			}
		}
	}
	for _, claim := range f.Claims {
		if claim.Source == c.Source {
			c.Claimed = append(c.Claimed, claim)
		}
	}
	c.Claims = len(c.Claimed)
	for name, v := range f.Values {
		if strings.HasPrefix(name, c.Source+".") {
			if c.Values == nil {
				c.Values = make(map[string]float64)
			}
			c.Values[name] = v
		}
	}
}

// judge returns the verdict on a source.
func (c *checkedSource) judge() string {
	switch c.Outcome {
	case sourceAnswered:
		understood := c.Known > 0 || c.Claims > 0 || len(c.Values) > 0 || c.Said == 0
		switch {
		case understood:
			return verdictUnderstood
		case c.Requests == 0:
			return verdictNotAsked
		case slices.ContainsFunc(c.Observations, func(o recording.Observation) bool { return o.Reason == scoring.ReasonNotFound }) &&
			len(c.MediaTypes) > 0:
			return verdictNothing
		}
		return verdictUnderstood // it answered that it does not know the company
	case fetch.CodeParse, fetch.CodeTooLarge:
		return verdictChanged
	case fetch.CodeRateLimited:
		return verdictLimited
	case fetch.CodeRobots:
		return verdictRefused
	}
	if c.Reached {
		return verdictRefused
	}
	return verdictNotReached
}

// judge returns an error if a source failed, changed, or was not understood.
func judge(list []checkedSource) error {
	var bad []string
	for _, c := range list {
		if !c.good() {
			bad = append(bad, c.Source+" ("+c.Verdict+")")
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d sources were not as expected: %s. The log above has the reasons; docs/sources.md says what each verdict "+
		"means and where to send a recording", len(bad), len(list), strings.Join(bad, ", "))
}

// printChecked prints the rows and, on standard error, what the score would be.
func printChecked(cmd *cobra.Command, format cli.Output, list []checkedSource, checked []worker.Checked) error {
	columns := checkedColumns
	if len(checked) > 1 || format == cli.CSV {
		columns = append([]cli.Column[checkedSource]{{Name: "domain", Value: func(c checkedSource) any { return c.Domain }}}, columns...)
	}
	if err := cli.PrintList(cmd.OutOrStdout(), format, list, columns); err != nil {
		return err
	}
	for _, c := range checked {
		if c.Err != nil {
			fmt.Fprintln(cmd.ErrOrStderr(), c.Err)
			continue
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%s would be %q, %s, with %.1f %% of the data\n", c.Record.Domain, c.Record.CompanyName,
			c.Record.Rating, c.Record.CompletenessPct)
	}
	return nil
}
