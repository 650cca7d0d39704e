package cmd

import (
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/process"
)

func (c *program) clickhouse() *cobra.Command {
	var cfg embedded.Config
	var listen string
	var nice process.Nice
	var engine config.ClickHouse
	var exitWithStdin bool
	cmd := &cobra.Command{
		Use:   "clickhouse",
		Short: "Run the embedded ClickHouse",
		Long: `Run the ClickHouse engine on one data directory and serve ClickHouse's HTTP protocol.
It has two users: companyscore, with all rights, and analyst, read-only.
If a password is not given, the program generates and prints one.
The process ends with status 3 if the engine does not keep its limits of memory or time.
Its supervisor must start it again, as up does.`,
		Example: "  companyscore clickhouse --path ./data/clickhouse --listen 127.0.0.1:8123",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := errors.Join(config.CheckAddress("--listen", listen), nice.Validate(), engine.Validate()); err != nil {
				return cli.Usage(err)
			}
			if exitWithStdin {
				go process.KillAtEnd(cmd.InOrStdin())
			}
			ln, err := process.Listen(listen)
			if err != nil {
				return err
			}
			for name, secret := range map[string]*string{"companyscore": &cfg.Password, "analyst": &cfg.AnalystPassword} {
				if *secret == "" {
					*secret = rand.Text()
					fmt.Fprintf(cmd.OutOrStdout(), "password of %s: %s\n", name, *secret)
				}
			}
			cfg.Listener, cfg.Logger = ln, c.logger
			cfg.AnalystSlots, cfg.AnalystWait, cfg.Memory = engine.AnalystSlots, engine.AnalystWait, uint64(engine.MemoryMB)<<20
			cfg.Ready = func() {
				if err := nice.Apply(); err != nil { // after the start, which would take minutes on a busy machine
					c.logger.Error("priority not lowered", "err", err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", ln.Addr())
			}
			return embedded.Run(cmd.Context(), cfg)
		},
	}
	cmd.Flags().StringVar(&cfg.Path, "path", "./data/clickhouse", "data directory, for one process at a time")
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8123", "listen address, unless the parent passes a socket in "+process.ListenFDs)
	nice.Flags(cmd.Flags())
	engine.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&exitWithStdin, "exit-with-stdin", false,
		"exit at once, as by SIGKILL, when standard input ends; use it to end with the parent process")
	cmd.Flags().StringVar(&cfg.Password, "password", "",
		"password of the user companyscore; prefer the variable, because other users can see arguments")
	cmd.Flags().StringVar(&cfg.AnalystPassword, "analyst-password", "", "password of the user analyst")
	return cmd
}
