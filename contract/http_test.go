package contract

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/scoring"
)

// TestHTTP tests the handling of connections.
func TestHTTP(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	c := s.customer(t, "enterprise")
	s.remember(t, []scoring.Record{record("stored-company.com", time.Hour, 61.4)})
	s.messages(c)
	s.connections(c)
	s.answerBytes(c)
	s.stops(c)
}

// exchange sends a text and returns all answers until the server closes the connection.
func (s suite) exchange(t *testing.T, text string) (replies []reply) {
	t.Helper()
	conn := s.dial(t)
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%.60q: %v after %q", text, err, all)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.base+"/", nil) // not in the document
	if err != nil {
		t.Fatal(err)
	}
	for r := bufio.NewReader(bytes.NewReader(all)); ; {
		if _, err := r.Peek(1); err == io.EOF {
			return replies
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%.60q: %v in %q", text, err, all)
		}
		replies = append(replies, read(t, req, res))
	}
}

func (s suite) messages(c customer) {
	get := "GET /v1/score/stored-company.com HTTP/1.1\r\nHost: x\r\nX-API-Key: " + c.live + "\r\n\r\n"
	s.rule("decided: HTTP", "a request that can be read in two ways is refused, and nothing after it is executed", func(t *testing.T) {
		const post, chunk = "POST /v1/score HTTP/1.1\r\nHost: x\r\n", "0\r\n\r\n"
		for name, request := range map[string]string{
			"length and coding":    post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
			"two lengths":          post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + chunk,
			"no Host":              "GET /v1/signals HTTP/1.1\r\n\r\n",
			"two Hosts":            "GET /v1/signals HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
			"HTTP/2.0":             "GET /v1/signals HTTP/2.0\r\nHost: x\r\n\r\n",
			"HTTP/9.9":             "GET /v1/signals HTTP/9.9\r\nHost: x\r\n\r\n",
			"NUL in a value":       "GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
			"CR in a value":        "GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
			"a folded line":        "GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
			"a line without colon": "GET /v1/signals HTTP/1.1\r\nHost: x\r\nabc\r\n\r\n",
			"bare LF":              "GET /v1/signals HTTP/1.1\nHost: x\n\n",
			"a bad chunk":          post + "X-API-Key: " + c.live + "\r\nTransfer-Encoding: chunked\r\n\r\n1;a\nb\r\nx\r\n" + chunk,
		} {
			if *composed && rewritten[name] {
				continue
			}
			before := s.get(t, "/v1/usage", c.live).number("cached_calls")
			replies := s.exchange(t, get+request+get)
			if len(replies) != 2 || replies[0].status != 200 || replies[1].status != 400 || replies[1].text("error") != "request invalid" {
				t.Errorf("%s: %d answers, the last %d %s", name, len(replies), replies[len(replies)-1].status, replies[len(replies)-1].raw)
			}
			if after := s.get(t, "/v1/usage", c.live).number("cached_calls"); after != before+1 {
				t.Errorf("%s: %v calls are counted", name, after-before)
			}
		}
	})
	s.rule("decided: HTTP", "a transfer coding other than chunked answers 501", func(t *testing.T) {
		for _, coding := range []string{"xchunked", "gzip, chunked", "identity", "chunked;q=1", ""} {
			replies := s.exchange(t, "POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "+coding+"\r\n\r\n0\r\n\r\n"+get)
			if len(replies) != 1 || replies[0].status != 501 || replies[0].text("error") != "transfer coding not supported" {
				t.Errorf("%q: %d answers, the last %d %s", coding, len(replies), replies[len(replies)-1].status,
					replies[len(replies)-1].raw)
			}
		}
	})
	s.rule("decided: HTTP", "a refusal of 10 MB arrives before the connection closes", func(t *testing.T) {
		large := strings.Repeat("a", 10<<20)
		for request, want := range map[string]int{
			"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: " + large + "\r\n\r\n":                                                    431,
			"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 10485760\r\n\r\n" + large:                                     413,
			"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na00000\r\n" + large + "\r\n0\r\n\r\n":       413,
			"POST /v1/score HTTP/1.1\r\nHost: x\r\nHost: x\r\nContent-Length: 10485760\r\n\r\n" + large:                          400,
			"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: deflate\r\nContent-Length: 10485760\r\n\r\n" + large + get: 501,
		} {
			if replies := s.exchange(t, request); len(replies) != 1 || replies[0].status != want {
				t.Errorf("%.80q: %d answers, the first %d", request, len(replies), replies[0].status)
			}
		}
	})
	s.rule("decided: HTTP", "a thousand requests at once, with bodies of both kinds, are answered in their order", func(t *testing.T) {
		var text strings.Builder
		const body = `{"domains":["acme.test"]}`
		for i := range 1000 {
			fmt.Fprintf(&text, "POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nX-Request-Id: request-%d\r\n", c.test, i)
			if i == 999 {
				text.WriteString("Connection: close\r\n")
			}
			if i%2 == 0 {
				fmt.Fprintf(&text, "Content-Length: %d\r\n\r\n%s", len(body), body)
			} else {
				fmt.Fprintf(&text, "Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
			}
		}
		replies := s.exchange(t, text.String())
		if len(replies) != 1000 {
			t.Fatalf("%d answers", len(replies))
		}
		for i, r := range replies {
			if id := r.header.Get("X-Request-Id"); r.status != 200 || id != fmt.Sprintf("request-%d", i) {
				t.Fatalf("answer %d is %d of %s", i, r.status, id)
			}
		}
	})
}

func (s suite) connections(c customer) {
	s.rule("decided: connections", "one beyond the limit is answered 503 with an error record", func(t *testing.T) {
		small := suite{t, s.another(t, "--http-connections", "2")}
		for range 2 {
			conn := small.dial(t)
			if _, err := io.WriteString(conn, "GET /v1/signals HTTP/1.1\r\nHost: x\r\nX-API-Key: "+c.live+"\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
				t.Fatal(err)
			}
		}
		replies := small.exchange(t, "GET /v1/usage HTTP/1.1\r\nHost: x\r\nX-API-Key: "+c.live+"\r\n\r\n")
		if len(replies) != 1 || replies[0].status != 503 || replies[0].text("error") != "too many connections" ||
			replies[0].header.Get("Retry-After") != "1" {
			t.Errorf("answered %+v", replies)
		}
	})
}

func (s suite) answerBytes(c customer) {
	s.rule("decided: answer bytes", "only clients that do not read get 429", func(t *testing.T) {
		greedy, _ := s.key(t, c.account, "live")
		domains := strings.Repeat(`"stored-company.com",`, 999) + `"stored-company.com"`
		request := fmt.Sprintf("POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\nContent-Length: %d\r\n\r\n{\"domains\":[%s]}",
			greedy, len(domains)+len(`{"domains":[]}`), domains)
		var unread []net.Conn
		for range 80 {
			conn := s.dial(t)
			unread = append(unread, conn)
			go func() {
				for { // until the server stops reading because its answers are not read
					if _, err := io.WriteString(conn, request); err != nil {
						return
					}
				}
			}()
		}
		batch := func(key string) reply {
			return s.call(t, http.MethodPost, "/v1/scores/batch", key, `{"domains":[`+domains+`]}`)
		}
		cohort := func(key string) reply { return s.get(t, "/v1/company/stored-company.com/cohort", key) }
		history := func(key string) reply { return s.get(t, "/v1/score/stored-company.com/history?limit=500", key) }
		many := func(key string) reply {
			r, _ := s.postMany(t, key, named("unread", 1000), map[string]any{"dry_run": true, "partial": true})
			return r
		}
		jobs := func(key string) reply { return s.get(t, "/v1/jobs?ids="+strings.Join(named("job", 1000), ","), key) }
		for _, call := range []func(key string) reply{batch, cohort, history, many, jobs} {
			var r reply
			eventually(t, "the key has as many bytes in flight as it may", func() bool { r = call(greedy); return r.status == 429 })
			if r.wants(t, 429, "rate limited"); r.text("reason") != "answer_bytes" || r.header.Get("Retry-After") != "1" {
				t.Errorf("refused with %s, %v", r.raw, r.header)
			}
			call(c.live).wants(t, 200, "")
		}
		s.get(t, "/v1/score/stored-company.com", greedy).wants(t, 200, "")
		for _, conn := range unread {
			conn.Close()
		}
		eventually(t, "the key is answered again", func() bool { return batch(greedy).status == 200 })
	})
}

func (s suite) stops(c customer) {
	s.rule("decided: stop", "a server that stops answers what it read, tells busy connections, and executes nothing else",
		func(t *testing.T) {
			second := suite{t, s.another(t)}
			c := s.customer(t, "enterprise")
			var gets, posts, told atomic.Int64
			busy := make(chan bool)
			var clients sync.WaitGroup
			for i := range 64 {
				conn := second.dial(t)
				clients.Go(func() {
					r := bufio.NewReader(conn)
					for n := 0; ; n++ {
						request, status, count := "GET /v1/score/stored-company.com HTTP/1.1\r\nHost: x\r\nX-API-Key: "+c.live+"\r\n\r\n",
							200, &gets
						if n%10 == 9 {
							body := fmt.Sprintf(`{"domain":"stopped-%d-%d.com"}`, i, n)
							request, status, count = fmt.Sprintf("POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n"+
								"Content-Length: %d\r\n\r\n%s", c.live, len(body), body), 202, &posts
						}
						if _, err := io.WriteString(conn, request); err != nil {
							return
						}
						res, err := http.ReadResponse(r, nil)
						if err != nil {
							return
						}
						if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != status {
							t.Errorf("answered %d %s, %v", res.StatusCode, text, err)
							return
						}
						if count.Add(1) == 128 && count == &posts {
							close(busy)
						}
						if res.Close {
							told.Add(1)
							return
						}
					}
				})
			}
			<-busy
			if err := second.stop(); err != nil {
				t.Errorf("it ended with %v", err)
			}
			clients.Wait()
			if told.Load() < 32 { // a client without CPU time for a second may miss it
				t.Errorf("%d of 64 connections were told", told.Load())
			}
			u := s.get(t, "/v1/usage", c.live)
			if u.number("cached_calls") != float64(gets.Load()) || u.number("cold_calls") != float64(posts.Load()) {
				t.Errorf("%d and %d answers, and %s", gets.Load(), posts.Load(), u.raw)
			}
		})
}
