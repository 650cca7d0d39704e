package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// ErrHTTPAddress is the error of an address that is not a URL of ClickHouse's HTTP interface.
var ErrHTTPAddress = errors.New("analyst URL: use http(s)://user:password@host:port/database")

// QueryHTTP sends one statement of an analyst to an address, http(s)://user:password@host:port/database, and copies
// the result in a format of ClickHouse to w. ctx bounds it.
//
// If the result breaks off, Query returns the exception of ClickHouse. w then has what came before it.
func QueryHTTP(ctx context.Context, address, query, format string, w io.Writer) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ErrHTTPAddress
	}
	q := u.Query() // settings
	q.Set("database", strings.Trim(u.Path, "/"))
	q.Set("default_format", format)
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
	tail := &tailWriter{w: w}
	_, copyErr := io.Copy(tail, res.Body)
	exception, err := tail.close(res.Header.Get("X-ClickHouse-Exception-Tag"))
	switch {
	case err != nil:
		return err
	case exception != "":
		return errors.New("the answer is incomplete: " + exception + limitAdvice(exception))
	case copyErr != nil:
		return fmt.Errorf("the answer is incomplete: %w", copyErr)
	}
	return nil
}

// exceptionMax is the maximum size of the block with which ClickHouse ends a result that breaks off.
const exceptionMax = 64 << 10

// tailWriter writes to w all but the last bytes, which may be an exception.
type tailWriter struct {
	w    io.Writer
	tail []byte
}

func (t *tailWriter) Write(p []byte) (int, error) {
	t.tail = append(t.tail, p...)
	if surplus := len(t.tail) - exceptionMax; surplus >= exceptionMax { // in large parts
		if _, err := t.w.Write(t.tail[:surplus]); err != nil {
			return 0, err
		}
		t.tail = append(t.tail[:0], t.tail[surplus:]...)
	}
	return len(p), nil
}

// close writes the last bytes without the exception among them, and returns its text. The server has
// announced tag in a header.
func (t *tailWriter) close(tag string) (exception string, err error) {
	const mark = "__exception__"
	if start := bytes.LastIndex(t.tail, []byte("\r\n"+mark+"\r\n"+tag+"\r\n")); tag != "" && start >= 0 {
		text := string(t.tail[start+len(mark)+len(tag)+6:])
		text, _, _ = strings.Cut(text, "\r\n"+mark)
		if line := strings.LastIndex(text, "\n"); line >= 0 { // the length of the text
			text = text[:line]
		}
		exception, t.tail = strings.TrimSpace(text), t.tail[:start]
	}
	_, err = t.w.Write(t.tail)
	return exception, err
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
