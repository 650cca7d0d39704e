package cmd

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"companyscore/internal/cli"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/selection"
)

// sourceRow is a source as `source list` prints it. Facts are read from the own store, so they have no limits.
type sourceRow struct {
	Source string        `json:"source"`
	On     string        `json:"on"`
	Limits []string      `json:"limits"`
	Policy *sourcePolicy `json:"policy,omitempty"`
}

// sourcePolicy is how a live source is asked. Times are in seconds, sizes in bytes.
type sourcePolicy struct {
	Deadline float64 `json:"deadline_s"`
	Connect  float64 `json:"connect_s"`
	Request  float64 `json:"request_s"`
	Retries  int     `json:"retries"`
	Kept     float64 `json:"kept_s"`
	BodyMax  int64   `json:"answer_max_bytes"`
	of       fetch.Policy
}

// sourceRows returns all sources.
func sourceRows(from selection.Config, chosen []string) []sourceRow {
	list := []sourceRow{{Source: scoring.FactsSource, On: from.Status(scoring.FactsSource, chosen), Limits: []string{"own store"}}}
	for _, p := range fetch.Policies {
		list = append(list, sourceRow{p.Source, from.Status(p.Source, chosen), selection.Limits(p.Source),
			&sourcePolicy{p.Deadline.Seconds(), p.Connect.Seconds(), p.Total.Seconds(), p.Retries, p.TTL.Seconds(), int64(p.BodyMax), p}})
	}
	return list
}

// policyColumn returns a column that only live sources have: human for tables, machine for CSV.
func policyColumn(name string, human, machine func(p sourcePolicy) any) []cli.Column[sourceRow] {
	cell := func(value func(sourcePolicy) any) func(sourceRow) any {
		return func(r sourceRow) any {
			if r.Policy == nil {
				return nil
			}
			return value(*r.Policy)
		}
	}
	return []cli.Column[sourceRow]{{Name: name, Value: cell(human), Only: cli.Table}, {Name: name, Value: cell(machine), Only: cli.CSV}}
}

var sourceColumns = slices.Concat(
	[]cli.Column[sourceRow]{
		{Name: "source", Value: func(r sourceRow) any { return r.Source }},
		{Name: "on", Value: func(r sourceRow) any { return r.On }},
	},
	policyColumn("deadline", func(p sourcePolicy) any { return fetch.Short(p.of.Deadline) },
		func(p sourcePolicy) any { return p.Deadline }),
	policyColumn("connect", func(p sourcePolicy) any { return fetch.Short(p.of.Connect) }, func(p sourcePolicy) any { return p.Connect }),
	policyColumn("request", func(p sourcePolicy) any { return fetch.Short(p.of.Total) }, func(p sourcePolicy) any { return p.Request }),
	policyColumn("retries", func(p sourcePolicy) any { return p.Retries }, func(p sourcePolicy) any { return p.Retries }),
	policyColumn("kept", func(p sourcePolicy) any {
		if p.Kept == 0 {
			return "no"
		}
		return fetch.Short(p.of.TTL)
	}, func(p sourcePolicy) any { return p.Kept }),
	policyColumn("answer_max", func(p sourcePolicy) any { return fetch.Size(p.of.BodyMax) }, func(p sourcePolicy) any { return p.BodyMax }),
	[]cli.Column[sourceRow]{{Name: "limits", Value: func(r sourceRow) any { return strings.Join(r.Limits, "; ") }}},
)

// source returns the command `source` with its subcommands.
func (c *program) source() *cobra.Command {
	cmd := &cobra.Command{Use: "source", Short: "List, check, record and replay data sources"}
	cmd.AddCommand(c.sourceList(), c.sourceCheck(), c.sourceRecord(), c.sourceReplay())
	return cmd
}

func (c *program) sourceList() *cobra.Command {
	var from selection.Config
	var format cli.Output
	list := &cobra.Command{
		Use: "list", Short: "List data sources with their limits", Args: cobra.NoArgs,
		Example: "  companyscore source list\n  companyscore source list --sources facts,dns --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			chosen, err := from.Names()
			if err != nil {
				return cli.Usage(err)
			}
			return cli.PrintList(cmd.OutOrStdout(), format, sourceRows(from, chosen), sourceColumns)
		},
	}
	from.Flags(list.Flags())
	format.Flag(list)
	return list
}
