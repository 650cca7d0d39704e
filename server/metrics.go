package server

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/table"
	"companyscore/server/keys"
	"companyscore/server/meter"
	"companyscore/server/requestlog"
)

// metrics counts what the server answers. It may be used concurrently.
type metrics struct {
	requests *prometheus.CounterVec   // by route, status and origin of the answer
	latency  *prometheus.HistogramVec // by route
	panics   prometheus.Counter       // that ended a connection
}

// latencyBuckets range from an answer from memory to one from an overloaded store.
var latencyBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "companyscore_http_requests_total", Help: "Requests answered, by route, status and tier.",
		}, []string{"route", "status", "tier"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "companyscore_http_request_seconds", Help: "Duration of requests in seconds, by route.", Buckets: latencyBuckets,
		}, []string{"route"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "companyscore_http_connection_panics_total",
			Help: "Connections that a panic ended. Each is a defect and logged with its stack.",
		}),
	}
	registry.MustRegister(m.requests, m.latency, m.panics)
	return m
}

// noRoute is the route of answers that no handler gave.
const noRoute = "none"

// observe counts and records a request when it is answered, whatever the answer.
func (s *Server) observe(c *fiber.Ctx) error {
	began := time.Now()
	if err := c.Next(); err != nil {
		if err := s.fail(c, err); err != nil {
			return err
		}
	}
	fitAnswer(c)
	route := c.Route().Path
	if c.Route().Method == "USE" || route == "/" || route == "/v1" {
		route = noRoute // no handler answered; paths of callers are not labels
	}
	s.metrics.latency.WithLabelValues(route).Observe(time.Since(began).Seconds())
	s.record(c, route, began)
	return nil
}

// record counts an answer and adds it to the log of requests.
func (s *Server) record(c *fiber.Ctx, route string, began time.Time) {
	status, from := c.Response().StatusCode(), string(originOf(c))
	s.metrics.requests.WithLabelValues(route, strconv.Itoa(status), from).Inc()
	r := requestlog.Request{
		Kind:  table.RequestKind{Route: route, Status: uint16(status), AnsweredBy: from},
		Began: began, Took: time.Since(began),
	}
	if caller, ok := c.Locals(callerLocal).(keys.Caller); ok {
		r.Kind.AccountID, r.Kind.KeyID = caller.Account.ID, caller.KeyID
	}
	if p, ok := c.Locals(problemLocal).(*problem); ok {
		r.Kind.ErrorCode = p.Code
	}
	if a, ok := c.Locals(admissionLocal).(meter.Admission); ok {
		r.JobID, r.Charged = a.JobID, !a.Replayed
	}
	if c.Method() != fiber.MethodHead {
		r.Bytes = len(c.Response().Body())
	}
	s.Requests.Record(c.Response().Header.PeekBytes(nameRequestID), r)
}
