package main

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"companyscore/batch"
	"companyscore/internal/config"
)

// batchRun is the batch jobs of an `up`.
type batchRun struct{ runner *batch.Runner }

func startBatch(stores *stores, logger *slog.Logger) (*batchRun, error) {
	runner, err := batch.New(batch.Config{Store: stores.db, Redis: stores.redis, Logger: logger})
	if err != nil {
		return nil, err
	}
	runner.Start()
	return &batchRun{runner}, nil
}

func (b *batchRun) stop() { b.runner.Stop() }

func (c *cli) batch() *cobra.Command {
	var where config.Stores
	var once bool
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Run the jobs that keep stored data in order",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			stores, err := openStores(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stores.close()) }()
			runner, err := batch.New(batch.Config{Store: stores.db, Redis: stores.redis, Logger: c.logger})
			if err != nil {
				return err
			}
			if once {
				return runner.Once(cmd.Context(), func(job string, took fmt.Stringer) {
					fmt.Fprintf(cmd.OutOrStdout(), "%s done in %s\n", job, took)
				})
			}
			runner.Start()
			defer runner.Stop()
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			<-cmd.Context().Done()
			return nil
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "run every job once and exit")
	return cmd
}
