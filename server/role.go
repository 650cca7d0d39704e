package server

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/batch/jobs"
	"companyscore/internal/config"
	"companyscore/internal/ops"
	"companyscore/internal/process"
	"companyscore/internal/queue"
	"companyscore/internal/redis"
	"companyscore/server/cache"
	"companyscore/server/console"
	"companyscore/server/demand"
	"companyscore/server/job"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/server/requestlog"
	"companyscore/universe/snapshot"
)

var (
	_ Keys           = (*keys.Directory)(nil)
	_ Meter          = (*meter.Meter)(nil)
	_ Jobs           = (*job.Jobs)(nil)
	_ Universe       = (*snapshot.Follower)(nil)
	_ console.Scorer = (*ColdCalls)(nil)
)

// Config configures Run. All fields but AdminListen and Ready are required.
type Config struct {
	// Listen is the address of the HTTP API, AdminListen that for operators, empty for none.
	Listen, AdminListen string
	// CacheMB is the memory for scores and pages of history, in MiB.
	CacheMB int
	HTTP    config.HTTP
	// Requests configures the log of requests.
	Requests requestlog.Config
	// Console configures the developer console.
	Console console.Config
	Limits  meter.Limits
	Stores  Stores
	Logger  *slog.Logger
	// Ready is called once, when the server answers.
	Ready func(Address)
}

// Stores are the stores of a server. They must stay open until Run returns.
type Stores struct {
	Accounts keys.Store
	Ledger   meter.Ledger
	Records  Records
	Requests Requests
	// Console has what the pages of the developer console read and write.
	Console console.Stores
	// ClickHouse is checked by /readyz and stores demand.
	ClickHouse interface {
		ops.ClickHouse
		demand.Store
	}
	Redis goredis.UniversalClient
}

// Requests stores answered requests and their counts.
type Requests interface {
	requestlog.Store
	RequestCounts
}

// Records reads stored scores.
type Records interface {
	Scores
	cache.Store
	job.RecordStore
}

// Address has the addresses of a running server.
type Address struct {
	// URL is the base of the HTTP API. AdminURL is that for operators, empty for none.
	URL, AdminURL string
	// AwaitSnapshot returns when the server has read its first snapshot or ctx ends.
	AwaitSnapshot func(ctx context.Context)
}

// MemoryMB is the default memory limit of a process that serves, in MiB.
const MemoryMB = 1024

// Flags adds the flags of c with their defaults.
func (c *Config) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Listen, "listen", "127.0.0.1:8080", "listen address")
	flags.IntVar(&c.CacheMB, "cache-mb", 640, "MB for cached scores and history pages; a score takes about 0.5 kB, pages get an eighth")
	ops.Flags(flags, &c.AdminListen)
	c.HTTP.Flags(flags)
	c.Requests.Flags(flags)
	c.Console.Flags(flags)
}

// Validate returns an error that names every flag that is wrong.
func (c *Config) Validate() error {
	faults := []error{config.CheckAddress("--listen", c.Listen), ops.Validate(c.AdminListen), c.HTTP.Validate(), c.Requests.Validate(),
		c.Console.Validate()}
	if c.CacheMB < 64 {
		faults = append(faults, fmt.Errorf("--cache-mb %d: use 64 or more", c.CacheMB))
	}
	return errors.Join(faults...)
}

// Run serves the HTTP API until ctx ends or serving fails. It then waits for requests in
// flight, within the timeout of process.ShutdownContext.
func Run(ctx context.Context, cfg Config) error {
	r, err := start(ctx, cfg)
	if err != nil {
		return err
	}
	if cfg.Ready != nil {
		cfg.Ready(Address{URL: "http://" + r.address, AdminURL: r.admin.URL, AwaitSnapshot: r.universe.Wait})
	}
	select {
	case err = <-r.failed:
	case err = <-r.admin.Failed:
	case <-ctx.Done():
	}
	return errors.Join(err, r.parts.Close(ctx))
}

// role is a running server with its parts.
type role struct {
	address   string
	admin     *ops.Admin
	meter     *meter.Meter
	directory *keys.Directory
	universe  *snapshot.Follower
	cache     *cache.Cache
	failed    chan error // receives the error that ended serving

	parts process.Parts
}

// start opens the parts of a role, those first that others need. If it fails, no part stays open.
func start(ctx context.Context, cfg Config) (r *role, err error) {
	r = &role{failed: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.parts.Close(ctx))
		}
	}()
	rdb, logger := cfg.Stores.Redis, cfg.Logger
	q, err := queue.New(rdb, queue.Config{TTL: cfg.Limits.JobTTL, Deadline: cfg.Limits.RunDeadline, Logger: logger})
	if err != nil {
		return r, fmt.Errorf("open queue: %w", err)
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return r, fmt.Errorf("%w: is another companyscore running? Choose another address with --listen", err)
	}
	r.address = ln.Addr().String()
	r.parts.DeferFunc(func() { _ = ln.Close() })                            // the server may have closed it
	requests := requestlog.Start(cfg.Requests, cfg.Stores.Requests, logger) // nil if it is off
	r.parts.Defer(requests.Close)
	recorder := demand.Start(cfg.Stores.ClickHouse, logger)
	r.parts.Defer(recorder.Close)
	r.universe = snapshot.Follow(ctx, rdb, logger)
	r.parts.DeferFunc(r.universe.Close)
	r.directory = keys.New(cfg.Stores.Accounts, logger)
	r.parts.Defer(r.directory.Close)
	r.meter = meter.New(rdb, cfg.Stores.Ledger, cfg.Limits, logger)
	r.parts.DeferFunc(r.meter.Close)
	r.cache = cache.New(cfg.CacheMB<<20, rdb, cfg.Stores.Records, recorder.Asked, logger)
	registry := ops.NewRegistry()
	r.cache.Register(registry)
	recorder.Register(registry)
	requests.Register(registry)
	r.universe.Register(registry)
	q.Register(registry)
	jobs.Register(registry, rdb)
	calls := NewColdCalls(r.cache, r.meter, recorder.Asked, registry, logger)
	var pages http.Handler
	if cfg.Console.On() {
		pages, err = console.New(cfg.Console, console.Dependencies{
			Stores: cfg.Stores.Console, Universe: r.universe, Meter: r.meter, Queue: q, Scorer: calls, Redis: rdb, Refusals: refusals(),
			Logger: logger,
		})
		if err != nil {
			return r, err
		}
	}
	server, err := New(Dependencies{
		HTTP: cfg.HTTP,
		Keys: r.directory, Scores: cfg.Stores.Records, Cache: r.cache, Universe: r.universe, Meter: r.meter, Calls: calls,
		Jobs: job.New(rdb, q, job.WithRecords(cfg.Stores.Records)), Requests: requests, RequestCounts: cfg.Stores.Requests, Console: pages,
		Metrics: registry, Logger: logger,
	})
	if err != nil {
		return r, err
	}
	hearing, stopHearing := context.WithCancel(context.WithoutCancel(ctx))
	var events sync.WaitGroup
	events.Go(func() {
		redis.Subscribe(hearing, rdb, redis.Listener{Heard: r.invalidate, Missed: r.missed, Alive: r.alive})
	})
	r.parts.DeferFunc(func() { stopHearing(); events.Wait() })
	go func() { r.failed <- server.Serve(ln) }() // ends with Shutdown
	r.parts.Defer(server.Shutdown)
	r.admin, err = ops.Start(ops.Config{Listen: cfg.AdminListen, ClickHouse: cfg.Stores.ClickHouse, Redis: rdb, Registry: registry,
		Logger: logger})
	if err != nil {
		return r, err
	}
	r.parts.Defer(r.admin.Close)
	return r, nil
}

// invalidate drops cached data that another process has changed.
func (r *role) invalidate(e redis.Event) {
	switch e.Kind {
	case redis.KeyChanged:
		var hash [32]byte
		if n, err := hex.Decode(hash[:], []byte(e.Name)); err == nil && n == len(hash) {
			r.directory.Forget(hash)
		}
	case redis.AccountChanged:
		r.directory.ForgetAccount(e.Name)
	case redis.ScoreStored:
		r.cache.Drop(e.Name)
	}
}

// missed invalidates everything in memory, since events may have been lost.
func (r *role) missed() {
	r.directory.Doubt()
	r.cache.DropAll()
}

// alive records that no event was lost until now.
func (r *role) alive() {
	r.directory.Alive()
	r.cache.Alive()
}
