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

	"companyscore/internal/config"
)

func (c *cli) sql() *cobra.Command {
	var address, data, format string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   `sql "SELECT ..."`,
		Short: "Query ClickHouse, read-only, as the analyst user",
		Long: `Query ClickHouse as the analyst user, who may read and not write. Begin with the views
v1_score_latest, v1_score_history and v1_signal; DESCRIBE explains every column.
A statement of "-" is read from standard input.`,
		Example: `  companyscore sql "SELECT sector, round(avg(composite), 1) AS mean, count() FROM v1_score_latest GROUP BY sector ORDER BY mean DESC"`,
		Args:    cobra.ExactArgs(1),
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
		return &usageError{errors.New("the analyst's address must be http(s)://user:password@host:port/database")}
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
		return errors.New(strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(w, res.Body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}
