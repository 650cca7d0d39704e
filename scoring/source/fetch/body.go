package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"
)

// cappedReader fails with CodeTooLarge after left bytes.
type cappedReader struct {
	r    io.Reader
	left int64
	what string
}

func (c *cappedReader) Read(p []byte) (int, error) {
	if int64(len(p)) > c.left+1 {
		p = p[:c.left+1]
	}
	n, err := c.r.Read(p)
	if c.left -= int64(n); c.left < 0 {
		return 0, &Error{Code: CodeTooLarge, Err: fmt.Errorf("%s is larger than what is read", c.what)}
	}
	return n, err
}

// classifyingReader gives connection errors their code. It passes io.ErrUnexpectedEOF on: the
// parser decides whether a truncated body matters.
type classifyingReader struct{ r io.Reader }

func (w classifyingReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if err != nil && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		err = classify(err)
	}
	return n, err
}

// openBody returns the decompressed body of an answer. limit bounds it in bytes, on the wire and
// after decompression.
func openBody(res *http.Response, limit int64) (io.Reader, error) {
	if res.ContentLength > limit {
		return nil, &Error{Code: CodeTooLarge, Status: res.StatusCode,
			Err: fmt.Errorf("the answer of %d bytes is larger than the %d that are read", res.ContentLength, limit)}
	}
	wire := &cappedReader{r: classifyingReader{res.Body}, left: limit, what: "the answer"}
	switch coding := strings.ToLower(res.Header.Get("Content-Encoding")); coding {
	case "", "identity":
		return wire, nil
	case "gzip", "x-gzip":
		plain, err := gzip.NewReader(wire)
		if err != nil {
			return nil, asParse(fmt.Errorf("decompress the answer: %w", err))
		}
		return &cappedReader{r: plain, left: limit, what: "the decompressed answer"}, nil
	default:
		return nil, &Error{Code: CodeParse, Err: fmt.Errorf("the answer has the encoding %q, which is not accepted", coding)}
	}
}

// mediaType returns the media type of an answer in lower case, without parameters.
func mediaType(header http.Header) string {
	t, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		t, _, _ = strings.Cut(header.Get("Content-Type"), ";")
		t = strings.ToLower(strings.TrimSpace(t))
	}
	return t
}

// checkType rejects an answer whose media type is not in types.
func checkType(header http.Header, types []string) error {
	got := mediaType(header)
	switch {
	case len(types) == 0 && (got == "application/json" || strings.HasSuffix(got, "+json")):
	case slices.Contains(types, "*"), slices.Contains(types, got):
	default:
		return &Error{Code: CodeParse, Err: fmt.Errorf("the answer has the media type %q, which is not accepted", got)}
	}
	return nil
}

// asParse gives an error CodeParse unless it has a code.
func asParse(err error) error {
	var coded interface{ WarningCode() string }
	if errors.As(err, &coded) {
		return err
	}
	if isTimeout(err) {
		return &Error{Code: CodeTimeout, Err: err}
	}
	return &Error{Code: CodeParse, Err: err}
}

// classify gives a connection error its code.
func classify(err error) error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return &Error{Code: e.Code, Status: e.Status, RetryAfter: e.RetryAfter, Err: err}
	case isTimeout(err):
		return &Error{Code: CodeTimeout, Err: err}
	}
	return &Error{Code: CodeHTTP, Err: err}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &n) && n.Timeout()
}
