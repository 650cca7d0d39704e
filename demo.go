package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/config"
)

// demo is an account to try things with. Its keys are kept in a data directory, so
// that every start prints the same.
type demo struct {
	AccountID string       `json:"account_id"`
	Name      string       `json:"name"`
	Tier      account.Tier `json:"tier"`
	LiveKey   string       `json:"live_key"`
	TestKey   string       `json:"test_key"`
}

// openDemo returns the demo account of a data directory, and opens one if there is
// none: no file, an empty one, or one whose account the store does not know.
func openDemo(ctx context.Context, db *clickhouse.DB, data string) (*demo, error) {
	path := filepath.Join(data, "demo.json")
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	accounts := clickhouse.NewAccounts(db)
	var d demo
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read demo account: %w", err)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("read %s: %w: remove the file to get a new demo account", path, err)
		}
		_, err := accounts.Account(ctx, d.AccountID)
		if err == nil {
			return &d, nil
		}
		if !errors.Is(err, account.ErrNotFound) {
			return nil, err
		}
	}
	now := time.Now()
	d = demo{AccountID: uuid.Must(uuid.NewV7()).String(), Name: "demo", Tier: account.Starter}
	live, liveText := account.NewKey(d.AccountID, "demo live", account.Live, now)
	test, testText := account.NewKey(d.AccountID, "demo test", account.Test, now)
	d.LiveKey, d.TestKey = liveText, testText
	if err := accounts.Put(ctx, account.Account{ID: d.AccountID, Name: d.Name, Tier: d.Tier, CreatedAt: now}); err != nil {
		return nil, err
	}
	for _, key := range []account.Key{live, test} {
		if err := accounts.PutKey(ctx, key); err != nil {
			return nil, err
		}
	}
	if text, err = json.MarshalIndent(d, "", "  "); err != nil {
		return nil, err
	}
	if err := config.ReplaceFile(path, append(text, '\n')); err != nil {
		return nil, fmt.Errorf("write demo account: %w", err)
	}
	return &d, nil
}

// print writes the account, its keys and what to try with them.
func (d *demo) print(out io.Writer, base string) {
	fmt.Fprintf(out, `
  demo account %[2]s (%[3]s)
  live key     %[4]s
  test key     %[5]s

Try it:

  curl -s %[1]s/v1/score/acme.test -H 'X-API-Key: %[5]s'

  curl -s %[1]s/v1/score -H 'X-API-Key: %[4]s' -H 'Content-Type: application/json' -d '{"domain": "example.com"}'

  curl -s --retry 5 --retry-all-errors --fail %[1]s/v1/score/example.com -H 'X-API-Key: %[4]s'
`, base, d.AccountID, d.Tier, d.LiveKey, d.TestKey)
}
