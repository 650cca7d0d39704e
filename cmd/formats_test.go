package cmd

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"companyscore/up"
)

// TestListsInEachFormat prints every list and record of a running `up` as a table, as CSV and as JSON. Then it looks for changes in the
// audit log.
func TestListsInEachFormat(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	p := launchUp(t, data)
	p.await(t, "Ctrl-C")
	demo, err := up.ReadDemo(data)
	if err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) string {
		t.Helper()
		if args[0] != "source" && args[0] != "backtest" && args[0] != "version" {
			args = append(args, "--data", data)
		}
		code, stdout, stderr := command(t, "", args...)
		if code != exitDone {
			t.Errorf("%v: exit %d: %s%s", args, code, stdout, stderr)
		}
		return stdout
	}
	call("facts", "import", "--quiet", "examples/companies.csv")
	call("run", "start", "--quiet", "--wait", "apple.com", "zapier.com", "stripe.com")
	call("batch", "--once", "count")
	f := func(rows int, columns []string, args ...string) {
		t.Helper()
		if table := call(args...); strings.Contains(table, "\x1b") || strings.TrimSpace(table) == "" {
			t.Errorf("%v prints %q", args, table)
		}
		list, err := csv.NewReader(strings.NewReader(call(append(args, "--output", "csv")...))).ReadAll()
		if err != nil || len(list) < rows+1 {
			t.Errorf("%v as CSV: %d rows, %v", args, len(list)-1, err)
			return
		}
		for _, name := range columns {
			if !slices.Contains(list[0], name) {
				t.Errorf("%v has no column %s: %v", args, name, list[0])
			}
		}
		text := call(append(args, "--output", "json")...)
		decoder := json.NewDecoder(strings.NewReader(text))
		for decoder.More() {
			var v any
			if err := decoder.Decode(&v); err != nil {
				t.Errorf("%v as JSON: %v in %.200s", args, err, text)
				return
			}
		}
	}
	f(1, []string{"account_id", "tier", "created_at"}, "account", "list")
	f(1, []string{"account_id", "name", "tier"}, "account", "create", "--name", "a, b\n\"c\"")
	f(2, []string{"key_id", "prefix", "last_used_at"}, "key", "list")
	f(2, []string{"key_id"}, "key", "list", "--account", demo.AccountID)
	f(1, []string{"key_id", "api_key", "mode"}, "key", "create", "--account", demo.AccountID, "--mode", "test")
	f(0, []string{"run_id", "domain", "state"}, "run", "list")
	eventually(t, "the ended runs are in the log", func() bool {
		return strings.Count(call("run", "list", "--state", "all", "-o", "csv"), "\n") > 3
	})
	f(3, []string{"run_id", "finished_at"}, "run", "list", "--state", "all")
	f(1, []string{"sector", "count", "p90"}, "batch", "show")
	f(16, []string{"source", "deadline", "limits"}, "source", "list", "--sources", "facts")
	f(67, []string{"signal", "raw", "contribution", "observed_at"}, "explain", "apple.com")
	f(2, []string{"domain", "rating", "composite", "low", "high"}, "score", "apple.com", "www.zapier.com", "--key", demo.LiveKey)
	f(1, []string{"scored_at", "composite", "data_completeness_pct"}, "history", "apple.com", "--limit", "1", "--key", demo.LiveKey)
	f(2, []string{"account_id", "calls", "used", "included", "left"}, "usage", "--key", demo.LiveKey)
	f(2, []string{"domain", "delta", "composite_now"}, "movers", "30d", "--key", demo.TestKey)
	f(1, []string{"version", "commit", "go"}, "version")
	f(2, []string{"outcome", "companies", "spearman_withheld"}, "backtest", "examples/companies.csv", "--outcome", "revenue_usd,status")
	f(12, []string{"status", "check", "found", "advice"}, "doctor", "--listen", "127.0.0.1:0")
	asked := filepath.Join(t.TempDir(), "asked.csv")
	if err := os.WriteFile(asked, []byte("name\n\"Apple, Inc.\"\nNobody At All\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f(2, []string{"input", "kind", "domain", "company_name", "likelihood", "ambiguous", "others"}, "resolve", asked)
	if code, stdout, stderr := command(t, "Apple Inc\n\n", "resolve", "-", "--output", "csv", "--data", data); code != exitFailed ||
		!strings.Contains(stdout, "Apple Inc,name,apple.com,Apple,0.9") || !strings.Contains(stderr, "-: line 2: empty") {
		t.Errorf("resolve of standard input: exit %d: %s%s", code, stdout, stderr)
	}
	var revoked struct {
		ID string `json:"key_id"`
	}
	if err := json.Unmarshal([]byte(call("key", "create", "--account", demo.AccountID, "--mode", "live", "--name", "old", "--json")),
		&revoked); err != nil {
		t.Fatal(err)
	}
	call("key", "revoke", revoked.ID)
	call("account", "set-tier", demo.AccountID, "scale")
	changes := call("sql", "--operator", "--format", "TSV",
		"SELECT action, subject, detail FROM v1_audit WHERE operator AND address LIKE 'command line%' AND account_id = '"+demo.AccountID+
			"'")
	for _, want := range []string{"key_created\t" + revoked.ID + "\tlive old\n", "key_revoked\t" + revoked.ID + "\told\n",
		"tier_changed\t" + demo.AccountID + "\tstarter to scale\n"} {
		if !strings.Contains(changes, want) {
			t.Errorf("the audit log lacks %q:\n%s", want, changes)
		}
	}
	step := func(says string, args ...string) {
		t.Helper()
		code, stdout, stderr := command(t, "", append(args, "--data", data)...)
		if code != exitDone || !strings.Contains(stderr, says) || strings.Contains(stdout, "Next") {
			t.Errorf("%v: exit %d, %q is not in %q; %s", args, code, says, stderr, stdout)
		}
	}
	if want := "  export COMPANYSCORE_DATA=" + data + "\n"; !strings.Contains(p.text(), want) {
		t.Errorf("%q is not in %s", want, p.text())
	}
	named := " --data " + data + "\n"
	step("Next: companyscore run start --from examples/companies.csv --wait"+named, "facts", "import", "examples/companies.csv")
	step("1 skipped: scored within 1h (--older-than; 0 skips none)\nNext: companyscore score apple.com"+named, "run", "start", "--wait",
		"apple.com")
	step("Next: companyscore run list"+named, "run", "start", "fresh.com")
	step(" --mode live"+named, "account", "create", "--name", "next", "--tier", "growth")
	step("COMPANYSCORE_KEY.\nNext: companyscore score acme.test"+named, "key", "create", "--account", demo.AccountID, "--mode", "test")
	for _, args := range [][]string{{"facts", "import", "--quiet", "examples/companies.csv"},
		{"account", "create", "--name", "next", "--output", "csv"}} {
		if _, _, stderr := command(t, "", append(args, "--data", data)...); stderr != "" {
			t.Errorf("%v: %s", args, stderr)
		}
	}
	p.stop(t)
}
