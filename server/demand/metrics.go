package demand

import "github.com/prometheus/client_golang/prometheus"

// Register exports the number of companies whose demand was dropped.
func (r *Recorder) Register(registry prometheus.Registerer) {
	registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "companyscore_demand_dropped_total", Help: "Companies that were asked for and not noted, as too many waited to be.",
	}, func() float64 { return float64(r.Dropped()) }))
}
