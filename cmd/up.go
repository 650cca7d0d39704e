package cmd

import (
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/server"
	"companyscore/server/meter"
	"companyscore/up"
)

func (c *program) up() *cobra.Command {
	var cfg up.Config
	var memory config.Memory
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Start everything on this machine",
		Long: `Start Redis, ClickHouse, the HTTP API, a worker and the cron jobs, with all data in one
directory. Prints a line that begins with "ready" when the API serves. With --redis-url
or --clickhouse-url it uses that server and does not start one.`,
		Example: "  companyscore up\n  companyscore up --listen 127.0.0.1:9090 --data ./other --sources facts",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			cfg.Server.Limits, err = meter.LoadLimits(cfg.TiersFile)
			if err := errors.Join(cfg.Validate(), memory.Validate(), err); err != nil {
				return cli.Usage(err)
			}
			memory.Apply()
			cfg.Log, cfg.Logger, cfg.Out = c.log, c.logger, cmd.OutOrStdout()
			return up.Run(cmd.Context(), cfg)
		},
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	cfg.Flags(flags)
	memory.Flags(flags, server.MemoryMB)
	cmd.Flags().SortFlags = false
	for _, name := range []string{"data", "listen", "examples", "sources", "contact", "demo", "inbox"} { // first in the help
		cmd.Flags().AddFlag(flags.Lookup(name))
	}
	cmd.Flags().AddFlagSet(flags) // the others, by name
	return cmd
}
