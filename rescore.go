package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
	"companyscore/scoring"
	"companyscore/scoring/rescore"
	"companyscore/universe/snapshot"
)

const (
	// rescoreQueryMax bounds one query of a rescoring; counting all history is the longest.
	rescoreQueryMax = 10 * time.Minute
	// clockSkewMax bounds the difference between the clocks of two machines.
	clockSkewMax = time.Second
)

func (c *program) rescore() *cobra.Command {
	var where config.Stores
	var from string
	var wait, quiet bool
	var waitMax time.Duration
	cmd := &cobra.Command{
		Use:   "rescore",
		Short: "Bring stored records to the current pipeline version",
		Long: `Score stored records again under the formulas of this program, from the signals they
hold. Nothing is fetched; records of older versions stay as they are, and each gets one
of the current version beside it, with the same time. Statistics count those of the
current version only. An interrupted call is repeated to go on where it stopped.
Exits 1 when any record failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == scoring.PipelineVersion {
				return cli.Usage(fmt.Errorf("records of version %s are of the current version already", from))
			}
			db, err := stores.OpenClickHouse(cmd.Context(), where, rescoreQueryMax)
			if err != nil {
				return err
			}
			defer db.Close()
			bar := cli.NewBar(cmd.ErrOrStderr(), quiet, "rescoring", false)
			report, err := rescore.Run(cmd.Context(), rescore.Config{
				Store: db, From: from, To: scoring.PipelineVersion, Score: scoring.Rescore,
				Progress: func(done, total uint64) {
					bar.ChangeMax64(int64(total))
					_ = bar.Set64(int64(done)) // a bar that cannot be drawn is no reason to stop
				},
			})
			_ = bar.Finish()
			for _, fault := range report.Faults {
				fmt.Fprintln(cmd.ErrOrStderr(), fault)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d records brought to %s, %d failed, %d have no signals, in %.1f s (%.0f records/s)\n",
				report.Rescored, scoring.PipelineVersion, report.Failed, report.Bare, report.Took.Seconds(), float64(report.Rescored)/report.Took.Seconds())
			if err != nil {
				return fmt.Errorf("%w: call again to go on", err)
			}
			if wait && report.Rescored > 0 {
				waiting, cancel := context.WithTimeout(cmd.Context(), waitMax)
				defer cancel()
				if err := waitUntilCounted(waiting, where); err != nil {
					return err
				}
			}
			if report.Failed > 0 {
				return cli.ErrReported
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().StringVar(&from, "from-version", "", "only records of this version (default: of all others)")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the published statistics count the new records")
	cmd.Flags().DurationVar(&waitMax, "wait-max", 15*time.Minute, "how long to wait for that")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "draw no progress bar")
	return cmd
}

// waitUntilCounted waits until a published snapshot counts all records that are stored now.
func waitUntilCounted(ctx context.Context, where config.Stores) error {
	open, err := stores.Open(ctx, where)
	if err != nil {
		return err
	}
	defer open.Close()
	err = snapshot.Await(ctx, open.Redis, scoring.PipelineVersion, time.Now().Add(clockSkewMax))
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the records are stored, but no statistics that count them were published in time: is a batch running?")
	}
	return err
}
