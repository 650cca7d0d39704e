package queue

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// scrapeTimeout bounds the read of one scrape.
const scrapeTimeout = 2 * time.Second

var (
	laneWaiting = prometheus.NewDesc("companyscore_lane_waiting_runs", "Waiting runs of a lane.", []string{"lane"}, nil)
	laneNext    = prometheus.NewDesc("companyscore_lane_next_seconds", "Age of the next run of a lane; 0 while the lane is empty.",
		[]string{"lane"}, nil)
	runsWaiting = prometheus.NewDesc("companyscore_retrying_runs", "Runs that wait for a retry.", nil, nil)
	runsRunning = prometheus.NewDesc("companyscore_running_runs", "Runs in flight.", nil, nil)
)

// Register exports the state of the queue, which each scrape reads from Redis. While Redis does
// not answer, these metrics are absent.
func (q *Queue) Register(registry prometheus.Registerer) { registry.MustRegister(collector{q}) }

type collector struct{ queue *Queue }

// Describe sends the descriptions of the metrics.
func (collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{laneWaiting, laneNext, runsWaiting, runsRunning} {
		descs <- desc
	}
}

// Collect reads the state of the queue and sends the metrics.
func (c collector) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	status, err := c.queue.Status(ctx)
	if err != nil {
		return
	}
	send := func(desc *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	for _, lane := range status.Lanes {
		age := time.Duration(0)
		if lane.Waiting > 0 {
			age = time.Since(lane.NextCreatedAt)
		}
		send(laneWaiting, float64(lane.Waiting), string(lane.Lane))
		send(laneNext, age.Seconds(), string(lane.Lane))
	}
	send(runsWaiting, float64(status.Retrying))
	send(runsRunning, float64(status.Running))
}
