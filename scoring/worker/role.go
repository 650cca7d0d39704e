package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/ops"
	"companyscore/internal/process"
	"companyscore/internal/queue"
	"companyscore/internal/scorecache"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/universe/snapshot"
)

// Config is what Run needs. All fields but Trust, Concurrency, AdminListen and Ready are required.
type Config struct {
	// Sources returns the data sources, with their metrics in the registry.
	Sources func(registry prometheus.Registerer) ([]source.Source, error)
	// Trust is that of scoring.Preference; it may be nil.
	Trust  []string
	Stores Stores
	Queue  *queue.Queue
	// Weights are the weights of the lanes.
	Weights queue.Weights
	// Concurrency is the most runs in flight. Zero means what half of MemoryMB holds.
	Concurrency int
	// MemoryMB is the memory limit of the process, in MiB.
	MemoryMB int
	// AdminListen is the address for operators, empty for none.
	AdminListen string
	Logger      *slog.Logger
	// Ready is called once, when the worker claims runs.
	Ready func()
}

// Stores are the stores of a worker. They must stay open until Run returns.
type Stores struct {
	Records Records
	Traces  TraceStore
	// ClickHouse is checked by /readyz and stores the run log.
	ClickHouse interface {
		ops.ClickHouse
		queue.RunLog
	}
	Redis goredis.UniversalClient
}

// Records is a RecordStore without Publish.
type Records interface {
	Write(ctx context.Context, rec scoring.Record) error
	WriteGroup(ctx context.Context, recs []scoring.Record) []error
	Earlier(ctx context.Context, domain string, now time.Time) (scoring.Earlier, error)
	EarlierOf(ctx context.Context, runs []scoring.Run) ([]scoring.Earlier, error)
	Unchanged(ctx context.Context, domains []string) (map[string]bool, error)
}

// publisher is a RecordStore that publishes records in Redis.
type publisher struct {
	Records
	redis goredis.UniversalClient
}

// Publish stores the records in Redis and announces them to servers.
func (p publisher) Publish(ctx context.Context, recs ...scoring.Record) error {
	return scorecache.Publish(ctx, p.redis, recs...)
}

const (
	// groupMax is how many runs of facts alone share their queries and their insert.
	groupMax = 1000
	// Most memory of a run in flight: one of facts alone keeps its record, one with live sources
	// also their answers. Runs may take half of a worker's memory.
	factsRunBytes = 24 << 10
	liveRunBytes  = 1 << 20
)

// Run claims and executes runs until ctx ends or operators cannot be answered any more. Runs in
// flight then have the grace time of the queue.
func Run(ctx context.Context, cfg Config) (err error) {
	registry := ops.NewRegistry()
	sources, err := cfg.Sources(registry)
	if err != nil {
		return err
	}
	w, err := New(sources, publisher{cfg.Stores.Records, cfg.Stores.Redis}, cfg.Stores.Traces, registry, cfg.Logger)
	if err != nil {
		return err
	}
	w.SetTrust(cfg.Trust)
	perRun, group := liveRunBytes, 1
	if w.Grouped() {
		perRun, group = factsRunBytes, groupMax
	}
	concurrency := cfg.Concurrency
	if concurrency == 0 {
		concurrency = cfg.MemoryMB << 20 / 2 / perRun
	}
	claims, err := queue.NewServer(cfg.Queue, queue.ServerConfig{Log: cfg.Stores.ClickHouse, Weights: cfg.Weights, Concurrency: concurrency,
		Group: group, Progress: w.Progress})
	if err != nil {
		return err
	}
	var parts process.Parts
	defer func() { err = errors.Join(err, parts.Close(ctx)) }()
	operators, err := ops.Start(ops.Config{
		Listen: cfg.AdminListen, ClickHouse: cfg.Stores.ClickHouse, Redis: cfg.Stores.Redis, Registry: registry, Logger: cfg.Logger,
	})
	if err != nil {
		return err
	}
	parts.Defer(operators.Close)
	working, stop := context.WithCancelCause(ctx)
	var background sync.WaitGroup
	parts.DeferFunc(func() { stop(nil); background.Wait() })
	background.Go(func() {
		select {
		case err := <-operators.Failed:
			stop(err)
		case <-working.Done():
		}
	})
	background.Go(func() { snapshot.FollowSpreads(working, cfg.Stores.Redis, cfg.Logger, w.SetSpreads) })
	background.Go(func() { w.status.Publish(working, cfg.Stores.Redis, cfg.Logger) })
	background.Go(source.RunBackground(working, sources))
	cfg.Logger.Info("worker ready", "concurrency", concurrency, "sources", strings.Join(source.Names(sources), ","))
	if cfg.Ready != nil {
		cfg.Ready()
	}
	err = claims.Run(working, w.Run)
	if cause := context.Cause(working); !errors.Is(cause, context.Canceled) {
		err = errors.Join(err, cause)
	}
	if err != nil {
		return fmt.Errorf("work: %w", err)
	}
	return nil
}
