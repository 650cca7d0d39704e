package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/sql"
)

// sqlCommand returns the command `sql`.
func sqlCommand() *cobra.Command {
	var address, data, format string
	var operator, connection bool
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   `sql "SELECT ..."`,
		Short: "Query ClickHouse, read-only, as the analyst user",
		Long: `Query ClickHouse as the read-only user analyst. Start with the views v1_score_latest,
v1_score_history and v1_signal. DESCRIBE explains every column. docs/sql/ has all views,
limits, exports and worked queries. The answer is streamed. The argument "-" reads the
statement from standard input. If an answer breaks off, the command prints the reason on
standard error and exits 1; the answer has no trace of it. For an empty answer it prints
"0 rows" on standard error.`,
		Example: `  companyscore sql "SELECT sector, round(avg(composite), 1) AS mean, count() FROM v1_score_latest GROUP BY sector ORDER BY mean DESC"
  companyscore sql --format Parquet "SELECT * FROM v1_score_latest" > latest.parquet`,
		Args: func(cmd *cobra.Command, args []string) error {
			if connection {
				return cobra.NoArgs(cmd, args)
			}
			return cobra.ExactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			passwordFile := ""
			if address == "" {
				rt, err := config.ReadRuntime(data)
				if err != nil {
					return fmt.Errorf("no ClickHouse: start `companyscore up`, or use --data or --analyst-url: %w", err)
				}
				passwordFile = config.AnalystPasswordPath(data)
				if address = rt.AnalystURL; operator {
					address = operatorURL(rt.ClickHouseURL)
				}
				if address == "" {
					return errors.New("this up uses an external ClickHouse: use --analyst-url")
				}
			}
			if connection {
				return printConnection(cmd.OutOrStdout(), address, passwordFile)
			}
			query := args[0]
			if query == "-" {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
				if err != nil {
					return err
				}
				query = string(text)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			answer := &cli.Awaited{Writer: cmd.OutOrStdout(), Stop: cli.Working(cmd.ErrOrStderr(), "querying")}
			defer answer.Stop()
			err := clickhouse.QueryHTTP(ctx, address, query, format, answer)
			switch {
			case errors.Is(err, clickhouse.ErrHTTPAddress):
				return cli.Usage(err)
			case errors.As(err, new(*url.Error)):
				return fmt.Errorf("%w: check that ClickHouse runs and its address (`companyscore doctor`), or allow more time with "+
					"--timeout", err)
			case err == nil && !answer.Written:
				answer.Stop()
				fmt.Fprintln(cmd.ErrOrStderr(), "0 rows")
			}
			return err
		},
	}
	cmd.Flags().StringVar(&address, "analyst-url", "", "ClickHouse to query: http(s)://analyst:password@host:port/database")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of the running up")
	cmd.Flags().StringVar(&format, "format", "PrettyCompactMonoBlock", "output format of ClickHouse, such as CSVWithNames or JSONEachRow")
	cmd.Flags().BoolVar(&operator, "operator", false,
		"query the private database of the running up as the service, read-only: tables, and views for operators")
	cmd.Flags().BoolVar(&connection, "connection", false,
		"print what to enter in Grafana, Metabase, Superset, dbt, DBeaver, Python, DuckDB and curl, and query nothing")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "timeout of the query")
	cmd.MarkFlagsMutuallyExclusive("operator", "analyst-url")
	cmd.MarkFlagsMutuallyExclusive("operator", "connection")
	return cmd
}

// operatorURL returns the URL of the private database that belongs to the public one of an address, for
// statements that change nothing.
func operatorURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.RawQuery = "readonly=2"
	u.Path = "/" + sql.Private(strings.Trim(u.Path, "/"))
	return u.String()
}
