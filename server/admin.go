package server

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

// Check returns nil when something the server depends on answers.
type Check func(ctx context.Context) error

// Ailing says that something is not as it should be, while all requests are still answered.
type Ailing struct{ Reason string }

func (e *Ailing) Error() string { return e.Reason }

// Admin answers operators and their tools, on an address of its own:
//
//	/healthz  200 while the process lives
//	/readyz   200 when every check passes, 503 with the reasons otherwise; an [Ailing] is told and does not make it 503
//	/metrics  counts and times, as Prometheus reads them
//	/debug/pprof/  profiles of the process, as `go tool pprof` reads them
//
// None of it is for strangers: the address belongs inside.
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
				reasons[name] = err.Error()
				if ailing := (*Ailing)(nil); !errors.As(err, &ailing) {
					status = http.StatusServiceUnavailable
				}
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(reasons)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, Timeout: 10 * time.Second}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}
