package ops

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check returns nil if a dependency works. A [Degraded] error is reported and does not make
// the process unready.
type Check func(ctx context.Context) error

// Degraded is the error of a check that failed while all requests are still answered.
type Degraded struct{ Reason string }

// Error returns the reason.
func (e *Degraded) Error() string { return e.Reason }

// checksTimeout bounds all checks of one request to /readyz.
const checksTimeout = 2 * time.Second

// Handler returns the handler of the endpoints for operators:
//
//	/healthz  200 while the process runs
//	/readyz   200 if no check fails or those that fail return a [Degraded] error, else 503; the body has each result
//	/metrics  counts and times in the format of Prometheus
//	/debug/pprof/  profiles of the process for `go tool pprof`
//
// It has no authentication, so its address must be internal.
func Handler(checks map[string]Check, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), checksTimeout)
		defer cancel()
		status, reasons := http.StatusOK, make(map[string]string, len(checks))
		for name, check := range checks {
			reasons[name] = "ok"
			if err := check(ctx); err != nil {
				reasons[name] = err.Error()
				if degraded := (*Degraded)(nil); !errors.As(err, &degraded) {
					status = http.StatusServiceUnavailable
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(reasons)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError,
		Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
