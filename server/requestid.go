package server

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

const hexDigits = "0123456789abcdef"

// appendRequestID appends a UUID of version 7 (RFC 9562). The id is not a secret, so its
// random bits need not be cryptographically secure.
func appendRequestID(dst []byte, now time.Time) []byte {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:], uint64(now.UnixMilli())<<16|rand.Uint64()&0xffff)
	binary.BigEndian.PutUint64(id[8:], rand.Uint64())
	id[6] = 0x70 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	var text [36]byte
	at := 0
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			text[at] = '-'
			at++
		}
		text[at], text[at+1] = hexDigits[b>>4], hexDigits[b&0xf]
		at += 2
	}
	return append(dst, text[:]...)
}

// saneRequestID reports whether a request id of a caller is safe to log and to return.
func saneRequestID[T ~string | ~[]byte](id T) bool {
	if len(id) < 8 || len(id) > 128 {
		return false
	}
	for i := range len(id) {
		b := id[i]
		if !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '-' || b == '_' || b == '.') {
			return false
		}
	}
	return true
}
