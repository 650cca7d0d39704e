package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"companyscore/internal/account"
	"companyscore/internal/test/wait"
	"companyscore/server/meter"
)

// charging is a meter that counts what was executed.
type charging struct {
	counting
	charged atomic.Int64
}

func (*charging) Replay(context.Context, meter.AdmitRequest) (meter.Admission, bool, error) {
	return meter.Admission{}, false, nil
}

func (c *charging) Admit(_ context.Context, req meter.AdmitRequest) (meter.Admission, error) {
	c.charged.Add(1)
	return meter.Admission{JobID: "job", RunID: "run", Domain: req.Domain}, nil
}

func (*charging) ReplayMany(context.Context, meter.BulkRequest) (meter.BulkAdmission, bool, error) {
	return meter.BulkAdmission{}, false, nil
}

func (c *charging) AdmitMany(_ context.Context, req meter.BulkRequest) (meter.BulkAdmission, error) {
	a := meter.BulkAdmission{Jobs: make(map[string]string)}
	for _, domain := range req.Domains {
		c.charged.Add(1)
		a.Jobs[domain] = "job"
	}
	return a, nil
}

func (*charging) Room(_ context.Context, req meter.BulkRequest) (int, meter.Reason, error) {
	return len(req.Domains), "", nil
}

// chargingServer is a server that admits all cold calls.
func chargingServer(t *testing.T) (*Server, *charging) {
	t.Helper()
	s, _ := hotServer(t)
	m := new(charging)
	s.Meter, s.Calls = m, NewColdCalls(s.Cache, m, nobody, prometheus.NewRegistry(), quiet)
	return s, m
}

// load is what clients see who send requests one after another until the server closes
// their connections.
type load struct {
	gets, posts atomic.Int64 // complete answers
	announced   atomic.Int64 // connections whose last answer said that it closes
	busy        chan bool    // closed when all are at it
}

func (l *load) connection(conn net.Conn) {
	const body = `{"domain":"cold-company.com"}`
	requests := []struct {
		text     string
		status   int
		answered *atomic.Int64
	}{
		{hotGet, 200, &l.gets},
		{fmt.Sprintf("POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Length: %d\r\n\r\n%s", len(body), body), 202, &l.posts},
	}
	r := bufio.NewReader(conn)
	for i := 0; ; i++ {
		request := requests[i%len(requests)]
		if _, err := io.WriteString(conn, request.text); err != nil {
			return
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != request.status {
			return
		}
		if request.answered.Add(1) == 640 && request.answered == &l.posts {
			close(l.busy)
		}
		if res.Close {
			l.announced.Add(1)
			return
		}
	}
}

// underLoad shuts a server down while 64 connections are busy.
func underLoad(t *testing.T, s *Server) *load {
	t.Helper()
	ln := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	l := &load{busy: make(chan bool)}
	var clients sync.WaitGroup
	for range 64 {
		conn := dial(t, ln.Addr().String())
		clients.Go(func() {
			defer conn.Close()
			l.connection(conn)
		})
	}
	<-l.busy
	if err := s.Shutdown(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if err := <-served; err != nil {
		t.Error(err)
	}
	return l
}

// Every busy connection gets an answer that says that it closes, and loses nothing.
func TestShutdownTellsEveryBusyConnection(t *testing.T) {
	t.Parallel()
	s, m := chargingServer(t)
	s.connections.wait = wait.Max // the clients share the processor
	l := underLoad(t, s)
	m.compare(t, l)
	if n := l.announced.Load(); n != 64 {
		t.Errorf("%d of 64 connections were told", n)
	}
}

// A request that arrives as its connection is being closed is answered or not executed.
func TestShutdownExecutesNothingWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		s, m := chargingServer(t)
		s.connections.wait = time.Duration(i) * 200 * time.Microsecond
		m.compare(t, underLoad(t, s))
	}
}

// compare fails the test unless every request that was executed was answered.
func (c *charging) compare(t *testing.T, l *load) {
	t.Helper()
	if l.gets.Load() != c.calls.Load() || l.posts.Load() != c.charged.Load() {
		t.Errorf("%d and %d answers to %d and %d executed requests", l.gets.Load(), l.posts.Load(), c.calls.Load(), c.charged.Load())
	}
}

// Requests that were sent without waiting, and were read, are all answered; the last
// answer says that the connection closes.
func TestShutdownAnswersWhatIsPipelined(t *testing.T) {
	t.Parallel()
	s, m := chargingServer(t)
	begun, goOn := make(chan bool), make(chan bool)
	s.Meter = &blocking{m, begun, goOn}
	ln := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	conn := dial(t, ln.Addr().String())
	if _, err := io.WriteString(conn, strings.Repeat(hotGet, 10)); err != nil {
		t.Fatal(err)
	}
	<-begun // the first of them is being answered, and the others are in the buffer
	idle := dial(t, ln.Addr().String())
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	if n, err := idle.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Errorf("an idle connection was sent something")
	}
	close(goOn)
	r := bufio.NewReader(conn)
	for i := range 10 {
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != 200 || res.Close != (i == 9) {
			t.Errorf("answer %d: %d, closes %v, %v", i, res.StatusCode, res.Close, err)
		}
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("then came %q, %v", rest, err)
	}
	conn.Close()
	for _, err := range []error{<-stopped, <-served} {
		if err != nil {
			t.Error(err)
		}
	}
	if m.calls.Load() != 10 {
		t.Errorf("%d executed", m.calls.Load())
	}
}

// blocking is a meter whose first call takes until goOn is closed.
type blocking struct {
	*charging
	begun, goOn chan bool
}

func (b *blocking) CountCached(acct account.Account, now time.Time) {
	if b.calls.Load() == 0 {
		b.begun <- true
		<-b.goOn
	}
	b.charging.CountCached(acct, now)
}

// A client that does not read, or does not send the rest of its request, holds no stop up
// for longer than the context of the stop.
func TestShutdownEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s, m := chargingServer(t)
	begun, goOn := make(chan bool), make(chan bool)
	s.Meter = &blocking{m, begun, goOn}
	ln := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	conn := dial(t, ln.Addr().String())
	if _, err := io.WriteString(conn, hotGet); err != nil {
		t.Fatal(err)
	}
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != context.Canceled {
		t.Errorf("Shutdown = %v", err)
	}
	if text, _ := io.ReadAll(conn); len(text) > 0 {
		t.Errorf("answered %q", text)
	}
	close(goOn)
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Half a request is refused soon after a stop.
func TestShutdownRefusesHalfARequest(t *testing.T) {
	t.Parallel()
	s, m := chargingServer(t)
	s.connections.wait = 50 * time.Millisecond
	ln := listen(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	conn := dial(t, ln.Addr().String())
	r := bufio.NewReader(conn)
	// The whole request before it makes sure that the server reads from this connection.
	if _, err := io.WriteString(conn,
		hotGet+"POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Length: 100\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(r, nil); err != nil {
		t.Fatal(err)
	} else if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- s.Shutdown(context.WithoutCancel(t.Context())) }()
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusRequestTimeout || !res.Close {
		t.Errorf("%v, %v", res, err)
	}
	conn.Close()
	for _, err := range []error{<-stopped, <-served} {
		if err != nil {
			t.Error(err)
		}
	}
	if m.charged.Load() != 0 {
		t.Error("half a request was executed")
	}
}
