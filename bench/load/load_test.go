package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

// again is a source that repeats one request.
type again string

func (s again) Next(dst []byte) ([]byte, Request, bool)      { return append(dst, s...), Request{}, true }
func (again) Answered(Request, Answer) (time.Duration, bool) { return 0, false }
func (again) Resume(dst []byte, r Request) ([]byte, Request) { return dst, r }

const request = again("GET / HTTP/1.1\r\nHost: x\r\n\r\n")

// against returns the configuration of a load on a handler.
func against(t *testing.T, handler http.HandlerFunc) Config {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Config{
		Address: server.Listener.Addr().String(), Ops: []string{"get"}, Headline: Key{Op: "get"}, Connections: 4,
		Source: func(int, int) Source { return request }, Duration: 200 * time.Millisecond, Timeout: wait.Max,
	}
}

func mustRun(t *testing.T, cfg Config) *Result {
	t.Helper()
	r, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func counts(r *Result) map[string]int64 {
	found := make(map[string]int64)
	for _, c := range r.Classes {
		found[c.Key.String()] = c.Latency.TotalCount()
	}
	return found
}

func TestEveryDueRequestIsCounted(t *testing.T) {
	t.Parallel()
	for _, loops := range []int{1, 3} {
		var served atomic.Int64
		cfg := against(t, func(w http.ResponseWriter, _ *http.Request) {
			switch served.Add(1) % 3 {
			case 0:
				w.Header().Set("Server-Timing", "l1")
			case 1:
				w.Header().Set("Server-Timing", "redis;dur=1")
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		})
		cfg.Rate, cfg.Loops, cfg.Warmup = 1000, loops, 50*time.Millisecond
		r := mustRun(t, cfg)
		got := counts(r)
		if total := got["get l1"] + got["get redis"] + got["get 404"]; total != 200 || len(got) != 3 {
			t.Errorf("%d loops: %v, want 200 answers of three classes", loops, got)
		}
		if r.Planned != 200 || r.Sent != 200 || r.Answered != 200 || r.Pacing.TotalCount() != 200 {
			t.Errorf("%d loops: planned %d, sent %d, answered %d, paced %d; want 200 each", loops, r.Planned, r.Sent, r.Answered,
				r.Pacing.TotalCount())
		}
		if n := served.Load(); n != 250 {
			t.Errorf("%d loops: the server saw %d requests, want 250 with those of the warm-up", loops, n)
		}
	}
}

// Requests that are due while the server stalls must count with their full latency.
func TestAStalledServerIsCharged(t *testing.T) {
	t.Parallel()
	const stall = 300 * time.Millisecond
	var served atomic.Int64
	cfg := against(t, func(_ http.ResponseWriter, r *http.Request) {
		if served.Add(1) == 1 {
			select {
			case <-time.After(stall):
			case <-r.Context().Done():
			}
		}
	})
	cfg.Rate, cfg.Connections, cfg.Duration = 1000, 1, 400*time.Millisecond
	r := mustRun(t, cfg)
	slow := int64(0)
	for _, bar := range r.Classes[0].Latency.Distribution() {
		if bar.From >= int64(100*time.Millisecond) {
			slow += bar.Count
		}
	}
	// Requests due in the first 200 ms of the stall waited at least 100 ms.
	if slow < 200 {
		t.Errorf("%d requests took 100 ms or more, want at least 200", slow)
	}
	if r.Waiting.ValueAtPercentile(40) < int64(time.Millisecond) {
		t.Errorf("requests did not wait for the only connection: %d ns at the 40th percentile", r.Waiting.ValueAtPercentile(40))
	}
	if service := r.Classes[0].Service; service.Max() < int64(stall) ||
		service.ValueAtPercentile(50) >= r.Classes[0].Latency.ValueAtPercentile(50) {
		t.Errorf("service took %d ns at most and %d in the middle, latency %d", service.Max(), service.ValueAtPercentile(50),
			r.Classes[0].Latency.ValueAtPercentile(50))
	}
}

func TestAClosedLoopKeepsConnectionsBusy(t *testing.T) {
	t.Parallel()
	var most, now atomic.Int64
	cfg := against(t, func(http.ResponseWriter, *http.Request) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		now.Add(-1)
	})
	left := 100
	cfg.Source, cfg.Duration = func(int, int) Source { return some{request, &left} }, time.Hour
	r := mustRun(t, cfg)
	if r.Answered != 100 || r.Planned != 100 || most.Load() > 4 {
		t.Errorf("answered %d of %d, %d at once; want 100, and at most 4", r.Answered, r.Planned, most.Load())
	}
}

func TestClosedConnectionIsReopened(t *testing.T) {
	t.Parallel()
	cfg := against(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	cfg.Rate = 200
	r := mustRun(t, cfg)
	if got := counts(r); got["get 200"] != 40 || r.Reconnects < 30 {
		t.Errorf("%v with %d connections opened again; want 40 answers and about as many", got, r.Reconnects)
	}
}

// serveRaw accepts connections and passes them to answer.
func serveRaw(t *testing.T, answer func(conn net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
					answer(conn)
				}
			}()
		}
	}()
	return ln.Addr().String()
}

func TestFailuresAreClassesOfTheirOwn(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	for name, c := range map[string]struct {
		answer  func(conn net.Conn)
		want    string
		timeout time.Duration
	}{
		"nothing is answered": {func(net.Conn) { <-ended }, "get " + TimedOut, 100 * time.Millisecond},
		"it hangs up":         {func(net.Conn) {}, "get " + Disconnected, wait.Max},
		"it hangs up half-way": {func(conn net.Conn) { fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx") },
			"get " + Disconnected, wait.Max},
		"it speaks another way": {func(conn net.Conn) { fmt.Fprint(conn, "220 smtp\r\n\r\n") }, "get " + Garbled, wait.Max},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := mustRun(t, Config{
				Address: serveRaw(t, c.answer), Ops: []string{"get"}, Source: func(int, int) Source { return request },
				Rate: 20, Duration: 200 * time.Millisecond, Timeout: c.timeout, Connections: 4,
			})
			if got := counts(r); got[c.want] != 4 || len(got) != 1 || r.Answered != 0 {
				t.Errorf("%v and %d answers, want 4 of %s", got, r.Answered, c.want)
			}
		})
	}
}

func TestRequestsWithoutConnectionAreCountedApart(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	t.Cleanup(func() { close(ended) })
	r := mustRun(t, Config{
		Address: serveRaw(t, func(net.Conn) { <-ended }), Ops: []string{"get"}, Source: func(int, int) Source { return request },
		Rate: 100, Duration: 100 * time.Millisecond, Drain: 50 * time.Millisecond, Timeout: time.Minute, Connections: 1,
	})
	if got := counts(r); got["get "+TimedOut] != 1 || got["get "+Unsent] != 9 || r.Sent != 1 || r.Planned != 10 {
		t.Errorf("%v, sent %d of %d; want 1 timeout, 9 unsent", got, r.Sent, r.Planned)
	}
}

// pairs is a source with one follow-up per request.
type pairs struct{ ended *atomic.Int64 }

func (pairs) Next(dst []byte) ([]byte, Request, bool) {
	return append(dst, request...), Request{Watch: true}, true
}

func (p pairs) Answered(r Request, a Answer) (time.Duration, bool) {
	if r.Op == 1 || string(a.Body) != "go on" {
		p.ended.Add(1)
		return 0, false
	}
	return time.Millisecond, true
}

func (pairs) Resume(dst []byte, r Request) ([]byte, Request) {
	r.Op = 1
	return append(dst, request...), r
}

func TestAnswersLeadToFurtherRequests(t *testing.T) {
	t.Parallel()
	cfg := against(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "go on") })
	var ended atomic.Int64
	cfg.Ops, cfg.Rate = []string{"first", "second"}, 500
	cfg.Source = func(int, int) Source { return pairs{&ended} }
	r := mustRun(t, cfg)
	if got := counts(r); got["first 200"] != 100 || ended.Load() != 100 {
		t.Errorf("%v, %d ended; want 100 of each", got, ended.Load())
	}
}

// some is a source with a fixed number of requests.
type some struct {
	again
	left *int
}

func (s some) Next(dst []byte) ([]byte, Request, bool) {
	if *s.left == 0 {
		return dst, Request{}, false
	}
	*s.left--
	return s.again.Next(dst)
}

func TestALoadEndsWithItsSource(t *testing.T) {
	t.Parallel()
	cfg := against(t, func(http.ResponseWriter, *http.Request) {})
	left := 25
	cfg.Source, cfg.Duration, cfg.Pipeline = func(int, int) Source { return some{request, &left} }, time.Hour, 3
	if r := mustRun(t, cfg); r.Answered != 25 || r.Planned != 25 || r.Elapsed > time.Minute {
		t.Errorf("answered %d of %d in %s, want 25", r.Answered, r.Planned, r.Elapsed)
	}
}

func TestALoadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	cfg := against(t, func(http.ResponseWriter, *http.Request) {})
	cfg.Duration = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan Interval, 1)
	cfg.OnInterval = func(i Interval) {
		select {
		case first <- i:
		default:
		}
		cancel()
	}
	if _, err := Run(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v, want that it was cancelled", err)
	}
	if i := <-first; i.P99 == 0 || i.P99SoFar != i.P99 {
		t.Errorf("after one interval: p99 %d, so far %d", i.P99, i.P99SoFar)
	}
}

func TestMissingServerFailsAtOnce(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	_, err = Run(t.Context(), Config{Address: address, Ops: []string{"get"}, Source: func(int, int) Source { return request },
		Duration: time.Second})
	if err == nil || !strings.Contains(err.Error(), address) {
		t.Errorf("the error is %v, want one that names %s", err, address)
	}
}

func TestConfigFaultsAreAllReported(t *testing.T) {
	t.Parallel()
	err := Config{Address: "nowhere", Rate: -1, Arrivals: "sometimes", Pipeline: -1, Loops: 9, Connections: 3}.Validate()
	for _, text := range []string{"nowhere", "source", "kinds", "rate", "sometimes", "duration", "pipeline", "9 loops"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%q is not said: %v", text, err)
		}
	}
}

func TestNullServerAnswers(t *testing.T) {
	t.Parallel()
	null, err := ListenNull()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- null.Serve(ctx) }()
	r := mustRun(t, Config{
		Address: null.Address, Ops: []string{"get"}, Source: func(int, int) Source { return request }, Rate: 1000,
		Duration: 100 * time.Millisecond, Pipeline: 4, Connections: 2,
	})
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if got := counts(r); got["get l1"] != 100 || len(got) != 1 {
		t.Errorf("%v, want 100 of get l1", got)
	}
}

// BenchmarkNull measures the cost of a request in the generator, system calls included.
func BenchmarkNull(b *testing.B) {
	null, err := ListenNull()
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	served := make(chan error, 1)
	go func() { served <- null.Serve(ctx) }()
	defer func() { cancel(); <-served }()
	left := b.N
	b.ReportAllocs()
	b.ResetTimer()
	r, err := Run(ctx, Config{Address: null.Address, Ops: []string{"get"}, Source: func(int, int) Source { return some{request, &left} },
		Duration: time.Hour})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(r.CPU.Nanoseconds())/float64(b.N), "cpu-ns/op")
}
