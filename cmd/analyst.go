package cmd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse/embedded/roster"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/sql"
)

// analystCommand returns the command `analyst`.
func analystCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "analyst",
		Short: "Create, list, revoke and allow analysts, who read the public views in SQL",
		Long: `Create, list and revoke analysts by name, each with a password and limits of its own. They
stand in a file of the data directory, without their passwords, and a running up or
clickhouse applies a change at once. The analyst named "analyst" always exists: its
password is in the file analyst-password of the data directory.

An analyst whose statement ended the engine is refused for five minutes, and the third
time until "analyst allow".`,
	}
	cmd.AddCommand(createAnalyst(), listAnalysts(), revokeAnalyst(), allowAnalyst())
	return cmd
}

// engineFlag adds the flags of the directory with the engine's data and returns how to find it.
func engineFlag(cmd *cobra.Command) (dir func() (string, error)) {
	var data, engine string
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of up")
	cmd.Flags().StringVar(&engine, "path", "", "data directory of the role clickhouse, if it runs without up")
	return func() (string, error) {
		if engine == "" {
			engine = filepath.Join(data, "clickhouse")
		}
		if _, err := os.Stat(engine); err != nil {
			return "", fmt.Errorf("no embedded ClickHouse has been started there: use --data or --path, or --print-sql for a server: %w",
				err)
		}
		return engine, nil
	}
}

func createAnalyst() *cobra.Command {
	var limits roster.Limits
	var memory uint64
	var duration time.Duration
	var printSQL bool
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an analyst and print the password, once",
		Example: `  companyscore analyst create grafana --statements 2 --time 30s
  companyscore analyst create bob --print-sql | clickhouse client`,
		Args: cobra.ExactArgs(1),
	}
	dir := engineFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		limits.MemoryBytes, limits.Seconds = memory<<20, uint64(duration/time.Second)
		if duration < 0 || duration%time.Second != 0 || limits.Statements < 0 {
			return cli.Usage(errors.New("--time takes whole seconds, and --statements 0 or more"))
		}
		if err := roster.CheckName(args[0]); err != nil {
			return cli.Usage(err)
		}
		if printSQL {
			_, err := fmt.Fprint(cmd.OutOrStdout(), analystStatements(args[0], limits.OrDefault()))
			return err
		}
		engine, err := dir()
		if err != nil {
			return err
		}
		password, err := roster.Add(roster.Path(engine), args[0], limits, time.Now())
		if err != nil {
			return fmt.Errorf("create analyst %s: %w", args[0], err)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "user      %s\npassword  %s   (not stored; it is shown only now)\n", args[0], password)
		return err
	}
	cmd.Flags().Uint64Var(&memory, "memory-mb", 0, "memory of a statement in MiB; 0 means 2048")
	cmd.Flags().DurationVar(&duration, "time", 0, "time of a statement; 0 means 5m")
	cmd.Flags().Uint64Var(&limits.Rows, "rows", 0, "rows of an answer; 0 means 20 million")
	cmd.Flags().IntVar(&limits.Statements, "statements", 0, "statements at once; 0 means all slots that are free")
	cmd.Flags().BoolVar(&printSQL, "print-sql", false,
		"print the statements that create the analyst on a ClickHouse server, and do nothing else")
	return cmd
}

// analystStatements returns the SQL that creates an analyst on a server with deploy/clickhouse.
func analystStatements(name string, l roster.Limits) string {
	password, hash := roster.Password()
	once := ""
	if l.Statements != roster.Default.Statements {
		once = fmt.Sprintf(",\n    max_concurrent_queries_for_user = %d CONST", l.Statements)
	}
	return fmt.Sprintf(`-- The password is %s; only its hash is in the statement.
CREATE USER %s IDENTIFIED WITH sha256_hash BY '%s' DEFAULT DATABASE %s SETTINGS
    readonly = 2, allow_ddl = 0, result_overflow_mode = 'throw' CONST,
    max_memory_usage = %d MIN 1 MAX %[5]d, max_execution_time = %d MIN 1 MAX %[6]d,
    max_result_rows = %d MIN 1 MAX %[7]d, max_result_bytes = %d MIN 1 MAX %[8]d%s;
GRANT analysts TO %[2]s;
`, password, "`"+name+"`", hash, sql.Public, l.MemoryBytes, l.Seconds, l.Rows, l.Bytes, once)
}

func listAnalysts() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List analysts and their limits", Example: "  companyscore analyst list", Args: cobra.NoArgs}
	dir := engineFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		engine, err := dir()
		if err != nil {
			return err
		}
		all, err := roster.Read(roster.Path(engine))
		if err != nil {
			return err
		}
		refusals, err := roster.ReadRefusals(roster.RefusalsPath(engine))
		if err != nil {
			return err
		}
		refused := map[string]string{}
		for _, r := range refusals {
			if until, ok := r.InForce(time.Now()); ok && until.IsZero() {
				refused[r.Name] = "until allowed"
			} else if ok {
				refused[r.Name] = "until " + until.Format(time.DateTime)
			}
		}
		out := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
		fmt.Fprintln(out, "NAME\tCREATED\tMEMORY MIB\tTIME S\tROWS\tSTATEMENTS\tREFUSED")
		row := func(name, created string, l roster.Limits) {
			statements := "any"
			if l.Statements != roster.Default.Statements {
				statements = fmt.Sprint(l.Statements)
			}
			fmt.Fprintf(out, "%s\t%s\t%d\t%d\t%d\t%s\t%s\n", name, created, l.MemoryBytes>>20, l.Seconds, l.Rows, statements, refused[name])
		}
		row("analyst", "", roster.Default)
		for _, a := range all {
			row(a.Name, a.CreatedAt.Format(time.DateTime), a.Limits.OrDefault())
		}
		return out.Flush()
	}
	return cmd
}

func revokeAnalyst() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke NAME", Short: "Revoke an analyst: its next statement fails",
		Example: "  companyscore analyst revoke ann", Args: cobra.ExactArgs(1)}
	dir := engineFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		engine, err := dir()
		if err != nil {
			return err
		}
		if err := roster.Remove(roster.Path(engine), args[0]); err != nil {
			return fmt.Errorf("revoke analyst %s: %w", args[0], err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "revoked", args[0])
		return err
	}
	return cmd
}

func allowAnalyst() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "allow NAME",
		Short: "Allow an analyst again whose statements are refused since one ended the engine",
		Long: `Allow an analyst again whose statements are refused, because the engine ended while one
ran: it had more memory than it may, did not end, or crashed. The log of clickhouse has the
statement. The analyst's earlier statements of this kind no longer count.`,
		Example: "  companyscore analyst allow ann",
		Args:    cobra.ExactArgs(1),
	}
	dir := engineFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		engine, err := dir()
		if err != nil {
			return err
		}
		if err := roster.Allow(roster.RefusalsPath(engine), args[0]); err != nil {
			return fmt.Errorf("allow analyst %s: %w", args[0], err)
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "allowed", args[0])
		return err
	}
	return cmd
}
