// Package cmd is the command line of companyscore: a file for each command, with its flags, wiring and printing.
package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/release"

	"companyscore/scoring/source/selection"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Run runs the program with the arguments after its name and returns its exit code.
func Run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stderr = cli.NewPrinted(stderr)
	if cli.IsTerminal(stdout) { // other readers get the bytes as they are
		stdout = cli.NewPrinted(stdout)
	}
	c := &program{}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	cmd, err := root.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, cli.ErrReported):
		return exitFailed
	}
	fmt.Fprint(cli.Control(stderr), cli.Paint(stderr, cli.Red, "companyscore:"), " ")
	if !c.started || errors.As(err, new(*cli.UsageError)) {
		fmt.Fprintf(stderr, "%v\nRun `%s --help` for help.\n", err, cmd.CommandPath())
		return exitUsage
	}
	fmt.Fprintf(stderr, "%v\n", err)
	return exitFailed
}

// program has what all commands share.
type program struct {
	log     config.Log
	logger  *slog.Logger
	started bool // flags and arguments are valid
}

func (c *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "companyscore",
		Short: "Score companies by their domain names",
		Long: `companyscore scores companies by their domain names. Start here:

  companyscore up                                               # starts everything on this machine
  companyscore facts import examples/companies.csv              # in another terminal
  companyscore run start --from examples/companies.csv --wait
  export COMPANYSCORE_KEY=svc_live_...                          # the live key that up printed
  companyscore score apple.com

The other commands are single roles and tools.`,
		Version:       release.String(),
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := config.ApplyEnv(cmd.Flags(), os.LookupEnv); err != nil {
				return err
			}
			logger, err := c.log.Logger(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c.logger, c.started = logger, true
			return nil
		},
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	c.log.Flags(root.PersistentFlags())
	root.AddGroup(&cobra.Group{ID: "roles", Title: "Roles:"}, &cobra.Group{ID: "operator", Title: "Operator commands:"},
		&cobra.Group{ID: "customer", Title: "Customer, SQL and benchmark commands:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	roles := []*cobra.Command{c.up(), c.serve(), c.work(), c.batch(), c.clickhouse(), c.migrate()}
	add("roles", roles...)
	add("operator", doctorCommand(embedded.Find), consoleCommand(), c.account(), c.key(), c.facts(), c.resolve(), c.runs(),
		c.rescore(), c.explain(),
		c.source(), analystCommand(), requestCommand())
	add("customer", scoreCommand(), historyCommand(), moversCommand(), usageCommand(), backtestCommand(), curvesCommand(), sqlCommand(),
		c.bench())
	root.AddCommand(versionCommand(), recipeEngineCommand())
	config.BindEnv(root, roles...)
	cli.CompleteAll(root, map[string][]string{
		"tier": planNames(), "mode": {string(account.Live), string(account.Test)}, "sources": append([]string{"all"}, selection.Known()...),
		"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}, "state": states,
		"format": {"PrettyCompactMonoBlock", "CSVWithNames", "TabSeparatedWithNames", "JSONEachRow", "Parquet", "Vertical"},
	})
	return root
}
