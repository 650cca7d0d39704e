package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/analyst"
	"companyscore/internal/cli"
	"companyscore/internal/config"
)

func (c *program) sql() *cobra.Command {
	var address, data, format string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   `sql "SELECT ..."`,
		Short: "Query ClickHouse, read-only, as the analyst user",
		Long: `Query ClickHouse as the read-only user analyst. Start with the views v1_score_latest,
v1_score_history and v1_signal. DESCRIBE explains every column. docs/sql/ has all views,
limits, exports and worked queries. The answer is streamed. The argument "-" reads the
statement from standard input.`,
		Example: `  companyscore sql "SELECT sector, round(avg(composite), 1) AS mean, count() FROM v1_score_latest GROUP BY sector ORDER BY mean DESC"
  companyscore sql --format Parquet "SELECT * FROM v1_score_latest" > latest.parquet`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			query := args[0]
			if query == "-" {
				text, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 1<<20))
				if err != nil {
					return err
				}
				query = string(text)
			}
			if address == "" {
				rt, err := config.ReadRuntime(data)
				if err != nil {
					return fmt.Errorf("no ClickHouse: start `companyscore up`, or use --data or --analyst-url: %w", err)
				}
				if rt.AnalystURL == "" {
					return errors.New("this up uses an external ClickHouse: use --analyst-url")
				}
				address = rt.AnalystURL
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			answer := &cli.Awaited{Writer: cmd.OutOrStdout(), Stop: cli.Working(cmd.ErrOrStderr(), "querying")}
			defer answer.Stop()
			err := analyst.Query(ctx, address, query, format, answer)
			switch {
			case errors.Is(err, analyst.ErrAddress):
				return cli.Usage(err)
			case errors.As(err, new(*url.Error)):
				return fmt.Errorf("%w: check that ClickHouse runs and its address (`companyscore doctor`), or allow more time with --timeout", err)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&address, "analyst-url", "", "ClickHouse to query: http(s)://analyst:password@host:port/database")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of the running `up`")
	cmd.Flags().StringVar(&format, "format", "PrettyCompactMonoBlock", "output format of ClickHouse, such as CSVWithNames or JSONEachRow")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "timeout of the query")
	return cmd
}
