package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/domainname"
	"companyscore/internal/queue"
	"companyscore/internal/stores"
	"companyscore/scoring"
	"companyscore/server/meter"
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if (from == "") == (len(args) == 0) {
				return cli.Usage(errors.New("no domains: give them as arguments, or use --from"))
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
				return err
			}
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			b := bulk{queue: q, cmd: cmd, quiet: quiet}
			passed, err := b.pass(s, &domains, olderThan)
			if err != nil {
				return err
			}
			if b.runs, err = q.Start(cmd.Context(), scoring.LaneBulk, domains...); err != nil {
				return fmt.Errorf("%w; repeat the command to continue", err)
			}
			if !wait {
				fmt.Fprintf(cmd.OutOrStdout(), "%d started, %d skipped\n", len(domains), passed)
				return nil
			}
			return b.wait(passed)
		},
	}
	start.Flags().StringVar(&from, "from", "", `file of domains: column "domain" of a .csv file, or one per line; - for standard input`)
	start.Flags().BoolVar(&wait, "wait", false, "wait until all runs have ended")
	start.Flags().BoolVar(&quiet, "quiet", false, "show no progress bar")
	start.Flags().DurationVar(&olderThan, "older-than", time.Hour, "skip companies with a younger score; 0 skips none")

	var limit int
	var state string
	list := &cobra.Command{
		Use: "list", Short: "List lanes and runs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			var runs []scoring.Run
			if state == "open" {
				var status queue.Status
				if status, err = q.Status(cmd.Context()); err == nil {
					printStatus(cmd.OutOrStdout(), status)
					runs, err = q.List(cmd.Context(), "", limit)
				}
			} else {
				runs, err = s.DB.Runs(cmd.Context(), limit)
				runs = slices.DeleteFunc(runs, func(r scoring.Run) bool { return state != "all" && string(r.State) != state })
			}
			if err != nil {
				return err
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "RUN\tDOMAIN\tLANE\tSTATE\tATTEMPTS\tCREATED\tERROR")
			for _, r := range runs {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.ID, r.Domain, r.Lane, r.State, r.Attempts, r.CreatedAt.Format(time.DateTime), r.Error)
			}
			return w.Flush()
		},
	}
	list.Flags().IntVar(&limit, "limit", 100, "maximum number of runs")
	list.Flags().StringVar(&state, "state", "open", "open for runs that have not ended; all, succeeded, failed, timed_out or aborted for ended runs")

	abort := &cobra.Command{
		Use: "abort RUN_ID", Short: "Abort a run", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, q, err := open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.Close()
			if err := q.Abort(cmd.Context(), args[0]); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "run %s is aborted\n", args[0])
			return nil
		},
	}
	cmd.AddCommand(start, list, abort)
	return cmd
}

// printStatus prints a line for each lane and one for the runs that have begun.
func printStatus(out io.Writer, status queue.Status) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LANE\tWAITING\tAGE OF NEXT")
	for _, lane := range status.Lanes {
		age := "-"
		if lane.Waiting > 0 {
			age = time.Since(lane.NextCreatedAt).Round(time.Second).String()
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", lane.Lane, lane.Waiting, age)
	}
	_ = w.Flush()
	fmt.Fprintf(out, "%d running, %d waiting for another attempt\n\n", status.Running, status.Retrying)
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
