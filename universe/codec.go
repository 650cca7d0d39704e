package universe

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// EncodedMax bounds an encoded snapshot, unpacked.
const EncodedMax = 256 << 20

// format is raised when the meaning of a snapshot changes.
const format = 1

// ErrFormat says that bytes are no snapshot that this program can read.
var ErrFormat = errors.New("not a snapshot of the universe that this version reads")

type envelope struct {
	Format   int
	Snapshot Snapshot
}

// Encode returns the snapshot as bytes that carry their own checksum.
func Encode(s Snapshot) ([]byte, error) {
	var out bytes.Buffer
	zw, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err == nil {
		err = json.NewEncoder(zw).Encode(envelope{format, s})
	}
	if err == nil {
		err = zw.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encode snapshot: %w", err)
	}
	return out.Bytes(), nil
}

// Decode reads what Encode wrote. Its error wraps ErrFormat.
func Decode(b []byte) (Snapshot, error) {
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	text, err := io.ReadAll(io.LimitReader(zr, EncodedMax+1))
	if err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if len(text) > EncodedMax {
		return Snapshot{}, fmt.Errorf("%w: larger than %d bytes", ErrFormat, EncodedMax)
	}
	var e envelope
	if err := json.Unmarshal(text, &e); err != nil {
		return Snapshot{}, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if e.Format != format {
		return Snapshot{}, fmt.Errorf("%w: format %d", ErrFormat, e.Format)
	}
	return e.Snapshot, nil
}
