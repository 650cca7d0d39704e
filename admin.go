package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/batch"
	"companyscore/internal/config"
	"companyscore/internal/queue"
	"companyscore/server"
	"companyscore/server/cache"
	"companyscore/universe/published"
)

func addAdminFlag(cmd *cobra.Command, admin *string) {
	cmd.Flags().StringVar(admin, "admin-listen", "", "address for /healthz, /readyz, /metrics and /debug/pprof/; empty for none")
}

func checkAdmin(admin string) error {
	if admin == "" {
		return nil
	}
	return config.CheckAddress("--admin-listen", admin)
}

// newRegistry returns a registry that knows the process.
func newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return registry
}

// checks are what a role with these stores needs to be ready.
func (s *stores) checks() map[string]server.Check {
	return map[string]server.Check{
		"clickhouse": s.db.Ping,
		"redis":      func(ctx context.Context) error { return s.redis.Ping(ctx).Err() },
		"batch":      s.checkBatch,
	}
}

// checkBatch says which batch jobs did not end well. Requests are answered all the
// same, by what was published before.
func (s *stores) checkBatch(ctx context.Context) error {
	all, err := batch.ReadStatus(ctx, s.redis)
	if err != nil {
		return &server.Ailing{Reason: err.Error()}
	}
	var ill []string
	for _, job := range batch.Jobs() {
		status, ok := all[job]
		if !ok || status.Outcome == batch.OK {
			continue
		}
		good := "there was no good run before"
		if !status.Good.IsZero() {
			good = "the last good run ended " + status.Good.Format(time.RFC3339)
		}
		ill = append(ill, fmt.Sprintf("%s %s at %s (%s), %s", job, status.Outcome, status.At.Format(time.RFC3339), status.Error, good))
	}
	if len(ill) > 0 {
		return &server.Ailing{Reason: strings.Join(ill, "; ")}
	}
	return nil
}

// startAdmin answers operators on an address until the returned server is shut
// down. bound is the address with the port it got. What ends it otherwise goes to
// failed.
func startAdmin(address string, checks map[string]server.Check, registry *prometheus.Registry, failed chan<- error) (admin *http.Server, bound string, err error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", fmt.Errorf("answer operators: %w", err)
	}
	admin = &http.Server{Handler: server.Admin(checks, registry), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 90 * time.Second} // a profile takes 30 s
	go func() {
		if err := admin.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			failed <- err
		}
	}()
	return admin, ln.Addr().String(), nil
}

// scrapeTimeout bounds what is read from a store when metrics are asked for.
const scrapeTimeout = 2 * time.Second

// collectQueue has the length of the queue and the age of its oldest run read
// when metrics are asked for; -1 while Redis does not answer.
func collectQueue(registry *prometheus.Registry, q *queue.Queue) {
	gauge(registry, "companyscore_queue_open_runs", "Runs that have not ended.", func(ctx context.Context) (float64, error) {
		n, err := q.Open(ctx)
		return float64(n), err
	})
	gauge(registry, "companyscore_queue_oldest_seconds", "Age of the oldest run that has not ended.", func(ctx context.Context) (float64, error) {
		oldest, err := q.Oldest(ctx)
		if oldest.IsZero() {
			return 0, err
		}
		return time.Since(oldest).Seconds(), err
	})
}

// collectCache has hits by tier and the size of the scores in memory read.
func collectCache(registry *prometheus.Registry, c *cache.Cache) {
	for tier, name := range map[cache.Tier]string{cache.Memory: "memory", cache.Redis: "redis", cache.ClickHouse: "clickhouse"} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "companyscore_cache_answers_total", Help: "Lookups of scores by the tier that answered. Answers from memory that needed nothing else are requests of tier l1.",
			ConstLabels: prometheus.Labels{"tier": name},
		}, func() float64 { return float64(c.Hits(tier)) }))
	}
	gauge(registry, "companyscore_cache_entries", "Scores in memory.", func(context.Context) (float64, error) {
		entries, _ := c.Size()
		return float64(entries), nil
	})
	gauge(registry, "companyscore_cache_bytes", "Bytes that scores in memory take.", func(context.Context) (float64, error) {
		_, bytes := c.Size()
		return float64(bytes), nil
	})
}

// collectUniverse has the age and size of the statistics at hand read; -1 before
// the first are there.
func collectUniverse(registry *prometheus.Registry, follower *published.Follower) {
	gauge(registry, "companyscore_universe_age_seconds", "Age of the statistics of the universe.", func(context.Context) (float64, error) {
		t := follower.Tables()
		if t == nil {
			return -1, nil
		}
		return time.Since(t.Cut()).Seconds(), nil
	})
	gauge(registry, "companyscore_universe_companies", "Companies in the statistics of the universe.", func(context.Context) (float64, error) {
		t := follower.Tables()
		if t == nil {
			return -1, nil
		}
		return float64(t.Distribution().Count), nil
	})
}

// collectBatch has the age of the last good run of each batch job read, -1 before
// the first, and whether its last run ended well.
func collectBatch(registry *prometheus.Registry, rdb goredis.UniversalClient) {
	for _, job := range batch.Jobs() {
		labelled := func(name, help string, value func(batch.Status, bool) float64) {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"job": job}}, func() float64 {
				ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
				defer cancel()
				all, err := batch.ReadStatus(ctx, rdb)
				if err != nil {
					return -1
				}
				status, ok := all[job]
				return value(status, ok)
			}))
		}
		labelled("companyscore_batch_age_seconds", "Age of the last good run of a batch job; -1 when there was none.", func(s batch.Status, ok bool) float64 {
			if !ok || s.Good.IsZero() {
				return -1
			}
			return time.Since(s.Good).Seconds()
		})
		labelled("companyscore_batch_last_ok", "1 when the last run of a batch job ended well, 0 when not, -1 when there was none.", func(s batch.Status, ok bool) float64 {
			switch {
			case !ok:
				return -1
			case s.Outcome == batch.OK:
				return 1
			}
			return 0
		})
	}
}

func gauge(registry *prometheus.Registry, name, help string, read func(ctx context.Context) (float64, error)) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
		defer cancel()
		value, err := read(ctx)
		if err != nil {
			return -1
		}
		return value
	}))
}
