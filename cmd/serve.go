package cmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
	"companyscore/server"
	"companyscore/server/meter"
	"companyscore/up"
)

func (c *program) serve() *cobra.Command {
	var where config.Stores
	var cfg server.Config
	var memory config.Memory
	var tiers string
	var withDemo bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Serve the HTTP API",
		Example: "  companyscore serve --listen 127.0.0.1:8080   # the stores: CLICKHOUSE_URL and REDIS_URL, or a running up",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg.Limits, err = meter.LoadLimits(tiers)
			if err := errors.Join(cfg.Validate(), memory.Validate(), err); err != nil {
				return cli.Usage(err)
			}
			memory.Apply()
			open, err := stores.Open(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			var demo *up.Demo
			if withDemo {
				if demo, err = up.OpenDemo(cmd.Context(), clickhouse.NewAccounts(open.DB), where.Data); err != nil {
					return err
				}
			}
			cfg.Stores, cfg.Logger = open.Server(), c.logger
			cfg.Ready = func(at server.Address) {
				fmt.Fprintf(cmd.OutOrStdout(), "ready %s\n", at.URL)
				if demo != nil {
					demo.Print(cmd.OutOrStdout())
				}
			}
			return server.Run(cmd.Context(), cfg)
		},
	}
	where.Flags(cmd.Flags())
	cfg.Flags(cmd.Flags())
	memory.Flags(cmd.Flags(), server.MemoryMB)
	up.DemoFlag(cmd.Flags(), &withDemo, false)
	meter.LimitsFlag(cmd.Flags(), &tiers)
	return cmd
}
