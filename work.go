package main

import (
	"context"
	"errors"
	"fmt"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/latest"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/scoring"
	"companyscore/scoring/source"
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

// knownSources are the data sources there are, by name.
var knownSources = []string{scoring.FactsSource}

func addSourcesFlag(cmd *cobra.Command, sources *string) {
	cmd.Flags().StringVar(sources, "sources", "all", "data sources to ask: all, or names separated by commas")
}

func (c *cli) work() *cobra.Command {
	var where config.Stores
	var sources, tiers, admin string
	var concurrency int
	cmd := &cobra.Command{
		Use:   "work",
		Short: "Score companies that were asked for",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			limits, err := meter.LoadLimits(tiers)
			_, unknown := config.ParseSources(sources, knownSources)
			if err := errors.Join(err, unknown, checkAdmin(admin)); err != nil {
				return &usageError{err}
			}
			stores, err := openStores(ctx, where)
			if err != nil {
				return err
			}
			defer stores.close()
			q, err := stores.queue(limits, c.logger)
			if err != nil {
				return err
			}
			scores := clickhouse.NewScores(stores.db, clickhouse.WriterConfig{})
			registry := newRegistry()
			w := worker.New([]source.Source{source.Facts{Store: clickhouse.NewFacts(stores.db)}}, records{scores, stores.redis}, registry, c.logger)
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
			c.logger.Info("worker ready", "concurrency", concurrency, "sources", sources)
			err = server.Run(ctx, w.Run)
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
				err = errors.Join(err, cause)
			}
			closing, cancel := shutdownContext(ctx)
			defer cancel()
			if err := errors.Join(err, scores.Close(closing)); err != nil {
				return fmt.Errorf("work: %w", err)
			}
			return nil
		},
	}
	where.Flags(cmd.Flags())
	addSourcesFlag(cmd, &sources)
	addAdminFlag(cmd, &admin)
	addTiersFlag(cmd, &tiers)
	cmd.Flags().IntVar(&concurrency, "concurrency", 16, "runs to work on at once")
	return cmd
}
