package cache

import "github.com/prometheus/client_golang/prometheus"

// Register exports lookups by tier and the size of the scores in memory.
func (c *Cache) Register(registry prometheus.Registerer) {
	for tier, name := range map[Tier]string{Memory: "memory", Redis: "redis", ClickHouse: "clickhouse"} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "companyscore_cache_answers_total", Help: "Lookups of scores by the tier that answered. Answers from memory that needed nothing else are requests of tier l1.",
			ConstLabels: prometheus.Labels{"tier": name},
		}, func() float64 { return float64(c.Hits(tier)) }))
	}
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "companyscore_cache_entries", Help: "Scores in memory."}, func() float64 {
			entries, _ := c.Size()
			return float64(entries)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "companyscore_cache_bytes", Help: "Bytes that scores in memory take."}, func() float64 {
			_, bytes := c.Size()
			return float64(bytes)
		}))
}
