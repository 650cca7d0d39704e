package server

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/valyala/fasthttp"

	"companyscore/server/openapi"
)

// The page has files of a megabyte, for anyone to ask for. A compressed copy for each
// client that does not read it would fill the memory.
func TestFilesOfThePageAreCompressedOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t, &as{}, new(bytes.Buffer))
	const path = "/docs/swagger-ui.css"
	file := openapi.Page["swagger-ui.css"].Body
	tags := make(map[string]bool)
	for encoding, decoded := range map[string]func(io.Reader) (io.Reader, error){
		"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"":        func(r io.Reader) (io.Reader, error) { return r, nil },
		"deflate": nil,
	} {
		var bodies [2][]byte
		for i := range bodies {
			var ctx fasthttp.RequestCtx
			ctx.Request.Header.SetMethod(http.MethodGet)
			ctx.Request.SetRequestURI(path)
			ctx.Request.Header.Set("Accept-Encoding", encoding)
			s.handle(&ctx, s.now())
			bodies[i] = ctx.Response.Body()
			if vary := string(ctx.Response.Header.Peek("Vary")); vary != "Accept-Encoding" {
				t.Errorf("%q: Vary is %q", encoding, vary)
			}
		}
		if &bodies[0][0] != &bodies[1][0] {
			t.Errorf("%q: two clients are sent two copies", encoding)
		}
		if decoded == nil {
			continue
		}
		req := httptest.NewRequest(http.MethodGet, path, nil)
		req.Header.Set("Accept-Encoding", encoding)
		res := do(t, s, req)
		r, err := decoded(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, file) || res.Header.Get("Content-Encoding") != encoding || tags[res.Header.Get("Etag")] {
			t.Errorf("%q: %d bytes, %v, %v", encoding, len(text), err, res.Header)
		}
		tags[res.Header.Get("Etag")] = true
		req.Header.Set("If-None-Match", res.Header.Get("Etag"))
		if res := do(t, s, req); res.StatusCode != http.StatusNotModified || res.ContentLength > 0 {
			t.Errorf("%q: with its tag it answers %d", encoding, res.StatusCode)
		}
	}
}
