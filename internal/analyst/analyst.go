// Package analyst queries ClickHouse as the analyst user, who may read and not write.
package analyst

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ErrAddress is the error of an address that is not a URL of ClickHouse's HTTP interface.
var ErrAddress = errors.New("analyst URL: use http(s)://user:password@host:port/database")

// Query sends one statement to an address, http(s)://user:password@host:port/database, and copies
// the result in a format of ClickHouse to w. ctx bounds it.
func Query(ctx context.Context, address, query, format string, w io.Writer) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ErrAddress
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
		return fmt.Errorf("the answer is incomplete: %w", err)
	}
	return nil
}

// limitAdvice returns what to do about an exception of ClickHouse for a limit. The exceptions of
// the embedded engine already contain it.
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
