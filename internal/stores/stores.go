// Package stores opens the connections to ClickHouse and Redis and returns the stores that each
// role needs. Only this package, up and the commands import both clickhouse and roles.
package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/clickhouse"
	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/server"
	"companyscore/server/console"
	"companyscore/server/meter"
)

// Stores are the open connections of a role. They are safe for concurrent use until Close.
type Stores struct {
	DB    *clickhouse.DB
	Redis goredis.UniversalClient

	parts process.Parts // the connections, and each store that writes in the background
}

// advice is what to do if a store does not answer.
const advice = "check that it runs and its address: `companyscore doctor` does"

// Open connects to both stores.
func Open(ctx context.Context, where config.Stores) (*Stores, error) {
	if _, err := where.Resolve(); err != nil {
		return nil, err
	}
	s := &Stores{}
	if err := s.open(ctx, where); err != nil {
		return nil, errors.Join(fmt.Errorf("%w (%s)", err, advice), s.Close())
	}
	return s, nil
}

func (s *Stores) open(ctx context.Context, where config.Stores) (err error) {
	if s.DB, err = clickhouse.Open(ctx, clickhouse.Config{URL: where.ClickHouseURL}); err != nil {
		return err
	}
	s.parts.Defer(func(context.Context) error { return s.DB.Close() })
	if s.Redis, err = redis.Open(ctx, where.RedisURL); err != nil {
		return err
	}
	s.parts.Defer(func(context.Context) error { return s.Redis.Close() })
	return nil
}

// OpenClickHouse connects to ClickHouse alone. queryTimeout is the time limit of a query; zero
// means the default of [clickhouse.Config].
func OpenClickHouse(ctx context.Context, where config.Stores, queryTimeout time.Duration) (*clickhouse.DB, error) {
	if where.RedisURL == "" {
		where.RedisURL = "unused" // so that a ClickHouse URL is enough
	}
	if _, err := where.Resolve(); err != nil {
		return nil, err
	}
	db, err := clickhouse.Open(ctx, clickhouse.Config{URL: where.ClickHouseURL, QueryTimeout: queryTimeout})
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, advice)
	}
	return db, nil
}

// Close writes pending records and traces, within the time limit of process.ShutdownContext, and
// closes both connections.
func (s *Stores) Close() error { return s.parts.Close(context.Background()) }

// Queue returns the queue of runs.
func (s *Stores) Queue(limits meter.Limits, logger *slog.Logger) (*queue.Queue, error) {
	q, err := queue.New(s.Redis, queue.Config{TTL: limits.JobTTL, Deadline: limits.RunDeadline, Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	return q, nil
}

// Scores returns the store of records. pause is the minimum time between two inserts.
func (s *Stores) Scores(pause time.Duration) *clickhouse.Scores {
	scores := clickhouse.NewScores(s.DB, clickhouse.WriterConfig{Pause: pause})
	s.parts.Defer(scores.Close)
	return scores
}

// Traces returns the store of traces. pause is the minimum time between two inserts.
func (s *Stores) Traces(pause time.Duration) *clickhouse.Traces {
	traces := clickhouse.NewTraces(s.DB, clickhouse.WriterConfig{Pause: pause})
	s.parts.Defer(traces.Close)
	return traces
}

// Server returns the stores of the HTTP API.
func (s *Stores) Server() server.Stores {
	accounts, scores, requests := clickhouse.NewAccounts(s.DB), s.Scores(0), clickhouse.NewRequests(s.DB)
	return server.Stores{
		Accounts: accounts, Ledger: clickhouse.NewUsage(s.DB), Records: scores, Requests: requests, ClickHouse: s.DB, Redis: s.Redis,
		Console: s.console(accounts, scores, requests),
	}
}

// console returns what each page of the developer console needs.
func (s *Stores) console(accounts *clickhouse.Accounts, scores *clickhouse.Scores, requests *clickhouse.Requests) console.Stores {
	calls := struct {
		*clickhouse.Accounts
		*clickhouse.Requests
	}{accounts, requests}
	facts := clickhouse.NewFacts(s.DB)
	return console.Stores{
		Sessions: accounts, Keys: accounts, Usage: calls, Requests: calls,
		Companies: struct {
			*clickhouse.Scores
			*clickhouse.Facts
		}{scores, facts},
		Data: struct {
			*clickhouse.DB
			*clickhouse.Facts
		}{s.DB, facts},
		Home: struct {
			*clickhouse.Accounts
			*clickhouse.Scores
			*clickhouse.Facts
		}{accounts, scores, facts},
		Operators: struct {
			*clickhouse.Accounts
			*clickhouse.DB
		}{accounts, s.DB},
	}
}

// Requests is the ClickHouse that `request show` reads.
type Requests struct {
	*clickhouse.DB
	*clickhouse.Requests
}

// OpenRequests connects to the ClickHouse that `request show` reads.
func OpenRequests(ctx context.Context, where config.Stores) (Requests, error) {
	db, err := OpenClickHouse(ctx, where, 0)
	if err != nil {
		return Requests{}, err
	}
	return Requests{db, clickhouse.NewRequests(db)}, nil
}

// Console is the stores that `console link` uses.
type Console struct {
	*Stores
	*clickhouse.Accounts
}

// OpenConsole connects to the stores that `console link` uses.
func OpenConsole(ctx context.Context, where config.Stores) (Console, error) {
	open, err := Open(ctx, where)
	if err != nil {
		return Console{}, err
	}
	return Console{open, clickhouse.NewAccounts(open.DB)}, nil
}

// Seed is the ClickHouse that `bench seed` fills.
type Seed struct {
	*clickhouse.DB
	*clickhouse.Accounts
}

// seedInsertTimeout is the time limit of the insert of one part of a universe.
const seedInsertTimeout = 15 * time.Minute

// OpenSeed connects to the ClickHouse that `bench seed` fills.
func OpenSeed(ctx context.Context, where config.Stores) (Seed, error) {
	db, err := OpenClickHouse(ctx, where, seedInsertTimeout)
	if err != nil {
		return Seed{}, err
	}
	return Seed{db, clickhouse.NewAccounts(db)}, nil
}
