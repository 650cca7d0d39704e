package server

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
)

// refusedHeads are requests with more than one meaning, and what is wrong with each.
var refusedHeads = map[string]struct {
	request string
	want    *problem
}{
	"length and coding": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" +
		"\r\n", errLengthCoding},
	"coding and length": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n" +
		"\r\n", errLengthCoding},
	"two lengths":                 {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", errLength},
	"two equal lengths":           {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", errLength},
	"a list of lengths":           {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\nabc", errLength},
	"a signed length":             {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc", errLength},
	"an empty length":             {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\nabc", errLength},
	"a length beyond all numbers": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\nabc", &errTooLarge},
	"an unknown coding":           {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", &errCoding},
	"gzip, chunked":               {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", &errCoding},
	"identity":                    {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n", &errCoding},
	"an empty coding":             {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: \r\n\r\n", &errCoding},
	"chunked twice": {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" +
		"\r\n0\r\n\r\n", errCodingOnce},
	"chunked in HTTP/1.0":         {"POST /v1/score HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", errCodingOnce},
	"no Host":                     {"GET /v1/signals HTTP/1.1\r\nX: y\r\n\r\n", errHost},
	"two Hosts":                   {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", errHost},
	"a Host that is none":         {"GET /v1/signals HTTP/1.1\r\nHost: x y\r\n\r\n", errHost},
	"an empty Host":               {"GET /v1/signals HTTP/1.1\r\nHost: \r\n\r\n", errHost},
	"HTTP/2.0":                    {"GET /v1/signals HTTP/2.0\r\nHost: x\r\n\r\n", errVersion},
	"HTTP/9.9":                    {"GET /v1/signals HTTP/9.9\r\nHost: x\r\n\r\n", errVersion},
	"HTTP/1.10":                   {"GET /v1/signals HTTP/1.10\r\nHost: x\r\n\r\n", errVersion},
	"http/1.1":                    {"GET /v1/signals http/1.1\r\nHost: x\r\n\r\n", errVersion},
	"no version":                  {"GET /v1/signals\r\nHost: x\r\n\r\n", errRequestLine},
	"no address":                  {"GET  HTTP/1.1\r\nHost: x\r\n\r\n", errRequestLine},
	"a space in the address":      {"GET /v1/ signals HTTP/1.1\r\nHost: x\r\n\r\n", errVersion},
	"NUL in the address":          {"GET /v1/\x00signals HTTP/1.1\r\nHost: x\r\n\r\n", errRequestLine},
	"no method":                   {" /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n", errRequestLine},
	"a method that is no token":   {"G(T /v1/signals HTTP/1.1\r\nHost: x\r\n\r\n", errRequestLine},
	"NUL in a value":              {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n", errHeaderValue},
	"CR in a value":               {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n", errHeaderValue},
	"DEL in a value":              {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\x7fc\r\n\r\n", errHeaderValue},
	"a folded line":               {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\r\n c: d\r\n\r\n", errHeaderName},
	"a folded line without colon": {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\r\n\tc\r\n\r\n", errHeaderName},
	"a line without colon":        {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nabc\r\n\r\n", errHeaderColon},
	"a first line without colon":  {"GET /v1/signals HTTP/1.1\r\nabc\r\nHost: x\r\n\r\n", errHeaderColon},
	"a blank before the colon":    {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc", errHeaderName},
	"VT in a name":                {"POST /v1/score HTTP/1.1\r\nHost: x\r\nTransfer-Encoding\x0b: chunked\r\n\r\n0\r\n\r\n", errHeaderName},
	"an empty name":               {"GET /v1/signals HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", errHeaderName},
	"bare LF":                     {"GET /v1/signals HTTP/1.1\nHost: x\n\n", errLineEnd},
	"bare LF after a value":       {"GET /v1/signals HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n", errLineEnd},
}

// scanned returns the head at the start of a text and the problem with it, if any.
func scanned(text []byte) (h head, complete bool, p *problem) {
	complete, p = h.scan(text)
	if complete {
		p = h.framing()
	}
	return h, complete, p
}

func TestAmbiguousHeadsAreRefused(t *testing.T) {
	t.Parallel()
	for name, c := range refusedHeads {
		if _, _, p := scanned([]byte(c.request)); p != c.want {
			t.Errorf("%s: %v, want %v", name, p, c.want)
		}
	}
}

func TestUsualHeadsAreAccepted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		request string
		want    head
	}{
		"plain":              {"GET / HTTP/1.1\r\nHost: example.com:8080\r\nX-API-Key: svc_live_x\r\n\r\n", head{hosts: 1}},
		"IPv6":               {"GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", head{hosts: 1}},
		"HTTP/1.0":           {"GET / HTTP/1.0\r\n\r\n", head{http10: true}},
		"HTTP/1.0 kept":      {"GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n", head{http10: true}},
		"close":              {"GET / HTTP/1.1\r\nhost: x\r\nConnection: TE, Close\r\n\r\n", head{hosts: 1}},
		"length":             {"POST / HTTP/1.1\r\nHOST: x\r\nContent-Length: \t007 \r\n\r\n", head{hosts: 1, hasLength: true}},
		"chunked":            {"POST / HTTP/1.1\r\nHost: x\r\ntransfer-encoding: Chunked\r\n\r\n", head{hosts: 1, chunked: true}},
		"tabs, UTF-8, empty": {"GET /b\u00fccher HTTP/1.1\r\nHost: x\r\nA:\tb\u00fc\tc\r\nB:\r\n\r\n", head{hosts: 1}},
	} {
		got, complete, p := scanned([]byte(c.request))
		c.want.checked, c.want.lines = len(c.request), strings.Count(c.request, "\n")
		if !complete || p != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, p, c.want)
		}
	}
}

// FuzzHead compares the parsers of every accepted head. fasthttp must see it end where the
// check does, and must read the same framing as net/http, which must accept it. The result of
// the check must not depend on how the bytes arrive.
func FuzzHead(f *testing.F) {
	for _, c := range refusedHeads {
		f.Add([]byte(c.request))
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n",
		"POST /a?b HTTP/1.0\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nabcde",
		"PUT http://x/ HTTP/1.1\r\nHost: [::1]\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n",
		"CONNECT x:1 HTTP/1.1\r\nHost: x\r\nConnection: close,x\r\nCookie: a=b; c\r\n\r\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		whole, complete, p := scanned(text)
		var slow head
		for n := range len(text) + 1 {
			done, sp := slow.scan(text[:n])
			if done {
				sp = slow.framing()
			}
			if done || sp != nil {
				if done != complete || sp != p || slow != whole {
					t.Fatalf("%q: %+v %v at once, %+v %v byte by byte", text, whole, p, slow, sp)
				}
				break
			}
		}
		if !complete || p != nil {
			return
		}
		text = text[:whole.checked]
		r := bufio.NewReaderSize(bytes.NewReader(append(bytes.Clone(text), "body"...)), len(text)+16)
		var fast fasthttp.RequestHeader
		if fast.Read(r) != nil {
			return // also refused
		}
		if rest, _ := io.ReadAll(r); string(rest) != "body" {
			t.Fatalf("%q: fasthttp sees its end %d bytes away", text, len(rest)-len("body"))
		}
		// net/http also parses the address, which is not our concern.
		method, rest, _ := bytes.Cut(text, []byte(" "))
		_, rest, _ = bytes.Cut(rest, []byte(" "))
		if string(method) == http.MethodConnect {
			method = []byte(http.MethodGet)
		}
		req, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(method), strings.NewReader(" / "),
			bytes.NewReader(rest))))
		if err != nil {
			t.Fatalf("%q: net/http refuses it: %v", text, err)
		}
		chunked := len(req.TransferEncoding) == 1 && req.TransferEncoding[0] == "chunked"
		if chunked != whole.chunked || chunked != (fast.ContentLength() == -1) || !chunked &&
			req.ContentLength != int64(max(fast.ContentLength(), 0)) ||
			req.ProtoAtLeast(1, 1) == whole.http10 || fast.IsHTTP11() == whole.http10 {
			t.Fatalf("%q: %+v, fasthttp reads length %d, net/http reads length %d, codings %q, %s", text, whole, fast.ContentLength(),
				req.ContentLength, req.TransferEncoding, req.Proto)
		}
		if req.Close && !fast.ConnectionClose() {
			t.Fatalf("%q: only net/http closes", text)
		}
	})
}

func TestSpanValueMatchesByteClass(t *testing.T) {
	t.Parallel()
	for b := range 256 {
		for at := range 20 {
			text := []byte("12345678\u00e92345678 0123")
			text[at] = byte(b)
			if got, want := spanValue(text), span(text, valueByte); got != want {
				t.Errorf("%q: %d, want %d", text, got, want)
			}
		}
	}
}

func BenchmarkHead(b *testing.B) {
	text := []byte("GET /v1/score/example.com HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n" +
		"X-API-Key: svc_live_0123456789abcdef0123456789abcdef\r\nAccept: */*\r\nUser-Agent: bench\r\n\r\n")
	for b.Loop() {
		if _, complete, p := scanned(text); !complete || p != nil {
			b.Fatal(p)
		}
	}
}
