package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	goredis "github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"companyscore/internal/batchjob"
	"companyscore/internal/config"
	"companyscore/internal/queue"
	"companyscore/server"
	"companyscore/server/cache"
	"companyscore/server/demand"
	"companyscore/universe/snapshot"
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

// clock returns what compares the clocks of this process and of the stores.
func (s *stores) clock(registry *prometheus.Registry, logger *slog.Logger) *server.Clock {
	redisTime := func(ctx context.Context) (time.Time, error) { return s.redis.Time(ctx).Result() }
	return server.NewClock(redisTime, s.db.LastScoredAt, registry, logger)
}

// checks are what a role with these stores and this clock needs to be ready.
func (s *stores) checks(clock *server.Clock) map[string]server.Check {
	return map[string]server.Check{
		"clickhouse": s.db.Ping,
		"redis":      func(ctx context.Context) error { return s.redis.Ping(ctx).Err() },
		"batch":      s.checkBatch,
		"refresh":    s.checkRefresh,
		"clock":      clock.Check,
	}
}

// checkBatch says which batch jobs did not end well. Requests are answered all the
// same, by what was published before.
func (s *stores) checkBatch(ctx context.Context) error {
	all, err := batchjob.ReadStatus(ctx, s.redis)
	if err != nil {
		return &server.Ailing{Reason: err.Error()}
	}
	var ill []string
	for _, job := range batchjob.Names() {
		status, ok := all[job]
		if !ok || status.Outcome == batchjob.OK {
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

// checkRefresh says how far companies are younger than their target age.
func (s *stores) checkRefresh(ctx context.Context) error {
	all, err := batchjob.ReadStatus(ctx, s.redis)
	if err != nil {
		return &server.Ailing{Reason: err.Error()}
	}
	status := all["refresh"]
	if status.Refresh == nil {
		return &server.Ailing{Reason: "the refresh job has not run yet"}
	}
	c := status.Refresh
	if c.Young == c.Companies {
		return nil
	}
	return &server.Ailing{Reason: fmt.Sprintf("%.1f %% of %d companies were younger than their target age at %s, %d were due, the oldest record was of %s",
		100*c.Share(), c.Companies, status.Good.Format(time.RFC3339), c.Due, c.Oldest.Format(time.RFC3339))}
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

var (
	laneWaiting = prometheus.NewDesc("companyscore_lane_waiting_runs", "Runs that wait in a lane.", []string{"lane"}, nil)
	laneNext    = prometheus.NewDesc("companyscore_lane_next_seconds", "Age of the run that is next in a lane; 0 while the lane is empty.", []string{"lane"}, nil)
	runsWaiting = prometheus.NewDesc("companyscore_retrying_runs", "Runs that wait for another attempt.", nil, nil)
	runsRunning = prometheus.NewDesc("companyscore_running_runs", "Runs that a worker has begun.", nil, nil)
)

// queueCollector reads the state of the queue for each scrape. While Redis does not
// answer it has no metrics.
type queueCollector struct{ queue *queue.Queue }

// Describe sends the metrics of the queue.
func (queueCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{laneWaiting, laneNext, runsWaiting, runsRunning} {
		descs <- desc
	}
}

// Collect reads and sends the metrics of the queue.
func (c queueCollector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	status, err := c.queue.Status(ctx)
	if err != nil {
		return
	}
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, lane := range status.Lanes {
		age := time.Duration(0)
		if lane.Waiting > 0 {
			age = time.Since(lane.NextCreatedAt)
		}
		send(laneWaiting, float64(lane.Waiting), string(lane.Lane))
		send(laneNext, age.Seconds(), string(lane.Lane))
	}
	send(runsWaiting, float64(status.Retrying))
	send(runsRunning, float64(status.Running))
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

// collectDemand has the companies counted whose demand was not noted.
func collectDemand(registry *prometheus.Registry, recorder *demand.Recorder) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "companyscore_demand_dropped_total", Help: "Companies that were asked for and not noted, as too many waited to be.",
	}, func() float64 { return float64(recorder.Dropped()) }))
}

// collectUniverse has the age and size of the statistics at hand read; -1 before
// the first are there.
func collectUniverse(registry *prometheus.Registry, follower *snapshot.Follower) {
	gauge(registry, "companyscore_universe_age_seconds", "Age of the statistics of the universe.", func(context.Context) (float64, error) {
		t := follower.Tables()
		if t == nil {
			return -1, nil
		}
		return time.Since(t.At()).Seconds(), nil
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
// the first, whether its last run ended well, and what the refresh job saw last.
func collectBatch(registry *prometheus.Registry, rdb goredis.UniversalClient) {
	for _, job := range batchjob.Names() {
		labelled := func(name, help string, value func(batchjob.Status, bool) float64) {
			registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"job": job}}, func() float64 {
				ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
				defer cancel()
				all, err := batchjob.ReadStatus(ctx, rdb)
				if err != nil {
					return -1
				}
				status, ok := all[job]
				return value(status, ok)
			}))
		}
		labelled("companyscore_batch_age_seconds", "Age of the last good run of a batch job; -1 when there was none.", func(s batchjob.Status, ok bool) float64 {
			if !ok || s.Good.IsZero() {
				return -1
			}
			return time.Since(s.Good).Seconds()
		})
		labelled("companyscore_batch_last_ok", "1 when the last run of a batch job ended well, 0 when not, -1 when there was none.", func(s batchjob.Status, ok bool) float64 {
			switch {
			case !ok:
				return -1
			case s.Outcome == batchjob.OK:
				return 1
			}
			return 0
		})
	}
	refreshed := func(name, help string, value func(batchjob.Refreshed) float64) {
		gauge(registry, name, help+"; -1 before the refresh job has run.", func(ctx context.Context) (float64, error) {
			all, err := batchjob.ReadStatus(ctx, rdb)
			if c := all["refresh"].Refresh; c != nil {
				return value(*c), err
			}
			return -1, err
		})
	}
	refreshed("companyscore_refresh_young_ratio", "Share of companies younger than their target age, 0 to 1", func(c batchjob.Refreshed) float64 { return c.Share() })
	refreshed("companyscore_refresh_due_companies", "Companies older than their target age of which a run could learn something new", func(c batchjob.Refreshed) float64 { return float64(c.Due) })
	refreshed("companyscore_refresh_oldest_seconds", "Age of the newest record of the oldest company", func(c batchjob.Refreshed) float64 {
		if c.Oldest.IsZero() {
			return 0
		}
		return time.Since(c.Oldest).Seconds()
	})
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
