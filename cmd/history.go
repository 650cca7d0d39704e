package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	"companyscore/client"
	"companyscore/internal/cli"
)

// historyCommand returns the command.
func historyCommand() *cobra.Command {
	var from service
	var format cli.Output
	var limit int
	cmd := &cobra.Command{
		Use:     "history DOMAIN",
		Short:   "Print past scores of a company from the service",
		Long:    "Print past scores of a company from the service as a customer, newest first. It is free.",
		Example: "  companyscore history apple.com\n  companyscore history apple.com --limit 0 --output csv > apple.csv",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 0 {
				return cli.Usage(fmt.Errorf("--limit %d: use 0 or more", limit))
			}
			service, err := from.client()
			if err != nil {
				return err
			}
			var records []client.HistoryRecord
			for r, err := range service.History(cmd.Context(), args[0]) {
				if err != nil {
					return from.report(cmd.ErrOrStderr(), args[0], err)
				}
				if records = append(records, r); len(records) == limit {
					break
				}
			}
			return cli.PrintList(cmd.OutOrStdout(), format, records, historyColumns)
		},
	}
	from.flags(cmd.Flags())
	cmd.Flags().IntVar(&limit, "limit", 100, "maximum number of records; 0 prints all")
	format.Flag(cmd)
	return cmd
}

var historyColumns = []cli.Column[client.HistoryRecord]{
	{Name: "scored_at", Value: func(r client.HistoryRecord) any { return r.ScoredAt }},
	{Name: "rating", Value: func(r client.HistoryRecord) any { return r.Rating }},
	{Name: "composite", Value: func(r client.HistoryRecord) any { return r.Composite }},
	{Name: "completeness", Only: cli.Table, Value: func(r client.HistoryRecord) any { return completeness(r.CompletenessPct) }},
	{Name: "data_completeness_pct", Only: cli.CSV, Value: func(r client.HistoryRecord) any { return r.CompletenessPct }},
	{Name: "premium", Value: func(r client.HistoryRecord) any { return r.Premium }},
	{Name: "team", Value: func(r client.HistoryRecord) any { return r.Buckets.Team }},
	{Name: "market", Value: func(r client.HistoryRecord) any { return r.Buckets.Market }},
	{Name: "momentum", Value: func(r client.HistoryRecord) any { return r.Buckets.Momentum }},
	{Name: "finance", Value: func(r client.HistoryRecord) any { return r.Buckets.Finance }},
	{Name: "momentum_index", Only: cli.CSV, Value: func(r client.HistoryRecord) any { return r.MomentumIndex }},
}
