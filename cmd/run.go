package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"companyscore/batch"
	"companyscore/batch/jobs"
	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
	"companyscore/internal/queue"
	"companyscore/internal/stores"
	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
	"companyscore/server/meter"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

func (c *program) runs() *cobra.Command {
	var where config.Stores
	var tiers string
	cmd := &cobra.Command{Use: "run", Short: "Start, list and abort runs without an account or a charge"}
	where.Flags(cmd.PersistentFlags())
	meter.LimitsFlag(cmd.PersistentFlags(), &tiers)
	open := func(ctx context.Context) (*stores.Stores, *queue.Queue, error) {
		limits, err := meter.LoadLimits(tiers)
		if err != nil {
			return nil, nil, cli.Usage(err)
		}
		s, err := stores.Open(ctx, where)
		if err != nil {
			return nil, nil, err
		}
		q, err := s.Queue(limits, c.logger)
		if err != nil {
			return nil, nil, errors.Join(err, s.Close())
		}
		return s, q, nil
	}

	var from string
	var wait, quiet bool
	var olderThan time.Duration
	start := &cobra.Command{
		Use:   "start DOMAIN...|--from FILE",
		Short: "Score companies",
		Long: `Start a run for each company. Companies with a score younger than --older-than are
skipped, so an interrupted call can be repeated. With --wait the command waits for all
runs and exits 1 if any failed.`,
		Example: `  companyscore run start apple.com zapier.com --wait
  companyscore run start --from examples/companies.csv --wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if (from == "") == (len(args) == 0) {
				return cli.Usage(errors.New("give domains either as arguments or with --from"))
			}
			raw := args
			if from != "" {
				var err error
				if raw, err = domainname.ReadFile(from, cmd.InOrStdin()); err != nil {
					return err
				}
			}
			domains, err := domainname.ParseAll(raw)
			if err != nil {
				return fmt.Errorf("%w\nno run was started: correct or remove these domains", err)
			}
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if !quiet {
				describeSources(cmd.Context(), cmd.ErrOrStderr(), s.Redis)
			}
			b := bulk{queue: q, cmd: cmd, quiet: quiet}
			first := strings.Join(domains[:min(1, len(domains))], "") // domains changes
			passed, err := b.pass(s, &domains, olderThan)
			if err != nil {
				return err
			}
			if passed > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "%d skipped: scored within %s (--older-than; 0 skips none)\n", passed,
					fetch.Short(olderThan))
			}
			if b.runs, err = q.Start(cmd.Context(), scoring.LaneBulk, domains...); err != nil {
				return fmt.Errorf("%w; repeat the command to continue", err)
			}
			if !wait {
				fmt.Fprintf(cmd.OutOrStdout(), "%d started, %d skipped\n", len(domains), passed)
				if !quiet && len(domains) > 0 {
					next(cmd, "run", "list")
				}
				return nil
			}
			if err := b.wait(passed); err != nil {
				return err
			}
			if err := c.countNow(cmd.Context(), cmd.ErrOrStderr(), s, q); err != nil {
				return err
			}
			if !quiet && first != "" {
				next(cmd, "score", first)
			}
			return nil
		},
	}
	start.Flags().StringVar(&from, "from", "", `file of domains: column "domain" of a .csv file, or one per line; - for standard input`)
	start.Flags().BoolVar(&wait, "wait", false, "wait until all runs have ended")
	start.Flags().BoolVar(&quiet, "quiet", false, "show no progress bar and no next step")
	start.Flags().DurationVar(&olderThan, "older-than", time.Hour, "skip companies with a younger score; 0 skips none")

	var limit int
	var state string
	var format cli.Output
	list := &cobra.Command{
		Use: "list", Short: "List lanes and runs", Args: cobra.NoArgs,
		Long:    "List lanes and runs. CSV has the runs only.",
		Example: "  companyscore run list\n  companyscore run list --state failed --output csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(states, state) {
				return cli.Usage(fmt.Errorf("--state %q: use %s", state, strings.Join(states, ", ")))
			}
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var runs []scoring.Run
			var status queue.Status
			if state == "open" {
				if status, err = q.Status(cmd.Context()); err == nil {
					runs, err = q.List(cmd.Context(), "", limit)
				}
			} else {
				runs, err = s.DB.Runs(cmd.Context(), limit)
				runs = slices.DeleteFunc(runs, func(r scoring.Run) bool { return state != "all" && string(r.State) != state })
			}
			if err != nil {
				return err
			}
			return printRuns(cmd.OutOrStdout(), format, status, runs)
		},
	}
	list.Flags().IntVar(&limit, "limit", 100, "maximum number of runs")
	list.Flags().StringVar(&state, "state", "open",
		"open for runs that have not ended; all, succeeded, failed, timed_out or aborted for ended runs")
	format.Flag(list)

	abort := &cobra.Command{
		Use: "abort RUN_ID", Short: "Abort a run", Args: cobra.ExactArgs(1),
		Example: "  companyscore run list\n  companyscore run abort 01a20641-a025-71b0-ab47-253c6b81a94e",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if err := q.Abort(cmd.Context(), args[0]); err != nil {
				return fmt.Errorf("%w: `companyscore run list` shows the runs that can be aborted", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "run %s is aborted\n", args[0])
			return nil
		},
	}
	cmd.AddCommand(start, list, abort)
	return cmd
}

// countNow counts all companies, so that the new scores have a rank. In a large universe servers adopt counts at their
// instants only; then it says when.
func (c *program) countNow(ctx context.Context, w io.Writer, s *stores.Stores, q *queue.Queue) error {
	published, _, err := snapshot.Read(ctx, s.Redis)
	if err != nil {
		return err
	}
	counts := published.Counts
	if counts.Epoch > 0 {
		fmt.Fprintf(w, "ranks and statistics include them from %s on\n", universe.Adopted(counts.Epoch, time.Now()).Format("15:04 MST"))
		return nil
	}
	cfg := batch.Config{
		Store: clickhouse.NewUniverse(s.DB), Redis: s.Redis, Logger: c.logger, MinDataPct: counts.MinDataPct,
		Once: []string{jobs.Count}, Report: func(string) {},
	}
	defaults := pflag.NewFlagSet("", pflag.ContinueOnError)
	var ages batch.Ages
	cfg.Schedules.Flags(defaults)
	ages.Flags(defaults)
	cfg.Refresh.Queue, cfg.Refresh.Ages = q, table.RefreshAges(ages)
	return batch.Run(ctx, cfg)
}

// states are the values of `run list --state`.
var states = []string{"open", "all", string(scoring.RunSucceeded), string(scoring.RunFailed), string(scoring.RunTimedOut),
	string(scoring.RunAborted)}

var laneColumns = []cli.Column[queue.LaneStatus]{
	{Name: "lane", Value: func(l queue.LaneStatus) any { return l.Lane }},
	{Name: "waiting", Value: func(l queue.LaneStatus) any { return l.Waiting }},
	{Name: "age_of_next", Value: func(l queue.LaneStatus) any {
		if l.Waiting == 0 {
			return nil
		}
		return time.Since(l.NextCreatedAt).Round(time.Second)
	}},
}

var runColumns = []cli.Column[scoring.Run]{
	{Name: "run_id", Value: func(r scoring.Run) any { return r.ID }},
	{Name: "domain", Value: func(r scoring.Run) any { return r.Domain }},
	{Name: "lane", Value: func(r scoring.Run) any { return r.Lane }},
	{Name: "state", Value: func(r scoring.Run) any { return r.State }},
	{Name: "attempts", Value: func(r scoring.Run) any { return r.Attempts }},
	{Name: "created_at", Value: func(r scoring.Run) any { return r.CreatedAt }},
	{Name: "finished_at", Only: cli.CSV, Value: func(r scoring.Run) any { return r.FinishedAt }},
	{Name: "error", Value: func(r scoring.Run) any { return r.Error }},
}

// printRuns prints runs, and what waits in each lane unless the runs have ended.
func printRuns(out io.Writer, format cli.Output, status queue.Status, runs []scoring.Run) error {
	if format == cli.JSON {
		return cli.PrintJSON(out, struct {
			queue.Status
			Runs []scoring.Run
		}{status, append([]scoring.Run{}, runs...)})
	}
	if format != cli.CSV && len(status.Lanes) > 0 {
		if err := cli.PrintList(out, format, status.Lanes, laneColumns); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d running, %d waiting for another attempt\n\n", status.Running, status.Retrying)
	}
	return cli.PrintList(out, format, runs, runColumns)
}

// bulk is the runs of one call of `run start`.
type bulk struct {
	queue *queue.Queue
	cmd   *cobra.Command
	quiet bool
	runs  []string // ids
}

// pass removes from domains those that were scored within olderThan, and returns their number.
func (b *bulk) pass(s *stores.Stores, domains *[]string, olderThan time.Duration) (int, error) {
	if olderThan <= 0 {
		return 0, nil
	}
	ctx := b.cmd.Context()
	fresh, err := s.Scores(0).FreshSince(ctx, *domains, time.Now().Add(-olderThan))
	if err != nil {
		return 0, err
	}
	*domains = slices.DeleteFunc(*domains, func(d string) bool { _, ok := fresh[d]; return ok })
	return len(fresh), nil
}

// wait waits until all runs have ended and prints how many succeeded. It retries during an outage
// of Redis.
func (b *bulk) wait(passed int) error {
	ctx, began := b.cmd.Context(), time.Now()
	bar := cli.NewBar(b.cmd.ErrOrStderr(), b.quiet, "scoring", false)
	bar.ChangeMax(len(b.runs))
	failed, err := b.queue.Await(ctx, b.runs, func(ended int) { _ = bar.Set(ended) })
	if err != nil {
		return err
	}
	_ = bar.Finish()
	for _, run := range failed[:min(len(failed), 20)] {
		fmt.Fprintf(b.cmd.ErrOrStderr(), "%s %s: %s %s\n", run.ID, run.Domain, run.State, run.Error)
	}
	fmt.Fprintf(b.cmd.OutOrStdout(), "%d complete, %d failed, %d skipped, in %.1f s\n",
		len(b.runs)-len(failed), len(failed), passed, time.Since(began).Seconds())
	if len(failed) > 0 {
		return cli.ErrReported
	}
	return nil
}
