// Command companyscore scores companies by their domain names. It has one
// subcommand per role; `companyscore up` starts them all on one machine.
package main

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

	bench "companyscore/bench/command"
	"companyscore/clickhouse/embedded"
	score "companyscore/client/command"
	"companyscore/internal/account"
	analysts "companyscore/internal/analyst/command"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/doctor"
	"companyscore/internal/release"
	"companyscore/internal/stores"
	backtest "companyscore/scoring/backtest/command"
	sources "companyscore/scoring/source/command"
	"companyscore/scoring/source/selection"
	console "companyscore/server/console/command"
	request "companyscore/server/requestlog/command"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// run runs the program and returns its exit code.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
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
		Use:           "companyscore",
		Short:         "Score companies by their domain names",
		Long:          "companyscore scores companies by their domain names. `companyscore up` starts everything\non this machine. The other commands are single roles and tools.",
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
	root.AddGroup(&cobra.Group{ID: "roles", Title: "Roles:"}, &cobra.Group{ID: "operator", Title: "Operator commands:"}, &cobra.Group{ID: "customer", Title: "Customer, SQL and benchmark commands:"})
	add := func(group string, cmds ...*cobra.Command) {
		for _, cmd := range cmds {
			cmd.GroupID = group
			root.AddCommand(cmd)
		}
	}
	add("roles", c.up(), c.serve(), c.work(), c.batch(), c.clickhouse(), c.migrate())
	add("operator", doctor.New(embedded.Find), console.New(), c.account(), c.key(), c.facts(), c.runs(), c.rescore(), c.explain(), sources.New(func() *slog.Logger { return c.logger }), analysts.New(), request.New())
	add("customer", score.New(), backtest.New(), analysts.SQL(), bench.New(bench.Config{Logger: func() *slog.Logger { return c.logger }, OpenStore: openBenchStore}))
	config.DescribeEnv(root)
	cli.CompleteAll(root, map[string][]string{
		"tier": tierNames(), "mode": {string(account.Live), string(account.Test)}, "sources": append([]string{"all"}, selection.Known()...),
		"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}, "state": states,
		"format": {"PrettyCompactMonoBlock", "CSVWithNames", "TabSeparatedWithNames", "JSONEachRow", "Parquet", "Vertical"},
	})
	return root
}

// openBenchStore is stores.OpenSeed with the type that the bench expects.
func openBenchStore(ctx context.Context, where config.Stores) (bench.Store, error) {
	return stores.OpenSeed(ctx, where)
}
