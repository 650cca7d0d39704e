package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"

	bench "companyscore/bench/command"
	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/server/meter"
)

// stores are the open connections of a role.
type stores struct {
	db    *clickhouse.DB
	redis goredis.UniversalClient
	// runtime is what the `up` says whose stores these are, nil for others.
	runtime *config.Runtime
}

// openStores connects to both stores.
func openStores(ctx context.Context, where config.Stores) (*stores, error) {
	runtime, err := where.Resolve()
	if err != nil {
		return nil, err
	}
	db, err := clickhouse.Open(ctx, clickhouse.Config{URL: where.ClickHouseURL})
	if err != nil {
		return nil, err
	}
	client, err := redis.Open(ctx, where.RedisURL)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &stores{db: db, redis: client, runtime: runtime}, nil
}

// openClickHouse connects to ClickHouse alone.
func openClickHouse(ctx context.Context, where config.Stores) (*clickhouse.DB, error) {
	return openClickHouseFor(ctx, where, 0)
}

// openClickHouseFor is openClickHouse for queries that may take as long as said;
// zero means the usual.
func openClickHouseFor(ctx context.Context, where config.Stores, queryMax time.Duration) (*clickhouse.DB, error) {
	if where.RedisURL == "" {
		where.RedisURL = "unused" // so that a ClickHouse URL is enough
	}
	if _, err := where.Resolve(); err != nil {
		return nil, err
	}
	return clickhouse.Open(ctx, clickhouse.Config{URL: where.ClickHouseURL, QueryTimeout: queryMax})
}

// close closes both connections.
func (s *stores) close() error { return errors.Join(s.redis.Close(), s.db.Close()) }

// queue returns the queue of runs in the stores.
func (s *stores) queue(limits meter.Limits, logger *slog.Logger) (*queue.Queue, error) {
	q, err := queue.New(s.redis, queue.Config{TTL: limits.JobTTL, Deadline: limits.RunDeadline, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// benchStore is the ClickHouse that `bench seed` fills.
type benchStore struct {
	*clickhouse.DB
	*clickhouse.Accounts
}

// seedInsertTimeout bounds the writing of one part of a universe.
const seedInsertTimeout = 15 * time.Minute

func openBenchStore(ctx context.Context, where config.Stores) (bench.Store, error) {
	db, err := openClickHouseFor(ctx, where, seedInsertTimeout)
	if err != nil {
		return nil, err
	}
	return benchStore{db, clickhouse.NewAccounts(db)}, nil
}
