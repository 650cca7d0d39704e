package cmd

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/clickhouse/embedded/roster"
	"companyscore/internal/account"
	"companyscore/up"
)

// TestErrorsSayWhatToDo makes the mistakes of users against a running `up`, and after it has ended.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	p := launchUp(t, data)
	p.await(t, "Ctrl-C")
	demo, err := up.ReadDemo(data)
	if err != nil {
		t.Fatal(err)
	}
	base, err := url.Parse(runtimeOf(t, data).BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fillKeys(t, data, demo.AccountID)
	f := func(code int, says string, args ...string) {
		t.Helper()
		if args[0] != "up" {
			args = append(args, "--data", data)
		}
		got, stdout, stderr := command(t, "", args...)
		if got != code || !strings.Contains(stderr, says) || strings.Contains(stdout+stderr, "context canceled") {
			t.Errorf("%v: exit %d, want %d and %q: %s%s", args, got, code, says, stdout, stderr)
		}
	}
	f(exitFailed, "companyscore account list", "account", "set-tier", "nobody", "growth")
	f(exitFailed, "companyscore account list", "key", "create", "--account", "nobody", "--mode", "live")
	f(exitFailed, "`companyscore key revoke`", "key", "create", "--account", demo.AccountID, "--mode", "live")
	f(exitFailed, "companyscore account list", "key", "list", "--account", "nobody")
	f(exitFailed, "companyscore key list", "key", "revoke", "nothing")
	f(exitFailed, "companyscore run list", "run", "abort", "nothing")
	f(exitUsage, "either as arguments or with --from", "run", "start", "a.com", "--from", file)
	f(exitFailed, "no run was started: correct or remove", "run", "start", "a.com", "10.0.0.1")
	f(exitFailed, "companyscore run start never.com --wait", "explain", "never.com")
	f(exitUsage, "use count, movers", "batch", "--once", "dance")
	f(exitFailed, "companyscore key create", "score", "a.com", "--key", "svc_live_wrong")
	f(exitFailed, "See "+base.String()+"/docs/errors/unauthorized", "score", "a.com", "--key", "svc_live_wrong")
	f(exitFailed, "Use a test key", "score", "acme.test", "--key", demo.LiveKey)
	f(exitUsage, "one per line", "score", "-", "--key", demo.LiveKey)
	f(exitFailed, "companyscore doctor", "run", "list", "--redis-url", "redis://127.0.0.1:1")
	f(exitFailed, "companyscore doctor", "account", "list", "--clickhouse-url", "http://127.0.0.1:1/d")
	f(exitFailed, "companyscore doctor", "sql", "SELECT 1", "--analyst-url", "http://127.0.0.1:1/d")
	refusals := roster.RefusalsPath(filepath.Join(data, "clickhouse"))
	for range 3 {
		if _, err := roster.Blame(refusals, map[string]string{"analyst": "SELECT 1"}, "it crashed", time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	f(exitFailed, "`companyscore analyst allow analyst`", "sql", "SELECT 1")
	if code, out, _ := command(t, "", "analyst", "list", "--data", data); code != exitDone || !strings.Contains(out, "until allowed") {
		t.Errorf("analyst list: %d %s", code, out)
	}
	f(exitDone, "", "analyst", "allow", "analyst")
	f(exitDone, "", "sql", "SELECT 1")
	f(exitFailed, "companyscore analyst list", "analyst", "allow", "analyst")
	f(exitUsage, "at least 512 MB", "up", "--clickhouse-memory", "511", "--data", dataDir(t))
	f(exitUsage, "the machine has only", "up", "--clickhouse-memory", "1000000000", "--data", dataDir(t))
	f(exitUsage, "--universe-min-data 101: use a percentage", "up", "--universe-min-data", "101", "--data", dataDir(t))
	f(exitUsage, "--universe-min-data -1: use a percentage", "batch", "--universe-min-data", "-1")
	f(exitFailed, "--listen", "serve", "--listen", base.Host)
	f(exitFailed, "--admin-listen", "serve", "--listen", "127.0.0.1:0", "--admin-listen", taken.Addr().String())
	f(exitFailed, "stop it, or choose another directory", "up", "--data", data, "--listen", "127.0.0.1:0", "--sources", "facts")
	f(exitFailed, "with --data", "up", "--data", file, "--listen", "127.0.0.1:0", "--sources", "facts")

	second := launch(t, "up", "--data", dataDir(t), "--listen", taken.Addr().String(), "--sources", "facts", "--log-level", "error")
	if code := second.exit(t); code != exitFailed || !strings.Contains(second.text(), "Choose another address with --listen") ||
		strings.Contains(second.text(), "context canceled") {
		t.Errorf("an up on a taken port: exit %d, %s", code, second.text())
	}

	p.stop(t)
	f(exitFailed, "start `companyscore up`", "account", "list")
	f(exitFailed, "start `companyscore up`", "run", "list")
	f(exitFailed, "start `companyscore up`", "sql", "SELECT 1")
}

// fillKeys stores as many keys of an account as it may have.
func fillKeys(t *testing.T, data, accountID string) {
	t.Helper()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: runtimeOf(t, data).ClickHouseURL})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	keys := make([]account.Key, 100)
	for i := range keys {
		keys[i], _ = account.NewKey(accountID, "", account.Test, time.Now())
	}
	if err := clickhouse.NewAccounts(db).PutKey(t.Context(), keys...); err != nil {
		t.Fatal(err)
	}
}
