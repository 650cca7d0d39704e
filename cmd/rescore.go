package cmd

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
		Short: "Rescore stored records with the current pipeline version",
		Long: `Rescore stored records with the formulas of this program, from their stored signals.
No source is asked. Each record of an older version stays, and a record of the current
version with the same scored_at is added. Statistics count records of the current version
only. Repeat an interrupted call: it continues where it stopped. Exits 1 if any record
failed.`,
		Example: "  companyscore rescore --wait\n  companyscore rescore --from-version v1",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if from == scoring.PipelineVersion {
				return cli.Usage(fmt.Errorf("version %s is the current version", from))
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
					_ = bar.Set64(int64(done)) // an error of the progress bar is ignored
				},
			})
			_ = bar.Finish()
			for _, fault := range report.Faults {
				fmt.Fprintln(cmd.ErrOrStderr(), fault)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d records rescored with %s, %d failed, %d without signals, in %.1f s (%.0f records/s)\n",
				report.Rescored, scoring.PipelineVersion, report.Failed, report.Bare, report.Took.Seconds(),
				float64(report.Rescored)/report.Took.Seconds())
			if err != nil {
				return fmt.Errorf("%w: repeat the command to continue", err)
			}
			if wait && report.Rescored > 0 {
				waiting, cancel := context.WithTimeout(cmd.Context(), waitMax)
				defer cancel()
				stop := cli.Working(cmd.ErrOrStderr(), "waiting for the statistics")
				err := waitUntilCounted(waiting, where)
				if stop(); err != nil {
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
	cmd.Flags().StringVar(&from, "from-version", "", "rescore only records of this version (default: of all versions but the current one)")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the published statistics count the new records")
	cmd.Flags().DurationVar(&waitMax, "wait-max", 15*time.Minute, "timeout of --wait")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "show no progress bar")
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
		return errors.New("the records are stored, but no snapshot that counts them was published in time: check that batch is running")
	}
	return err
}
