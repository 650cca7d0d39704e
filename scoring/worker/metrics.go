package worker

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts what a worker does. It may be used concurrently.
type metrics struct {
	runs    *prometheus.HistogramVec // by outcome
	sources *prometheus.CounterVec   // by source and outcome
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		runs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "companyscore_run_seconds", Help: "Time of one attempt at a cold run, by outcome: scored, stopped or failed.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 45, 60, 90},
		}, []string{"outcome"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "companyscore_source_answers_total", Help: "Questions to data sources, by source and outcome: answered or a warning code.",
		}, []string{"source", "outcome"}),
	}
	registry.MustRegister(m.runs, m.sources)
	return m
}

func (m *metrics) ran(took time.Duration, err error) {
	outcome := "scored"
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		outcome = "stopped"
	case err != nil:
		outcome = "failed"
	}
	m.runs.WithLabelValues(outcome).Observe(took.Seconds())
}
