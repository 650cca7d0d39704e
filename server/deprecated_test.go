package server

import (
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

func TestDeprecationIsAnnounced(t *testing.T) {
	t.Parallel()
	s, _ := hotServer(t)
	since := time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC)
	for name, tried := range map[string]struct {
		part                deprecation
		deprecation, sunset string
	}{
		"without an end": {deprecation{Since: since}, "@1793404800", ""},
		"with an end": {deprecation{Since: since, Sunset: time.Date(2027, 10, 31, 2, 0, 0, 0, time.FixedZone("", 7200))}, "@1793404800",
			"Sun, 31 Oct 2027 00:00:00 GMT"},
	} {
		c := s.app.AcquireCtx(new(fasthttp.RequestCtx))
		tried.part.announce(c)
		for header, want := range map[string]string{
			"Deprecation": tried.deprecation, "Sunset": tried.sunset, "Link": `</docs/versioning>; rel="deprecation"; type="text/plain"`,
		} {
			if got := c.GetRespHeader(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		s.app.ReleaseCtx(c)
	}
}
