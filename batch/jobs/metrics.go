package jobs

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/table"
)

// scrapeTimeout bounds the read of one metric.
const scrapeTimeout = 2 * time.Second

// Register exports the age of the last successful run of each job, whether its last run was
// successful, and the coverage of the refresh job. A gauge is -1 before the first run and during a
// Redis outage.
func Register(registry prometheus.Registerer, rdb goredis.UniversalClient) {
	gauge := func(name, help string, labels prometheus.Labels, job string, value func(s Status, ran bool) float64) {
		registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, func() float64 {
			ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
			defer cancel()
			all, err := ReadStatus(ctx, rdb)
			if err != nil {
				return -1
			}
			status, ran := all[job]
			return value(status, ran)
		}))
	}
	for _, job := range Names() {
		labels := prometheus.Labels{"job": job}
		gauge("companyscore_batch_age_seconds", "Age of the last successful run of a batch job; -1 without one.", labels, job,
			func(s Status, ran bool) float64 {
				if !ran || s.Good.IsZero() {
					return -1
				}
				return time.Since(s.Good).Seconds()
			})
		gauge("companyscore_batch_last_ok", "1 if the last run of a batch job succeeded, 0 if it failed, -1 without a run.", labels, job,
			func(s Status, ran bool) float64 {
				switch {
				case !ran:
					return -1
				case s.Outcome == table.BatchOK:
					return 1
				}
				return 0
			})
	}
	refreshed := func(name, help string, value func(table.Refreshed) float64) {
		gauge(name, help+"; -1 before the refresh job has run.", nil, Refresh, func(s Status, _ bool) float64 {
			if s.Refresh == nil {
				return -1
			}
			return value(*s.Refresh)
		})
	}
	refreshed("companyscore_refresh_young_ratio", "Share of companies younger than their target age, 0 to 1",
		func(r table.Refreshed) float64 { return r.Share() })
	refreshed("companyscore_refresh_due_companies", "Companies older than their target age whose score a run can change",
		func(r table.Refreshed) float64 { return float64(r.Due) })
	refreshed("companyscore_refresh_oldest_seconds", "Largest age of a company's newest record", func(r table.Refreshed) float64 {
		if r.Oldest.IsZero() {
			return 0
		}
		return time.Since(r.Oldest).Seconds()
	})
}
