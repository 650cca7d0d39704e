package cmd

import (
	"bytes"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
)

// usageCommand returns the command.
func usageCommand() *cobra.Command {
	var from service
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "usage",
		Short: "Print what the account used this month",
		Long: `Print the calls of this calendar month (UTC) and what the tier includes, from the service as
a customer. It is free. --output json prints the JSON of the service.`,
		Example: "  companyscore usage\n  companyscore usage --output json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			service, err := from.client()
			if err != nil {
				return err
			}
			used, err := service.Usage(cmd.Context())
			if err != nil {
				return from.report(cmd.ErrOrStderr(), "usage", err)
			}
			out := cmd.OutOrStdout()
			switch format {
			case cli.JSON:
				_, err := fmt.Fprintf(out, "%s\n", bytes.TrimSpace(used.Response.Body))
				return err
			case cli.CSV:
			default:
				fmt.Fprintf(cli.NewPrinted(out), "account %s (%s), %s, next reset %s\n", used.AccountID, used.Tier, used.Period,
					used.NextReset.UTC().Format(time.DateTime))
			}
			return cli.PrintList(out, format, []usedCalls{
				{used, "cold", used.ColdCalls, used.Limits.ColdCallsIncluded},
				{used, "cached", used.CachedCalls, used.Limits.CachedCallsIncluded},
			}, usageColumns)
		},
	}
	from.flags(cmd.Flags())
	format.Flag(cmd)
	return cmd
}

// usedCalls is what an account used of one kind of call.
type usedCalls struct {
	client.Usage
	kind     string
	used     int64
	included *int64 // nil if unmetered
}

var usageColumns = []cli.Column[usedCalls]{
	{Name: "account_id", Only: cli.CSV, Value: func(u usedCalls) any { return u.AccountID }},
	{Name: "tier", Only: cli.CSV, Value: func(u usedCalls) any { return u.Tier }},
	{Name: "period", Only: cli.CSV, Value: func(u usedCalls) any { return u.Period }},
	{Name: "calls", Value: func(u usedCalls) any { return u.kind }},
	{Name: "used", Value: func(u usedCalls) any { return u.used }},
	{Name: "included", Value: func(u usedCalls) any { return u.included }},
	{Name: "left", Value: func(u usedCalls) any {
		if u.included == nil {
			return nil
		}
		return max(0, *u.included-u.used)
	}},
	{Name: "next_reset", Only: cli.CSV, Value: func(u usedCalls) any { return u.NextReset }},
}
