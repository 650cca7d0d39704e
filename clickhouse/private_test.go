package clickhouse_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"companyscore/clickhouse"
	"companyscore/internal/test/golden"
	"companyscore/internal/test/stores"
)

// attempts has a line for each statement with which an analyst tries to see or change something private: the outcome, the statement, and
// parameters of the address or a header, separated by tabs. SECRETFILE is the path of a file.
const attempts = "testdata/private.tsv"

// secret is in each private row, in a file of the machine and in a statement of the service that runs meanwhile.
const secret = "TOPSECRET"

var exceptionName = regexp.MustCompile(`\(([A-Z_]+)\) \(version`)

// TestAnalystSeesAndChangesNothingPrivate sends all attempts. An answer may not contain a private row, the name of a private table or a
// path, and afterwards everything must be as before. The error of a statement may repeat names in it.
func TestAnalystSeesAndChangesNothingPrivate(t *testing.T) {
	t.Parallel()
	server := stores.StartClickHouse(t)
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: server.URL("companyscore")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret.csv")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"INSERT INTO account (id, name) SELECT '" + secret + "', '" + secret + "'",
		"INSERT INTO api_key (id, account_id, name, hash, prefix) SELECT '" + secret + "', '" + secret + "', '" + secret +
			"', repeat('ab12', 16), '" + secret + "'",
		"INSERT INTO company_facts (domain, company_name) SELECT 'example.com', '" + secret + "'",
	} {
		if err := db.Conn().Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { // a statement of the service
		defer close(ended)
		_ = db.Conn().Exec(running, "SELECT '"+secret+
			"', sum(sleepEachRow(1)) FROM numbers(1000) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0")
	}()
	defer func() { stop(); <-ended }()
	// Other names of tables are words or those of columns.
	const private = "SELECT name FROM system.tables WHERE database = 'companyscore_private' AND name LIKE '%\\_%' AND name != " +
		"'pipeline_version'"
	hidden := append(column(t, db, private), secret, "ab12ab12", server.Dir(), "companyscore_private", "root:x")
	if len(hidden) < 15 {
		t.Fatalf("private are %v", hidden)
	}
	state := []string{
		"SELECT concat(database, name, create_table_query) FROM system.tables WHERE NOT is_temporary AND database NOT IN ('system', " +
			"'information_schema', 'INFORMATION_SCHEMA') ORDER BY 1",
		"SELECT name FROM system.databases ORDER BY 1", "SELECT concat(id, name) FROM account", "SELECT concat(id, hash) FROM api_key",
		"SELECT concat(domain, company_name) FROM company_facts",
		"SELECT name FROM system.functions WHERE origin != 'System'", "SELECT concat(name, storage) FROM system.users ORDER BY name",
		"SELECT name FROM system.roles ORDER BY name",
		"SELECT concat(ifNull(user_name, ''), ifNull(role_name, ''), toString(access_type), ifNull(database, '')) FROM system.grants " +
			"ORDER BY 1", "SELECT name FROM system.named_collections",
	}
	fingerprint := func() (all string) {
		for _, query := range state {
			all += strings.Join(column(t, db, query), "\n") + "\n"
		}
		return all
	}
	before := fingerprint()
	u, err := url.Parse(server.AnalystURL(""))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(attempts)
	if err != nil {
		t.Fatal(err)
	}
	var outcomes strings.Builder
	tried := 0
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		f := strings.Split(line, "\t")
		if len(f) < 2 {
			fmt.Fprintln(&outcomes, line)
			continue
		}
		tried++
		statement := strings.ReplaceAll(f[1], "SECRETFILE", file)
		status, body := attempt(t, u, statement, f[2:])
		outcome := "answered"
		if status != http.StatusOK {
			outcome = fmt.Sprintf("HTTP %d", status)
			if m := exceptionName.FindStringSubmatch(body); m != nil {
				outcome = m[1]
			}
		}
		f[0] = outcome
		fmt.Fprintln(&outcomes, strings.Join(f, "\t"))
		said := strings.ToLower(line)
		for _, name := range hidden {
			if regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(name)+`(\W|$)`).MatchString(body) &&
				(status == http.StatusOK || !strings.Contains(said, strings.ToLower(name))) {
				t.Errorf("%s: the answer has %q: %.1000s", line, name, body)
			}
		}
	}
	if tried < 200 {
		t.Errorf("%d attempts, want 200 at least", tried)
	}
	if after := fingerprint(); after != before {
		t.Errorf("something was changed:\n%s\nbefore:\n%s", after, before)
	}
	for _, path := range []string{"/tmp/companyscore-x", "/tmp/companyscore-x.csv", "/tmp/companyscore-backup"} {
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s was made", path)
		}
	}
	golden.Compare(t, attempts, outcomes.String())
}

// attempt sends a statement as the user of an address, with parameters of the address or a header, and returns status and answer.
func attempt(t *testing.T, to *url.URL, statement string, with []string) (status int, body string) {
	t.Helper()
	u := *to
	u.User, u.Path = nil, "/"
	header, value := "", ""
	for _, text := range with {
		if name, rest, ok := strings.Cut(text, ": "); ok {
			header, value = name, rest
			continue
		}
		q := url.Values{}
		for pair := range strings.SplitSeq(text, "&") {
			name, value, _ := strings.Cut(pair, "=")
			q.Set(name, value)
		}
		u.RawQuery = q.Encode()
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, u.String(), strings.NewReader(statement))
	if err != nil {
		t.Fatal(err)
	}
	password, _ := to.User.Password()
	req.SetBasicAuth(to.User.Username(), password)
	if header != "" {
		req.Header.Set(header, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil && err != io.ErrUnexpectedEOF {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
