// Package ops implements the HTTP listener for operators of a long-running role, with health,
// readiness, metrics and profiles. It also compares the clocks of the process and of the stores.
package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"

	"companyscore/internal/config"
)

// ClickHouse is the store that is checked.
type ClickHouse interface {
	// Ping returns nil if ClickHouse answers.
	Ping(ctx context.Context) error
	// LastScoredAt returns the scored_at of the newest record, zero if there is none.
	LastScoredAt(ctx context.Context) (time.Time, error)
}

// Config configures an Admin. All fields but Listen are required.
type Config struct {
	// Listen is the address of the listener, host:port. Empty means that there is none.
	Listen     string
	ClickHouse ClickHouse
	Redis      goredis.UniversalClient
	Registry   *prometheus.Registry
	Logger     *slog.Logger
}

// Flags adds the flag --admin-listen. The value of listen is its default.
func Flags(flags *pflag.FlagSet, listen *string) {
	flags.StringVar(listen, "admin-listen", *listen, "address for /healthz, /readyz, /metrics and /debug/pprof/; empty for none")
}

// Validate returns an error unless listen is empty or host:port.
func Validate(listen string) error {
	if listen == "" {
		return nil
	}
	return config.CheckAddress("--admin-listen", listen)
}

// NewRegistry returns a registry with the metrics of the process and of the Go runtime.
func NewRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// Admin compares the clocks and serves the listener for operators.
type Admin struct {
	// URL is the base URL of the listener, empty without one.
	URL string
	// Failed receives the error of a listener that ended before Close.
	Failed <-chan error

	server    *http.Server // nil without a listener
	stopWatch context.CancelFunc
	watch     sync.WaitGroup
}

// Start starts the comparison of clocks and the listener. The caller must call Close.
func Start(cfg Config) (*Admin, error) {
	clock := NewClock(func(ctx context.Context) (time.Time, error) { return cfg.Redis.Time(ctx).Result() }, cfg.ClickHouse.LastScoredAt,
		cfg.Registry, cfg.Logger)
	failed := make(chan error, 1)
	a := &Admin{Failed: failed}
	if cfg.Listen != "" {
		ln, err := net.Listen("tcp", cfg.Listen)
		if err != nil {
			return nil, fmt.Errorf("admin server: %w: choose another address with --admin-listen", err)
		}
		a.URL = "http://" + ln.Addr().String()
		a.server = &http.Server{
			Handler:           Handler(checks(cfg.ClickHouse, cfg.Redis, clock), cfg.Registry),
			ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 90 * time.Second, // a profile takes 30 s
		}
		go func() { // ends with Close
			if err := a.server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("admin server: %w", err)
			}
		}()
	}
	watching, stop := context.WithCancel(context.Background())
	a.stopWatch = stop
	a.watch.Go(func() { clock.Watch(watching) })
	return a, nil
}

// Close stops the comparison of clocks and the listener. It waits for requests in flight until
// ctx ends.
func (a *Admin) Close(ctx context.Context) error {
	a.stopWatch()
	a.watch.Wait()
	if a.server == nil {
		return nil
	}
	return a.server.Shutdown(ctx)
}
