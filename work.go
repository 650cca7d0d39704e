package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/latest"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
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

// Publish keeps the record for readers and tells them of it.
func (r records) Publish(ctx context.Context, rec scoring.Record) error {
	if err := latest.Put(ctx, r.redis, rec); err != nil {
		return err
	}
	return redis.Announce(ctx, r.redis, redis.Event{Kind: redis.ScoreStored, Name: rec.Domain})
}

const (
	// insertPause bounds the inserts of a worker to some three a second.
	insertPause = 300 * time.Millisecond
	// defaultConcurrency is how many runs a worker works on at once. A run of facts
	// alone takes some 0.3 s, nearly all of it waiting to share queries and inserts:
	// 64 make 200 a second, twice what one machine is meant for. One that asks
	// the world waits for it for seconds, and takes a few hundred kilobytes.
	defaultConcurrency = 64
)

func (c *cli) work() *cobra.Command {
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
				return &usageError{err}
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
			server, err := queue.NewServer(q, queue.ServerConfig{Log: stores.db, Concurrency: concurrency})
			if err != nil {
				return &usageError{err}
			}
			if admin != "" {
				failed := make(chan error, 1)
				operators, _, err := startAdmin(admin, stores.checks(), registry, failed)
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
			c.logger.Info("worker ready", "concurrency", concurrency, "sources", sourceNames(sources))
			err = server.Run(ctx, w.Run)
			stopBeside()
			wait()
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				err = errors.Join(err, cause)
			}
			closing, cancel := shutdownContext(ctx)
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
	cmd.Flags().IntVar(&concurrency, "concurrency", defaultConcurrency, "runs to work on at once")
	return cmd
}
