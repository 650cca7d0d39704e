package snapshot

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/universe"
)

// Register exports the age and the size of the newest snapshot, -1 before the first.
func (f *Follower) Register(registry prometheus.Registerer) {
	gauge := func(name, help string, value func(*universe.Tables) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			tables := f.Tables(time.Now())
			if tables == nil {
				return -1
			}
			return value(tables)
		})
	}
	registry.MustRegister(
		gauge("companyscore_universe_age_seconds", "Age of the statistics of the universe.",
			func(t *universe.Tables) float64 { return time.Since(t.At()).Seconds() }),
		gauge("companyscore_universe_companies", "Companies in the statistics of the universe.",
			func(t *universe.Tables) float64 { return float64(t.Distribution().Count) }))
}
