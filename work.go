package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/internal/scorecache"
	"companyscore/scoring"
	"companyscore/scoring/worker"
	"companyscore/server/meter"
)

// records are where a worker's scores go: ClickHouse, which keeps all, and then
// Redis, from where servers read the newest.
type records struct {
	*clickhouse.Scores
	redis goredis.UniversalClient
}

// Publish keeps the records for readers and announces them.
func (r records) Publish(ctx context.Context, recs ...scoring.Record) error {
	if err := scorecache.Put(ctx, r.redis, recs...); err != nil {
		return err
	}
	domains := make([]string, len(recs))
	for i, rec := range recs {
		domains[i] = rec.Domain
	}
	return redis.Announce(ctx, r.redis, redis.ScoreStored, domains...)
}

const (
	// insertPause bounds the inserts of runs that end one by one to some three a second.
	insertPause = 300 * time.Millisecond
	// groupMax is how many runs of facts alone share their queries and their insert.
	groupMax = 1000
	// How much memory a run in flight takes, at most: one of facts alone its record, one
	// that asks live sources their answers too. Runs may take half of a worker's memory.
	factsRunBytes = 24 << 10
	liveRunBytes  = 1 << 20
)

func (c *program) work() *cobra.Command {
	var where config.Stores
	var from sourceConfig
	var tiers, admin string
	var concurrency int
	var memory config.Memory
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Score companies that were asked for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			limits, err := meter.LoadLimits(tiers)
			if err := errors.Join(err, from.check(), checkAdmin(admin), memory.Validate()); err != nil {
				return cli.Usage(err)
			}
			memory.Apply()
			stores, err := openStores(ctx, where)
			if err != nil {
				return err
			}
			defer stores.close()
			q, err := stores.queue(limits, c.logger)
			if err != nil {
				return err
			}
			scores := clickhouse.NewScores(stores.db, clickhouse.WriterConfig{Pause: insertPause})
			traces := clickhouse.NewTraces(stores.db, clickhouse.WriterConfig{Pause: insertPause})
			registry := newRegistry()
			sources, err := from.open(stores, registry, c.logger)
			if err != nil {
				return err
			}
			w, err := worker.New(sources, records{scores, stores.redis}, traces, registry, c.logger)
			if err != nil {
				return err
			}
			perRun, group := liveRunBytes, 1
			if w.Grouped() {
				perRun, group = factsRunBytes, groupMax
			}
			if concurrency == 0 {
				concurrency = memory.LimitMB << 20 / 2 / perRun
			}
			server, err := queue.NewServer(q, queue.ServerConfig{Log: stores.db, Weights: limits.Lanes, Concurrency: concurrency, Group: group})
			if err != nil {
				return cli.Usage(err)
			}
			clock := stores.clock(registry, c.logger)
			if admin != "" {
				failed := make(chan error, 1)
				operators, _, err := startAdmin(admin, stores.checks(clock), registry, failed)
				if err != nil {
					return err
				}
				defer operators.Close()
				var stop context.CancelCauseFunc
				ctx, stop = context.WithCancelCause(ctx)
				defer stop(nil)
				go func() {
					select {
					case err := <-failed:
						stop(fmt.Errorf("answer operators: %w", err))
					case <-ctx.Done():
					}
				}()
			}
			beside, stopBeside := context.WithCancel(ctx)
			defer stopBeside()
			wait := runBackground(beside, sources)
			var watching sync.WaitGroup
			watching.Go(func() { clock.Watch(beside) })
			c.logger.Info("worker ready", "concurrency", concurrency, "sources", sourceNames(sources))
			err = server.Run(ctx, w.Run)
			stopBeside()
			wait()
			watching.Wait()
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				err = errors.Join(err, cause)
			}
			closing, cancel := cli.ShutdownContext(ctx)
			defer cancel()
			if err := errors.Join(err, scores.Close(closing), traces.Close(closing)); err != nil {
				return fmt.Errorf("work: %w", err)
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	from.flags(cmd)
	addAdminFlag(cmd, &admin)
	addTiersFlag(cmd, &tiers)
	memory.Flags(cmd.Flags(), 192) // a worker holds lists of traffic ranks and the answers it keeps, and runs beside others
	cmd.Flags().IntVar(&concurrency, "concurrency", 0, "most runs in flight; 0 for what half of the memory limit holds")
	return cmd
}
