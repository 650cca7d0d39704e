package requestlog

import "github.com/prometheus/client_golang/prometheus"

// Register exports the numbers of requests without a row, and of counts in memory.
func (l *Log) Register(registry prometheus.Registerer) {
	if l == nil {
		return
	}
	registry.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "companyscore_request_rows_dropped_total", Help: "Requests without a row in the request log because the buffer was full.",
		}, func() float64 { return float64(l.dropped.Load()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "companyscore_request_rows_skipped_total",
			Help: "Requests without a row in the request log because they were answered from memory beyond --request-rows.",
		}, func() float64 { return float64(l.skipped.Load()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "companyscore_request_counts", Help: "Counts of requests in memory, written or not.",
		}, func() float64 {
			l.mu.RLock()
			defer l.mu.RUnlock()
			return float64(len(l.counts))
		}),
	)
}
