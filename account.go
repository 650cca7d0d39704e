package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/internal/stores"
)

// withAccounts opens the accounts for one command.
func withAccounts(cmd *cobra.Command, where config.Stores, do func(ctx context.Context, accounts *clickhouse.Accounts) error) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
	defer cancel()
	db, err := stores.OpenClickHouse(ctx, where, 0)
	if err != nil {
		return err
	}
	defer db.Close()
	err = do(ctx, clickhouse.NewAccounts(db))
	if errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("%w: `companyscore account list` and `companyscore key list` show all", err)
	}
	return err
}

// audit writes an entry of the audit log, as the console does. It is called before the change, so
// without the log there is no change.
func audit(ctx context.Context, accounts *clickhouse.Accounts, accountID string, action account.Action, subject, detail string) error {
	address := "command line"
	if u, err := user.Current(); err == nil {
		address += " of " + u.Username
	}
	return accounts.WriteAudit(ctx, account.AuditEntry{
		At: time.Now(), AccountID: accountID, Operator: true, Address: address, Action: action, Subject: subject, Detail: detail,
	})
}

// announce announces a change to running servers and returns the time until they apply it.
func (c *program) announce(ctx context.Context, where config.Stores, event redis.Event) string {
	_, err := where.Resolve()
	if err == nil {
		var client goredis.UniversalClient
		if client, err = redis.Open(ctx, where.RedisURL); err == nil {
			defer client.Close()
			err = redis.Announce(ctx, client, event.Kind, event.Name)
		}
	}
	if err != nil {
		c.logger.Warn("change not announced to servers", "err", err)
		return "within a minute, or within five if ClickHouse does not answer"
	}
	return "within a second"
}

func tierNames() (names []string) {
	for _, t := range account.Tiers {
		names = append(names, string(t))
	}
	return names
}

type accountOutput struct {
	ID        string       `json:"account_id"`
	Name      string       `json:"name"`
	Tier      account.Tier `json:"tier"`
	CreatedAt *time.Time   `json:"created_at,omitempty"`
}

var accountColumns = []cli.Column[accountOutput]{
	{Name: "account_id", Value: func(a accountOutput) any { return a.ID }},
	{Name: "name", Value: func(a accountOutput) any { return a.Name }},
	{Name: "tier", Value: func(a accountOutput) any { return a.Tier }},
	{Name: "created_at", Value: func(a accountOutput) any { return a.CreatedAt }},
}

func (c *program) account() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{Use: "account", Short: "Create, list and change accounts"}
	where.Flags(cmd.PersistentFlags())

	var name, tier string
	var format cli.Output
	create := &cobra.Command{
		Use: "create", Short: "Create an account", Args: cobra.NoArgs,
		Example: `  companyscore account create --name "Acme Inc." --tier growth`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			parsed, err := account.ParseTier(tier)
			if err != nil {
				return cli.Usage(err)
			}
			if name == "" {
				return cli.Usage(fmt.Errorf("no account name: use --name"))
			}
			acct := account.Account{ID: uuid.Must(uuid.NewV7()).String(), Name: name, Tier: parsed, CreatedAt: time.Now()}
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				if err := audit(ctx, accounts, acct.ID, account.AccountCreated, acct.ID, string(acct.Tier)+" "+acct.Name); err != nil {
					return err
				}
				if err := accounts.Put(ctx, acct); err != nil {
					return err
				}
				return cli.PrintRecord(cmd.OutOrStdout(), format, accountOutput{ID: acct.ID, Name: acct.Name, Tier: acct.Tier},
					fmt.Sprintf("account %s (%s, %s)\nCreate a key of it: companyscore key create --account %s --mode live", acct.ID, acct.Name, acct.Tier, acct.ID), accountColumns[:3])
			})
		},
	}
	create.Flags().StringVar(&name, "name", "", "name of the account")
	create.Flags().StringVar(&tier, "tier", string(account.Free), "free, starter, growth, scale or enterprise")
	format.Flag(create)
	format.JSONFlag(create)

	list := &cobra.Command{
		Use: "list", Short: "List accounts", Args: cobra.NoArgs,
		Example: "  companyscore account list\n  companyscore account list --output csv > accounts.csv",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				all, err := accounts.List(ctx)
				if err != nil {
					return err
				}
				out := make([]accountOutput, len(all))
				for i, a := range all {
					out[i] = accountOutput{a.ID, a.Name, a.Tier, &a.CreatedAt}
				}
				return cli.PrintList(cmd.OutOrStdout(), format, out, accountColumns)
			})
		},
	}
	format.Flag(list)

	setTier := &cobra.Command{
		Use: "set-tier ACCOUNT_ID TIER", Short: "Change the tier of an account", Args: cobra.ExactArgs(2),
		Example: "  companyscore account set-tier 01a1fc20-f758-7217-a5d9-7f7b1960770c scale",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return tierNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := account.ParseTier(args[1])
			if err != nil {
				return cli.Usage(err)
			}
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				acct, err := accounts.Account(ctx, args[0])
				if err != nil {
					return err
				}
				if err := audit(ctx, accounts, acct.ID, account.TierChanged, acct.ID, fmt.Sprintf("%s to %s", acct.Tier, parsed)); err != nil {
					return err
				}
				acct.Tier = parsed
				if err := accounts.Put(ctx, acct); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "account %s has tier %s; servers apply it %s\n", acct.ID, acct.Tier,
					c.announce(ctx, where, redis.Event{Kind: redis.AccountChanged, Name: acct.ID}))
				return nil
			})
		},
	}
	cmd.AddCommand(create, list, setTier)
	return cmd
}

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
					return fmt.Errorf("%w: `companyscore key list --account %s` shows when each was used last, `companyscore key revoke` revokes one", err, accountID)
				}
				key, raw := account.NewKey(accountID, name, m, time.Now())
				if err := audit(ctx, accounts, accountID, account.KeyCreated, key.ID, strings.TrimSpace(string(m)+" "+name)); err != nil {
					return err
				}
				if err := accounts.PutKey(ctx, key); err != nil {
					return err
				}
				return cli.PrintRecord(cmd.OutOrStdout(), format, keyOutput{ID: key.ID, Raw: raw, Mode: key.Mode},
					fmt.Sprintf("key %s\n\n  %s\n\nThe key is not shown again. Only its hash is stored.", key.ID, raw), newKeyColumns)
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
					out[i] = keyOutput{k.ID, "", k.Mode, k.AccountID, k.Prefix, k.Name, &k.CreatedAt, known(k.LastUsedAt), known(k.RevokedAt)}
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
					if err := audit(ctx, accounts, key.AccountID, account.KeyRevoked, key.ID, key.Name); err != nil {
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

// known is nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
