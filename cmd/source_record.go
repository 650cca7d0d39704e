package cmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/domainname"
	"companyscore/internal/release"
	"companyscore/scoring"
	"companyscore/scoring/source/recording"
	"companyscore/scoring/source/selection"
	"companyscore/scoring/worker"
)

func (c *program) sourceRecord() *cobra.Command {
	var from selection.Config
	var format cli.Output
	var to string
	record := &cobra.Command{
		Use:   "record DOMAIN...",
		Short: "Keep what data sources answer now, for a bug report or a test",
		Long: `Ask data sources for companies, one company after the other, and keep every
exchange in a new directory: requests, answers, failures, and the clock.
` + "`source replay`" + ` gives the same observations from it without a network.

Tokens, cookies, the contact, resolvers and the addresses of this machine are
taken out. The directory has plain files: look through them before you send them.
It is written completely or not at all.`,
		Example: `  companyscore source record stripe.com --to recording --contact you@example.com
  companyscore source record stripe.com zapier.com --sources rdap,dns,web --to recording --contact you@example.com`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domains, err := domainsOf(args)
			if to == "" {
				err = errors.Join(err, errors.New("--to is required: name the directory for the recording"))
			}
			names, namesErr := from.Names()
			err = errors.Join(err, namesErr)
			names = slices.DeleteFunc(names, func(name string) bool { return name == scoring.FactsSource })
			if namesErr == nil && len(names) == 0 {
				err = errors.Join(err, errors.New("--sources names no live source: facts are not recorded"))
			}
			if err := errors.Join(err, from.Validate()); err != nil {
				return cli.Usage(err)
			}
			from.Ranks = "" // the lists are a part of the recording
			recorder, err := recording.NewRecorderTo(to, time.Now())
			if err != nil {
				return err
			}
			defer recorder.Close()
			sources, err := from.OpenLive(recorder, c.logger)
			if err != nil {
				return err
			}
			manifest := recording.Manifest{Program: release.String(), Sources: names, Tokens: []string{}}
			private := recording.Private{Contact: from.Contact, Resolvers: from.Resolvers}
			for name, token := range selection.Tokens() {
				manifest.Tokens, private.Tokens = append(manifest.Tokens, name), append(private.Tokens, token)
			}
			slices.Sort(manifest.Tokens)
			stop := cli.Working(cmd.ErrOrStderr(), "recording sources about "+strings.Join(domains, ", "))
			checked, err := worker.Check(cmd.Context(), sources, domains, func(company int) time.Time {
				at := time.Now().UTC().Round(0)
				recorder.Begin(domains[company], at)
				return at
			}, failureLogger(cmd))
			stop()
			if err == nil {
				err = recorder.Save(to, manifest, found(domains, checked), private)
			}
			if err != nil {
				return fmt.Errorf("nothing was written to %s: %w", to, err)
			}
			list := checkedSources(recorder.Exchanges(), found(domains, checked))
			if err := printChecked(cmd, format, list, checked); err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "%d exchanges are in %s: look through the files before you send them\n",
				len(recorder.Exchanges()), to)
			return c.compareReplay(cmd.Context(), to)
		},
	}
	from.Flags(record.Flags())
	format.Flag(record)
	record.Flags().StringVar(&to, "to", "", "directory for the recording, which must not exist")
	if err := record.Flags().MarkHidden("ranks"); err != nil {
		panic("cmd: " + err.Error()) // the flag was added before
	}
	return record
}

// domainsOf returns the domains of arguments, each once.
func domainsOf(args []string) (domains []string, err error) {
	for _, arg := range args {
		domain, fault := domainname.Parse(arg)
		if fault != nil {
			err = errors.Join(err, fmt.Errorf("domain %q: %w", arg, fault))
		} else if !slices.Contains(domains, domain) {
			domains = append(domains, domain)
		}
	}
	return domains, err
}

// compareReplay replays a new recording and returns an error if it does not give what was found.
func (c *program) compareReplay(ctx context.Context, dir string) error {
	r, err := recording.Open(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	replay := r.Replay()
	checked, err := replayAll(ctx, r, replay, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return differences(r, replay, checked)
}

// replayAll asks the sources of a replay about all its companies.
func replayAll(ctx context.Context, r *recording.Recording, replay *recording.Replay, logger *slog.Logger) ([]worker.Checked, error) {
	sources, err := replay.Sources(slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	return worker.Check(ctx, sources, domainsIn(r), replay.Begin, logger)
}

func domainsIn(r *recording.Recording) (domains []string) {
	for _, company := range r.Manifest.Companies {
		domains = append(domains, company.Domain)
	}
	return domains
}

// differences returns an error that names requests without an answer, and what is not as it was
// recorded.
func differences(r *recording.Recording, replay *recording.Replay, checked []worker.Checked) error {
	var faults []error
	for _, request := range replay.Missing() {
		faults = append(faults, fmt.Errorf("the recording has no answer: %s", request))
	}
	lines, err := recording.Differences(r.Found, found(domainsIn(r), checked))
	if err != nil {
		return err
	}
	for _, line := range lines {
		faults = append(faults, errors.New(line))
	}
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("the replay differs from what was recorded:\n%w", errors.Join(faults...))
}

func (c *program) sourceReplay() *cobra.Command {
	var format cli.Output
	replay := &cobra.Command{
		Use:   "replay DIR",
		Short: "Give the observations of a recording, without a network",
		Long: `Run the sources of a recording over its answers, at its clock, and print what
` + "`source check`" + ` prints. Nothing is asked and nothing is stored.
It exits 1 if a file of the recording is missing, cut, changed or unknown, if the
recording has no answer to a request, or if an observation is not the recorded one.`,
		Example: "  companyscore source replay recording\n  companyscore source replay recording --output json",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := recording.Open(args[0])
			if err != nil {
				return err
			}
			defer r.Close()
			replay := r.Replay()
			checked, err := replayAll(cmd.Context(), r, replay, failureLogger(cmd))
			if err != nil {
				return err
			}
			list := checkedSources(r.Exchanges, found(domainsIn(r), checked))
			if err := printChecked(cmd, format, list, checked); err != nil {
				return err
			}
			return differences(r, replay, checked)
		},
	}
	format.Flag(replay)
	return replay
}
