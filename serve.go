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
	"companyscore/internal/config"
	"companyscore/internal/redis"
	"companyscore/server"
	"companyscore/server/account"
	"companyscore/server/job"
	"companyscore/server/meter"
	"companyscore/universe/published"
)

var (
	_ server.Keys     = (*account.Directory)(nil)
	_ server.Scores   = (*clickhouse.Scores)(nil)
	_ server.Meter    = (*meter.Meter)(nil)
	_ server.Jobs     = (*job.Jobs)(nil)
	_ server.Universe = (*published.Follower)(nil)
)

func (c *cli) serve() *cobra.Command {
	var where config.Stores
	var listen, admin, tiers string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Answer the HTTP interface",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			limits, err := checkServe(listen, admin, tiers)
			if err != nil {
				return &usageError{err}
			}
			stores, err := openStores(cmd.Context(), where)
			if err != nil {
				return err
			}
			defer stores.close()
			api, err := startAPI(cmd.Context(), stores, limits, listen, admin, c.logger)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ready http://%s\n", api.address)
			return api.wait(cmd.Context())
		},
	}
	where.Flags(cmd.Flags())
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:8080", "address to answer on")
	addAdminFlag(cmd, &admin)
	addTiersFlag(cmd, &tiers)
	return cmd
}

func addTiersFlag(cmd *cobra.Command, tiers *string) {
	cmd.Flags().StringVar(tiers, "tiers", "", "YAML file that changes tiers, breakers and deadlines")
}

func checkServe(listen, admin, tiers string) (meter.Limits, error) {
	faults := []error{config.CheckAddress("--listen", listen), checkAdmin(admin)}
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
	directory *account.Directory
	scores    *clickhouse.Scores
	universe  *published.Follower
	unheard   context.CancelFunc // ends listening to events
	listening sync.WaitGroup
	failed    chan error
}

// startAPI starts answering on an address. The stores must stay open until wait
// or stop returns.
func startAPI(ctx context.Context, stores *stores, limits meter.Limits, listen, admin string, logger *slog.Logger) (*api, error) {
	queue, err := stores.queue(limits, logger)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("%w: is another companyscore running? Choose another address with --listen", err)
	}
	a := &api{
		address:   ln.Addr().String(),
		meter:     meter.New(stores.redis, clickhouse.NewUsage(stores.db), limits, logger),
		directory: account.NewDirectory(clickhouse.NewAccounts(stores.db), logger),
		scores:    clickhouse.NewScores(stores.db, clickhouse.WriterConfig{}),
		universe:  published.Follow(ctx, stores.redis, logger),
		failed:    make(chan error, 2),
	}
	registry := newRegistry()
	collectQueue(registry, queue)
	collectUniverse(registry, a.universe)
	a.server, err = server.New(server.Config{
		Keys: a.directory, Scores: a.scores, Universe: a.universe, Meter: a.meter,
		Jobs: job.New(stores.redis, queue, job.WithHistory(a.scores)), Queue: queue, Metrics: registry, Logger: logger,
	})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	hearing, unheard := context.WithCancel(context.WithoutCancel(ctx))
	a.unheard = unheard
	a.listening.Go(func() { redis.Subscribe(hearing, stores.redis, a.heard, a.directory.Doubt) })
	go func() { a.failed <- a.server.Serve(ln) }()
	if admin != "" {
		bound := ""
		if a.admin, bound, err = startAdmin(admin, stores.checks(), registry, a.failed); err != nil {
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
	}
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
	ctx, cancel := shutdownContext(ctx)
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
	return errors.Join(append(faults, a.scores.Close(ctx))...)
}
