package main

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"github.com/spf13/cobra"

	"companyscore/clickhouse"
	"companyscore/internal/account"
	"companyscore/internal/cli"
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/server"
	"companyscore/server/cache"
	"companyscore/server/demand"
	"companyscore/server/directory"
	"companyscore/server/job"
	"companyscore/server/meter"
	"companyscore/universe/snapshot"
)

var (
	_ server.Keys     = (*directory.Directory)(nil)
	_ server.Scores   = (*clickhouse.Scores)(nil)
	_ cache.Store     = (*clickhouse.Scores)(nil)
	_ demand.Store    = (*clickhouse.DB)(nil)
	_ server.Meter    = (*meter.Meter)(nil)
	_ server.Jobs     = (*job.Jobs)(nil)
	_ server.Universe = (*snapshot.Follower)(nil)
)

func (c *program) serve() *cobra.Command {
	var where config.Stores
	cfg := apiConfig{}
	var tiers string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer the HTTP interface",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limits, err := cfg.check(tiers)
			if err != nil {
				return cli.Usage(err)
			}
			cfg.memory.Apply()
			stores, err := openStores(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer stores.close()
			var demo *account.Demo
			if cfg.demo {
				if demo, err = account.OpenDemo(cmd.Context(), clickhouse.NewAccounts(stores.db), where.Data); err != nil {
					return err
				}
			}
			api, err := startAPI(cmd.Context(), stores, limits, cfg, c.logger)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", api.address)
			if demo != nil {
				demo.Print(cmd.OutOrStdout(), "http://"+api.address)
			}
			return api.wait(cmd.Context())
		},
	}
	where.Flags(cmd.Flags())
	cfg.flags(cmd, false)
	addTiersFlag(cmd, &tiers)
	return cmd
}

func addTiersFlag(cmd *cobra.Command, tiers *string) {
	cmd.Flags().StringVar(tiers, "tiers", "", "YAML file that changes tiers, breakers and deadlines")
}

// apiConfig is what the HTTP interface is told.
type apiConfig struct {
	listen, admin string
	demo          bool
	cacheMB       int
	http          config.HTTP
	memory        config.Memory
}

func (a *apiConfig) flags(cmd *cobra.Command, demo bool) {
	flags := cmd.Flags()
	flags.StringVar(&a.listen, "listen", "127.0.0.1:8080", "address to answer on")
	flags.IntVar(&a.cacheMB, "cache-mb", 640, "memory for scores and pages of history; a score takes some 0.5 kB, an eighth is for pages")
	flags.BoolVar(&a.demo, "demo", demo, "open a demo account, keep its keys in demo.json of the data directory, and print them")
	addAdminFlag(cmd, &a.admin)
	a.http.Flags(flags)
	a.memory.Flags(flags, 1024)
}

// check returns the limits of tiers, or an error that names all that is wrong.
func (a *apiConfig) check(tiers string) (meter.Limits, error) {
	faults := []error{config.CheckAddress("--listen", a.listen), checkAdmin(a.admin), a.http.Validate(), a.memory.Validate()}
	if a.cacheMB < 64 {
		faults = append(faults, fmt.Errorf("--cache-mb %d: use 64 or more", a.cacheMB))
	}
	limits, err := meter.LoadLimits(tiers)
	return limits, errors.Join(append(faults, err)...)
}

// api is a running HTTP interface.
type api struct {
	address   string
	adminURL  string // empty without --admin-listen
	server    *server.Server
	admin     *http.Server
	meter     *meter.Meter
	directory *directory.Directory
	scores    *clickhouse.Scores
	universe  *snapshot.Follower
	cache     *cache.Cache
	demand    *demand.Recorder
	unheard   context.CancelFunc // ends listening to events and comparing clocks
	listening sync.WaitGroup
	failed    chan error
}

// startAPI starts answering on an address. The stores must stay open until wait
// or stop returns.
func startAPI(ctx context.Context, stores *stores, limits meter.Limits, cfg apiConfig, logger *slog.Logger) (*api, error) {
	queue, err := stores.queue(limits, logger)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", cfg.listen)
	if err != nil {
		return nil, fmt.Errorf("%w: is another companyscore running? Choose another address with --listen", err)
	}
	a := &api{
		address:   ln.Addr().String(),
		meter:     meter.New(stores.redis, clickhouse.NewUsage(stores.db), limits, logger),
		directory: directory.New(clickhouse.NewAccounts(stores.db), logger),
		scores:    clickhouse.NewScores(stores.db, clickhouse.WriterConfig{}),
		universe:  snapshot.Follow(ctx, stores.redis, logger),
		demand:    demand.Start(stores.db, logger),
		failed:    make(chan error, 2),
	}
	a.cache = cache.New(cfg.cacheMB<<20, stores.redis, a.scores, a.demand.Asked, logger)
	registry := newRegistry()
	collectCache(registry, a.cache)
	collectDemand(registry, a.demand)
	registry.MustRegister(queueCollector{queue})
	collectUniverse(registry, a.universe)
	collectBatch(registry, stores.redis)
	a.server, err = server.New(server.Config{
		HTTP: cfg.http,
		Keys: a.directory, Scores: a.scores, Cache: a.cache, Universe: a.universe, Meter: a.meter,
		Jobs: job.New(stores.redis, queue, job.WithHistory(a.scores)), Asked: a.demand.Asked, Metrics: registry, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	hearing, unheard := context.WithCancel(context.WithoutCancel(ctx))
	a.unheard = unheard
	a.listening.Go(func() {
		redis.Subscribe(hearing, stores.redis, redis.Listener{Heard: a.heard, Missed: a.missed, Alive: a.alive})
	})
	clock := stores.clock(registry, logger)
	a.listening.Go(func() { clock.Watch(hearing) })
	go func() { a.failed <- a.server.Serve(ln) }()
	if cfg.admin != "" {
		bound := ""
		if a.admin, bound, err = startAdmin(cfg.admin, stores.checks(clock), registry, a.failed); err != nil {
			return nil, errors.Join(err, a.stop(ctx))
		}
		a.adminURL = "http://" + bound
	}
	return a, nil
}

// heard drops what another process has changed.
func (a *api) heard(e redis.Event) {
	switch e.Kind {
	case redis.KeyChanged:
		var hash [32]byte
		if n, err := hex.Decode(hash[:], []byte(e.Name)); err == nil && n == len(hash) {
			a.directory.Forget(hash)
		}
	case redis.AccountChanged:
		a.directory.ForgetAccount(e.Name)
	case redis.ScoreStored:
		a.cache.Drop(e.Name)
	}
}

// missed doubts everything remembered, since news of it may have been lost.
func (a *api) missed() {
	a.directory.Doubt()
	a.cache.DropAll()
}

// alive notes that nothing was missed until now.
func (a *api) alive() {
	a.directory.Alive()
	a.cache.Alive()
}

// wait returns when ctx ends and everything under way is done, or when serving fails.
func (a *api) wait(ctx context.Context) error {
	select {
	case err := <-a.failed:
		return errors.Join(err, a.stop(ctx))
	case <-ctx.Done():
		return a.stop(ctx)
	}
}

// stop ends serving in the reverse order of its start.
func (a *api) stop(ctx context.Context) error {
	ctx, cancel := cli.ShutdownContext(ctx)
	defer cancel()
	var faults []error
	if a.admin != nil {
		faults = append(faults, a.admin.Shutdown(ctx))
	}
	faults = append(faults, a.server.Shutdown(ctx))
	a.unheard()
	a.listening.Wait()
	a.meter.Close()
	a.directory.Close()
	a.universe.Close()
	return errors.Join(append(faults, a.demand.Close(ctx), a.scores.Close(ctx))...)
}
