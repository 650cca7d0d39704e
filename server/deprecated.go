package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
)

// versioningPath is the address of docs/versioning.md, which says how long deprecated parts stay.
const versioningPath = "/docs/versioning"

// deprecation is a part of the interface that callers should no longer use.
type deprecation struct {
	// Since is when it was deprecated.
	Since time.Time
	// Sunset is when it stops working. Zero means that v1 keeps it.
	Sunset time.Time
}

// waitField is the field wait of POST /v1/score. It has no effect, and v1 always accepts it.
var waitField = deprecation{Since: time.Date(2026, 5, 12, 0, 0, 0, 0, time.UTC)}

// announce sets the headers of an answer to a request that uses the deprecated part: Deprecation
// (RFC 9745), Sunset (RFC 8594) and a link to the policy.
func (d deprecation) announce(c *fiber.Ctx) {
	c.Set("Deprecation", "@"+strconv.FormatInt(d.Since.Unix(), 10))
	if !d.Sunset.IsZero() {
		c.Set("Sunset", d.Sunset.UTC().Format(http.TimeFormat))
	}
	c.Append(fiber.HeaderLink, "<"+versioningPath+`>; rel="deprecation"; type="text/plain"`)
}
