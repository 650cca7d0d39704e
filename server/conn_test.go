package server

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/valyala/fasthttp"

	"companyscore/internal/account"
	"companyscore/server/keys"
)

func TestDeadlineIsNeverEarly(t *testing.T) {
	t.Parallel()
	const slack = time.Second
	var stands time.Time
	moves := 0
	d := deadline{slack: slack, set: func(at time.Time) error { stands, moves = at, moves+1; return nil }}
	start := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	wish := func(at time.Time) {
		t.Helper()
		d.wish = at
		if err := d.apply(); err != nil {
			t.Fatal(err)
		}
		if late := stands.Sub(at); at.IsZero() != stands.IsZero() || late < 0 || late > slack {
			t.Errorf("wished for %s, and %s stands", at, stands)
		}
	}
	wish(time.Time{})
	if moves != 0 {
		t.Error("a deadline was set that nobody wished for")
	}
	for i := range 10_000 { // requests of one connection, a millisecond apart
		wish(start.Add(time.Duration(i) * time.Millisecond))
	}
	if moves > 11 {
		t.Errorf("%d moves in 10 s", moves)
	}
	wish(start) // sooner again
	wish(start.Add(time.Hour))
	wish(time.Time{})
	wish(start)
}

// inBubble runs a test with a clock of its own. The server, and fasthttp's goroutine that
// renders dates, are made before, since they outlive it.
func inBubble(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	s, _ := hotServer(t)
	_ = new(fasthttp.ResponseHeader).String()
	synctest.Test(t, func(t *testing.T) { test(t, s) })
}

// A connection without requests gives its buffers back, and goes on where it was.
func TestRestingConnectionHoldsNoBuffers(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *Server) {
		client, server := net.Pipe()
		c := s.newConn(server)
		ended := make(chan bool)
		go func() {
			c.serve()
			server.Close()
			close(ended)
		}()
		r := bufio.NewReader(client)
		get := func() {
			t.Helper()
			for _, part := range []string{hotGet[:1], hotGet[1:]} { // the byte that ends the rest, and more
				if _, err := io.WriteString(client, part); err != nil {
					t.Fatal(err)
				}
			}
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || len(body) == 0 {
				t.Errorf("%d %s, %v", res.StatusCode, body, err)
			}
		}
		for _, rest := range []time.Duration{0, buffersKept / 2, 3 * buffersKept, time.Minute, s.HTTP.IdleTimeout - time.Second} {
			time.Sleep(rest)
			if synctest.Wait(); (c.buffers == nil) != (rest >= 3*buffersKept) {
				t.Errorf("after %v it has buffers: %v", rest, c.buffers != nil)
			}
			get()
		}
		began := time.Now()
		if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
			t.Errorf("at the end it was sent %q, %v", text, err)
		}
		if took := time.Since(began); took < s.HTTP.IdleTimeout || took > s.HTTP.IdleTimeout+slackMax {
			t.Errorf("it was closed after %v", took)
		}
		<-ended
	})
}

// After a stop, a connection that waits for a request is closed a second after its last
// answer, and a client that does not read its answer has five.
func TestStopBoundsWaiting(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *Server) {
		for name, c := range map[string]struct {
			sent  string
			since time.Duration // between what was sent and the stop
			took  time.Duration // from the stop to the end of the connection
		}{
			"fresh":         {"", 0, stopReadMax},
			"long resting":  {"", 10 * time.Second, 0},
			"half received": {"GET /v1/sig", 10 * time.Second, stopReadMax},
			"half a body":   {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{", 10 * time.Second, stopReadMax},
			"not reading":   {hotGet, 10 * time.Second, stopWriteMax},
		} {
			client, server := net.Pipe()
			conn := s.newConn(server)
			ended := make(chan time.Time, 1)
			go func() {
				conn.serve()
				server.Close()
				ended <- time.Now()
			}()
			if _, err := io.WriteString(client, c.sent); err != nil {
				t.Fatal(err)
			}
			time.Sleep(c.since)
			synctest.Wait()
			stopped := time.Now()
			s.stopping.Store(true)
			conn.stop(stopped, stopReadMax)
			if name != "not reading" {
				go io.Copy(io.Discard, client)
			}
			if took := (<-ended).Sub(stopped); took != c.took {
				t.Errorf("%s: it took %v, want %v", name, took, c.took)
			}
			client.Close()
			s.stopping.Store(false)
		}
	})
}

// slow is a meter that takes its time.
type slow struct {
	Meter
	takes time.Duration
}

func (s slow) CountCached(account.Account, time.Time) { time.Sleep(s.takes) }

// An answer that takes longer to make than a stop waits for readers is sent all the same.
func TestSlowAnswerIsSentAfterStop(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *Server) {
		s.Meter = slow{s.Meter, 3 * stopWriteMax}
		client, server := net.Pipe()
		conn := s.newConn(server)
		go func() {
			conn.serve()
			server.Close()
		}()
		if _, err := io.WriteString(client, hotGet); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s.stopping.Store(true)
		conn.stop(time.Now(), stopReadMax)
		res, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !res.Close {
			t.Errorf("%d %s, %v, closes %v", res.StatusCode, body, err, res.Close)
		}
	})
}

// defective panics when it is asked for the key "panics", as a defect of the hot path would.
type defective struct{ Keys }

func (d defective) Peek(raw []byte, now time.Time) *keys.Caller {
	if string(raw) == "panics" {
		panic("a defect")
	}
	return d.Keys.Peek(raw, now)
}

func TestPanicEndsOneConnection(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	cfg, log, registry := s.Dependencies, new(bytes.Buffer), prometheus.NewRegistry()
	cfg.Keys, cfg.Metrics, cfg.Logger = defective{cfg.Keys}, registry, slog.New(slog.NewTextHandler(log, nil))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	address := serving(t, s, listen(t))
	beside := dial(t, address)
	answers := bufio.NewReader(beside)
	for range 3 {
		panics := strings.Replace(hotGet, "X-API-Key: k", "X-API-Key: panics", 1)
		if replies := send(t, address, panics); len(replies) > 0 {
			t.Fatalf("after a panic it was sent %+v", replies)
		}
		if _, err := io.WriteString(beside, hotGet); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("another connection is answered %d, %v", res.StatusCode, err)
		}
	}
	metrics := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(metrics, httptest.NewRequest(http.MethodGet, "/", nil))
	if !strings.Contains(metrics.Body.String(), "companyscore_http_connection_panics_total 3\n") {
		t.Errorf("3 panics are not counted: %s", metrics.Body)
	}
	beside.Close()
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); !strings.Contains(text, "a defect") || !strings.Contains(text, "conn_test.go") {
		t.Errorf("the log has no stack: %s", text)
	}
}

func TestEmptyLinesBeforeARequestAreBounded(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	address := serving(t, s, listen(t))
	last := strings.Replace(hotGet, "\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1)
	few := strings.Repeat("\r\n", emptyLinesMax)
	replies := send(t, address, few+hotGet+few+last)
	if len(replies) != 2 || replies[0].StatusCode != http.StatusOK || replies[1].StatusCode != http.StatusOK {
		t.Errorf("with a few empty lines: %d answers", len(replies))
	}
	if replies = send(t, address, hotGet+few+"\r\n"+hotGet); len(replies) != 2 || replies[0].StatusCode != http.StatusOK {
		t.Fatalf("with too many empty lines: %d answers", len(replies))
	}
	replies[1].wantsRefusal(t, errRequestLine)
	endless := dial(t, address)
	go func() {
		for _, err := io.WriteString(endless, "\r\n"); err == nil; _, err = io.WriteString(endless, "\r\n") {
		}
	}()
	if res, err := http.ReadResponse(bufio.NewReader(endless), nil); err != nil || res.StatusCode != http.StatusBadRequest || !res.Close {
		t.Errorf("endless empty lines: %+v, %v", res, err)
	}
}
