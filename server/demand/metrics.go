package demand

import "github.com/prometheus/client_golang/prometheus"

// Register exports the number of companies whose demand was dropped.
func (r *Recorder) Register(registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "companyscore_demand_dropped_total", Help: "Companies whose demand was dropped because the queue was full.",
	}, func() float64 { return float64(r.Dropped()) }))
}
