package peer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
)

func TestMain(m *testing.M) { stores.Main(m) }

var sent = Answer{
	Header: map[string]string{"Content-Type": "application/json", "Server-Timing": "l1", "Cache-Control": "private, max-age=30",
		"Etag": `"0123456789abcdef"`, "X-Request-Id": "one"},
	Body: `{"domain":"example.com","composite_score":50}`,
}

// fetchFrom waits for a server and fetches its answer.
func fetchFrom(t *testing.T, address string) Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	for {
		a, err := Fetch(ctx, "http://"+address+Route+"example.com", "key")
		if err == nil {
			return a
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

func check(t *testing.T, got Answer) {
	t.Helper()
	if got.Body != sent.Body {
		t.Errorf("it sends %q, want %q", got.Body, sent.Body)
	}
	for name, want := range sent.Header {
		if got.Header[name] != want {
			t.Errorf("it sends %s: %q, want %q", name, got.Header[name], want)
		}
	}
}

func TestPeersSendWhatTheServiceSent(t *testing.T) {
	t.Parallel()
	server := stores.Redis(t)
	client, err := redis.Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := PutBody(t.Context(), client, "example.com", sent); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{KindFiber, KindNetHTTP, KindRedis} {
		ctx, cancel := context.WithCancel(t.Context())
		address := make(chan string, 1)
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, kind, sent, client, func(a string) { address <- a }) }()
		check(t, fetchFrom(t, <-address))
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("%s ended with %v", kind, err)
		}
	}
	if err := Serve(t.Context(), "abacus", sent, client, func(string) {}); err == nil || !strings.Contains(err.Error(), "abacus") {
		t.Errorf("an unknown kind is %v", err)
	}
}

// TestNginxSendsTheSame is skipped without nginx, as is the comparison.
func TestNginxSendsTheSame(t *testing.T) {
	t.Parallel()
	asked := 0
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		for name, value := range sent.Header {
			w.Header().Set(name, value)
		}
		io.WriteString(w, sent.Body)
	}))
	defer origin.Close()
	address := strings.TrimPrefix(origin.URL, "http://")
	for name, kind := range map[string]struct {
		origin   string
		keepOpen bool
	}{"a cache": {address, false}, "a cache of open files": {address, true}, "an answer": {"", false}} {
		nginx, err := NewNginx(t.TempDir(), kind.origin, kind.keepOpen, sent, 1)
		if errors.Is(err, ErrNoNginx) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := nginx.Command()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			got := fetchFrom(t, nginx.Address)
			check(t, got)
		}
		_ = cmd.Process.Signal(os.Interrupt)
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked != 2 {
		t.Errorf("two caches asked their origin %d times, want once each", asked)
	}
}

func TestAmbiguousNginxAnswersAreRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"a $variable", "it's", `back\slash`, "two\nlines"} {
		if got, err := returning(Answer{Body: text}); err == nil {
			t.Errorf("%q becomes %q", text, got)
		}
	}
}

// TestMeasurementLastsUntilARequest begins with a time in which no request can be sent, as if the
// generator got no processor time.
func TestMeasurementLastsUntilARequest(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	result, err := Run(t.Context(), Config{
		Peers:  []Peer{{Name: Ours, Address: strings.TrimPrefix(server.URL, "http://"), Target: "/"}},
		Rounds: 2, Each: time.Nanosecond, Connections: 2,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range result.Peers[0].PerSecond {
		if rate <= 0 {
			t.Errorf("rates are %v, want more than 0", result.Peers[0].PerSecond)
		}
	}
}

func TestRatiosAreMadeWithinARound(t *testing.T) {
	t.Parallel()
	// The machine was half as fast in the second round.
	r := &Result{Rounds: 3, Peers: []Measured{
		{Name: Ours, PerSecond: []float64{90, 45, 91}, CPU: []float64{11, 11, 11}, AllCPU: []float64{11, 11, 11},
			Client: []float64{1, 1, 1}},
		{Name: BareFiber, PerSecond: []float64{100, 50, 100}, CPU: []float64{10, 10, 11}, AllCPU: []float64{10, 10, 11},
			Client: []float64{1, 1, 1}},
		{Name: ProxyCache, PerSecond: []float64{90, 30, 91}, CPU: []float64{22, 22, 22}, AllCPU: []float64{22, 22, 22},
			Client: []float64{1, 1, 1}},
	}}
	r.conclude()
	if got, want := r.Peers[1].Throughput, (Spread{0.9, 0.9, 0.91}); got != want {
		t.Errorf("throughput beside bare Fiber is %v, want %v", got, want)
	}
	if got := r.Peers[2].Cost; got != (Spread{2, 2, 2}) {
		t.Errorf("nginx costs %v times as much, want 2", got)
	}
	for i, met := range []bool{true, true, false, true} {
		if r.Targets[i].Met != met {
			t.Errorf("%+v, want met: %v", r.Targets[i], met)
		}
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || r.Met() || !strings.Contains(text.String(), "MISSED") ||
		!strings.Contains(text.String(), "1.50") {
		t.Errorf("met is %v, the text %v:\n%s", r.Met(), err, &text)
	}
}
