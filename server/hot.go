package server

import (
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"companyscore/internal/account"
	"companyscore/server/api"
)

// Nearly all requests read a score that is in memory, with a key that is known.
// Those are answered here, before Fiber's routes, without an allocation of ours.
// Whatever is the least bit unusual goes the ordinary way, and so do all errors;
// both ways give the same answers, and a test holds them to it.

const hotPrefix = "/v1/score/"

// Names of headers as they are sent, so that none is brought into that form anew.
var (
	nameRequestID    = []byte("X-Request-Id")
	nameServerTiming = []byte(headerServerTiming)
	nameCacheControl = []byte(fiber.HeaderCacheControl)
	nameETag         = []byte("Etag")
	nameVary         = []byte(fiber.HeaderVary)

	valueMemory       = []byte(tierMemory)
	valueCacheControl = []byte(scoreCacheControl)
	valueVary         = []byte(fiber.HeaderAcceptEncoding)
)

// hotBuffers hold a body and an entry of the cache.
var hotBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// hotMetrics are the counters of hot answers, found once.
type hotMetrics struct {
	sent, notModified prometheus.Counter
	latency           prometheus.Observer
}

func newHotMetrics(m *metrics) hotMetrics {
	const route = "/v1/score/*"
	return hotMetrics{
		sent:        m.requests.WithLabelValues(route, "200", string(tierMemory)),
		notModified: m.requests.WithLabelValues(route, "304", string(tierMemory)),
		latency:     m.latency.WithLabelValues(route),
	}
}

// hot answers a request that came at began if it asks for a score and everything it
// takes is in memory, and reports whether it did.
func (s *Server) hot(ctx *fasthttp.RequestCtx, began time.Time) bool {
	if !ctx.IsGet() {
		return false
	}
	// As it was sent: fasthttp resolves escapes and dots, and would answer addresses
	// that are none. A query makes it unusual.
	path := ctx.Request.Header.RequestURI()
	if len(path) <= len(hotPrefix) || string(path[:len(hotPrefix)]) != hotPrefix {
		return false
	}
	domain := path[len(hotPrefix):]
	if !plainDomain(domain) {
		return false
	}
	caller := s.Keys.Peek(ctx.Request.Header.Peek("X-API-Key"), began)
	if caller == nil || caller.Mode != account.Live {
		return false
	}
	tables := s.Universe.Tables()
	if tables == nil {
		return false
	}
	buffer := hotBuffers.Get().(*[]byte)
	defer hotBuffers.Put(buffer)
	entry, buf, ok := s.Cache.Lookup((*buffer)[:0], domain, began)
	*buffer = buf
	if !ok || !entry.Found() {
		return false
	}
	var place *api.Rank
	if rank, ok := rankOf(entry, tables); ok {
		place = &rank
	}
	start := len(buf)
	buf = api.AppendScore(buf, "", entry.Head, place, s.tails[caller.Account.Tier])
	*buffer = buf
	body := buf[start:]

	var tag [18]byte
	appendTag(tag[:0], body)
	header := &ctx.Response.Header
	if id := ctx.Request.Header.Peek(fiber.HeaderXRequestID); saneRequestID(id) {
		header.SetCanonical(nameRequestID, id)
	} else {
		var fresh [36]byte
		header.SetCanonical(nameRequestID, appendRequestID(fresh[:0], began))
	}
	header.SetCanonical(nameServerTiming, valueMemory)
	header.SetCanonical(nameCacheControl, valueCacheControl)
	header.SetCanonical(nameETag, tag[:])
	if known := ctx.Request.Header.Peek(fiber.HeaderIfNoneMatch); len(known) > 0 && matches(string(known), string(tag[:])) {
		header.SetCanonical(nameVary, valueVary)
		ctx.SetStatusCode(fiber.StatusNotModified)
		s.hotMetrics.notModified.Inc()
	} else {
		header.SetContentType(fiber.MIMEApplicationJSON)
		ctx.Response.SetBody(body)
		s.Meter.CountCached(caller.Account, began)
		s.hotMetrics.sent.Inc()
	}
	s.hotMetrics.latency.Observe(time.Since(began).Seconds())
	return true
}

// plainDomain reports whether a path needs no cleaning to be looked up: lower
// case letters, digits, dots and dashes, and no "www." before them. Whether it is
// a domain decides the cache, which holds canonical ones only.
func plainDomain(path []byte) bool {
	if len(path) > 253 || len(path) > 4 && string(path[:4]) == "www." {
		return false
	}
	for _, b := range path {
		if !('a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '.' || b == '-') {
			return false
		}
	}
	return true
}

// appendTag appends the strong entity tag of a body.
func appendTag(dst, body []byte) []byte {
	sum := xxhash.Sum64(body)
	var text [18]byte
	text[0], text[17] = '"', '"'
	for i := 16; i > 0; i-- {
		text[i] = hexDigits[sum&0xf]
		sum >>= 4
	}
	return append(dst, text[:]...)
}
