package cmd

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/ops"
	"companyscore/internal/stores"
	"companyscore/scoring/source"
	"companyscore/scoring/source/selection"
	"companyscore/scoring/worker"
	"companyscore/server/meter"
)

// insertPause bounds the inserts of runs that end one by one to about three per second.
const insertPause = 300 * time.Millisecond

func (c *program) work() *cobra.Command {
	var where config.Stores
	var from selection.Config
	var cfg worker.Config
	var memory config.Memory
	var tiers string
	cmd := &cobra.Command{
		Use:     "work",
		Short:   "Execute runs",
		Example: "  companyscore work --sources all --contact you@example.com",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			limits, err := meter.LoadLimits(tiers)
			if cfg.Concurrency < 0 {
				err = errors.Join(err, fmt.Errorf("--concurrency %d: use 0 or more", cfg.Concurrency))
			}
			if err := errors.Join(err, from.Validate(), ops.Validate(cfg.AdminListen), memory.Validate()); err != nil {
				return cli.Usage(err)
			}
			memory.Apply()
			open, err := stores.Open(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			if cfg.Queue, err = open.Queue(limits, c.logger); err != nil {
				return err
			}
			cfg.Weights, cfg.MemoryMB, cfg.Logger, cfg.Trust = limits.Lanes, memory.LimitMB, c.logger, from.Trust
			cfg.Stores = worker.Stores{Records: open.Scores(insertPause), Traces: open.Traces(insertPause), ClickHouse: open.DB,
				Redis: open.Redis}
			cfg.Sources = func(registry prometheus.Registerer) ([]source.Source, error) {
				return from.Open(clickhouse.NewFacts(open.DB), open.Redis, registry, c.logger)
			}
			return worker.Run(cmd.Context(), cfg)
		},
	}
	where.Flags(cmd.Flags())
	from.Flags(cmd.Flags())
	ops.Flags(cmd.Flags(), &cfg.AdminListen)
	meter.LimitsFlag(cmd.Flags(), &tiers)
	memory.Flags(cmd.Flags(), 192) // a worker keeps lists of traffic ranks and cached answers, and runs beside other processes
	cmd.Flags().IntVar(&cfg.Concurrency, "concurrency", 0, "maximum number of runs in flight; 0 derives it from half of the memory limit")
	return cmd
}
