package cache

import "github.com/prometheus/client_golang/prometheus"

// Register exports lookups by level and the size of the scores in memory.
func (c *Cache) Register(registry prometheus.Registerer) {
	for level, name := range map[Level]string{Memory: "memory", Redis: "redis", ClickHouse: "clickhouse"} {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "companyscore_cache_answers_total", Help: "Lookups of scores, by the tier that answered. Requests answered from memory " +
				"alone count in companyscore_http_requests_total with tier l1.",
			ConstLabels: prometheus.Labels{"tier": name},
		}, func() float64 { return float64(c.Hits(level)) }))
	}
	registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "companyscore_cache_entries", Help: "Scores in the cache."}, func() float64 {
			entries, _ := c.Size()
			return float64(entries)
		}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "companyscore_cache_bytes", Help: "Bytes of the scores in the cache."},
			func() float64 {
				_, bytes := c.Size()
				return float64(bytes)
			}))
}
