package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/config"
	"companyscore/internal/test/wait"
)

// listening is the address of a server whose timeout with connections is short.
func listening(t *testing.T, limits config.HTTP) (address string, log *bytes.Buffer) {
	t.Helper()
	log = new(bytes.Buffer)
	s := newServer(t, &as{}, log)
	cfg := s.Dependencies
	cfg.HTTP, cfg.Metrics = limits, prometheus.NewRegistry()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return serving(t, s, listen(t)), log
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", address, wait.Max)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(wait.Max)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// A client that opened a connection for later, or rests between two requests, must
// find it closed and never an answer to nothing.
func TestIdleConnectionIsClosedSilently(t *testing.T) {
	t.Parallel()
	limits := config.DefaultHTTP()
	limits.ReadTimeout = 50 * time.Millisecond
	address, _ := listening(t, limits)
	conn := dial(t, address)
	if text, err := io.ReadAll(conn); err != nil || len(text) > 0 {
		t.Errorf("a connection without a request was sent %q (%v)", text, err)
	}
	limits.ReadTimeout, limits.IdleTimeout = wait.Max, 50*time.Millisecond
	address, _ = listening(t, limits)
	conn = dial(t, address)
	if _, err := io.WriteString(conn, "GET /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || len(text) > 0 {
		t.Errorf("after its answer a resting connection was sent %q (%v)", text, err)
	}
}

// Half a request is another thing: its sender waits for an answer.
func TestHalfARequestTimesOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *Server) {
		for name, half := range map[string]string{
			"headers": "GET /v1/signals HTTP/1.1\r\nHo",
			"body":    "POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
		} {
			client, server := net.Pipe()
			conn := s.newConn(server)
			go func() {
				conn.serve()
				server.Close()
			}()
			if _, err := io.WriteString(client, half); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			res, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != http.StatusRequestTimeout || !strings.Contains(string(body), `"request timeout"`) ||
				!res.Close {
				t.Errorf("half of the %s: %d %s (%v), closes %v", name, res.StatusCode, body, err, res.Close)
			}
			if took := time.Since(began); took < s.HTTP.ReadTimeout || took > s.HTTP.ReadTimeout+slackMax {
				t.Errorf("half of the %s was refused after %v", name, took)
			}
			client.Close()
		}
	})
}

func TestConnectionsOfOneAddressAreBounded(t *testing.T) {
	t.Parallel()
	limits := config.DefaultHTTP()
	limits.PerAddress = 2
	address, _ := listening(t, limits)
	var conns []net.Conn
	for range 2 {
		conn := dial(t, address)
		if _, err := io.WriteString(conn, "GET /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	third := func() int {
		res, err := http.ReadResponse(bufio.NewReader(dial(t, address)), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), `"too many connections"`) {
			t.Errorf("refused with %s (%v)", body, err)
		}
		return res.StatusCode
	}
	if status := third(); status != http.StatusTooManyRequests {
		t.Errorf("a third connection: %d", status)
	}
	if err := conns[0].Close(); err != nil {
		t.Fatal(err)
	}
	for asked := false; !asked; { // until the server has seen the end
		conn := dial(t, address)
		_, err := io.WriteString(conn, "GET /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n")
		res, readErr := http.ReadResponse(bufio.NewReader(conn), nil)
		asked = err == nil && readErr == nil && res.StatusCode != http.StatusTooManyRequests
		conn.Close()
	}
}
