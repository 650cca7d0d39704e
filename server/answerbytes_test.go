package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"companyscore/internal/account"
	"companyscore/server/keys"
)

func TestBudgetIsNeverExceeded(t *testing.T) {
	t.Parallel()
	const all, each = 1000, 300
	synctest.Test(t, func(t *testing.T) {
		b := newInFlightBudget(all, each)
		var used [5]atomic.Int64 // by key
		var work sync.WaitGroup
		for range 50 {
			work.Go(func() {
				for range 100 {
					key := rand.IntN(len(used))
					h, err := b.reserve(t.Context(), strconv.Itoa(key), rand.Int64N(each)+1, &errKeyAnswers, &errAllAnswers)
					if err != nil {
						continue
					}
					if n := used[key].Add(h.bytes); n > each || b.used.Load() > all {
						t.Errorf("%d bytes of one key, %d of all", n, b.used.Load())
					}
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
					fitted := h.bytes / 2
					used[key].Add(-h.bytes)
					h.shrink(fitted)
					h.shrink(2 * fitted) // which is no shrinking
					time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
					if h.bytes != fitted {
						t.Errorf("%d bytes after shrinking to %d", h.bytes, fitted)
					}
					if err := h.Close(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		work.Wait()
		if b.used.Load() != 0 || len(b.keys) != 0 || !b.all.TryAcquire(all) {
			t.Errorf("at the end %d bytes of %d keys are in use", b.used.Load(), len(b.keys))
		}
	})
}

func TestBudgetMakesRequestsWaitThenRefuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInFlightBudget(300, 200)
		first, err := b.reserve(t.Context(), "a", 200, &errKeyAnswers, &errAllAnswers)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := b.reserve(t.Context(), "a", 1, &errKeyAnswers, &errAllAnswers); err != error(&errKeyAnswers) ||
			time.Since(began) != reserveMax {
			t.Errorf("the same key: %v after %v", err, time.Since(began))
		}
		if _, err := b.reserve(t.Context(), "b", 101, &errKeyAnswers, &errAllAnswers); err != error(&errAllAnswers) {
			t.Errorf("another key: %v", err)
		}
		if h, err := b.reserve(t.Context(), "b", 100, &errKeyAnswers, &errAllAnswers); err != nil {
			t.Errorf("another key, and less: %v", err)
		} else {
			h.Close()
		}
		time.AfterFunc(reserveMax/2, func() { first.shrink(100) })
		if _, err := b.reserve(t.Context(), "a", 100, &errKeyAnswers, &errAllAnswers); err != nil {
			t.Errorf("a key that waits: %v", err)
		}
	})
}

// keyring knows a caller for each key: an enterprise account with the name of the key.
type keyring struct{ Keys }

func (keyring) Verify(_ context.Context, raw string) (keys.Caller, error) {
	return keys.Caller{Mode: account.Live, KeyID: raw, Account: account.Account{ID: raw, Plan: account.Enterprise}}, nil
}

func (keyring) Peek([]byte, time.Time) *keys.Caller { return nil }

// batchServer is a server, and large a request of a key whose answer has about 100 kB.
func batchServer(t *testing.T) (s *Server, large func(key string) string) {
	t.Helper()
	hot, _ := hotServer(t)
	cfg := hot.Dependencies
	cfg.Keys, cfg.Metrics = keyring{}, prometheus.NewRegistry()
	cfg.HTTP.ReadTimeout, cfg.HTTP.WriteTimeout = 10*time.Minute, 10*time.Minute // the machine may be busy
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	body := `{"domains":["example.com"` + strings.Repeat(`,"example.com"`, 249) + `]}`
	return s, func(key string) string {
		return fmt.Sprintf("POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n%s", key, len(body),
			body)
	}
}

// narrow is a listener whose connections have small buffers in the kernel, so that answers
// that nobody reads stay in the server.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// ask sends a request on a connection of its own and reads one answer.
func ask(t *testing.T, address, request string) reply {
	t.Helper()
	conn := dial(t, address)
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res, body}
}

// A thousand clients that do not read hold no more bytes than their key may have, and
// nobody else is refused because of them.
func TestUnreadAnswersPerKeyAreBounded(t *testing.T) {
	t.Parallel()
	s, large := batchServer(t)
	const perKey = 4 << 20
	s.answers = newInFlightBudget(4*perKey, perKey)
	address := serving(t, s, narrow{listen(t)})
	var unread []net.Conn
	for range 1000 {
		conn := dial(t, address)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, large("greedy")); err != nil {
			t.Fatal(err)
		}
		unread = append(unread, conn)
		if used := s.answers.used.Load(); used > perKey {
			t.Fatalf("%d bytes are in flight", used)
		}
	}
	r := ask(t, address, large("greedy"))
	var e struct{ Error, Reason string }
	if err := json.Unmarshal(r.body, &e); err != nil || r.StatusCode != http.StatusTooManyRequests || e.Error != "rate limited" ||
		e.Reason != "answer_bytes" || r.Header.Get("Retry-After") != "1" {
		t.Errorf("one more is answered %d %s, %v", r.StatusCode, r.body, r.Header)
	}
	if used := s.answers.used.Load(); used > perKey || used < perKey/2 {
		t.Errorf("%d bytes are in flight", used)
	}
	if r := ask(t, address, large("patient")); r.StatusCode != http.StatusOK {
		t.Errorf("another key is answered %d %s", r.StatusCode, r.body)
	}
	if r := ask(t, address, "GET /v1/score/example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: greedy\r\n\r\n"); r.StatusCode != http.StatusOK {
		t.Errorf("a small answer: %d %s", r.StatusCode, r.body)
	}
	for _, conn := range unread {
		conn.Close()
	}
	for i := 0; ask(t, address, large("greedy")).StatusCode != http.StatusOK; i++ {
		if i == attempts {
			t.Fatal("the bytes of answers whose clients are gone stay in use")
		}
	}
}

// attempts bounds how often a test tries what must come true.
const attempts = 100

// Many keys together hold no more than the server may.
func TestUnreadAnswersInTotalAreBounded(t *testing.T) {
	t.Parallel()
	s, large := batchServer(t)
	const all = 2 << 20
	s.answers = newInFlightBudget(all, all/2)
	address := serving(t, s, narrow{listen(t)})
	for i := range 60 {
		conn := dial(t, address)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, large(fmt.Sprintf("key-%d", i%6))); err != nil {
			t.Fatal(err)
		}
	}
	for range attempts {
		r := ask(t, address, large("patient"))
		if used := s.answers.used.Load(); used > all {
			t.Fatalf("%d bytes are in flight", used)
		}
		if r.StatusCode != http.StatusOK {
			r.Close = true // this refusal leaves the connection open
			r.wantsRefusal(t, &errAllAnswers)
			return
		}
	}
	t.Error("nobody is refused")
}

// Request bodies that are being sent are bounded together, and one too many is refused
// while small ones are not.
func TestBodiesInFlightAreBounded(t *testing.T) {
	t.Parallel()
	s, large := batchServer(t)
	s.bodies = semaphore.NewWeighted(2 * bodyMaxBytes)
	address := serving(t, s, listen(t))
	head := "POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n"
	half := head + fmt.Sprintf("Content-Length: %d\r\n", bodyMaxBytes)
	for range 2 {
		conn := dial(t, address)
		if _, err := io.WriteString(conn, half+"Expect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// it comes when the bytes are reserved
		if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{half + "\r\n{", head + "Transfer-Encoding: chunked\r\n\r\n10000\r\n" + strings.Repeat(" ", 1<<16)} {
		replies := send(t, address, text)
		if len(replies) != 1 {
			t.Fatalf("%d answers", len(replies))
		}
		replies[0].wantsRefusal(t, &errAllBodies)
	}
	if r := ask(t, address, large("k")); r.StatusCode != http.StatusOK {
		t.Errorf("a smaller body: %d %s", r.StatusCode, r.body)
	}
}

// Memory of a burst of answers returns to the system when it is over.
func TestBurstIsNotedUntilOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newInFlightBudget(answersMax, answersMax)
		small, err := b.reserve(t.Context(), "a", 1, &errKeyAnswers, &errAllAnswers)
		if err != nil {
			t.Fatal(err)
		}
		large, err := b.reserve(t.Context(), "b", burstMin, &errKeyAnswers, &errAllAnswers)
		if err != nil {
			t.Fatal(err)
		}
		large.Close()
		time.Sleep(2 * burstOver)
		if synctest.Wait(); !b.burst.Load() {
			t.Error("it is over with an answer in flight")
		}
		small.Close()
		time.Sleep(burstOver - 1)
		if synctest.Wait(); !b.burst.Load() {
			t.Error("it is over too soon")
		}
		time.Sleep(time.Nanosecond)
		if synctest.Wait(); b.burst.Load() {
			t.Error("it is never over")
		}
	})
}
