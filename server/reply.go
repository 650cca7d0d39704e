package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"companyscore/server/cache"
)

// noStore is the Cache-Control of answers that must not be cached.
const noStore = "no-store"

// origin is what answered a request. It is the value of Server-Timing and a label of the
// request metrics.
type origin string

const (
	originNone       origin = "none"
	originSandbox    origin = "sandbox"    // canned data
	originMemory     origin = "l1"         // in memory, for one company
	originTable      origin = "table"      // in memory, for all callers
	originRedis      origin = "redis"      // read from Redis
	originClickHouse origin = "clickhouse" // read from ClickHouse
)

const originLocal = "tier"

const headerServerTiming = "Server-Timing"

// originOfLevel maps the levels of the cache to the origins of answers.
var originOfLevel = map[cache.Level]origin{cache.Memory: originMemory, cache.Redis: originRedis, cache.ClickHouse: originClickHouse}

// mark records what answered the request.
func mark(c *fiber.Ctx, t origin) {
	c.Locals(originLocal, t)
	c.Set(headerServerTiming, string(t))
}

func originOf(c *fiber.Ctx) origin {
	if t, ok := c.Locals(originLocal).(origin); ok {
		return t
	}
	return originNone
}

// replyInfo is the origin, the max-age and the content type of a body that callers may cache.
type replyInfo struct {
	origin origin
	maxAge time.Duration
	kind   string // empty for JSON
}

// rendered is a body with its entity tag.
type rendered struct {
	body []byte
	tag  string
}

func render(body any) (rendered, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return rendered{}, fmt.Errorf("write body: %w", err)
	}
	return tagged(b), nil
}

func tagged(body []byte) rendered { return rendered{body: body, tag: entityTag(body)} }

// send answers with a body, or with 304 when the caller has it already.
func (s *Server) send(c *fiber.Ctx, body any, a replyInfo) error {
	r, err := render(body)
	if err != nil {
		return err
	}
	return s.sendRendered(c, r, a)
}

func (s *Server) sendRendered(c *fiber.Ctx, r rendered, a replyInfo) error {
	mark(c, a.origin)
	c.Set(fiber.HeaderCacheControl, cacheControl(a.maxAge))
	c.Set(fiber.HeaderETag, r.tag)
	if matches(c.Get(fiber.HeaderIfNoneMatch), r.tag) {
		c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
		return c.Status(fiber.StatusNotModified).Send(nil)
	}
	c.Set(fiber.HeaderContentType, cmp.Or(a.kind, fiber.MIMEApplicationJSON))
	return c.Send(r.body)
}

// sendPage is sendRendered for a live body that depends on one company, and is
// made unless it is in memory.
func (s *Server) sendPage(c *fiber.Ctx, ctx context.Context, domain, key string, maxAge time.Duration,
	build func(ctx context.Context) ([]byte, error)) error {
	body, from, err := s.page(ctx, domain, key, build)
	if err != nil {
		return err
	}
	return s.sendRendered(c, tagged(body), replyInfo{origin: from, maxAge: maxAge})
}

// page returns a body of sendPage and what made it.
func (s *Server) page(ctx context.Context, domain, key string, build func(ctx context.Context) ([]byte, error)) ([]byte, origin, error) {
	body, hit, err := s.Cache.Page(ctx, domain, key, build)
	if hit {
		return body, originMemory, err
	}
	return body, originClickHouse, err
}

// fixed is a large body that never changes. It is compressed once per encoding, and all
// answers share the result. Copies for slow clients could fill the memory.
type fixed struct {
	rendered
	br, gzip func() []byte
}

func newFixed(body []byte) fixed {
	return fixed{
		rendered: tagged(body),
		br: sync.OnceValue(func() []byte {
			return fasthttp.AppendBrotliBytesLevel(nil, body, fasthttp.CompressBrotliDefaultCompression)
		}),
		gzip: sync.OnceValue(func() []byte {
			return fasthttp.AppendGzipBytesLevel(nil, body, fasthttp.CompressDefaultCompression)
		}),
	}
}

// sendFixed answers with a fixed body in an encoding that the caller accepts.
func (s *Server) sendFixed(c *fiber.Ctx, f fixed, a replyInfo) error {
	if err := s.sendRendered(c, f.rendered, a); err != nil || c.Response().StatusCode() != fiber.StatusOK {
		return err
	}
	switch accepts := &c.Request().Header; {
	case accepts.HasAcceptEncoding("br"):
		c.Set(fiber.HeaderContentEncoding, "br")
		c.Response().SetBodyRaw(f.br())
	case accepts.HasAcceptEncoding("gzip"):
		c.Set(fiber.HeaderContentEncoding, "gzip")
		c.Response().SetBodyRaw(f.gzip())
	}
	tagEncoding(c)
	return nil
}

func cacheControl(maxAge time.Duration) string {
	return "private, max-age=" + strconv.Itoa(int(maxAge/time.Second))
}

// entityTag returns a strong entity tag, a hash of the body.
func entityTag(body []byte) string {
	return string(appendTag(nil, body))
}

// matches reports whether an If-None-Match header names the tag, with or without the
// suffix of an encoding.
func matches(header, tag string) bool {
	for named := range strings.SplitSeq(header, ",") {
		named = strings.TrimPrefix(strings.TrimSpace(named), "W/")
		if named == "*" || named == tag {
			return true
		}
		for _, suffix := range encodingSuffixes {
			if named == withSuffix(tag, suffix) {
				return true
			}
		}
	}
	return false
}

// compressMin is the size in bytes from which bodies are compressed.
const compressMin = 1024

var (
	encodingSuffixes = map[string]string{"gzip": "-gzip", "br": "-br", "deflate": "-deflate", "zstd": "-zstd"}
	compressor       = fasthttp.CompressHandlerBrotliLevel(func(*fasthttp.RequestCtx) {}, fasthttp.CompressBrotliBestSpeed,
		fasthttp.CompressBestSpeed)
)

// compress is a middleware that compresses large bodies if the caller accepts an encoding.
// The entity tag of a compressed body has the encoding as a suffix.
func compress(c *fiber.Ctx) error {
	if err := c.Next(); err != nil {
		return err
	}
	if len(c.Response().Body()) < compressMin {
		return nil
	}
	compressor(c.Context())
	tagEncoding(c)
	return nil
}

// tagEncoding sets Vary to Accept-Encoding and adds the encoding of the body to its entity
// tag.
func tagEncoding(c *fiber.Ctx) {
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if suffix := encodingSuffixes[string(c.Response().Header.ContentEncoding())]; suffix != "" {
		if tag := c.GetRespHeader(fiber.HeaderETag); tag != "" {
			c.Set(fiber.HeaderETag, withSuffix(tag, suffix))
		}
	}
}

func withSuffix(tag, suffix string) string { return strings.TrimSuffix(tag, `"`) + suffix + `"` }
