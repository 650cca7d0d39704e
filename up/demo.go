package up

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
	"github.com/spf13/pflag"

	"companyscore/internal/account"
	"companyscore/internal/config"
)

// Demo is the demo account with the text of its keys. It is stored in demo.json of a data
// directory, so every start prints the same keys.
type Demo struct {
	AccountID string       `json:"account_id"`
	Name      string       `json:"name"`
	Plan      account.Plan `json:"tier"`
	LiveKey   string       `json:"live_key"`
	TestKey   string       `json:"test_key"`
}

// DemoStore reads and writes the demo account.
type DemoStore interface {
	// Account returns an account, or an error that wraps ErrNotFound.
	Account(ctx context.Context, id string) (account.Account, error)
	Put(ctx context.Context, accounts ...account.Account) error
	PutKey(ctx context.Context, keys ...account.Key) error
}

func demoPath(data string) string { return filepath.Join(data, "demo.json") }

// ReadDemo returns the demo account in the file of a data directory. The error wraps
// os.ErrNotExist if there is no file.
func ReadDemo(data string) (Demo, error) {
	text, err := os.ReadFile(demoPath(data))
	if err != nil {
		return Demo{}, err
	}
	var d Demo
	if err := json.Unmarshal(text, &d); err != nil {
		return Demo{}, fmt.Errorf("read %s: %w: remove the file to get a new demo account", demoPath(data), err)
	}
	return d, nil
}

// OpenDemo returns the demo account of a data directory. It creates an account if the file
// is missing or empty, or if the store does not have its account.
func OpenDemo(ctx context.Context, store DemoStore, data string) (*Demo, error) {
	path := demoPath(data)
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	var d Demo
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read demo account: %w", err)
	}
	if len(bytes.TrimSpace(text)) > 0 {
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("read %s: %w: remove the file to get a new demo account", path, err)
		}
		_, err := store.Account(ctx, d.AccountID)
		if err == nil {
			return &d, nil
		}
		if !errors.Is(err, account.ErrNotFound) {
			return nil, err
		}
	}
	now := time.Now()
	d = Demo{AccountID: uuid.Must(uuid.NewV7()).String(), Name: "demo", Plan: account.Starter}
	live, liveText := account.NewKey(d.AccountID, "demo live", account.Live, now)
	test, testText := account.NewKey(d.AccountID, "demo test", account.Test, now)
	d.LiveKey, d.TestKey = liveText, testText
	if err := store.Put(ctx, account.Account{ID: d.AccountID, Name: d.Name, Plan: d.Plan, CreatedAt: now}); err != nil {
		return nil, err
	}
	for _, key := range []account.Key{live, test} {
		if err := store.PutKey(ctx, key); err != nil {
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

// Print writes the account and its keys to out.
func (d *Demo) Print(out io.Writer) {
	fmt.Fprintf(out, "  demo account %s (%s)\n  live key     %s\n  test key     %s   (the sandbox: acme.test)\n", d.AccountID, d.Plan,
		d.LiveKey, d.TestKey)
}

// DemoFlag adds the flag --demo with its default value.
func DemoFlag(flags *pflag.FlagSet, demo *bool, value bool) {
	flags.BoolVar(demo, "demo", value, "create a demo account, store its keys in demo.json of the data directory, and print them")
}
