package cmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/stores"
	"companyscore/server/console"
	"companyscore/up"
)

// consoleLinkTimeout bounds the command.
const consoleLinkTimeout = 30 * time.Second

// consoleCommand returns the command `console`.
func consoleCommand() *cobra.Command {
	var where config.Stores
	cmd := &cobra.Command{Use: "console", Short: "Sign in to the developer console"}
	where.Flags(cmd.PersistentFlags())

	var grant console.Grant
	var ttl time.Duration
	var base string
	link := &cobra.Command{
		Use:   "link",
		Short: "Print a link that signs in to the console once",
		Long: `Print the address of a page that signs one browser in to the console, once. Without
--account it is for the demo account of the data directory, or for the only account.
With --operator the session also sees all accounts, keys and runs, and may change tiers.`,
		Example: `  companyscore console link
  companyscore console link --account 01a1fc20-f758-7217-a5d9-7f7b1960770c --url https://scores.example.com
  companyscore console link --operator --ttl 5m`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			ctx, cancel := context.WithTimeout(cmd.Context(), consoleLinkTimeout)
			defer cancel()
			if base == "" {
				rt, err := config.ReadRuntime(where.Data)
				if errors.Is(err, os.ErrNotExist) {
					return cli.Usage(fmt.Errorf("no `companyscore up` runs on %s: give the address of the service with --url", where.Data))
				}
				if err != nil {
					return err
				}
				base = rt.BaseURL
			}
			open, err := stores.OpenConsole(ctx, where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			if grant.AccountID, err = findConsoleAccount(ctx, open, where.Data, grant.AccountID); err != nil {
				return err
			}
			url, err := console.NewLink(ctx, open.Redis, base, grant, ttl)
			if err != nil {
				return cli.Usage(err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s\n", url)
			fmt.Fprintf(cmd.ErrOrStderr(), "The link signs one browser in, within %s.\n", ttl)
			return nil
		},
	}
	link.Flags().StringVar(&grant.AccountID, "account", "", "id of the account")
	link.Flags().BoolVar(&grant.Operator, "operator", false, "sign in as an operator, who sees all accounts")
	link.Flags().DurationVar(&ttl, "ttl", console.LinkTTL, "time until the link ends, at most 24h")
	link.Flags().StringVar(&base, "url", "", "address of the service as the browser reaches it; that of the running up by default")
	cmd.AddCommand(link)
	return cmd
}

// findConsoleAccount returns the id of an account: the wanted one, that of the demo account, or the only one.
func findConsoleAccount(ctx context.Context, accounts stores.Console, data, wanted string) (string, error) {
	if wanted == "" {
		if demo, err := up.ReadDemo(data); err == nil {
			wanted = demo.AccountID
		}
	}
	if wanted != "" {
		acct, err := accounts.Account(ctx, wanted)
		if errors.Is(err, account.ErrNotFound) {
			return "", fmt.Errorf("%w: `companyscore account list` shows all", err)
		}
		return acct.ID, err
	}
	all, err := accounts.List(ctx)
	switch {
	case err != nil:
		return "", err
	case len(all) == 0:
		return "", errors.New("there is no account: create one with `companyscore account create --name NAME`")
	case len(all) > 1:
		return "", cli.Usage(errors.New("there are several accounts: choose one of `companyscore account list` with --account"))
	}
	return all[0].ID, nil
}
