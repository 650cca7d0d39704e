package server

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Proxies and servers parse malformed request heads differently, which allows request
// smuggling. fasthttp accepts many malformed heads. So this file first checks a head strictly
// by RFC 9112, and fasthttp parses only valid heads.

// head is the framing of a request and the progress of the check. The zero value is an
// unread head.
type head struct {
	checked int // checked bytes, always whole lines
	lines   int
	waited  bool // the request did not arrive in one read

	http10    bool
	hosts     int
	hasLength bool
	chunked   bool
}

// lengthDigitsMax bounds the digits of a Content-Length, so that the value fits an int.
const lengthDigitsMax = 18

// The problems of a head. Each ends the connection.
var (
	errLineEnd      = errRequestMalformed.with("Lines of the head must end with CR LF.")
	errRequestLine  = errRequestMalformed.with("The request line must be a method, an address and HTTP/1.1, with one space between them.")
	errVersion      = errRequestMalformed.with("This service supports HTTP/1.1 and HTTP/1.0.")
	errHeaderColon  = errRequestMalformed.with("A header line has no colon.")
	errHeaderName   = errRequestMalformed.with("A header name is empty, contains an invalid character, or continues the previous line.")
	errHeaderValue  = errRequestMalformed.with("A header value contains a control character.")
	errHost         = errRequestMalformed.with("A request needs exactly one Host header, with a valid value.")
	errLength       = errRequestMalformed.with("Content-Length must be one whole number, sent once.")
	errLengthCoding = errRequestMalformed.with("A request has a Content-Length or a Transfer-Encoding, not both.")
	errCodingOnce   = errRequestMalformed.with("Transfer-Encoding must be sent once, and with HTTP/1.1 only.")
)

// scan checks the complete lines in buf. buf begins with the head; later calls may have a
// longer buf. scan reports whether the head is complete; h.checked is then its length. It
// returns a problem if the head is invalid.
func (h *head) scan(buf []byte) (complete bool, p *problem) {
	for {
		var n int
		if rest := buf[h.checked:]; h.lines == 0 {
			n, p = h.requestLine(rest)
		} else {
			n, p = h.field(rest)
		}
		if p != nil || n == 0 {
			return false, p
		}
		h.checked += n
		h.lines++
		if n == len("\r\n") && h.lines > 1 {
			return true, nil
		}
	}
}

// framing returns a problem if the header fields of a complete head contradict each other.
func (h *head) framing() *problem {
	switch {
	case h.hosts != 1 && !(h.hosts == 0 && h.http10):
		return errHost
	case h.hasLength && h.chunked:
		return errLengthCoding
	case h.chunked && h.http10:
		return errCodingOnce
	}
	return nil
}

// requestLine checks the request line at the start of buf and returns its length, 0 if it
// is not complete.
func (h *head) requestLine(buf []byte) (n int, p *problem) {
	for _, class := range []uint8{tokenByte, targetByte} { // the method and the address
		length := span(buf[n:], class)
		if n += length; n == len(buf) {
			return 0, nil
		}
		if length == 0 || buf[n] != ' ' {
			return 0, errRequestLine
		}
		n++
	}
	const size = len("HTTP/1.1")
	version := buf[n:]
	if len(version) < size {
		if bytes.IndexByte(version, '\n') >= 0 {
			return 0, errVersion
		}
		return 0, nil
	}
	switch string(version[:size]) {
	case "HTTP/1.1":
	case "HTTP/1.0":
		h.http10 = true
	default:
		return 0, errVersion
	}
	end, p := lineEnd(version[size:], errVersion)
	if end == 0 {
		return 0, p
	}
	return n + size + end, nil
}

// field checks the header line or empty line at the start of buf and records its effect on
// framing. It returns the length of the line, 0 if it is not complete.
func (h *head) field(buf []byte) (n int, p *problem) {
	colon := span(buf, tokenByte)
	if colon == 0 || colon == len(buf) || buf[colon] != ':' {
		end, p := lineEnd(buf[colon:], errHeaderName)
		if end > 0 && colon > 0 {
			p = errHeaderColon
		}
		return end, p
	}
	value := buf[colon+1:]
	length := spanValue(value)
	end, p := lineEnd(value[length:], errHeaderValue)
	if end == 0 {
		return 0, p
	}
	return colon + 1 + length + end, h.note(buf[:colon], trim(value[:length]))
}

// lineEnd returns the length of the line end at the start of buf, 0 if it is not complete. If
// buf does not begin with a line end, it returns the problem other, or errLineEnd for a bare
// LF.
func lineEnd(buf []byte, other *problem) (n int, p *problem) {
	switch {
	case len(buf) == 0:
		return 0, nil
	case buf[0] == '\n':
		return 0, errLineEnd
	case buf[0] != '\r':
		return 0, other
	case len(buf) == 1:
		return 0, nil
	case buf[1] != '\n':
		return 0, other
	}
	return len("\r\n"), nil
}

// note records the effect of a header on framing, or returns a problem.
func (h *head) note(name, value []byte) *problem {
	switch len(name) { // cheaper than a comparison with every name
	case len("Host"):
		if bytes.EqualFold(name, []byte("Host")) {
			h.hosts++
			if len(value) == 0 || span(value, hostByte) < len(value) {
				return errHost
			}
		}
	case len("Content-Length"):
		if bytes.EqualFold(name, []byte("Content-Length")) {
			return h.contentLength(value)
		}
	case len("Transfer-Encoding"):
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			switch {
			case h.chunked:
				return errCodingOnce
			case !bytes.EqualFold(value, []byte("chunked")):
				return &errCoding
			}
			h.chunked = true
		}
	}
	return nil
}

func (h *head) contentLength(value []byte) *problem {
	if h.hasLength || len(value) == 0 {
		return errLength
	}
	h.hasLength = true
	for _, b := range value {
		if b < '0' || b > '9' {
			return errLength
		}
	}
	if len(value) > lengthDigitsMax {
		return &errTooLarge
	}
	return nil
}

// trim removes spaces and tabs around a header value.
func trim(value []byte) []byte {
	for len(value) > 0 && (value[0] == ' ' || value[0] == '\t') {
		value = value[1:]
	}
	for n := len(value) - 1; n >= 0 && (value[n] == ' ' || value[n] == '\t'); n-- {
		value = value[:n]
	}
	return value
}

// Classes of bytes, by the parts of a head that may contain them.
const (
	tokenByte  = 1 << iota // methods and header names, RFC 9110 section 5.6.2
	valueByte              // header values, section 5.5
	targetByte             // request targets; bytes above ASCII are escaped by few clients
	hostByte               // values of Host, RFC 3986 section 3.2.2
)

var classes = func() (c [256]uint8) {
	for b := range c {
		if b >= ' ' && b != 0x7f || b == '\t' {
			c[b] |= valueByte
		}
		if b > ' ' && b != 0x7f {
			c[b] |= targetByte
		}
		letter, digit := 'a' <= b|0x20 && b|0x20 <= 'z', '0' <= b && b <= '9'
		if letter || digit {
			c[b] |= tokenByte | hostByte
		}
	}
	for _, b := range []byte("!#$%&'*+-.^_`|~") {
		c[b] |= tokenByte
	}
	for _, b := range []byte("!$%&'()*+,-.:;=[]_~") {
		c[b] |= hostByte
	}
	return c
}()

// span returns the number of bytes of a class at the start of text.
func span(text []byte, class uint8) int {
	for i, b := range text {
		if classes[b]&class == 0 {
			return i
		}
	}
	return len(text)
}

// spanValue is span for valueByte. It checks eight bytes at a time.
func spanValue(text []byte) (n int) {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	for n < len(text) {
		if len(text)-n >= 8 {
			v := binary.LittleEndian.Uint64(text[n:])
			del := v ^ 0x7f*ones
			odd := ((v-' '*ones)&^v | (del-ones)&^del) & highs // the lowest bit set is of a control character
			if odd == 0 {
				n += 8
				continue
			}
			n += bits.TrailingZeros64(odd) / 8
		}
		if classes[text[n]]&valueByte == 0 {
			return n
		}
		n++
	}
	return n
}
