package contract

import (
	"fmt"
	"strings"
	"testing"
)

// requestsOf returns the rows of the requests of a key's account, and their sums of calls, cold calls
// and errors.
func (s suite) requestsOf(t *testing.T, key, query string) (rows []map[string]any, sums [3]float64) {
	t.Helper()
	list, _ := s.get(t, "/v1/usage/history"+query, key).wants(t, 200, "").at("rows").([]any)
	for _, row := range list {
		r := row.(map[string]any)
		rows = append(rows, r)
		for i, name := range []string{"calls", "cold_calls", "errors"} {
			sums[i] += r[name].(float64)
		}
	}
	return rows, sums
}

func (s suite) requests() {
	c, other := s.customer(s.T, "starter"), s.customer(s.T, "starter")
	s.rule("decided: request log", "the id of any answer, 200 or 4xx, finds its request within seconds", func(t *testing.T) {
		for _, r := range []struct {
			reply
			want string
		}{
			{s.get(t, "/v1/score/stored-company.com", c.live).wants(t, 200, ""), "/v1/score/* 200 "},
			{s.score(t, c.live, "requested-once.com").wants(t, 202, ""), "/v1/score 202 "},
			{s.get(t, "/v1/score/never-requested.com", c.live).wants(t, 404, "no score available for this domain"),
				"/v1/score/* 404 no score available for this domain"},
			{s.get(t, "/v1/usage", "").wants(t, 401, "unauthorized"), "/v1/usage 401 unauthorized"},
			{s.get(t, "/nowhere", c.live).wants(t, 404, "not found"), "none 404 not found"},
			{s.get(t, "/v1/score/acme.test", c.test).wants(t, 200, ""), "/v1/score/* 200 sandbox"},
		} {
			id := r.header.Get("X-Request-Id")
			var out string
			eventually(t, "request "+id+" has a row", func() (ok bool) {
				var err error
				out, err = s.command(t.Context(), "request", "show", id)
				return err == nil
			})
			if got := strings.Join(strings.Fields(out), " "); !strings.Contains(got, " "+r.want) {
				t.Errorf("request %s is shown as %s, want %s", id, got, r.want)
			}
		}
		if out, err := s.command(t.Context(), "request", "show", "never-sent-by-anybody"); err == nil ||
			!strings.Contains(out+err.Error(), "no request never-sent-by-anybody") {
			t.Errorf("an unknown id: %v: %s", err, out)
		}
	})
	s.rule("decided: usage history",
		"it counts each answer to the keys of the account within seconds, by any grouping, and charges nothing", func(t *testing.T) {
			before := s.get(t, "/v1/usage", c.live)
			for range 3 {
				s.get(t, "/v1/score/stored-company.com", c.live).wants(t, 200, "")
			}
			// The four with a live key and the one with a test key of the rule above, usage, and these.
			// Reads of the history itself are counted by their own route.
			read := func(by string) (calls, cold, errors float64) {
				rows, _ := s.requestsOf(t, c.live, "?by="+by)
				for _, r := range rows {
					if r["group"] == "/v1/usage/history" {
						continue
					}
					calls, cold, errors = calls+r["calls"].(float64), cold+r["cold_calls"].(float64), errors+r["errors"].(float64)
				}
				return calls, cold, errors
			}
			var calls, cold, errors float64
			eventually(t, "all requests are counted", func() bool {
				calls, cold, errors = read("route")
				return calls >= 8
			})
			if calls != 8 || cold != 1 || errors != 1 {
				t.Errorf("%v calls, %v cold, %v errors; want 8, 1 and 1", calls, cold, errors)
			}
			sums := make(map[[2]float64]bool)
			for _, by := range []string{"day", "key", "route", "status"} {
				_, sum := s.requestsOf(t, c.live, "?by="+by+"&to="+s.get(t, "/v1/usage/history", c.live).text("to"))
				sums[[2]float64{sum[1], sum[2]}] = true
			}
			if len(sums) != 1 {
				t.Errorf("the groupings have different sums: %v", sums)
			}
			if after := s.get(t, "/v1/usage", c.live); after.number("cold_calls") != before.number("cold_calls") ||
				after.number("cached_calls") != before.number("cached_calls")+3 {
				t.Errorf("usage went from %s to %s", before.raw, after.raw)
			}
		})
	s.rule("decided: usage history", "it has the requests of the own account alone", func(t *testing.T) {
		rows, _ := s.requestsOf(t, other.live, "?by=key")
		for _, r := range rows {
			if r["group"] != other.liveID {
				t.Errorf("it has the key %v", r["group"])
			}
		}
	})
	s.rule("decided: usage history", "malformed ranges, long ranges and unknown groupings are refused, naming the parameter",
		func(t *testing.T) {
			for _, key := range []string{other.live, other.test} {
				for query, code := range map[string]string{
					"from=yesterday": "from invalid", "from=": "from invalid", "to=2026-02-30": "to invalid", "to=1": "to invalid",
					"from=2026-05-02&to=2026-05-01": "from invalid",
					"from=2026-03-01&to=2026-05-01": "from invalid", "by=company": "by must be one of ['day','key','route','status']",
					"by=": "by must be one of ['day','key','route','status']",
				} {
					s.get(t, "/v1/usage/history?"+query, key).wants(t, 400, code)
				}
			}
		})
	s.rule("decided: usage history", "the sandbox has canned requests with equal sums by any grouping", func(t *testing.T) {
		sums := make(map[string]bool)
		for _, by := range []string{"day", "key", "route", "status"} {
			rows, sum := s.requestsOf(t, other.test, "?from=2026-04-01&to=2026-04-08&by="+by)
			if len(rows) == 0 {
				t.Errorf("by %s there is no row", by)
			}
			sums[fmt.Sprint(sum)] = true
		}
		if len(sums) != 1 || s.get(t, "/v1/usage/history", other.test).text("mode") != "sandbox" {
			t.Errorf("sums are %v", sums)
		}
	})
}
