package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/internal/config"
)

func (c *program) sql() *cobra.Command {
	var address, data, format string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   `sql "SELECT ..."`,
		Short: "Query ClickHouse, read-only, as the analyst user",
		Long: `Query ClickHouse as the analyst user, who may read and not write. Begin with the views
v1_score_latest, v1_score_history and v1_signal; DESCRIBE explains every column, and
docs/sql/ has all views, limits, exports and worked queries. The answer is written as
it comes. A statement of "-" is read from standard input.`,
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
					return fmt.Errorf("no ClickHouse to query: start `companyscore up`, name its directory with --data, or give --analyst-url: %w", err)
				}
				if rt.AnalystURL == "" {
					return errors.New("this up uses a ClickHouse of yours: give its analyst's address with --analyst-url")
				}
				address = rt.AnalystURL
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return queryHTTP(ctx, address, query, format, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&address, "analyst-url", "", "ClickHouse to query: http(s)://analyst:password@host:port/database")
	cmd.Flags().StringVar(&data, "data", config.DefaultData, "data directory of the running `up` to query")
	cmd.Flags().StringVar(&format, "format", "PrettyCompactMonoBlock", "output format of ClickHouse, such as CSVWithNames or JSONEachRow")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long the query may take")
	return cmd
}

// queryHTTP sends one statement and copies the answer to w.
func queryHTTP(ctx context.Context, address, query, format string, w io.Writer) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return cli.Usage(errors.New("the analyst's address must be http(s)://user:password@host:port/database"))
	}
	q := url.Values{"database": {strings.Trim(u.Path, "/")}, "default_format": {format}}
	password, _ := u.User.Password()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.Scheme+"://"+u.Host+"/?"+q.Encode(), strings.NewReader(query))
	if err != nil {
		return err
	}
	req.SetBasicAuth(u.User.Username(), password)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("query ClickHouse: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10))
		return errors.New(strings.TrimSpace(string(text)) + limitAdvice(string(text)))
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("the answer broke off and is not whole: %w", err)
	}
	return nil
}

// limitAdvice says what to do about an exception of ClickHouse that is about a
// limit. The embedded engine says so itself.
func limitAdvice(exception string) string {
	if strings.Contains(exception, "the analyst's limit") {
		return ""
	}
	for name, advice := range map[string]string{
		"(MEMORY_LIMIT_EXCEEDED)":  "select fewer columns, narrow it by domain or time, or join the smaller side last",
		"(TIMEOUT_EXCEEDED)":       "narrow it by domain or time, or aggregate first",
		"(TOO_MANY_ROWS_OR_BYTES)": "add a LIMIT, aggregate, or export in parts, such as one range of domains after the other",
	} {
		if strings.Contains(exception, name) {
			return "\nThis is a limit of the analyst user: " + advice + ". docs/sql/README.md has the limits."
		}
	}
	return ""
}
