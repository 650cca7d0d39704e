package cmd

import (
	"context"

	"errors"
	"fmt"
	"os/user"

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
	"companyscore/internal/table"
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
func audit(ctx context.Context, accounts *clickhouse.Accounts, accountID string, action table.Action, subject, detail string) error {
	address := "command line"
	if u, err := user.Current(); err == nil {
		address += " of " + u.Username
	}
	return accounts.WriteAudit(ctx, table.AuditEntry{
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

func planNames() (names []string) {
	for _, t := range account.Plans {
		names = append(names, string(t))
	}
	return names
}

type accountOutput struct {
	ID        string       `json:"account_id"`
	Name      string       `json:"name"`
	Plan      account.Plan `json:"tier"`
	CreatedAt *time.Time   `json:"created_at,omitempty"`
}

var accountColumns = []cli.Column[accountOutput]{
	{Name: "account_id", Value: func(a accountOutput) any { return a.ID }},
	{Name: "name", Value: func(a accountOutput) any { return a.Name }},
	{Name: "tier", Value: func(a accountOutput) any { return a.Plan }},
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
			parsed, err := account.ParsePlan(tier)
			if err != nil {
				return cli.Usage(err)
			}
			if name == "" {
				return cli.Usage(fmt.Errorf("no account name: use --name"))
			}
			acct := account.Account{ID: uuid.Must(uuid.NewV7()).String(), Name: name, Plan: parsed, CreatedAt: time.Now()}
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				if err := audit(ctx, accounts, acct.ID, table.AccountCreated, acct.ID, string(acct.Plan)+" "+acct.Name); err != nil {
					return err
				}
				if err := accounts.Put(ctx, acct); err != nil {
					return err
				}
				if err := cli.PrintRecord(cmd.OutOrStdout(), format, accountOutput{ID: acct.ID, Name: acct.Name, Plan: acct.Plan},
					fmt.Sprintf("account %s (%s, %s)", acct.ID, acct.Name, acct.Plan), accountColumns[:3]); err != nil {
					return err
				}
				mode := account.Live
				if acct.Plan == account.Free {
					mode = account.Test
				}
				if format.ForPeople() {
					next(cmd, "key", "create", "--account", acct.ID, "--mode", string(mode))
				}
				return nil
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
					out[i] = accountOutput{a.ID, a.Name, a.Plan, &a.CreatedAt}
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
				return planNames(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			parsed, err := account.ParsePlan(args[1])
			if err != nil {
				return cli.Usage(err)
			}
			return withAccounts(cmd, where, func(ctx context.Context, accounts *clickhouse.Accounts) error {
				acct, err := accounts.Account(ctx, args[0])
				if err != nil {
					return err
				}
				if err := audit(ctx, accounts, acct.ID, table.PlanChanged, acct.ID,
					fmt.Sprintf("%s to %s", acct.Plan, parsed)); err != nil {
					return err
				}
				acct.Plan = parsed
				if err := accounts.Put(ctx, acct); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "account %s has tier %s; servers apply it %s\n", acct.ID, acct.Plan,
					c.announce(ctx, where, redis.Event{Kind: redis.AccountChanged, Name: acct.ID}))
				return nil
			})
		},
	}
	cmd.AddCommand(create, list, setTier)
	return cmd
}

// known is nil for the zero time.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
