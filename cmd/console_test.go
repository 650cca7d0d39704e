package cmd

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
)

func TestLinkIsForChosenAccount(t *testing.T) {
	t.Parallel()
	url, redisURL, data := stores.ClickHouse(t), stores.Redis(t).URL, t.TempDir()
	db, err := clickhouse.Open(t.Context(), clickhouse.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	rdb, err := redis.Open(t.Context(), redisURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	accounts := clickhouse.NewAccounts(db)
	add := func(id string) {
		if err := accounts.Put(t.Context(), account.Account{ID: id, Name: id, Plan: account.Free, CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	link := func(args ...string) (stdout string, err error) {
		var out, said bytes.Buffer
		cmd := consoleCommand()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(append([]string{"link", "--clickhouse-url", url, "--redis-url", redisURL, "--data", data}, args...))
		cmd.SetOut(&out)
		cmd.SetErr(&said)
		err = cmd.ExecuteContext(t.Context())
		return out.String(), err
	}
	fails := func(what, want string, args ...string) {
		t.Helper()
		if out, err := link(args...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("%s: %v, printed %q", what, err, out)
		}
	}
	base := []string{"--url", "https://scores.example.com/"}
	fails("without an address", "--url")
	fails("without an account", "account create", base...)
	add("first")
	out, err := link(append(base, "--operator", "--ttl", "5m")...)
	if err != nil || !regexp.MustCompile(`^https://scores\.example\.com/console/link/[A-Z2-7]{26}\n$`).MatchString(out) {
		t.Fatalf("link of the only account: %q, %v", out, err)
	}
	keys := rdb.Keys(t.Context(), redis.ConsoleLink("*")).Val()
	if len(keys) != 1 {
		t.Fatalf("Redis has %v", keys)
	}
	if text := rdb.Get(t.Context(), keys[0]).Val(); text != `{"AccountID":"first","Operator":true}` {
		t.Errorf("the link is for %s", text)
	}
	if ttl := rdb.TTL(t.Context(), keys[0]).Val(); ttl <= 0 || ttl > 5*time.Minute {
		t.Errorf("the link lives %s", ttl)
	}
	add("second")
	fails("with several accounts", "--account", base...)
	fails("with an unknown account", "account list", append(base, "--account", "third")...)
	fails("with a long lifetime", "24h", append(base, "--account", "second", "--ttl", "25h")...)
	if _, err := link(append(base, "--account", "second")...); err != nil {
		t.Errorf("link of the second account: %v", err)
	}
}
