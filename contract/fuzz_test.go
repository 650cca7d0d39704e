package contract

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
	"time"

	"companyscore/internal/test/wait"
)

// FuzzRequest sends arbitrary bytes to a live server. LIVE and TEST in the input are replaced
// by valid keys. The server must not answer with a 5xx or an error of another form, and must
// not stay silent.
func FuzzRequest(f *testing.F) {
	s := start(f, "")
	c := s.customer(f, "enterprise")
	for _, route := range routes {
		for _, key := range []string{"LIVE", "TEST", "none"} {
			f.Add([]byte(route.method + " " + route.path + " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\n\r\n"))
		}
	}
	for _, body := range []string{`{"domain":"fuzzed.com"}`, `{"domain":"acme.test","force_fresh":true}`, `{"domain":["a"]}`, "\x00\xff"} {
		for _, key := range []string{"LIVE", "TEST"} {
			f.Add([]byte("POST /v1/score HTTP/1.1\r\nHost: x\r\nX-API-Key: " + key + "\r\nIdempotency-Key: k\r\nContent-Length: " +
				strconv.Itoa(len(body)) + "\r\n\r\n" + body))
		}
	}
	for _, path := range []string{"/v1/score/a.com/history?limit=1&cursor=AQ", "/v1/score/https://www.a.com:80/x", "/v1/score/%00",
		"/v1/company//cohort", "/docs", "/openapi.json", "/v1/movers?window=7d&window=1"} {
		f.Add([]byte("GET " + path + " HTTP/1.1\r\nHost: x\r\nX-API-Key: LIVE\r\nIf-None-Match: *\r\nAccept-Encoding: gzip, br\r\n\r\n"))
	}
	address := strings.TrimPrefix(s.base, "http://")
	f.Fuzz(func(t *testing.T, request []byte) {
		request = bytes.ReplaceAll(bytes.ReplaceAll(request, []byte("LIVE"), []byte(c.live)), []byte("TEST"), []byte(c.test))
		conn, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(wait.Max)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(request); err != nil {
			return // refused while it was being sent
		}
		// The request stays incomplete, and the server must not wait for the rest.
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			return
		}
		method, _, _ := bytes.Cut(request, []byte(" "))
		res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: string(method)})
		if err != nil {
			return // no request was complete
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 8<<20))
		if err != nil {
			t.Fatalf("%q: the answer breaks off: %v", request, err)
		}
		if res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented { // of a transfer coding
			t.Fatalf("%q: %d %s", request, res.StatusCode, body)
		}
		if res.StatusCode >= 400 && string(method) != http.MethodHead {
			var e struct{ Error, Message string }
			if err := json.Unmarshal(body, &e); err != nil || e.Error == "" || e.Message == "" {
				t.Fatalf("%q: %d %q is no error of ours", request, res.StatusCode, body)
			}
		}
	})
}
