package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/batch"
	"companyscore/clickhouse"
	"companyscore/internal/batchjob"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/server/meter"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

var _ batch.Store = (*clickhouse.Universe)(nil)

func (c *program) batch() *cobra.Command {
	var where config.Stores
	var schedules batch.Schedules
	var ages batchjob.Ages
	var from sourceConfig
	var tiers string
	var memory config.Memory
	var once bool
	var nice int
	cmd := &cobra.Command{
		Use:   "batch [JOB...]",
		Short: "Run the jobs that keep stored data in order",
		Long: `Run the jobs, each by its own schedule: count (rank, distribution and cohorts of all companies), movers,
refresh (starts runs for companies whose score has become old) and housekeeping (merges tables). Give it the
same --sources and --tiers as the workers: how fast it refreshes depends on what they ask. With --once the named jobs, or all of them, run now, and the program ends.`,
		Args:      cobra.OnlyValidArgs,
		ValidArgs: batchjob.Names(),
		RunE: func(cmd *cobra.Command, names []string) (err error) {
			limits, err := meter.LoadLimits(tiers)
			live, pace, sourcesErr := from.pace()
			if err := errors.Join(err, sourcesErr, schedules.Validate(), ages.Validate(), memory.Validate(), checkNice(nice)); err != nil {
				return cli.Usage(err)
			}
			if len(names) > 0 && !once {
				return cli.Usage(errors.New("names of jobs go with --once; by the clock all jobs run"))
			}
			if err := lowerPriority(nice); err != nil {
				return err
			}
			memory.Apply()
			stores, err := openStores(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stores.close()) }()
			q, err := stores.queue(limits, c.logger)
			if err != nil {
				return err
			}
			runner, err := batch.New(batch.Config{
				Store: clickhouse.NewUniverse(stores.db), Redis: stores.redis, Logger: c.logger, Schedules: schedules,
				Refresh: batch.Refresh{Targets: batchjob.Targets{Ages: ages, Live: live}, Pace: pace, Queue: q},
			})
			if err != nil {
				return err
			}
			if once {
				if len(names) == 0 {
					names = batchjob.Names()
				}
				return runner.Once(cmd.Context(), names, func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) })
			}
			runner.Start()
			defer runner.Stop()
			fmt.Fprintln(cmd.OutOrStdout(), "ready")
			<-cmd.Context().Done()
			return nil
		},
	}
	where.Flags(cmd.Flags())
	schedules.Flags(cmd.Flags())
	ages.Flags(cmd.Flags())
	from.choiceFlags(cmd, "data sources that workers ask")
	addTiersFlag(cmd, &tiers)
	memory.Flags(cmd.Flags(), 512) // what is counted is some ten megabytes, and a hundred while it is read
	addNiceFlag(cmd, &nice)
	cmd.Flags().BoolVar(&once, "once", false, "run the named jobs, or all, once and exit")
	cmd.AddCommand(c.batchShow())
	return cmd
}

// shownBatch is what `batch show --json` prints.
type shownBatch struct {
	PipelineVersion string
	At              time.Time // of the count
	All             universe.Distribution
	Cohorts         []shownCohort // all companies, those without peers too
	Movers          map[universe.Window]universe.MoverList
	Jobs            map[string]batchjob.Status
}

type shownCohort struct {
	universe.CohortKey
	universe.Stats
	BucketSums  universe.BucketSums // in hundredths
	Leaderboard []universe.Company
}

// batchShow prints what is published and how the jobs ended.
func (c *program) batchShow() *cobra.Command {
	var where config.Stores
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print what the batch jobs have published, and how each did last",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			stores, err := openStores(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, stores.close()) }()
			published, epoch, err := snapshot.Read(cmd.Context(), stores.redis)
			if err != nil {
				return err
			}
			if published.Counts.PipelineVersion == "" {
				return errors.New("nothing is published yet: is a batch running?")
			}
			tables, err := universe.New(published)
			if err != nil {
				return err
			}
			jobs, err := batchjob.ReadStatus(cmd.Context(), stores.redis)
			if err != nil {
				return err
			}
			out, d := cmd.OutOrStdout(), tables.Distribution()
			if asJSON {
				shown := shownBatch{PipelineVersion: tables.PipelineVersion(), At: tables.At(), All: d, Movers: tables.Movers().Lists, Jobs: jobs}
				for _, c := range tables.Cohorts() {
					shown.Cohorts = append(shown.Cohorts, shownCohort{c.CohortKey, c.Stats(), c.BucketSums, c.Leaderboard})
				}
				return json.NewEncoder(out).Encode(shown)
			}
			fmt.Fprintf(out, "epoch %d: %d companies of pipeline version %s in %d cohorts, as of %s\n",
				epoch, d.Count, tables.PipelineVersion(), len(tables.Cohorts()), tables.At().Format(time.RFC3339))
			fmt.Fprintf(out, "mean %.2f, median %v, 90th percentile %v, standard deviation %.2f, %v to %v\n", d.Mean, d.P50, d.P90, d.Stddev, d.Min, d.Max)
			for _, job := range batchjob.Names() {
				if s, ok := jobs[job]; ok {
					fmt.Fprintf(out, "%-13s %-8s at %s %s\n", job, s.Outcome, s.At.Format(time.RFC3339), s.Error)
				}
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with all cohorts and movers")
	return cmd
}
