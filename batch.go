package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"companyscore/batch"
	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/universe"
	"companyscore/universe/published"
)

var _ batch.Store = (*clickhouse.Universe)(nil)

func (c *cli) batch() *cobra.Command {
	var where config.Stores
	var schedules batch.Schedules
	var memory config.Memory
	var once, recount bool
	var nice int
	cmd := &cobra.Command{
		Use:   "batch",
		Short: "Run the jobs that keep stored data in order",
		Long: `Count all companies for ranks, the distribution, cohorts and movers, and merge tables, each by its
own schedule. With --once everything is done now, with a line for each step, and the program ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := errors.Join(schedules.Validate(), memory.Validate(), checkNice(nice)); err != nil {
				return &usageError{err}
			}
			if recount && !once {
				return &usageError{errors.New("--recount goes with --once; by the clock it is --schedule-recount")}
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
			runner, err := batch.New(batch.Config{Store: clickhouse.NewUniverse(stores.db), Redis: stores.redis, Logger: c.logger, Schedules: schedules})
			if err != nil {
				return err
			}
			if once {
				return runner.Once(cmd.Context(), recount, func(line string) { fmt.Fprintln(cmd.OutOrStdout(), line) })
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
	memory.Flags(cmd.Flags(), 512) // what is counted is some ten megabytes, and a hundred while it is read
	addNiceFlag(cmd, &nice)
	cmd.Flags().BoolVar(&once, "once", false, "do the work of every job once and exit")
	cmd.Flags().BoolVar(&recount, "recount", false, "with --once, count all records and not only what changed")
	cmd.AddCommand(c.batchShow())
	return cmd
}

// shownBatch is what `batch show` prints.
type shownBatch struct {
	PipelineVersion string                  `json:"pipeline_version"`
	CutMs           int64                   `json:"cut_ms"`
	Full            time.Time               `json:"counted_in_full"`
	Records         uint64                  `json:"records"`
	Cohorts         int                     `json:"cohorts"`
	Count           int64                   `json:"count"`
	Mean            float64                 `json:"mean"`
	P50             float64                 `json:"p50"`
	P90             float64                 `json:"p90"`
	Stddev          float64                 `json:"stddev"`
	Min             float64                 `json:"min"`
	Max             float64                 `json:"max"`
	Jobs            map[string]batch.Status `json:"jobs"`
}

// batchShow tells what is published and how the jobs did.
func (c *cli) batchShow() *cobra.Command {
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
			t, err := published.Read(cmd.Context(), stores.redis)
			if err != nil {
				return err
			}
			if t == nil {
				return errors.New("nothing is published yet: is a batch running?")
			}
			tables, err := universe.New(t.Snapshot())
			if err != nil {
				return err
			}
			d := tables.Distribution()
			shown := shownBatch{
				PipelineVersion: t.PipelineVersion, CutMs: t.At.UnixMilli(), Full: t.Full, Records: t.Records, Cohorts: len(t.Cohorts),
				Count: d.Count, Mean: d.Mean, P50: d.P50, P90: d.P90, Stddev: d.Stddev, Min: d.Min, Max: d.Max,
			}
			if shown.Jobs, err = batch.ReadStatus(cmd.Context(), stores.redis); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if asJSON {
				return json.NewEncoder(out).Encode(shown)
			}
			fmt.Fprintf(out, "%d companies of pipeline version %s in %d cohorts, as of %s; everything counted at %s\n",
				d.Count, t.PipelineVersion, len(t.Cohorts), t.At.Format(time.RFC3339), t.Full.Format(time.RFC3339))
			fmt.Fprintf(out, "mean %.2f, median %v, 90th percentile %v, standard deviation %.2f, %v to %v\n", d.Mean, d.P50, d.P90, d.Stddev, d.Min, d.Max)
			for _, job := range batch.Jobs() {
				if s, ok := shown.Jobs[job]; ok {
					fmt.Fprintf(out, "%-13s %-8s at %s %s\n", job, s.Outcome, s.At.Format(time.RFC3339), s.Error)
				}
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
