package embedded

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

const (
	// headSize is the number of bytes buffered before the status is sent. A statement that fails earlier gets an error status.
	headSize = 64 << 10
	// holdSize is the maximum size of a response with wait_end_of_query, in bytes.
	holdSize = 64 << 20
	// frameSize is the maximum size of a compressed block before compression, in bytes.
	frameSize = 1 << 20
)

// output writes the response to one request.
type output struct {
	w       http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration // limit for one write to the client
	req     *request
	tag     string // marks an exception in the body

	head   bytes.Buffer // bytes written before begin
	begun  bool
	broken bool      // an exception follows a part of the result: the connection must be closed
	body   io.Writer // set by begin
	end    []io.Closer

	ctx    context.Context // of the statement of an analyst
	spool  *spool          // of the answers to analysts
	kill   context.CancelCauseFunc
	answer *spooledResult // bytes after head, nil for the service and for short answers
}

func newOutput(w http.ResponseWriter, req *request, idle time.Duration) *output {
	return &output{w: w, control: http.NewResponseController(w), idle: idle, req: req, tag: strings.ToLower(rand.Text()[:16])}
}

// Write writes a part of the result. It buffers up to headSize or holdSize bytes; after that it sends each part at once, or for an analyst
// spools it.
func (o *output) Write(p []byte) (int, error) {
	if o.answer != nil {
		return o.answer.Write(p)
	}
	if o.begun {
		return o.writeOut(p)
	}
	limit := headSize
	if o.req.hold && o.kill == nil {
		limit = holdSize
	}
	if o.head.Len()+len(p) <= limit {
		return o.head.Write(p)
	}
	if o.kill != nil {
		return o.spoolRest(p)
	}
	if o.req.hold {
		return 0, newException(codeTooManyBytes, "The answer is larger than %d bytes, which is the most wait_end_of_query can hold back",
			holdSize)
	}
	if err := o.begin(nil); err != nil {
		return 0, err
	}
	return o.Write(p)
}

// spoolRest spools all after the head. The client gets it while the statement runs, or with wait_end_of_query after its end.
func (o *output) spoolRest(p []byte) (n int, err error) {
	if o.answer, err = o.spool.newResult(o.ctx, writerFunc(o.writeOut), o.kill); err != nil {
		return 0, err
	}
	if !o.req.hold {
		if err := o.begin(nil); err != nil {
			return 0, err
		}
		o.answer.send()
	}
	return o.answer.Write(p)
}

// writeOut sends a part of the result.
func (o *output) writeOut(p []byte) (int, error) {
	n, err := o.body.Write(p)
	if err == nil {
		err = o.flush()
	}
	return n, err
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// close removes what is spooled.
func (o *output) close() {
	if o.answer != nil {
		o.answer.close()
	}
}

// begin sends the headers and the buffered bytes. sum is nil if the result is not complete.
func (o *output) begin(sum *summary) error {
	o.begun = true
	h := o.w.Header()
	h.Set("Content-Type", contentType(o.req.format))
	h.Set("X-ClickHouse-Format", o.req.format)
	h.Set("X-ClickHouse-Exception-Tag", o.tag)
	if sum != nil {
		h.Set("X-ClickHouse-Summary", sum.json())
	}
	o.body = deadlineWriter{o.w, o.control, o.idle}
	switch o.req.encoding {
	case "":
		if sum != nil && (o.req.method == compress.None || o.head.Len() == 0 && o.answer == nil) {
			length := int64(o.head.Len())
			if o.answer != nil {
				length += o.answer.written
			}
			h.Set("Content-Length", strconv.FormatInt(length, 10))
		}
	case "gzip":
		o.encode(gzip.NewWriter(o.body))
	case "deflate":
		o.encode(zlib.NewWriter(o.body))
	case "br":
		o.encode(brotli.NewWriterLevel(o.body, brotli.BestSpeed))
	case "zstd":
		w, err := zstd.NewWriter(o.body, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
		if err != nil {
			return err
		}
		o.encode(w)
	}
	if o.req.method != compress.None {
		o.body = &frameWriter{o.body, compress.NewWriter(compress.LevelZero, o.req.method)}
	}
	_, err := o.body.Write(o.head.Bytes())
	o.head.Reset()
	if sum == nil && err == nil {
		err = o.flush()
	}
	return err
}

func (o *output) encode(w io.WriteCloser) {
	o.w.Header().Set("Content-Encoding", o.req.encoding)
	o.body, o.end = w, append(o.end, w)
}

// flush flushes the encoder and the HTTP server.
func (o *output) flush() error {
	for _, c := range o.end {
		if f, ok := c.(interface{ Flush() error }); ok {
			if err := f.Flush(); err != nil {
				return err
			}
		}
	}
	return o.control.Flush()
}

// finish ends a successful response.
func (o *output) finish(sum summary) error {
	if !o.begun {
		if err := o.begin(&sum); err != nil {
			return err
		}
	}
	if o.answer != nil {
		if err := o.answer.end(); err != nil {
			return err
		}
	}
	for _, c := range o.end {
		if err := c.Close(); err != nil {
			return err
		}
	}
	return nil
}

// fail ends a response with an exception. If nothing was sent, it sends the status and text of the exception. Otherwise it writes a marked
// block into the body, like ClickHouse, and sets o.broken.
func (o *output) fail(e *exception, version string) {
	text := e.render(version)
	if o.begun {
		if o.answer != nil {
			_ = o.answer.end()
		}
		_, _ = fmt.Fprintf(o.body, "\r\n__exception__\r\n%s\r\n%s%d %s\r\n__exception__\r\n", o.tag, text, len(text), o.tag)
		for _, c := range o.end { // a client can then decode all of the body
			_ = c.Close()
		}
		_ = o.control.Flush()
		o.broken = true
		return
	}
	h := o.w.Header()
	h.Set("Content-Type", "text/plain; charset=UTF-8")
	h.Set("X-ClickHouse-Exception-Code", strconv.Itoa(e.code))
	if e.status() == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="ClickHouse"`)
	}
	_ = o.control.SetWriteDeadline(time.Now().Add(o.idle))
	o.w.WriteHeader(e.status())
	_, _ = io.WriteString(o.w, text)
}

// json returns the value of X-ClickHouse-Summary. Numbers are strings, as in ClickHouse.
func (s summary) json() string {
	return fmt.Sprintf(`{"read_rows":"%d","read_bytes":"%d","written_rows":"%d","written_bytes":"%d","total_rows_to_read":"0","result_rows":"%d","result_bytes":"%d","elapsed_ns":"%d"}`,
		s.readRows, s.readBytes, s.writtenRows, s.writtenBytes, s.resultRows, s.resultBytes, s.elapsed.Nanoseconds())
}

// deadlineWriter sets a deadline for each write. A client may be slow but must not stall.
type deadlineWriter struct {
	io.Writer
	control *http.ResponseController
	idle    time.Duration
}

func (d deadlineWriter) Write(p []byte) (int, error) {
	_ = d.control.SetWriteDeadline(time.Now().Add(d.idle)) // not supported by test recorders
	return d.Writer.Write(p)
}

// frameWriter writes ClickHouse's native compressed blocks.
type frameWriter struct {
	w io.Writer
	c *compress.Writer
}

func (f *frameWriter) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(len(rest), frameSize)
		if err := f.c.Compress(rest[:n]); err != nil {
			return 0, err
		}
		if _, err := f.w.Write(f.c.Data); err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return len(p), nil
}

// contentType returns ClickHouse's Content-Type of a format.
func contentType(format string) string {
	has := func(prefix string) bool { return strings.HasPrefix(format, prefix) }
	switch {
	case format == "JSONEachRow", format == "JSONLines", format == "NDJSON", has("JSONCompactEachRow"), has("JSONStringsEachRow"):
		return "application/x-ndjson; charset=UTF-8"
	case has("JSON"):
		return "application/json; charset=UTF-8"
	case has("CSV"):
		return "text/csv; charset=UTF-8"
	case has("TabSeparated"), has("TSV"):
		return "text/tab-separated-values; charset=UTF-8"
	case format == "XML":
		return "application/xml; charset=UTF-8"
	case format == "Native", has("RowBinary"), format == "Parquet", has("Arrow"), format == "ORC", format == "Avro", format == "MsgPack",
		format == "RawBLOB":
		return "application/octet-stream"
	}
	return "text/plain; charset=UTF-8"
}
