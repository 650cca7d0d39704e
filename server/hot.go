package server

import (
	"bytes"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"companyscore/internal/account"
	"companyscore/internal/table"
	"companyscore/server/api"
	"companyscore/server/meter"
	"companyscore/server/requestlog"
)

// Nearly all requests read a score in memory with a key in memory. This file answers them
// before Fiber's routes, and its code allocates nothing but for the evidence, if a caller asks for it. All other requests, and all errors,
// go through the routes. Both paths return the same answers; a test compares them.

const hotPrefix = "/v1/score/"

// hotEvidence is the only query that the hot path answers.
var hotEvidence = []byte("?include=" + includeEvidence)

// Canonical header names and fixed values, so the hot path skips normalisation.
var (
	nameRequestID    = []byte("X-Request-Id")
	nameServerTiming = []byte(headerServerTiming)
	nameCacheControl = []byte(fiber.HeaderCacheControl)
	nameETag         = []byte("Etag")
	nameVary         = []byte(fiber.HeaderVary)
	nameLimit        = []byte("Ratelimit")
	namePolicy       = []byte("Ratelimit-Policy")

	valueMemory       = []byte(originMemory)
	valueCacheControl = []byte(scoreCacheControl)
	valueVary         = []byte(fiber.HeaderAcceptEncoding)
)

// hotBuffers hold a body and an entry of the cache.
var hotBuffers = sync.Pool{New: func() any { b := make([]byte, 0, 2048); return &b }}

// hotRoute is the route of hot answers.
const hotRoute = "/v1/score/*"

// hotMetrics are the metrics of hot answers. They are looked up once, not per request.
type hotMetrics struct {
	sent, notModified prometheus.Counter
	latency           prometheus.Observer
}

func newHotMetrics(m *metrics) hotMetrics {
	return hotMetrics{
		sent:        m.requests.WithLabelValues(hotRoute, "200", string(originMemory)),
		notModified: m.requests.WithLabelValues(hotRoute, "304", string(originMemory)),
		latency:     m.latency.WithLabelValues(hotRoute),
	}
}

// hot answers a GET of a score if all that it needs is in memory, and reports whether it
// did. began is the arrival of the request.
func (s *Server) hot(ctx *fasthttp.RequestCtx, began time.Time) bool {
	if !ctx.IsGet() {
		return false
	}
	// This is the raw target. fasthttp resolves escapes and dots in its parsed path, so
	// invalid paths would get an answer. A target with another query fails plainDomain.
	path := ctx.Request.Header.RequestURI()
	if len(path) <= len(hotPrefix) || string(path[:len(hotPrefix)]) != hotPrefix {
		return false
	}
	domain, evidence := bytes.CutSuffix(path[len(hotPrefix):], hotEvidence)
	if !plainDomain(domain) {
		return false
	}
	caller := s.Keys.Peek(ctx.Request.Header.Peek("X-API-Key"), began)
	if caller == nil || caller.Mode != account.Live {
		return false
	}
	month := s.quotaMonthOf(began)
	policy, used := month.policies[caller.Account.Plan], meter.Quota{}
	metered := len(policy) > 0
	if metered {
		var known bool
		if used, known = s.Meter.Quota(caller.Account, began); !known {
			return false
		}
	}
	tables := s.Universe.Tables(began)
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
	buf = api.AppendScore(buf, "", entry.Head, place, evidenceOf(entry, evidence), s.tails[caller.Account.Plan])
	*buffer = buf
	body := buf[start:]

	var tag [18]byte
	appendTag(tag[:0], body)
	header := &ctx.Response.Header
	id := ctx.Request.Header.Peek(fiber.HeaderXRequestID)
	if !saneRequestID(id) {
		var fresh [36]byte
		id = appendRequestID(fresh[:0], began)
	}
	header.SetCanonical(nameRequestID, id)
	header.SetCanonical(nameServerTiming, valueMemory)
	header.SetCanonical(nameCacheControl, valueCacheControl)
	header.SetCanonical(nameETag, tag[:])
	if known := ctx.Request.Header.Peek(fiber.HeaderIfNoneMatch); len(known) > 0 && matches(string(known), string(tag[:])) {
		header.SetCanonical(nameVary, valueVary)
		ctx.SetStatusCode(fiber.StatusNotModified)
		body = nil
		s.hotMetrics.notModified.Inc()
	} else {
		header.SetContentType(fiber.MIMEApplicationJSON)
		ctx.Response.SetBody(body)
		s.Meter.CountCached(caller.Account, began)
		used.Cached++
		s.hotMetrics.sent.Inc()
	}
	if metered {
		var value [96]byte
		header.SetCanonical(namePolicy, policy)
		header.SetCanonical(nameLimit, month.appendRateLimit(value[:0], s.Meter.Limits(caller.Account.Plan), used, began))
	}
	took := time.Since(began)
	s.hotMetrics.latency.Observe(took.Seconds())
	s.Requests.Record(id, requestlog.Request{
		Kind: table.RequestKind{AccountID: caller.Account.ID, KeyID: caller.KeyID, Route: hotRoute,
			Status: uint16(ctx.Response.StatusCode()), AnsweredBy: string(originMemory)},
		Began: began, Took: took, Bytes: len(body), Hot: true,
	})
	return true
}

// plainDomain reports whether a path can be looked up without normalisation: it has only
// lower case letters, digits, dots and dashes, and does not begin with "www.". It does not
// check that the path is a domain: only canonical domains are in the cache.
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
