package contract

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"testing"
)

// randomRequests is how many requests are made; make contract makes more.
func randomRequests() int {
	if testing.Verbose() {
		return 20_000
	}
	return 1_000
}

// TestRandomRequests makes requests of described addresses with values of all
// kinds. Every answer is held against the OpenAPI document, and none is 5xx.
func TestRandomRequests(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	live, free := s.customer(t, "enterprise"), s.customer(t, "free")
	s.scored(t, live.live, "random-company.com")
	cursor := s.get(t, "/v1/score/acme.test/history?limit=1", live.test).text("next_cursor")
	s.rule("7", fmt.Sprintf("%d random requests bring no 5xx and no body outside of the description", randomRequests()), func(t *testing.T) {
		rng := rand.New(rand.NewPCG(20, 26))
		pick := func(values ...string) string { return values[rng.IntN(len(values))] }
		noise := func() string {
			b := make([]byte, rng.IntN(40))
			for i := range b {
				b[i] = byte(rng.IntN(256))
			}
			return string(b)
		}
		domain := func() string {
			return pick("random-company.com", "acme.test", "cohort.test", "other.test", "never-scored.org", "https://www.random-company.com/a?b",
				"RANDOM-company.com.", "localhost", "10.0.0.1", "[::1]", "bücher.de", "xn--", "a..b", "", ".", "%", noise(), "co.uk", "..")
		}
		for range randomRequests() {
			key := pick(live.live, live.test, free.live, free.test, live.live, live.test, "", "svc_live_x", "nonsense")
			var headers []string
			if rng.IntN(3) == 0 {
				headers = append(headers, "If-None-Match", pick("*", `"x"`, `W/"`, ",,,", `"a","b"`))
			}
			if rng.IntN(5) == 0 {
				headers = append(headers, "X-Request-Id", pick("a", "sane-request-id", "Ω", `"'<>`))
			}
			var r reply
			switch rng.IntN(9) {
			case 0, 1:
				if rng.IntN(4) == 0 {
					headers = append(headers, "Idempotency-Key", pick("a", "b", "c", " ", "%%%"))
				}
				body := pick(fmt.Sprintf(`{"domain":%q}`, domain()), fmt.Sprintf(`{"domain":%q,"force_fresh":%s}`, domain(), pick("true", "false", "1", "null")),
					`{"domain":["a"]}`, `{"domain":{}}`, `{`, `[]`, `null`, noise()+" ", `{"wait":false}`, `{"domain":"random-company.com","extra":{"deep":[1,2]}}`)
				r = s.post(t, key, body, headers...)
			case 2:
				r = s.get(t, "/v1/score/"+url.PathEscape(domain()), key, headers...)
			case 3:
				query := url.Values{}
				if rng.IntN(2) == 0 {
					query.Set("limit", pick("1", "2", "500", "0", "-1", "x", "1e3", noise()))
				}
				if rng.IntN(2) == 0 {
					query.Set("cursor", pick(cursor, "", "AQ", noise()))
				}
				r = s.get(t, "/v1/score/"+url.PathEscape(domain())+"/history?"+query.Encode(), key, headers...)
			case 4:
				r = s.get(t, "/v1/jobs/"+url.PathEscape(pick("x", "01a1fc94-05cf-764e-800e-9c3462621484", "{cold}:run:1", noise()+"j")), key, headers...)
			case 5:
				r = s.get(t, "/v1/company/"+url.PathEscape(domain())+pick("/cohort", "/confidence"), key, headers...)
			case 6:
				r = s.get(t, "/v1/movers?window="+url.QueryEscape(pick("7d", "30d", "90d", "1d", "", noise())), key, headers...)
			case 7:
				r = s.get(t, pick("/v1/usage", "/v1/distribution", "/v1/signals", "/openapi.json"), key, headers...)
			case 8:
				r = s.call(t, pick("PUT", "DELETE", "PATCH", "GET", "POST"), pick("/v1/score", "/v1/usage", "/v1/jobs/x", "/v1/none", "/v1/score/acme.test"), key, "")
			}
			if r.status >= 500 {
				t.Errorf("%d %s", r.status, r.raw)
			}
		}
	})
}
