package embedded

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Maximum sizes of a compressed block in a request, before and after compression, in bytes. A reader allocates it before the block arrives.
const (
	frameMax        = 128 << 20
	analystFrameMax = 2 << 20
)

// frames passes compressed blocks on and fails before one that is larger than max.
type frames struct {
	io.Reader
	max  uint32
	left int64  // bytes of the current block
	head []byte // of the current block, not passed on
}

func (f *frames) Read(p []byte) (int, error) {
	if f.left == 0 {
		// A checksum of 16 bytes, a byte for the method, the size of the block without the checksum, and its size after decompression.
		head := make([]byte, 25)
		if _, err := io.ReadFull(f.Reader, head); err != nil {
			return 0, err
		}
		size, raw := binary.LittleEndian.Uint32(head[17:]), binary.LittleEndian.Uint32(head[21:])
		if size < 9 || size > f.max || raw > f.max {
			return 0, fmt.Errorf("a compressed block has %d bytes, and %d after decompression: send at most %d", size, raw, f.max)
		}
		f.left, f.head = int64(size)+16, head
	}
	var n int
	var err error
	if len(f.head) > 0 {
		n = copy(p, f.head)
		f.head = f.head[n:]
	} else {
		n, err = f.Reader.Read(p[:min(int64(len(p)), f.left)])
	}
	f.left -= int64(n)
	return n, err
}

// decoded returns a reader that decodes Content-Encoding and then, if blocks is set, ClickHouse's native block compression with blocks of
// at most frame bytes.
func decoded(body io.Reader, encoding string, blocks bool, frame uint32) (io.Reader, error) {
	var err error
	switch encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		body, err = gzip.NewReader(body)
	case "deflate":
		body, err = zlib.NewReader(body)
	case "br":
		body = brotli.NewReader(body)
	case "zstd":
		var d *zstd.Decoder
		if d, err = zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20)); err == nil {
			body = d.IOReadCloser()
		}
	default:
		return nil, newException(codeNotImplemented, "Content-Encoding %s is not supported, use gzip, deflate, br or zstd", encoding)
	}
	if err != nil {
		return nil, newException(codeBadArguments, "read body as %s: %v", encoding, err)
	}
	if blocks {
		body = compress.NewReader(&frames{Reader: body, max: frame})
	}
	return body, nil
}

// bodyReader sets a deadline for each read of a request body. A large upload may be slow but must not stall.
type bodyReader struct {
	io.Reader
	control *http.ResponseController
	idle    time.Duration
	until   time.Time // deadline of all reads together, zero for none
}

func (b *bodyReader) Read(p []byte) (int, error) {
	deadline := time.Now().Add(b.idle)
	if !b.until.IsZero() && b.until.Before(deadline) {
		deadline = b.until
	}
	_ = b.control.SetReadDeadline(deadline) // not supported by test recorders
	n, err := b.Reader.Read(p)
	if err != nil {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}
