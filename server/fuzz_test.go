package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"companyscore/internal/account"
)

// wire is a connection whose other end has sent everything at once.
type wire struct {
	in  *bytes.Reader
	out bytes.Buffer
}

func (w *wire) Read(b []byte) (int, error)       { return w.in.Read(b) }
func (w *wire) Write(b []byte) (int, error)      { return w.out.Write(b) }
func (*wire) Close() error                       { return nil }
func (*wire) LocalAddr() net.Addr                { return &net.TCPAddr{} }
func (*wire) RemoteAddr() net.Addr               { return &net.TCPAddr{} }
func (*wire) SetDeadline(time.Time) error        { return nil }
func (*wire) SetReadDeadline(time.Time) error    { return nil }
func (*wire) SetWriteDeadline(t time.Time) error { return nil }

// FuzzConnection sends bytes to the handlers within the process, so that the
// fuzzer sees which code they reach. The caller has a test key, which takes no
// store. No answer is 5xx but the 501 of a transfer coding, and every error has its shape.
func FuzzConnection(f *testing.F) {
	for _, request := range []string{
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Length: 22\r\n\r\n{\"domain\":\"acme.test\"}\n",
		"POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n15\r\n{\"domain\":\"acme.test\"}\r\n" +
			"0\r\n\r\n",
		"POST /v1/scores/batch HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Length: 30\r\n\r\n{\"domains\":[\"acme.test\",\"b\",1]}",
		"GET /v1/score/acme.test HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nIf-None-Match: \"a\", W/\"b\"\r\n\r\n",
		"GET /v1/score/https%3A%2F%2Fwww.acme.test/history?limit=2&cursor=AQ HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\n",
		"GET /v1/company/acme.test/cohort HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nAccept-Encoding: gzip, br\r\n\r\n",
		"GET /v1/company/struggling.test/confidence HTTP/1.0\r\nX-API-Key: k\r\nX-Request-Id: sane-request-id\r\n\r\n",
		"GET /v1/movers?window=7d HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\nGET /v1/usage HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\n",
		"GET /v1/jobs/01a1fc94-05cf-764e-800e-9c3462621484 HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\n",
		"HEAD /v1/distribution HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\n\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", "FOO / HTTP/9.9\r\n\r\n",
		"GET /docs HTTP/1.1\r\n\r\n", "\r\n\r\n",
	} {
		f.Add([]byte(request))
	}
	var log bytes.Buffer
	s := newServer(f, &as{Mode: account.Test, Account: account.Account{ID: "a", Plan: account.Starter}}, &log)
	f.Fuzz(func(t *testing.T, sent []byte) {
		log.Reset()
		conn := &wire{in: bytes.NewReader(sent)}
		s.newConn(conn).serve()
		if strings.Contains(log.String(), "panic") {
			t.Fatalf("%q: %s", sent, log.String())
		}
		for answers := bufio.NewReader(&conn.out); answers.Buffered() > 0 || conn.out.Len() > 0; {
			// Whether an answer has a body depends on its request, and is not known here.
			res, err := http.ReadResponse(answers, &http.Request{Method: http.MethodGet})
			if err != nil {
				if bytes.Contains(sent, []byte("HEAD")) {
					return
				}
				t.Fatalf("%q: an answer is not HTTP: %v", sent, err)
			}
			body, err := io.ReadAll(res.Body)
			if errors.Is(err, io.ErrUnexpectedEOF) && bytes.Contains(sent, []byte("HEAD")) {
				return
			}
			if err != nil || res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented {
				t.Fatalf("%q: %d %q %v", sent, res.StatusCode, body, err)
			}
			var e struct{ Error, Message string }
			if res.StatusCode >= 400 && !bytes.Contains(sent, []byte("HEAD")) && (json.Unmarshal(body, &e) != nil || e.Error == "" ||
				e.Message == "" || res.Header.Get("X-Request-Id") == "") {
				t.Fatalf("%q: %d %q with %v is no error of ours", sent, res.StatusCode, body, res.Header)
			}
		}
	})
}
