package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/internal/redis"
	"companyscore/internal/test/program"
	"companyscore/scoring"
	"companyscore/sql"
	"companyscore/universe"
	"companyscore/universe/snapshot"
)

// TestClauses checks single sentences of the specification that the larger tests do not
// cover.
func TestClauses(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	c, other, free := s.customer(t, "enterprise"), s.customer(t, "enterprise"), s.customer(t, "free")
	s.remember(t, []scoring.Record{record("stored-company.com", time.Hour, 61.4)})
	s.bodies(c)
	s.lifetimes(c, other)
	s.refusals(c, free)
	s.requests()
	s.rotation(c)
	s.versions(c)
	s.silences()
}

func (s suite) bodies(c customer) {
	buckets := []string{"financial_health", "market_position", "momentum_tailwinds", "team_structure"}
	s.rule("2.2", "there are four buckets, each of 0 to 100, live and in the sandbox", func(t *testing.T) {
		r := []reply{s.get(t, "/v1/score/stored-company.com", c.live)}
		for _, domain := range sandboxDomains {
			r = append(r, s.get(t, "/v1/score/"+domain, c.test))
		}
		for _, r := range r {
			got, _ := r.at("buckets").(map[string]any)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), buckets) {
				t.Errorf("buckets are %v", got)
			}
			for name, score := range got {
				if score.(float64) < 0 || score.(float64) > 100 {
					t.Errorf("%s is %v", name, score)
				}
			}
		}
	})
	s.rule("9 rule 3", "x_svc has its three fields in every body of a score", func(t *testing.T) {
		for _, r := range []reply{
			s.get(t, "/v1/score/stored-company.com", c.live), s.get(t, "/v1/score/acme.test", c.test), s.score(t, c.test, "unicorn.test"),
		} {
			x, _ := r.wants(t, 200, "").at("x_svc").(map[string]any)
			if !slices.Equal(slices.Sorted(maps.Keys(x)), []string{"cache_status", "freshness_window_hours", "tier"}) {
				t.Errorf("x_svc is %v", x)
			}
		}
	})
	s.rule("9 rule 5", "cached is the only cache status, even of a score that was just made", func(t *testing.T) {
		job := s.scored(t, c.live, "just-made.com")
		for _, r := range []reply{
			s.get(t, job.text("score_url"), c.live), s.score(t, c.live, "just-made.com"), s.get(t, "/v1/score/acme.test", c.test),
			s.score(t, c.test, "acme.test"),
		} {
			if r.wants(t, 200, "").text("x_svc.cache_status") != "cached" {
				t.Errorf("got %s", r.raw)
			}
		}
	})
	s.rule("4.1", "a run is always asynchronous, whatever wait says", func(t *testing.T) {
		for i, wait := range []string{"true", "false", "null", `"soon"`, "60"} {
			s.post(t, c.live, fmt.Sprintf(`{"domain":"waits-not-%d.com","wait":%s}`, i, wait)).wants(t, 202, "")
		}
	})
	s.rule("9 rule 7", "the answer to a call with wait has Deprecation and a link to the policy, and other answers have neither",
		func(t *testing.T) {
			r := s.post(t, c.test, `{"domain":"acme.test","wait":true}`).wants(t, 200, "")
			if got := r.header.Get("Deprecation"); got != fmt.Sprintf("@%d", time.Date(2026, 5, 12, 0, 0, 0, 0, time.UTC).Unix()) {
				t.Errorf("Deprecation is %q", got)
			}
			address, rest, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Link"), "<"), ">")
			if !strings.Contains(rest, `rel="deprecation"`) {
				t.Errorf("Link is %q", r.header.Get("Link"))
			}
			if policy := s.get(t, address, "").wants(t, 200, ""); !strings.Contains(policy.raw, "12 months") {
				t.Errorf("%s is %.100q", address, policy.raw)
			}
			r = s.post(t, c.test, `{"domain":"acme.test"}`).wants(t, 200, "")
			if r.header.Get("Deprecation")+r.header.Get("Sunset")+r.header.Get("Link") != "" {
				t.Errorf("got %v", r.header)
			}
		})
	s.rule("2.7", "a message ends with the address of a page about the error, also inside a batch", func(t *testing.T) {
		var batch struct {
			Results []struct{ Error struct{ Message string } }
		}
		decode(t, s.call(t, "POST", "/v1/scores/batch", c.live, `{"domains":["127.0.0.1","never-heard-of.com"]}`).wants(t, 200, "").raw,
			&batch)
		for code, message := range map[string]string{
			"unauthorized":                             s.get(t, "/v1/usage", "").text("message"),
			"body.domain required":                     s.post(t, c.live, `{}`).text("message"),
			"window must be one of ['7d','30d','90d']": s.get(t, "/v1/movers", c.live).text("message"),
			"domain invalid":                           batch.Results[0].Error.Message,
			"no score available for this domain":       batch.Results[1].Error.Message,
		} {
			_, address, found := strings.Cut(message, ". See ")
			if !found {
				t.Errorf("%s: %q has no address", code, message)
				continue
			}
			page := s.get(t, strings.TrimSuffix(address, "."), "").wants(t, 200, "")
			if !strings.Contains(html.UnescapeString(page.raw), "<h1><code>"+code+"</code></h1>") {
				t.Errorf("%s: %s is %.300q", code, address, page.raw)
			}
		}
		s.get(t, "/docs/errors/no-such-error", "").wants(t, 404, "not found")
		s.get(t, "/docs/errors", "").wants(t, 200, "")
	})
	s.rule("7 rule 7", "every answer has an X-Request-Id, errors too", func(t *testing.T) {
		for _, r := range []reply{s.get(t, "/v1/usage", c.live), s.get(t, "/v1/usage", ""), s.get(t, "/nowhere", ""),
			s.call(t, "PUT", "/v1/usage", c.live, ""), s.get(t, "/docs", "")} {
			if len(r.header.Get("X-Request-Id")) != 36 {
				t.Errorf("%d has X-Request-Id %q", r.status, r.header.Get("X-Request-Id"))
			}
		}
	})
	s.rule("7", "a method that is not answered is told which are", func(t *testing.T) {
		for path, want := range map[string]string{"/v1/usage": "GET, HEAD", "/v1/score": "POST",
			"/v1/score/stored-company.com": "GET, HEAD", "/v1/jobs/x": "GET, HEAD"} {
			r := s.call(t, "DELETE", path, c.live, "").wants(t, 405, "method not allowed")
			if got := r.header.Get("Allow"); got != want {
				t.Errorf("%s allows %q, want %q", path, got, want)
			}
		}
	})
	s.rule("4", "an address in a path may be escaped whole, and what follows its host is taken off", func(t *testing.T) {
		for _, path := range []string{"stored-company.com%2Fabout", "https%3A%2F%2Fwww.stored-company.com%2Fabout%3Fx",
			"stored-company.com%3A443"} {
			if r := s.get(t, "/v1/score/"+path, c.live).wants(t, 200, ""); r.text("domain") != "stored-company.com" {
				t.Errorf("%s is read as %s", path, r.text("domain"))
			}
		}
		s.get(t, "/v1/score/stored-company.com/about", c.live).wants(t, 404, "not found")
	})
	s.rule("4", "an address means the same whether its score is in memory or not", func(t *testing.T) {
		s.get(t, "/v1/score/stored-company.com", c.live).wants(t, 200, "")
		for _, path := range []string{"//v1/score/", "/v1//score/", "/v1/./score/", "/v1/score/x/../", "/%761/score/", "/v1/x/../score/"} {
			for _, domain := range []string{"stored-company.com", "never-heard-of.com"} {
				r := s.raw(t, "GET", path+domain, c.live, "\r\n")
				if r.status != 404 || r.text("error") != "not found" {
					t.Errorf("%s%s: %d %s", path, domain, r.status, r.raw)
				}
			}
		}
	})
	s.rule("decided: ETag", "what changes with every call may not be kept: jobs, usage, errors and answers to POST", func(t *testing.T) {
		cold := s.score(t, c.live, "kept-by-nobody.com").wants(t, 202, "")
		for _, r := range []reply{
			cold, s.get(t, cold.text("poll_url"), c.live), s.score(t, c.live, "stored-company.com"), s.get(t, "/v1/usage", c.live),
			s.get(t, "/v1/usage", c.test),
			s.get(t, "/v1/score/never-heard-of.com", c.live), s.get(t, "/v1/usage", ""), s.score(t, c.test, "acme.test"),
		} {
			if r.header.Get("Cache-Control") != "no-store" || r.header.Get("ETag") != "" {
				t.Errorf("%d %.80s: Cache-Control %q, ETag %q", r.status, r.raw, r.header.Get("Cache-Control"), r.header.Get("ETag"))
			}
		}
	})
}

func (s suite) lifetimes(c, other customer) {
	s.rule("3.1 rule 2", "a job of another account is forbidden, pending or settled", func(t *testing.T) {
		id := s.scored(t, c.live, "not-yours.com").text("job_id")
		s.get(t, "/v1/jobs/"+id, other.live).wants(t, 403, "forbidden")
		s.pause(t, "worker")
		id = s.score(t, c.live, "not-yours-either.com").wants(t, 202, "").text("job_id")
		s.get(t, "/v1/jobs/"+id, other.live).wants(t, 403, "forbidden")
		s.get(t, "/v1/jobs/"+id, c.live).wants(t, 200, "")
	})
	s.rule("4.1 rule 2", "the answer to POST does not wait for the run", func(t *testing.T) {
		s.pause(t, "worker")
		s.post(t, c.live, `{"domain":"nobody-works.com","wait":true}`).wants(t, 202, "")
	})
	s.rule("9 rule 4", "with the worker held up a cold call still answers 202, and its job stays pending", func(t *testing.T) {
		s.pause(t, "worker")
		id := s.score(t, c.live, "nobody-works-2.com").wants(t, 202, "").text("job_id")
		if r := s.get(t, "/v1/jobs/"+id, c.live).wants(t, 200, ""); r.text("status") != "pending" {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("7 rule 4", "what fails after the start is told by the job alone", func(t *testing.T) {
		s.pause(t, "worker")
		id := s.score(t, c.live, "fails-later.com").wants(t, 202, "").text("job_id")
		run, err := s.redis(t).HGet(t.Context(), redis.Job(id), "run").Result()
		if err != nil {
			t.Fatal(err)
		}
		s.cli(t, "run", "abort", run)
		if r := s.poll(t, c.live, id); r.text("status") != "failed" || r.text("failure_reason") == "" || r.at("error") != nil {
			t.Errorf("got %s", r.raw)
		}
		s.get(t, "/v1/score/fails-later.com", c.live).wants(t, 404, "no score available for this domain")
	})
	s.rule("8.3", "jobs are kept for 30 days, counts for 14 months after theirs, Idempotency-Keys for a day", func(t *testing.T) {
		rdb := s.redis(t)
		cold := s.score(t, c.live, "kept-for-long.com", "Idempotency-Key", "kept-for-long").wants(t, 202, "")
		now := time.Now().UTC()
		year, month, _ := now.Date()
		keys := map[string]time.Duration{
			redis.Job(cold.text("job_id")):                      30 * day,
			redis.ColdMonth(c.account, redis.Period(now)):       time.Date(year, month+1+14, 1, 0, 0, 0, 0, time.UTC).Sub(now),
			s.only(t, redis.Idempotency(c.account, "*")):        day,
			redis.ColdKeyWindow(c.liveID):                       time.Hour,
			redis.Run(s.runOf(t, cold.text("job_id"))):          30 * day,
			redis.CachedMonth(other.account, redis.Period(now)): time.Date(year, month+1+14, 1, 0, 0, 0, 0, time.UTC).Sub(now),
		}
		s.get(t, "/v1/score/stored-company.com", other.live).wants(t, 200, "")
		for key, want := range keys {
			eventually(t, key+" lives as long as it should", func() bool {
				left := rdb.PTTL(t.Context(), key).Val()
				return left <= want && left > want-2*time.Minute
			})
		}
	})
}

// runOf returns the run of a job.
func (s *system) runOf(t *testing.T, job string) string {
	t.Helper()
	run, err := s.redis(t).HGet(t.Context(), redis.Job(job), "run").Result()
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// only returns the only key in Redis that matches a pattern.
func (s *system) only(t *testing.T, pattern string) string {
	t.Helper()
	keys, err := s.redis(t).Keys(t.Context(), strings.NewReplacer("[", `\[`, "]", `\]`).Replace(pattern)).Result()
	if err != nil || len(keys) != 1 {
		t.Fatalf("keys %q are %v: %v", pattern, keys, err)
	}
	return keys[0]
}

func (s suite) refusals(c, free customer) {
	s.rule("8.2 rule 4", "Free starts no run, not for a new company and not for an old score, with or without force_fresh",
		func(t *testing.T) {
			for _, body := range []string{`{"domain":"free-company.com"}`, `{"domain":"stored-company.com"}`,
				`{"domain":"stored-company.com","force_fresh":true}`} {
				s.post(t, free.live, body).wants(t, 403, "free_tier_sandbox_only")
			}
			if u := s.get(t, "/v1/usage", free.live); u.number("total_calls") != 0 {
				t.Errorf("got %s", u.raw)
			}
			if runs := s.cli(t, "run", "list"); strings.Contains(runs, "free-company.com") || strings.Contains(runs, "stored-company.com") {
				t.Errorf("a run was started: %s", runs)
			}
		})
	starter := s.customer(s.T, "starter")
	var rejected reply
	s.rule("7 rule 1", "429 has Retry-After in whole seconds, whatever was reached", func(t *testing.T) {
		s.get(t, "/v1/usage", starter.live).wants(t, 200, "")
		if err := s.redis(t).Set(t.Context(), redis.ColdMonth(starter.account, redis.Period(time.Now())), 100, day).Err(); err != nil {
			t.Fatal(err)
		}
		rejected = s.score(t, starter.live, "rejected-company.com").wants(t, 429, "cold_budget_exhausted")
		if !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(rejected.header.Get("Retry-After")) {
			t.Errorf("Retry-After is %q", rejected.header.Get("Retry-After"))
		}
	})
	s.rule("7 rule 2", "a rejected call has no job and no run, and costs nothing", func(t *testing.T) {
		if u := s.get(t, "/v1/usage", starter.live); u.number("cold_calls") != 100 || u.number("cached_calls") != 0 {
			t.Errorf("got %s", u.raw)
		}
		if runs := s.cli(t, "run", "list"); strings.Contains(runs, "rejected-company.com") || rejected.at("job_id") != nil {
			t.Errorf("a run was started: %s %s", rejected.raw, runs)
		}
	})
	s.rule("4.7", "what was used in the month before does not count", func(t *testing.T) {
		c := s.customer(t, "starter")
		now := time.Now().UTC()
		before := redis.Period(time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-time.Second))
		if err := s.redis(t).Set(t.Context(), redis.ColdMonth(c.account, before), 100, day).Err(); err != nil {
			t.Fatal(err)
		}
		s.score(t, c.live, "new-month.com").wants(t, 202, "")
		if u := s.get(t, "/v1/usage", c.live); u.number("total_calls") != 1 {
			t.Errorf("got %s", u.raw)
		}
	})
	s.rule("7 rule 5", "a request that was refused is not tried again by the service", func(t *testing.T) {
		const series = `companyscore_http_requests_total{route="/v1/company/*/confidence",status="404",tier="none"}`
		before := s.metric(t, series)
		s.get(t, "/v1/company/never-heard-of.com/confidence", c.live).wants(t, 404, "no_history")
		if after := s.metric(t, series); after != before+1 {
			t.Errorf("%v requests became %v", before, after)
		}
	})
	s.rule("7 rule 6", "signals and confidence have the errors of the other endpoints", func(t *testing.T) {
		s.get(t, "/v1/signals", "").wants(t, 401, "unauthorized")
		s.get(t, "/v1/company/stored-company.com/confidence", "").wants(t, 401, "unauthorized")
		s.get(t, "/v1/company/no%20domain/confidence", c.live).wants(t, 400, "domain invalid")
		s.get(t, "/v1/company/acme.test/confidence", c.live).wants(t, 400, "test domains require a svc_test_ key")
		s.get(t, "/v1/company/example.com/confidence", c.test).wants(t, 400, onlyCanned)
		s.get(t, "/v1/company/never-heard-of.com/confidence", c.live).wants(t, 404, "no_history")
	})
}

// metric returns the value of a series, 0 if it does not exist.
func (s *system) metric(t *testing.T, series string) (value float64) {
	t.Helper()
	res, err := client.Get(s.admin + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), series+" "); ok {
			if _, err := fmt.Sscan(rest, &value); err != nil {
				t.Fatal(err)
			}
		}
	}
	return value
}

func (s suite) rotation(c customer) {
	s.rule("5 rule 6", "no answer lets a page of a browser read it", func(t *testing.T) {
		for _, route := range routes {
			r := s.call(t, route.method, route.path, c.test, `{"domain":"acme.test"}`, "Origin", "https://example.com")
			for name := range r.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s: %s is %s", route.path, name, r.header.Get(name))
				}
			}
		}
	})
	s.rule("5 rule 3", "the stores hold the hash of a key and never the key", func(t *testing.T) {
		secret := c.live[len("svc_live_")+4:] // the prefix is stored
		for _, path := range []string{"/v1/usage", "/v1/score/stored-company.com", "/v1/distribution"} {
			s.get(t, path, c.live).wants(t, 200, "")
		}
		if text := s.everything(t); strings.Contains(text, secret) || !strings.Contains(text, c.account) {
			t.Error("a key is kept as it is, or nothing was found to look at")
		}
	})
	s.rule("5 rule 7", "keys are changed by making a second one and revoking the first", func(t *testing.T) {
		c := s.customer(t, "starter")
		second, _ := s.key(t, c.account, "live")
		for _, key := range []string{c.live, second} {
			s.get(t, "/v1/usage", key).wants(t, 200, "")
		}
		s.cli(t, "key", "revoke", c.liveID)
		eventually(t, "the first key is refused", func() bool { return s.get(t, "/v1/usage", c.live).status == 401 })
		s.get(t, "/v1/usage", second).wants(t, 200, "")
	})
	s.rule("2.4", "a changed tier is in x_svc and in usage within moments, and what was used stays used", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.score(t, c.live, "tier-changes.com").wants(t, 202, "")
		s.cli(t, "account", "set-tier", c.account, "growth")
		eventually(t, "the new tier is there", func() bool { return s.get(t, "/v1/usage", c.live).text("tier") == "growth" })
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 1 || u.number("tier_limits.cold_calls_included") != 1000 {
			t.Errorf("got %s", u.raw)
		}
		if r := s.get(t, "/v1/score/stored-company.com", c.live); r.text("x_svc.tier") != "growth" ||
			r.number("x_svc.freshness_window_hours") != 6 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("5 sandbox", "an account may have any number of test keys, on every tier", func(t *testing.T) {
		for _, tier := range []string{"free", "starter", "growth", "scale", "enterprise"} {
			c := s.customer(t, tier)
			more, _ := s.key(t, c.account, "test")
			for _, key := range []string{c.test, more} {
				if r := s.score(t, key, "acme.test").wants(t, 200, ""); r.text("x_svc.tier") != tier {
					t.Errorf("got %s", r.raw)
				}
				s.get(t, "/v1/usage", key).wants(t, 200, "")
			}
		}
	})
}

// everything returns all stored data of accounts and keys as text.
func (s *system) everything(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	rdb := s.redis(t)
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		all.WriteString(key + "\n")
		value, err := rdb.Do(t.Context(), "DUMP", key).Text()
		if err != nil && !errors.Is(err, goredis.Nil) {
			t.Fatal(err)
		}
		all.WriteString(value + "\n")
	}
	for _, table := range []string{"account", "api_key"} {
		u, err := url.Parse(s.runtime.ClickHouseURL)
		if err != nil {
			t.Fatal(err)
		}
		u.RawQuery = url.Values{"database": {sql.Private(strings.Trim(u.Path, "/"))},
			"query": {"SELECT * FROM " + table + " FORMAT JSONEachRow"}}.Encode()
		u.Path = "/"
		res, err := client.Get(u.String())
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || len(body) == 0 {
			t.Fatalf("read %s: %d %.200s %v", table, res.StatusCode, body, err)
		}
		all.Write(body)
	}
	return all.String()
}

func (s suite) versions(c customer) {
	s.rule("9 rule 2", "every answer with a pipeline version has the current one", func(t *testing.T) {
		for _, key := range []string{c.live, c.test} {
			domain := map[string]string{c.live: "stored-company.com", c.test: "acme.test"}[key]
			for _, path := range []string{"/v1/distribution", "/v1/signals", "/v1/company/" + domain + "/confidence"} {
				if r := s.get(t, path, key).wants(t, 200, ""); r.text("pipeline_version") != scoring.PipelineVersion {
					t.Errorf("%s: %q", path, r.text("pipeline_version"))
				}
			}
		}
	})
	s.rule("9 rule 6", "usage counts nothing beyond the budget", func(t *testing.T) {
		for _, key := range []string{c.live, c.test} {
			var fields map[string]json.RawMessage
			decode(t, s.get(t, "/v1/usage", key).raw, &fields)
			delete(fields, "mode")
			want := []string{"cached_calls", "cold_calls", "last_reset", "next_reset", "period", "tier", "tier_limits", "total_calls",
				"user_id"}
			if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
				t.Errorf("usage has %v", got)
			}
		}
	})
}

// silences tests the answers of a server without its stores. It must be the last test.
func (s suite) silences() {
	s.rule("7", "without ClickHouse reading is an internal error that names the request, and readyz says why", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		s.pause(t, "clickhouse")
		// No cache has this company.
		r := s.get(t, "/v1/score/asked-in-vain.com", c.live).wants(t, 500, "internal error")
		if !strings.Contains(r.text("message"), r.header.Get("X-Request-Id")) {
			t.Errorf("got %s", r.raw)
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("total_calls") != 0 {
			t.Errorf("it was counted: %s", u.raw)
		}
	})
}

// TestServers tests two servers on the same stores.
func TestServers(t *testing.T) {
	t.Parallel()
	here := suite{t, start(t, "")}
	there := suite{t, here.another(t)}
	c := here.customer(t, "starter")
	here.remember(t, []scoring.Record{record("stored-company.com", time.Hour, 61.4)})
	here.rule("decided: servers", "a call is in the usage of its own server at once, and of another within a second", func(t *testing.T) {
		for i := range 5 {
			here.get(t, "/v1/score/stored-company.com", c.live).wants(t, 200, "")
			answered := time.Now()
			if u := here.get(t, "/v1/usage", c.live); u.number("cached_calls") != float64(i+1) {
				t.Fatalf("got %s", u.raw)
			}
			eventually(t, "the other server knows of the call", func() bool {
				return there.get(t, "/v1/usage", c.live).number("cached_calls") == float64(i+1)
			})
			if took := time.Since(answered); testing.Verbose() && took > time.Second {
				t.Errorf("it took %v", took)
			}
		}
		there.score(t, c.live, "cold-over-there.com").wants(t, 202, "")
		if u := here.get(t, "/v1/usage", c.live); u.number("cold_calls") != 1 {
			t.Errorf("got %s", u.raw)
		}
	})
	here.rule("decided: servers", "a job is polled at any server", func(t *testing.T) {
		id := there.score(t, c.live, "polled-over-here.com").wants(t, 202, "").text("job_id")
		if r := here.poll(t, c.live, id); r.text("status") != "complete" {
			t.Errorf("got %s", r.raw)
		}
		there.get(t, "/v1/score/polled-over-here.com", c.live).wants(t, 200, "")
	})
	here.rule("decided: servers", "what a settled job points to is there at every server, also at one that has just said it is not",
		func(t *testing.T) {
			for i := range 25 {
				domain := fmt.Sprintf("just-settled-%d.com", i)
				here.get(t, "/v1/score/"+domain, c.live).wants(t, 404, "no score available for this domain")
				id := there.score(t, c.live, domain).wants(t, 202, "").text("job_id")
				if r := here.poll(t, c.live, id); r.text("status") == "complete" {
					here.get(t, r.text("score_url"), c.live).wants(t, 200, "")
					here.score(t, c.live, domain).wants(t, 200, "")
				}
			}
		})
	here.rule("decided: servers", "an Idempotency-Key is known to all servers", func(t *testing.T) {
		a := here.score(t, c.live, "named-company.com", "Idempotency-Key", "n").wants(t, 202, "")
		b := there.score(t, c.live, "named-company.com", "Idempotency-Key", "n").wants(t, 202, "")
		if a.raw != b.raw {
			t.Errorf("here %s, there %s", a.raw, b.raw)
		}
	})
	here.rule("decided: servers", "calls at two servers at once share one budget, exactly", func(t *testing.T) {
		c := here.customer(t, "starter")
		both := []suite{here, there}
		var calls, admitted, refused = 300, make(chan bool, 300), make(chan bool, 300)
		done := make(chan bool)
		for i := range calls {
			go func() {
				defer func() { done <- true }()
				switch both[i%2].score(t, c.live, fmt.Sprintf("both-%d.com", i)).status {
				case 202:
					admitted <- true
				case 429:
					refused <- true
				}
			}()
		}
		for range calls {
			<-done
		}
		if len(admitted) != 100 || len(refused) != 200 || there.get(t, "/v1/usage", c.live).number("cold_calls") != 100 {
			t.Errorf("%d admitted, %d refused, usage %s", len(admitted), len(refused), there.get(t, "/v1/usage", c.live).raw)
		}
	})
	here.rule("decided: servers", "a revoked key stops everywhere", func(t *testing.T) {
		for _, s := range []suite{here, there} {
			s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		}
		here.cli(t, "key", "revoke", c.liveID)
		for _, s := range []suite{here, there} {
			eventually(t, "the revoked key is refused", func() bool { return s.get(t, "/v1/usage", c.live).status == 401 })
		}
	})
}

// TestEpochs publishes statistics of a large universe to two servers, which no batch job reaches.
func TestEpochs(t *testing.T) {
	t.Parallel()
	whole := start(t, "")
	apart, stores := *whole, *whole.runtime
	stores.RedisURL += "?db=1"
	apart.runtime = &stores
	here, there := suite{t, apart.another(t)}, suite{t, apart.another(t)}
	stored := record("stored-company.com", time.Hour, 61.4)
	here.remember(t, []scoring.Record{stored})
	c := here.customer(t, "starter")
	rdb, err := redis.Open(t.Context(), apart.runtime.RedisURL)
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	const epoch = time.Hour
	publish := func(companies int, when snapshot.Adoption) {
		t.Helper()
		counts := universe.Count(slices.Repeat([]scoring.Record{stored}, companies), time.Now())
		counts.Epoch = epoch
		if err := snapshot.PublishCounts(t.Context(), rdb, counts, 1, when); err != nil {
			t.Fatal(err)
		}
	}
	publishMovers := func(version string) { // at once: a server that shows them has read the newest counts too
		t.Helper()
		movers := universe.Movers{PipelineVersion: version, Epoch: epoch, Lists: make(map[universe.Window]universe.MoverList)}
		for _, w := range universe.Windows {
			movers.Lists[w] = universe.MoverList{End: time.Now(),
				Gainers: []universe.Mover{{Company: universe.Company{Domain: version + ".com", Composite: 60}, Then: 50}}}
		}
		if err := snapshot.PublishMovers(t.Context(), rdb, movers, 1, snapshot.AtOnce); err != nil {
			t.Fatal(err)
		}
		for _, s := range []suite{here, there} {
			eventually(t, "movers are read", func() bool {
				return strings.Contains(s.get(t, "/v1/movers?window=7d", c.live).raw, version+".com")
			})
		}
	}
	here.rule("decided: epochs", "within an epoch all servers give equal answers, and an unchanged company keeps its tag for free",
		func(t *testing.T) {
			publish(20_000, snapshot.AtOnce)
			publishMovers("first")
			score := here.get(t, "/v1/score/stored-company.com", c.live).wants(t, 200, "")
			distribution := here.get(t, "/v1/distribution", c.live).wants(t, 200, "")
			before := here.get(t, "/v1/usage", c.live).number("cached_calls")
			for i := range 3 {
				publish(30_000+i, snapshot.NextEpoch)
				publishMovers(fmt.Sprintf("later-%d", i))
				for _, s := range []suite{here, there} {
					s.get(t, "/v1/score/stored-company.com", c.live, "If-None-Match", score.header.Get("ETag")).wants(t, 304, "")
					r := s.get(t, "/v1/distribution", c.live).wants(t, 200, "")
					var left int
					if n, err := fmt.Sscanf(r.header.Get("Cache-Control"), "private, max-age=%d", &left); n != 1 || err != nil ||
						left > int(epoch/time.Second) || r.raw != distribution.raw {
						t.Errorf("%s with %s", r.raw, r.header.Get("Cache-Control"))
					}
				}
				if a, b := here.get(t, "/v1/movers?window=7d", c.live), there.get(t, "/v1/movers?window=7d", c.live); a.raw != b.raw ||
					a.header.Get("ETag") != b.header.Get("ETag") {
					t.Errorf("movers: %s and %s", a.raw, b.raw)
				}
			}
			if after := here.get(t, "/v1/usage", c.live).number("cached_calls"); after != before {
				t.Errorf("%v calls were charged for unchanged companies", after-before)
			}
			publish(40_000, snapshot.AtOnce)
			for _, s := range []suite{here, there} {
				eventually(t, "batch --once is adopted", func() bool {
					return s.get(t, "/v1/distribution", c.live).number("universe.count") == 40_000
				})
			}
		})
}

// another starts a second server on the stores of a system, with additional arguments.
func (s *system) another(t *testing.T, args ...string) *system {
	t.Helper()
	cmd := exec.Command(s.binary, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), "CLICKHOUSE_URL="+s.runtime.ClickHouseURL, "REDIS_URL="+s.runtime.RedisURL)
	var log bytes.Buffer // complete once cmd has ended
	cmd.Stderr = &log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	second := *s
	second.stop = sync.OnceValue(func() error {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		watchdog := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
		defer watchdog.Stop()
		if err := cmd.Wait(); err != nil {
			return fmt.Errorf("%w\n%s", err, program.Tail(log.Bytes(), 2000))
		}
		return nil
	})
	t.Cleanup(func() {
		if err := second.stop(); err != nil && !t.Failed() {
			t.Errorf("serve ended with %v", err)
		}
	})
	watchdog := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the second server does not start")
	}
	if n, err := fmt.Sscanf(lines.Text(), "ready %s", &second.base); n != 1 || err != nil {
		t.Fatalf("the second server says %q", lines.Text())
	}
	return &second
}

// TestTiersFile tests the flag --tiers.
func TestTiersFile(t *testing.T) {
	t.Parallel()
	rule(t, "decided: tiers file", "a bad file is refused with every fault named, before anything starts", func(t *testing.T) {
		path, err := binary()
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "tiers.yaml")
		if err := os.WriteFile(file, []byte("tiers:\n  starter: {freshness_window: soon, cold_calls_included: -1}\n  platinum: {}\n"+
			"job_ttl: 0s\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startLimit)
		defer cancel()
		out, err := exec.CommandContext(ctx, path, "up", "--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--tiers",
			file).CombinedOutput()
		if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 2 {
			t.Errorf("up ended with %v", err)
		}
		for _, fault := range []string{"freshness_window", "cold_calls_included", "platinum", "job_ttl"} {
			if !strings.Contains(string(out), fault) {
				t.Errorf("%s is not named in %s", fault, out)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "data", "runtime.json")); err == nil {
			t.Error("it started all the same")
		}
	})
}
