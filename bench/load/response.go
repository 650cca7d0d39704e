package load

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

const (
	headMaxBytes = 64 << 10
	bodyMaxBytes = 1 << 20 // of a kept body; the rest is discarded
)

// reader parses the answers from the bytes of a connection, one after the other. It
// keeps the fields of Answer, the body only if keep is set.
type reader struct {
	keep   bool
	answer Answer
	closes bool  // the server will close the connection after this answer
	size   int64 // bytes parsed; the caller resets it

	// Copies that stay valid after feed returns.
	timing, etag []byte

	state readState
	head  []byte // the beginning of an incomplete head or line
	body  []byte
	left  int64 // missing bytes of the body or the chunk
}

type readState uint8

const (
	inHead readState = iota
	inBody
	inChunkSize
	inChunk
	inChunkEnd
	inTrailer
)

var (
	errHeadTooLong = fmt.Errorf("the head of an answer is longer than %d bytes", headMaxBytes)
	errNoLength    = errors.New("an answer has neither Content-Length nor chunks")
	errChunk       = errors.New("an answer has a malformed chunk")
	endOfHead      = []byte("\r\n\r\n")
	endOfLine      = []byte("\r\n")
)

// feed parses bytes up to the end of one answer. It returns the number of bytes parsed
// and whether the answer is complete. r.answer is then valid until the next call.
func (r *reader) feed(data []byte) (used int, done bool, err error) {
	defer func() { r.size += int64(used) }()
	for used < len(data) {
		rest := data[used:]
		switch r.state {
		case inHead:
			head, n, err := r.until(rest, endOfHead)
			used += n
			if err != nil {
				return used, false, err
			}
			if head == nil {
				return used, false, nil
			}
			if done, err = r.begin(head); err != nil || done {
				return used, done, err
			}
		case inBody, inChunk:
			n := min(int64(len(rest)), r.left)
			if r.keep {
				r.body = append(r.body, rest[:min(n, int64(bodyMaxBytes-len(r.body)))]...)
			}
			used += int(n)
			r.left -= n
			if r.left == 0 {
				if r.state == inBody {
					r.finish()
					return used, true, nil
				}
				r.state = inChunkEnd
			}
		case inChunkSize, inChunkEnd, inTrailer:
			line, n, err := r.until(rest, endOfLine)
			used += n
			if err != nil {
				return used, false, err
			}
			if line == nil {
				return used, false, nil
			}
			if done, err = r.chunkLine(line); err != nil || done {
				return used, done, err
			}
		}
	}
	return used, false, nil
}

// until returns the bytes before the mark, nil if data does not contain it yet, and the
// number of bytes of data it used.
func (r *reader) until(data, mark []byte) (found []byte, used int, err error) {
	if len(r.head) == 0 {
		if i := bytes.Index(data, mark); i >= 0 {
			return data[:i:i], i + len(mark), nil
		}
	}
	had := len(r.head)
	if had+len(data) > headMaxBytes {
		data = data[:headMaxBytes-had]
	}
	r.head = append(r.head, data...)
	from := max(0, had-len(mark)+1)
	if i := bytes.Index(r.head[from:], mark); i >= 0 {
		end := from + i
		found = r.head[:end:end]
		r.head = r.head[:0]
		return found, end + len(mark) - had, nil
	}
	if len(r.head) == headMaxBytes {
		return nil, len(data), errHeadTooLong
	}
	return nil, len(data), nil
}

// begin parses the head of an answer, and reports whether the answer ends there.
func (r *reader) begin(head []byte) (done bool, err error) {
	line, rest, _ := bytes.Cut(head, endOfLine)
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return false, fmt.Errorf("%.40q is not an HTTP/1 answer", line)
	}
	status := 0
	for _, c := range line[9:12] {
		if c < '0' || c > '9' {
			return false, fmt.Errorf("%.40q has no status", line)
		}
		status = status*10 + int(c-'0')
	}
	if status < 100 {
		return false, fmt.Errorf("%.40q has no status", line)
	}
	if status < 200 { // an interim answer is skipped
		return false, nil
	}
	r.answer = Answer{Status: status}
	r.closes = line[7] == '0'
	r.body = r.body[:0]
	length, chunked := int64(-1), false
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, endOfLine)
		colon := bytes.IndexByte(line, ':')
		if colon <= 0 {
			return false, fmt.Errorf("%.40q is not a header", line)
		}
		name, value := line[:colon], bytes.TrimSpace(line[colon+1:])
		switch len(name) {
		case len("ETag"):
			if is(name, "etag") {
				r.etag = append(r.etag[:0], value...)
				r.answer.ETag = r.etag
			}
		case len("Connection"):
			if is(name, "connection") {
				r.closes = is(value, "close")
			}
		case len("Server-Timing"):
			if is(name, "server-timing") {
				if i := bytes.IndexAny(value, ";,"); i >= 0 {
					value = value[:i]
				}
				r.timing = append(r.timing[:0], value...)
				r.answer.Timing = r.timing
			}
		case len("Content-Length"):
			if is(name, "content-length") {
				if length, err = parseLength(value, 10); err != nil {
					return false, err
				}
			}
		case len("Transfer-Encoding"):
			if is(name, "transfer-encoding") {
				chunked = is(value, "chunked")
			}
		}
	}
	switch {
	case status == 204 || status == 304:
		return true, nil
	case chunked:
		r.state = inChunkSize
	case length < 0:
		return false, errNoLength
	case length == 0:
		return true, nil
	default:
		r.state, r.left = inBody, length
	}
	return false, nil
}

// chunkLine parses a line between chunks, and reports whether it was the last.
func (r *reader) chunkLine(line []byte) (done bool, err error) {
	switch r.state {
	case inChunkSize:
		if i := bytes.IndexByte(line, ';'); i >= 0 {
			line = line[:i]
		}
		if r.left, err = parseLength(bytes.TrimSpace(line), 16); err != nil {
			return false, errChunk
		}
		r.state = inChunk
		if r.left == 0 {
			r.state = inTrailer
		}
	case inChunkEnd:
		if len(line) != 0 {
			return false, errChunk
		}
		r.state = inChunkSize
	case inTrailer:
		if len(line) == 0 {
			r.finish()
			return true, nil
		}
	}
	return false, nil
}

func (r *reader) finish() {
	r.answer.Body = r.body
	r.state = inHead
}

// reset prepares r for a new connection.
func (r *reader) reset() {
	r.state, r.head, r.size = inHead, r.head[:0], 0
}

// is reports whether text equals lower, ignoring the case of text.
func is(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, c := range text {
		if c|0x20 != lower[i] && c != lower[i] {
			return false
		}
	}
	return true
}

// parseLength parses a number without sign.
func parseLength(text []byte, base int64) (int64, error) {
	if len(text) == 0 {
		return 0, errors.New("an answer has an empty length")
	}
	n := int64(0)
	for _, c := range text {
		digit := int64(99)
		switch {
		case '0' <= c && c <= '9':
			digit = int64(c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			digit = int64(c|0x20-'a') + 10
		}
		if digit >= base || n > (math.MaxInt64-digit)/base {
			return 0, fmt.Errorf("an answer has the length %.20q", text)
		}
		n = n*base + digit
	}
	return n, nil
}
