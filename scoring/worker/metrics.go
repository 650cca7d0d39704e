package worker

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts runs and source requests. It is safe for concurrent use.
type metrics struct {
	runs    *prometheus.HistogramVec // by outcome
	sources *prometheus.CounterVec   // by source and outcome
	seconds *prometheus.HistogramVec // by source
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		runs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "companyscore_run_seconds",
			Help:    "Time of one attempt at a cold run, by outcome: scored, nothing_new, stopped or failed.",
			Buckets: []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 45, 60, 90},
		}, []string{"outcome"}),
		sources: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "companyscore_source_answers_total",
			Help: "Questions to data sources, by source and outcome: answered or a warning code.",
		}, []string{"source", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "companyscore_source_seconds", Help: "Time a data source took in a run, with all waiting, by source.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2, 4, 6, 8, 12, 16, 20, 25, 30},
		}, []string{"source"}),
	}
	registry.MustRegister(m.runs, m.sources, m.seconds)
	return m
}

// asked counts one request to a source.
func (m *metrics) asked(source, outcome string, took time.Duration) {
	m.sources.WithLabelValues(source, outcome).Inc()
	m.seconds.WithLabelValues(source).Observe(took.Seconds())
}

// nothingNew counts a refresh that made no record.
func (m *metrics) nothingNew(took time.Duration) {
	m.runs.WithLabelValues("nothing_new").Observe(took.Seconds())
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
