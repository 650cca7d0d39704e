package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
)

func TestClock(t *testing.T) {
	t.Parallel()
	client, err := redis.Open(t.Context(), stores.Redis(t).URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	redisTime := func(ctx context.Context) (time.Time, error) { return client.Time(ctx).Result() }
	// The clocks of the stores are correct, that of the process is wrong.
	for name, c := range map[string]struct {
		off           time.Duration
		recordErr     error
		says          string
		redis, record string // the metrics
	}{
		"right":        {0, nil, "^ok$", `^-?0(\.[0-9]+)?$|e-`, "^0$"},
		"nearly right": {-1500 * time.Millisecond, nil, "^ok$", "^[01]", "^[01]"},
		"an hour ago": {-time.Hour, nil,
			`^the clock of Redis is (1h0m0s|59m5.*) ahead of that of this process; the newest scored_at lies (1h0m0s|59m5)`, "^3[56]",
			"^3[56]"},
		"an hour on": {time.Hour, nil, `^the clock of Redis is (1h0m0s|59m5.*) behind that of this process$`, "^-3[56]", "^0$"},
		"no record":  {0, errors.New("away"), "^not compared with the newest record: away$", `^-?0(\.[0-9]+)?$|e-`, "^NaN$"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			metrics := prometheus.NewRegistry()
			stored := time.Now()
			clock := NewClock(redisTime, func(context.Context) (time.Time, error) { return stored, c.recordErr }, metrics,
				slog.New(slog.NewTextHandler(&log, nil)))
			clock.now = func() time.Time { return time.Now().Add(c.off) }
			handler := Handler(map[string]Check{"clock": clock.Check}, metrics)
			answer := func(path string) (int, string) {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
				return w.Code, w.Body.String()
			}
			if _, body := answer("/metrics"); strings.Count(body, "} NaN") != 2 {
				t.Errorf("the metrics before the first comparison: %s", body)
			}
			clock.compare(t.Context())
			clock.compare(t.Context())
			code, body := answer("/readyz")
			var reasons map[string]string
			if err := json.Unmarshal([]byte(body), &reasons); err != nil || code != 200 ||
				!regexp.MustCompile(c.says).MatchString(reasons["clock"]) {
				t.Errorf("/readyz answers %d %s, want 200 and %q", code, body, c.says)
			}
			_, body = answer("/metrics")
			for of, want := range map[string]string{"redis": c.redis, "newest_record": c.record} {
				_, value, _ := strings.Cut(body, `companyscore_clock_ahead_seconds{of="`+of+`"} `)
				if value, _, _ = strings.Cut(value, "\n"); !regexp.MustCompile(want).MatchString(value) {
					t.Errorf("the metric of %s is %q, want %q", of, value, want)
				}
			}
			wantLogged := 0
			if c.off.Abs() > skewMax {
				wantLogged = 1
			}
			if n := strings.Count(log.String(), "clocks differ"); n != wantLogged {
				t.Errorf("two comparisons logged %d lines, want %d: %s", n, wantLogged, log.String())
			}
		})
	}
}

func TestClockWatchesUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	compared := make(chan struct{})
	answer := func(context.Context) (time.Time, error) { return time.Now(), nil }
	clock := NewClock(answer, func(context.Context) (time.Time, error) { close(compared); return time.Now(), nil },
		prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
	ended := make(chan struct{})
	go func() { defer close(ended); clock.Watch(ctx) }()
	<-compared
	stop()
	<-ended
}
