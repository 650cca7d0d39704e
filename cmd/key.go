package cmd

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/internal/table"
)

type keyOutput struct {
	ID        string       `json:"key_id"`
	Raw       string       `json:"api_key,omitempty"`
	Mode      account.Mode `json:"mode"`
	AccountID string       `json:"account_id,omitempty"`
	Prefix    string       `json:"prefix,omitempty"`
	Name      string       `json:"name,omitempty"`
	CreatedAt *time.Time   `json:"created_at,omitempty"`
	LastUsed  *time.Time   `json:"last_used_at,omitempty"`
	RevokedAt *time.Time   `json:"revoked_at,omitempty"`
}

var keyColumns = []cli.Column[keyOutput]{
	{Name: "key_id", Value: func(k keyOutput) any { return k.ID }},
	{Name: "prefix", Value: func(k keyOutput) any { return k.Prefix }},
	{Name: "mode", Value: func(k keyOutput) any { return k.Mode }},
	{Name: "name", Value: func(k keyOutput) any { return k.Name }},
	{Name: "account_id", Value: func(k keyOutput) any { return k.AccountID }},
	{Name: "created_at", Value: func(k keyOutput) any { return k.CreatedAt }, Only: cli.CSV},
	{Name: "last_used_at", Value: func(k keyOutput) any { return k.LastUsed }},
	{Name: "revoked_at", Value: func(k keyOutput) any { return k.RevokedAt }},
}

// newKeyColumns are those of a key that was just created.
var newKeyColumns = []cli.Column[keyOutput]{keyColumns[0], {Name: "api_key", Value: func(k keyOutput) any { return k.Raw }}, keyColumns[2]}

func (c *program) key() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{Use: "key", Short: "Create, list and revoke API keys"}
	where.Flags(cmd.PersistentFlags())

	var accountID, mode, name string
	var format cli.Output
	create := &cobra.Command{
		Use: "create", Short: "Create a key and print it once", Args: cobra.NoArgs,
		Example: `  companyscore key create --account 01a1fc20-f758-7217-a5d9-7f7b1960770c --mode live --name production
  export COMPANYSCORE_KEY=$(companyscore key create --account 01a1fc20-f758-7217-a5d9-7f7b1960770c --mode live --output json | jq -r .api_key)`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m := account.Mode(mode)
			if m != account.Live && m != account.Test {
				return cli.Usage(fmt.Errorf("--mode %q: use live or test", mode))
			}
			if accountID == "" {
				return cli.Usage(errors.New("no account: use --account with an id of `companyscore account list`"))
			}
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				if _, err := accounts.Account(ctx, accountID); err != nil {
					return err
				}
				keys, err := accounts.Keys(ctx, accountID)
				if err != nil {
					return err
				}
				if err := account.CheckRoom(keys); err != nil {
					return fmt.Errorf("%w: `companyscore key list --account %s` shows when each was used last, `companyscore key revoke` "+
						"revokes one", err, accountID)
				}
				key, raw := account.NewKey(accountID, name, m, time.Now())
				if err := audit(ctx, accounts, accountID, table.KeyCreated, key.ID, strings.TrimSpace(string(m)+" "+name)); err != nil {
					return err
				}
				if err := accounts.PutKey(ctx, key); err != nil {
					return err
				}
				if err := cli.PrintRecord(cmd.OutOrStdout(), format, keyOutput{ID: key.ID, Raw: raw, Mode: key.Mode},
					fmt.Sprintf("key %s\n\n  %s\n\nThe key is not shown again. Only its hash is stored.", key.ID, raw), newKeyColumns,
				); err != nil {
					return err
				}
				if format.ForPeople() {
					fmt.Fprintln(cmd.ErrOrStderr(), "Put it in the variable COMPANYSCORE_KEY.")
					next(cmd, "score", map[account.Mode]string{account.Live: "example.com", account.Test: "acme.test"}[m])
				}
				return nil
			})
		},
	}
	create.Flags().StringVar(&accountID, "account", "", "id of the account")
	create.Flags().StringVar(&mode, "mode", "", "live or test")
	create.Flags().StringVar(&name, "name", "", "name of the key")
	format.Flag(create)
	format.JSONFlag(create)

	list := &cobra.Command{
		Use: "list", Short: "List keys with their last use", Args: cobra.NoArgs,
		Example: "  companyscore key list\n  companyscore key list --account 01a1fc20-f758-7217-a5d9-7f7b1960770c --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				if accountID != "" {
					if _, err := accounts.Account(ctx, accountID); err != nil {
						return err
					}
				}
				keys, err := accounts.Keys(ctx, accountID)
				if err != nil {
					return err
				}
				out := make([]keyOutput, len(keys))
				for i, k := range keys {
					out[i] = keyOutput{k.ID, "", k.Mode, k.AccountID, k.Prefix, k.Name, &k.CreatedAt, known(k.LastUsedAt),
						known(k.RevokedAt)}
				}
				return cli.PrintList(cmd.OutOrStdout(), format, out, keyColumns)
			})
		},
	}
	list.Flags().StringVar(&accountID, "account", "", "only the keys of this account")
	format.Flag(list)

	revoke := &cobra.Command{
		Use: "revoke KEY_ID", Short: "Revoke a key", Args: cobra.ExactArgs(1),
		Example: "  companyscore key revoke 01a1fc20-f758-7217-a5d9-7f7b1960770d",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				key, err := accounts.Key(ctx, args[0])
				if err != nil {
					return err
				}
				if key.RevokedAt.IsZero() {
					if err := audit(ctx, accounts, key.AccountID, table.KeyRevoked, key.ID, key.Name); err != nil {
						return err
					}
					key.RevokedAt = time.Now()
					if err := accounts.PutKey(ctx, key); err != nil {
						return err
					}
				}
				fmt.Fprintf(cmd.OutOrStdout(), "key %s is revoked; servers reject it %s\n", key.ID,
					c.announce(ctx, where, redis.Event{Kind: redis.KeyChanged, Name: hex.EncodeToString(key.Hash[:])}))
				return nil
			})
		},
	}
	cmd.AddCommand(create, list, revoke)
	return cmd
}
