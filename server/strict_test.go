package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"companyscore/internal/config"
)

// listen returns a listener on an address of its own.
func listen(t testing.TB) net.Listener {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

// serving has a server answer on a listener until the test ends.
func serving(t *testing.T, s *Server, ln net.Listener) (address string) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}

// reply is an answer that was read whole.
type reply struct {
	*http.Response
	body []byte
}

// send sends a text on a connection of its own and returns the answers, until the server
// closes the connection.
func send(t *testing.T, address, text string) (replies []reply) {
	t.Helper()
	conn := dial(t, address)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(conn)
	if err != nil {
		t.Fatalf("%.60q: %v after %q", text, err, all)
	}
	for r := bufio.NewReader(bytes.NewReader(all)); ; {
		if _, err := r.Peek(1); err == io.EOF {
			return replies
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%.60q: %v in %q", text, err, all)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, reply{res, body})
	}
}

// wantsRefusal fails the test unless an answer is an error record that ends the connection.
func (r reply) wantsRefusal(t *testing.T, p *problem) {
	t.Helper()
	var e struct{ Error, Message string }
	if err := json.Unmarshal(r.body, &e); err != nil || r.StatusCode != p.Status || e.Error != p.Code || e.Message != p.body().Message ||
		!r.Close || r.Header.Get("X-Request-Id") == "" || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("answered %d %s with %v, want %+v", r.StatusCode, r.body, r.Header, p)
	}
}

const hotGet = "GET /v1/score/example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\n"

func TestNothingRunsAfterRefusedRequest(t *testing.T) {
	t.Parallel()
	s, meter := hotServer(t)
	address := serving(t, s, listen(t))
	for name, c := range refusedHeads {
		t.Run(name, func(t *testing.T) {
			before := meter.calls.Load()
			replies := send(t, address, hotGet+c.request+hotGet)
			if len(replies) != 2 || replies[0].StatusCode != http.StatusOK || meter.calls.Load() != before+1 {
				t.Fatalf("%d answers, %d calls counted", len(replies), meter.calls.Load()-before)
			}
			replies[1].wantsRefusal(t, c.want)
		})
	}
}

// A head is refused at the byte that is wrong, and not when the time to send it is over.
func TestWrongHeadIsRefusedEarly(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	address := serving(t, s, listen(t))
	for request, want := range map[string]*problem{
		"GET /v1/signals HTTP/1.1\r\nabc\r\n": errHeaderColon, "GET /v1/signals HTTP/1.1\n": errLineEnd, "GET /\x00": errRequestLine,
		"GET / HTTP/1.1\r\nTransfer-Encoding: deflate\r\n": &errCoding,
	} {
		replies := send(t, address, request)
		if len(replies) != 1 {
			t.Fatalf("%q: %d answers", request, len(replies))
		}
		replies[0].wantsRefusal(t, want)
	}
}

func TestChunkedBodiesHaveOneReading(t *testing.T) {
	t.Parallel()
	s, meter := hotServer(t)
	address := serving(t, s, listen(t))
	const post = "POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, chunks := range map[string]string{
		"bare LF after a size":        "1b\n{\"domains\":[\"example.com\"]}\n\r\n0\r\n\r\n",
		"bare LF in an extension":     "1b;a\nb\r\n{\"domains\":[\"example.com\"]}\r\n0\r\n\r\n",
		"no size":                     "\r\n0\r\n\r\n",
		"a size that is none":         "0x1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\n\r\n",
		"a size beyond all numbers":   "fffffffffffffffff\r\n",
		"a chunk longer than it says": "1a\r\n{\"domains\":[\"example.com\"]}\r\n0\r\n\r\n",
		"a trailer without colon":     "1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\n0\r\n\r\n",
		"NUL in a trailer":            "1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\nA: \x00\r\n\r\n",
		"bare LF in a trailer":        "1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\nA: b\n\n",
	} {
		before := meter.calls.Load()
		replies := send(t, address, post+chunks+hotGet)
		if len(replies) != 1 || replies[0].StatusCode != http.StatusBadRequest || !replies[0].Close || meter.calls.Load() != before {
			t.Errorf("%s: %d answers, %d calls counted", name, len(replies), meter.calls.Load()-before)
		}
	}
	const last = "GET /v1/score/example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nConnection: close\r\n\r\n"
	for name, chunks := range map[string]string{
		"one chunk":    "1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\n\r\n",
		"many chunks":  strings.Repeat("1;a=b\r\n \r\n", 20000) + "1B;x\r\n{\"domains\":[\"example.com\"]}\r\n000\r\n\r\n",
		"with trailer": "1b\r\n{\"domains\":[\"example.com\"]}\r\n0\r\nDigest: abc\r\nContent-Length: 7\r\n\r\n",
	} {
		before := meter.calls.Load()
		replies := send(t, address, post+chunks+last)
		if len(replies) != 2 || replies[0].StatusCode != http.StatusOK || replies[1].StatusCode != http.StatusOK ||
			meter.calls.Load() != before+2 {
			t.Errorf("%s: %d answers, the first %s, %d calls counted", name, len(replies), replies[0].body, meter.calls.Load()-before)
		}
	}
}

// A form ends where its length says, and not where its last boundary stands.
func TestFormsAreReadByTheirLength(t *testing.T) {
	t.Parallel()
	s, meter := hotServer(t)
	body := "--b\r\nContent-Disposition: form-data; name=a\r\n\r\nx\r\n--b--\r\n" + strings.Repeat(hotGet, 100)
	replies := send(t, serving(t, s, listen(t)),
		"POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Type: multipart/form-data; boundary=b\r\n"+
			"Connection: close\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
	if len(replies) != 1 || replies[0].StatusCode != http.StatusBadRequest || meter.calls.Load() != 0 {
		t.Errorf("%d answers, %d calls counted", len(replies), meter.calls.Load())
	}
}

// A client that sends 10 MB before it reads anything must find the refusal, not a reset.
func TestRefusalArrivesBeforeTheConnectionCloses(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	address := serving(t, s, listen(t))
	filling := strings.Repeat("a", 10<<20)
	for name, c := range map[string]struct {
		request string
		want    *problem
	}{
		"header":       {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: " + filling + "\r\n\r\n", &errHeadersTooLarge},
		"address":      {"GET /" + filling + " HTTP/1.1\r\nHost: x\r\n\r\n", &errHeadersTooLarge},
		"many headers": {"GET /v1/signals HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("A: b\r\n", 2<<20) + "\r\n", &errHeadersTooLarge},
		"body":         {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 10485760\r\n\r\n" + filling, &errTooLarge},
		"chunked body": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\na00000\r\n" + filling + "\r\n0\r\n\r\n",
			&errTooLarge},
		"trailers": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: " + filling + "\r\n\r\n",
			&errHeadersTooLarge},
		"bad header": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nnocolon\r\nContent-Length: 10485760\r\n\r\n" + filling, errHeaderColon},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			replies := send(t, address, c.request)
			if len(replies) != 1 {
				t.Fatalf("%d answers", len(replies))
			}
			replies[0].wantsRefusal(t, c.want)
		})
	}
}

// A client that waits for 100 Continue sends its body after it, or not at all if the body
// is too large.
func TestContinue(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	address := serving(t, s, listen(t))
	head := "POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: "
	const body = `{"domains":["example.com"]}`
	conn := dial(t, address)
	if _, err := io.WriteString(conn, head+strconv.Itoa(len(body))+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	if line, err := r.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if _, err := r.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, body); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(r, nil); err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
	}
	replies := send(t, address, head+"10485760\r\n\r\n")
	if len(replies) != 1 {
		t.Fatalf("%d answers", len(replies))
	}
	replies[0].wantsRefusal(t, &errTooLarge)
}

func TestConnectionsBeyondLimitAreRefused(t *testing.T) {
	t.Parallel()
	limits := config.DefaultHTTP()
	limits.Connections = 2
	address, _ := listening(t, limits)
	for range 2 {
		conn := dial(t, address)
		if _, err := io.WriteString(conn, "GET /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Fatal(err)
		}
	}
	replies := send(t, address, hotGet)
	if len(replies) != 1 {
		t.Fatalf("%d answers", len(replies))
	}
	replies[0].wantsRefusal(t, &errConnections)
	if replies[0].Header.Get("Retry-After") != "1" {
		t.Errorf("Retry-After is %q", replies[0].Header.Get("Retry-After"))
	}
}

// Connections that are closed without a request to HTTP/1.0 clients, and kept for those
// that ask for it.
func TestConnectionHeaderIsObeyed(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	address := serving(t, s, listen(t))
	const v10, v11 = "GET /v1/score/example.com HTTP/1.0\r\nX-API-Key: k\r\n",
		"GET /v1/score/example.com HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n"
	for text, want := range map[string]string{
		v10 + "\r\n" + hotGet: "close",
		v10 + "Connection: keep-alive\r\n\r\n" + v11 + "Connection: close\r\n\r\n": "keep-alive close",
		v11 + "\r\n" + v11 + "Connection: x, Close\r\n\r\n" + hotGet:               " close",
		v11 + "\r\n\r\n\r\n" + v10 + "\r\n":                                        " close",
	} {
		var got []string
		for _, r := range send(t, address, text) {
			got = append(got, strings.Join(r.Header["Connection"], ","))
			if r.Close && len(r.Header["Connection"]) == 0 {
				got[len(got)-1] = "close" // ReadResponse takes it out
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
