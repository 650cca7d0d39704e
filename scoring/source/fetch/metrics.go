package fetch

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics counts requests. It is safe for concurrent use.
type metrics struct {
	requests  *prometheus.CounterVec // by source and outcome
	cacheHits *prometheus.CounterVec // by source
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "companyscore_source_requests_total",
			Help: "Requests to servers of data sources, by source and outcome: answered or a warning code.",
		}, []string{"source", "outcome"}),
		cacheHits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "companyscore_source_kept_answers_total",
			Help: "Questions of data sources that a kept answer spared a request, by source.",
		}, []string{"source"}),
	}
	if registry != nil {
		registry.MustRegister(m.requests, m.cacheHits)
	}
	return m
}

func (m *metrics) requestEnded(source string, err error) {
	outcome := "answered"
	var e *Error
	switch {
	case errors.As(err, &e):
		outcome = e.Code
	case err != nil:
		outcome = CodeParse
	}
	m.requests.WithLabelValues(source, outcome).Inc()
}
