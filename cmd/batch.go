package cmd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"companyscore/batch"
	"companyscore/batch/inbox"
	"companyscore/batch/jobs"
	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/stores"
	"companyscore/internal/table"
	"companyscore/scoring/source/selection"
	"companyscore/server/meter"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

func (c *program) batch() *cobra.Command {
	var where config.Stores
	var cfg batch.Config
	var ages batch.Ages
	var from selection.Config
	var tiers string
	var memory config.Memory
	var files inbox.Config
	var once bool
	var nice process.Nice
	cmd := &cobra.Command{
		Use:   "batch [JOB...]",
		Short: "Run the cron jobs",
		Long: `Run the cron jobs, each by its own schedule:

  count         ranks, distribution and cohorts of all companies
  movers        the largest deltas of each window
  spreads       how signals spread, for the intervals of scores
  refresh       runs for companies with an old score
  housekeeping  merges of tables
  inbox         imports of new files in the directory --inbox, and runs for companies that
                they change; docs/operations.md has its layout

Use the same --sources and --tiers as for the workers: they set the pace of the refresh job.
With --once the named jobs, or all of them, run now, and the program ends. While another
process runs a job, it waits. The inbox job then takes files as they are; else it waits until
a file has not changed from one run to the next.`,
		Example: "  companyscore batch\n  companyscore batch --once count movers\n  companyscore batch --once inbox --inbox ./inbox",
		Args: func(_ *cobra.Command, args []string) error {
			for _, name := range args {
				if !slices.Contains(jobs.Names(), name) {
					return fmt.Errorf("unknown job %q: use %s", name, strings.Join(jobs.Names(), ", "))
				}
			}
			return nil
		},
		ValidArgs: jobs.Names(),
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			limits, err := meter.LoadLimits(tiers)
			refresh := &cfg.Refresh
			var sourcesErr error
			refresh.Live, refresh.Pace, sourcesErr = from.Pace()
			var inboxErr error
			if files.Dir != "" {
				inboxErr = inbox.Check(files.Dir)
			} else if slices.Contains(names, jobs.Inbox) {
				inboxErr = errors.New("the inbox job needs --inbox DIR")
			}
			if err := errors.Join(err, sourcesErr, inboxErr, cfg.Schedules.Validate(), ages.Validate(),
				batch.CheckMinData(cfg.MinDataPct), memory.Validate(),
				nice.Validate()); err != nil {
				return cli.Usage(err)
			}
			refresh.Ages = table.RefreshAges(ages)
			if len(names) > 0 && !once {
				return cli.Usage(errors.New("names of jobs need --once; without it all jobs run by their schedules"))
			}
			if err := nice.Apply(); err != nil {
				return err
			}
			memory.Apply()
			open, err := stores.Open(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			if refresh.Queue, err = open.Queue(limits, c.logger); err != nil {
				return err
			}
			cfg.Store, cfg.Redis, cfg.Logger = clickhouse.NewUniverse(open.DB), open.Redis, c.logger
			if files.Dir != "" {
				files.Store, files.Queue, files.Redis, files.Engine, files.Logger = clickhouse.NewFacts(open.DB), refresh.Queue, open.Redis,
					recipeEngine, c.logger
				cfg.Inbox = inbox.New(files)
			}
			if once {
				cfg.Once = names
				if len(names) == 0 {
					cfg.Once = jobs.Names()
				}
			}
			cfg.Report = func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) }
			cfg.Ready = func() { fmt.Fprintln(cmd.OutOrStdout(), "ready") }
			if once {
				defer cli.Working(cmd.ErrOrStderr(), "running "+strings.Join(cfg.Once, ", "))()
			}
			return batch.Run(cmd.Context(), cfg)
		},
	}
	where.Flags(cmd.Flags())
	cfg.Schedules.Flags(cmd.Flags())
	ages.Flags(cmd.Flags())
	batch.MinDataFlag(cmd.Flags(), &cfg.MinDataPct)
	from.ChoiceFlags(cmd.Flags(), "data sources of the workers")
	selection.TrustFlag(cmd.Flags(), &files.Trust)
	inbox.Flag(cmd.Flags(), &files.Dir)
	meter.LimitsFlag(cmd.Flags(), &tiers)
	memory.Flags(cmd.Flags(), 512) // a snapshot takes about 10 MB, and 100 MB while it is read
	nice.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&once, "once", false, "run the named jobs, or all, once and exit")
	cmd.AddCommand(c.batchShow())
	return cmd
}

// shownBatch is what `batch show --output json` prints.
type shownBatch struct {
	PipelineVersion string
	At              time.Time // of the count
	All             universe.Distribution
	Cohorts         []shownCohort // all companies, those without peers too
	Movers          map[universe.Window]universe.MoverList
	Jobs            map[string]jobs.Status
}

type shownCohort struct {
	universe.CohortKey
	universe.Stats
	BucketSums  universe.BucketSums // in hundredths
	Leaderboard []universe.Company
}

var cohortColumns = []cli.Column[shownCohort]{
	{Name: "sector", Value: func(c shownCohort) any { return c.Sector }},
	{Name: "geo_scope", Value: func(c shownCohort) any { return c.GeoScope }},
	{Name: "profile", Value: func(c shownCohort) any { return c.Profile }},
	{Name: "count", Value: func(c shownCohort) any { return c.Count }},
	{Name: "mean", Value: func(c shownCohort) any { return c.Mean }},
	{Name: "p50", Value: func(c shownCohort) any { return c.P50 }},
	{Name: "p90", Value: func(c shownCohort) any { return c.P90 }},
}

// batchShow prints the published snapshot and the outcome of each job.
func (c *program) batchShow() *cobra.Command {
	var where config.Stores
	var format cli.Output
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the published snapshot and the last outcome of each cron job",
		Long: "Print the published snapshot and the last outcome of each cron job. JSON has all cohorts and movers, CSV a row for " +
			"each cohort.",
		Example: "  companyscore batch show\n  companyscore batch show --output csv > cohorts.csv",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			open, err := stores.Open(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, open.Close()) }()
			published, revision, err := snapshot.Read(cmd.Context(), open.Redis)
			if err != nil {
				return err
			}
			if published.Counts.PipelineVersion == "" {
				return errors.New("nothing is published yet: wait a minute after the first score, or run `companyscore batch --once " +
					"count movers`")
			}
			tables, err := universe.New(published)
			if err != nil {
				return err
			}
			statuses, err := jobs.ReadStatus(cmd.Context(), open.Redis)
			if err != nil {
				return err
			}
			out, d := cmd.OutOrStdout(), tables.Distribution()
			shown := shownBatch{PipelineVersion: tables.PipelineVersion(), At: tables.At(), All: d, Movers: tables.Movers().Lists,
				Jobs: statuses}
			for _, c := range tables.Cohorts() {
				shown.Cohorts = append(shown.Cohorts, shownCohort{c.CohortKey, c.Stats(), c.BucketSums, c.Leaderboard})
			}
			switch format {
			case cli.JSON:
				return cli.PrintJSON(out, shown)
			case cli.CSV:
				return cli.PrintList(out, format, shown.Cohorts, cohortColumns)
			}
			fmt.Fprintf(out, "revision %d: %d companies of pipeline version %s in %d cohorts, as of %s\n",
				revision, d.Count, tables.PipelineVersion(), len(tables.Cohorts()), tables.At().Format(time.RFC3339))
			fmt.Fprintf(out, "mean %.2f, median %v, 90th percentile %v, standard deviation %.2f, %v to %v\n", d.Mean, d.P50, d.P90,
				d.Stddev, d.Min, d.Max)
			for _, job := range jobs.Names() {
				if s, ok := statuses[job]; ok {
					fmt.Fprintf(out, "%-13s %-8s at %s %s\n", job, s.Outcome, s.At.Format(time.RFC3339), s.Error)
				}
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	format.Flag(cmd)
	return cmd
}
