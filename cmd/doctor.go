package cmd

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/doctor"
)

var doctorColumns = []cli.Column[doctor.Check]{
	{Name: "status", Value: func(c doctor.Check) any {
		tone := map[doctor.Status]cli.Tone{doctor.OK: cli.Green, doctor.Warning: cli.Amber, doctor.Failed: cli.Red}[c.Status]
		return cli.Toned{Text: string(c.Status), Tone: tone}
	}},
	{Name: "check", Value: func(c doctor.Check) any { return c.Name }},
	{Name: "found", Value: func(c doctor.Check) any { return c.Found }},
	{Name: "advice", Value: func(c doctor.Check) any { return c.Advice }, Only: cli.CSV},
}

// doctorCommand returns the command `companyscore doctor`. findEngine returns the path of the library of the embedded ClickHouse.
func doctorCommand(findEngine func() (string, error)) *cobra.Command {
	cfg := doctor.Config{FindEngine: findEngine}
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine and what runs on it",
		Long: `Check versions, the engine library, the port, the data directory, disk, memory and limits of this
machine, and whether Redis and ClickHouse of the running up, or those of the URLs, answer and have
the same clock. Prints what to do about each check that is not ok. Exits 1 if a check failed.`,
		Example: `  companyscore doctor
  companyscore doctor --listen 0.0.0.0:80 --output json
  CLICKHOUSE_URL=http://companyscore:secret@db:8123/companyscore REDIS_URL=redis://cache:6379 companyscore doctor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.CheckAddress("--listen", cfg.Listen); err != nil {
				return cli.Usage(err)
			}
			cfg.Variables, cfg.Environ = config.Variables(cmd.Root()), os.Environ()
			stop := cli.Working(cmd.ErrOrStderr(), "checking")
			checks := doctor.Run(cmd.Context(), cfg)
			stop()
			if err := cli.PrintList(cmd.OutOrStdout(), format, checks, doctorColumns); err != nil {
				return err
			}
			failed := false
			for _, c := range checks {
				failed = failed || c.Status == doctor.Failed
				if c.Advice != "" && format != cli.JSON && format != cli.CSV {
					fmt.Fprintf(cmd.OutOrStdout(), "\n%s: %s\n", c.Name, c.Advice)
				}
			}
			if failed {
				return cli.ErrReported
			}
			return nil
		},
	}
	cfg.Stores.Flags(cmd.Flags())
	cmd.Flags().StringVar(&cfg.Listen, "listen", "127.0.0.1:8080", "address at which the service is to listen")
	format.Flag(cmd)
	return cmd
}
