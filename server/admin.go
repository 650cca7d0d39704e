package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check returns nil when something the server depends on answers.
type Check func(ctx context.Context) error

// Admin answers operators and their tools, on an address of its own:
//
//	/healthz  200 while the process lives
//	/readyz   200 when every check passes, 503 with the reasons otherwise
//	/metrics  counts and times, as Prometheus reads them
func Admin(checks map[string]Check, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte("ok\n"))
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		status, reasons := http.StatusOK, make(map[string]string, len(checks))
		for name, check := range checks {
			reasons[name] = "ok"
			if err := check(ctx); err != nil {
				status, reasons[name] = http.StatusServiceUnavailable, err.Error()
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(reasons)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: 10 * time.Second}))
	return mux
}
