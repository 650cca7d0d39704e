package cmd

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
)

// moverWindows are the arguments of the command `movers`.
var moverWindows = []string{string(client.Week), string(client.Month), string(client.Quarter)}

// moversCommand returns the command.
func moversCommand() *cobra.Command {
	var from service
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "movers WINDOW",
		Short: "Print the companies whose scores changed most",
		Long: `Print the companies with the largest deltas within 7d, 30d or 90d, from the service as a
customer: at most 20 gainers, then at most 20 decliners. It is free. --output json prints the JSON of the
service.`,
		Example: "  companyscore movers 7d\n  companyscore movers 90d --output csv > movers.csv",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return err
			}
			if !slices.Contains(moverWindows, args[0]) {
				return fmt.Errorf("window %q: use %s", args[0], strings.Join(moverWindows, ", "))
			}
			return nil
		},
		ValidArgs: moverWindows,
		RunE: func(cmd *cobra.Command, args []string) error {
			service, err := from.client()
			if err != nil {
				return err
			}
			movers, err := service.Movers(cmd.Context(), client.Window(args[0]))
			if err != nil {
				return from.report(cmd.ErrOrStderr(), "movers", err)
			}
			if format == cli.JSON {
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\n", bytes.TrimSpace(movers.Response.Body))
				return err
			}
			rows := slices.Concat(movers.Gainers, movers.Decliners)
			if len(rows) == 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "no score changed within %s\n", args[0])
			}
			return cli.PrintList(cmd.OutOrStdout(), format, rows, moverColumns)
		},
	}
	from.flags(cmd.Flags())
	format.Flag(cmd)
	return cmd
}

var moverColumns = []cli.Column[client.Mover]{
	{Name: "domain", Value: func(m client.Mover) any { return m.Domain }},
	{Name: "company_name", Value: func(m client.Mover) any { return m.Name }},
	{Name: "delta", Only: cli.Table, Value: func(m client.Mover) any { return fmt.Sprintf("%+.1f", m.Delta) }},
	{Name: "delta", Only: cli.CSV, Value: func(m client.Mover) any { return m.Delta }},
	{Name: "composite_then", Value: func(m client.Mover) any { return m.CompositeThen }},
	{Name: "composite_now", Value: func(m client.Mover) any { return m.CompositeNow }},
	{Name: "rating_then", Value: func(m client.Mover) any { return m.RatingThen }},
	{Name: "rating_now", Value: func(m client.Mover) any { return m.RatingNow }},
}
