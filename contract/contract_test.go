package contract

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/redis"
	"companyscore/scoring"
)

// The companies of the tests. They have no facts; a score does not need any.
const (
	first  = "first-company.com"
	second = "second-company.com"
)

var sandboxDomains = []string{"acme.test", "cohort.test", "struggling.test", "unicorn.test"}

const onlyCanned = "sandbox: only ['acme.test', 'cohort.test', 'struggling.test', 'unicorn.test'] supported"

// suite runs the rules of one system.
type suite struct {
	*testing.T
	*system
}

// rule is one rule of the specification, by its section and number.
func (s suite) rule(section, says string, check func(t *testing.T)) {
	s.Helper()
	rule(s.T, section, says, check)
}

func TestContract(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "")}
	starter, enterprise, free := s.customer(t, "starter"), s.customer(t, "enterprise"), s.customer(t, "free")
	s.scores(starter, enterprise, free)
	s.batch(starter, free)
	s.many(starter, enterprise, free)
	s.jobs(starter, enterprise)
	s.history(starter)
	s.universe(starter)
	s.usage(starter, enterprise)
	s.explanations(starter)
	s.evidence(starter)
	s.keys(starter)
	s.sandbox(starter, free)
	s.errors(starter)
	s.headers(starter)
	s.idempotency(enterprise)
	s.operators()
}

func (s suite) scores(starter, enterprise, free customer) {
	s.rule("2.5", "a cold call answers 202 with job_id, pending, domain and poll_url", func(t *testing.T) {
		r := s.score(t, starter.live, first).wants(t, 202, "")
		if r.text("status") != "pending" || r.text("domain") != first || r.text("poll_url") != "/v1/jobs/"+r.text("job_id") ||
			len(r.body) != 4 {
			t.Errorf("got %s", r.raw)
		}
		if r.header.Get("Retry-After") != "5" {
			t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
		}
		s.poll(t, starter.live, r.text("job_id"))
	})
	s.rule("2.1", "a live score has every field and no mode", func(t *testing.T) {
		r := s.get(t, "/v1/score/"+first, starter.live).wants(t, 200, "")
		for _, field := range []string{"domain", "scored_at", "svc_rating", "composite_score", "scale_premium", "buckets", "x_svc"} {
			if r.at(field) == nil {
				t.Errorf("no %s in %s", field, r.raw)
			}
		}
		if r.at("mode") != nil {
			t.Error("a live answer has a mode")
		}
		if at, err := time.Parse(time.RFC3339, r.text("scored_at")); err != nil || !strings.HasSuffix(r.text("scored_at"), "Z") ||
			time.Since(at) > time.Hour {
			t.Errorf("scored_at is %q", r.text("scored_at"))
		}
	})
	s.rule("2.1", "what nobody knows counts as neutral, never as a partial body", func(t *testing.T) {
		r := s.get(t, "/v1/score/"+first, starter.live)
		for _, bucket := range []string{"team_structure", "market_position", "momentum_tailwinds", "financial_health"} {
			if r.number("buckets."+bucket) != 50 {
				t.Errorf("%s of an unknown company is %v", bucket, r.at("buckets."+bucket))
			}
		}
	})
	s.rule("2.1", "the rating is the grade of the composite", func(t *testing.T) {
		r := s.get(t, "/v1/score/"+first, starter.live)
		if want := scoring.RatingOf(r.number("composite_score")); r.text("svc_rating") != string(want) {
			t.Errorf("rating %s of %v, want %s", r.text("svc_rating"), r.number("composite_score"), want)
		}
	})
	s.rule("2.3", "rank has a percentile and the size of the universe", func(t *testing.T) {
		eventually(t, "the company is ranked", func() bool {
			r := s.get(t, "/v1/score/"+first, starter.live)
			p := r.number("rank.percentile")
			return r.number("rank.cohort_size") >= 1 && p >= 0 && p <= 100
		})
	})
	s.rule("2.4", "x_svc names tier, cached and the window in hours", func(t *testing.T) {
		for key, want := range map[string][2]any{starter.live: {"starter", 24.0}, enterprise.live: {"enterprise", 0.25},
			free.live: {"free", 168.0}} {
			r := s.get(t, "/v1/score/"+first, key).wants(t, 200, "")
			if r.at("x_svc.tier") != want[0] || r.at("x_svc.cache_status") != "cached" || r.at("x_svc.freshness_window_hours") != want[1] {
				t.Errorf("x_svc is %v, want %v", r.at("x_svc"), want)
			}
		}
	})
	s.rule("4.1 rule 1", "a fresh score answers 200 inline and costs no cold call", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live)
		r := s.score(t, starter.live, first).wants(t, 200, "")
		if r.at("composite_score") == nil || r.at("job_id") != nil {
			t.Errorf("got %s", r.raw)
		}
		after := s.get(t, "/v1/usage", starter.live)
		if after.number("cold_calls") != before.number("cold_calls") || after.number("cached_calls") != before.number("cached_calls")+1 {
			t.Errorf("usage went from %s to %s", before.raw, after.raw)
		}
	})
	s.rule("4.1 rule 2", "composite_score says inline, job_id says poll", func(t *testing.T) {
		cold := s.score(t, enterprise.live, "shape-company.com").wants(t, 202, "")
		if cold.at("composite_score") != nil || cold.at("job_id") == nil {
			t.Errorf("got %s", cold.raw)
		}
	})
	s.rule("4.1 rule 3", "a cold call is charged when its run starts", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live).number("cold_calls")
		s.score(t, starter.live, "charged-company.com").wants(t, 202, "")
		if after := s.get(t, "/v1/usage", starter.live).number("cold_calls"); after != before+1 {
			t.Errorf("cold calls went from %v to %v", before, after)
		}
	})
	s.rule("4.1 rule 4", "a test key gets an inline 200 for each canned domain", func(t *testing.T) {
		for _, domain := range sandboxDomains {
			s.score(t, starter.test, domain).wants(t, 200, "")
		}
	})
	s.rule("4.1 rule 5", "force_fresh starts a run for Enterprise and is ignored for others", func(t *testing.T) {
		body := `{"domain":"` + first + `","force_fresh":true}`
		s.post(t, starter.live, body).wants(t, 200, "")
		r := s.post(t, enterprise.live, body).wants(t, 202, "")
		s.poll(t, enterprise.live, r.text("job_id"))
	})
	s.rule("4.1", "wait is accepted and without effect", func(t *testing.T) {
		s.post(t, starter.live, `{"domain":"`+first+`","wait":true}`).wants(t, 200, "")
		s.post(t, enterprise.live, `{"domain":"wait-company.com","wait":true}`).wants(t, 202, "")
	})
	s.rule("4.1 rule 6", "malformed domains are refused, and the message says why", func(t *testing.T) {
		for _, domain := range []string{
			"localhost", "single", "127.0.0.1", "http://[::1]/", "a..com", "-a.com", "a-.com", "not a domain.com", "exa_mple.com",
			strings.Repeat("a", 64) + ".com", strings.Repeat("a.", 130) + "com", "company.nosuchsuffix-zz", "co.uk", "user@example.com",
			"xn--a.com",
		} {
			body, _ := json.Marshal(map[string]string{"domain": domain})
			r := s.post(t, starter.live, string(body)).wants(t, 400, "body.domain invalid")
			if !strings.Contains(r.text("message"), "cannot be scored") {
				t.Errorf("%s: %s", domain, r.raw)
			}
		}
		s.post(t, starter.live, `{"domain":17}`).wants(t, 400, "body.domain invalid")
	})
	s.rule("4", "scheme, www., port, path, capitals and trailing dot are taken off", func(t *testing.T) {
		for _, spelling := range []string{"https://www." + first, "WWW." + strings.ToUpper(first), "http://" + first + ":8080/a/b?c#d",
			first + ".", " " + first + " "} {
			body, _ := json.Marshal(map[string]string{"domain": spelling})
			if r := s.post(t, starter.live, string(body)).wants(t, 200, ""); r.text("domain") != first {
				t.Errorf("%q is scored as %s", spelling, r.text("domain"))
			}
		}
		for _, path := range []string{"www." + first, "https://" + first, "https%3A%2F%2Fwww." + first, strings.ToUpper(first),
			first + "."} {
			if r := s.get(t, "/v1/score/"+path, starter.live).wants(t, 200, ""); r.text("domain") != first {
				t.Errorf("%q is read as %s", path, r.text("domain"))
			}
		}
	})
	s.rule("4", "international names are one company with their punycode", func(t *testing.T) {
		r := s.score(t, enterprise.live, "bücher-firma.de").wants(t, 202, "")
		if r.text("domain") != "xn--bcher-firma-yhb.de" && !strings.HasPrefix(r.text("domain"), "xn--") {
			t.Errorf("scored as %s", r.text("domain"))
		}
		s.poll(t, enterprise.live, r.text("job_id"))
		s.get(t, "/v1/score/"+r.text("domain"), enterprise.live).wants(t, 200, "")
		s.get(t, "/v1/score/b%C3%BCcher-firma.de", enterprise.live).wants(t, 200, "")
	})
	s.rule("4.1", "a Free live key may not start a run", func(t *testing.T) {
		for _, domain := range []string{first, "never-scored.com"} {
			r := s.score(t, free.live, domain).wants(t, 403, "free_tier_sandbox_only")
			if r.text("tier") != "free" {
				t.Errorf("got %s", r.raw)
			}
		}
	})
	s.rule("4.2", "GET returns the stored score and never starts a run", func(t *testing.T) {
		s.get(t, "/v1/score/"+first, free.live).wants(t, 200, "")
		before := s.get(t, "/v1/usage", starter.live)
		s.get(t, "/v1/score/never-scored.com", starter.live).wants(t, 404, "no score available for this domain")
		if after := s.get(t, "/v1/usage", starter.live); after.raw != before.raw {
			t.Errorf("a 404 changed usage from %s to %s", before.raw, after.raw)
		}
	})
	s.rule("4.2", "GET counts one cached call", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live)
		s.get(t, "/v1/score/"+first, starter.live).wants(t, 200, "")
		after := s.get(t, "/v1/usage", starter.live)
		if after.number("cached_calls") != before.number("cached_calls")+1 || after.number("cold_calls") != before.number("cold_calls") {
			t.Errorf("usage went from %s to %s", before.raw, after.raw)
		}
	})
}

func (s suite) batch(starter, free customer) {
	post := func(t *testing.T, key, body string) reply {
		t.Helper()
		return s.call(t, http.MethodPost, "/v1/scores/batch", key, body)
	}
	s.rule("decided: batch", "stored scores come in the order asked for, each as GET would answer, each counted", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live).number("cached_calls")
		r := post(t, starter.live, `{"domains":["never-scored.com","`+first+`","localhost","WWW.`+first+`","acme.test"]}`).wants(t, 200, "")
		results := r.list("results")
		want := [][2]any{{"never-scored.com", 404.0}, {first, 200.0}, {"localhost", 400.0}, {first, 200.0}, {"acme.test", 400.0}}
		if len(results) != len(want) || r.at("mode") != nil {
			t.Fatalf("got %s", r.raw)
		}
		one := s.get(t, "/v1/score/"+first, starter.live).wants(t, 200, "")
		for i, result := range results {
			it := result.(map[string]any)
			if it["domain"] != want[i][0] && want[i][1] != 400.0 || it["status"] != want[i][1] {
				t.Errorf("item %d is %v, want %v", i, it, want[i])
			}
			if it["status"] == 200.0 && it["score"].(map[string]any)["scored_at"] != one.at("scored_at") {
				t.Errorf("item %d is %v, GET answers %s", i, it, one.raw)
			}
		}
		if after := s.get(t, "/v1/usage", starter.live); after.number("cached_calls") != before+3 { // two of the batch, one GET
			t.Errorf("cached calls went from %v to %v", before, after.number("cached_calls"))
		}
	})
	s.rule("decided: batch", "it never starts a run, also serves Free keys, and test keys with canned scores", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live).number("cold_calls")
		post(t, starter.live, `{"domains":["never-scored.com"]}`).wants(t, 200, "")
		post(t, free.live, `{"domains":["`+first+`"]}`).wants(t, 200, "")
		if after := s.get(t, "/v1/usage", starter.live).number("cold_calls"); after != before {
			t.Errorf("cold calls went from %v to %v", before, after)
		}
		r := post(t, free.test, `{"domains":["acme.test","example.com"]}`).wants(t, 200, "")
		if r.text("mode") != "sandbox" || len(r.list("results")) != 2 || r.list("results")[0].(map[string]any)["status"] != 200.0 ||
			r.list("results")[1].(map[string]any)["status"] != 400.0 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("decided: batch", "a thousand domains are answered, one more or none are refused", func(t *testing.T) {
		list := func(n int) string {
			domains := make([]string, n)
			for i := range domains {
				domains[i] = fmt.Sprintf("batch-%d.com", i)
			}
			b, _ := json.Marshal(map[string]any{"domains": domains})
			return string(b)
		}
		if r := post(t, starter.live, list(1000)).wants(t, 200, ""); len(r.list("results")) != 1000 {
			t.Errorf("%d results", len(r.list("results")))
		}
		post(t, starter.live, list(1001)).wants(t, 400, "body.domains invalid")
		post(t, starter.live, list(0)).wants(t, 400, "body.domains invalid")
		post(t, starter.live, `{}`).wants(t, 400, "body.domains required")
		post(t, starter.live, `{"domains":"a.com"}`).wants(t, 400, "body.domains invalid")
		post(t, starter.live, `{"domains":[1]}`).wants(t, 400, "body.domains invalid")
		post(t, starter.live, `[`).wants(t, 400, "body invalid")
	})
}

func (s suite) jobs(starter, enterprise customer) {
	other, _ := s.key(s.T, starter.account, "live")
	var job reply
	s.rule("2.3b", "a complete job has result_ref, score_url and completed_at", func(t *testing.T) {
		job = s.scored(t, starter.live, second)
		if job.text("result_ref.domain") != second || job.text("score_url") != "/v1/score/"+second || job.text("completed_at") == "" ||
			job.text("created_at") == "" || job.at("failure_reason") != nil || job.at("mode") != nil {
			t.Errorf("got %s", job.raw)
		}
		r := s.get(t, job.text("score_url"), starter.live).wants(t, 200, "")
		if r.text("scored_at") != job.text("result_ref.scored_at") {
			t.Errorf("the job made %s, stored is %s", job.text("result_ref.scored_at"), r.text("scored_at"))
		}
	})
	s.rule("4.3", "a settled job stays as it is", func(t *testing.T) {
		if again := s.get(t, "/v1/jobs/"+job.text("job_id"), starter.live); again.raw != job.raw {
			t.Errorf("first %s, then %s", job.raw, again.raw)
		}
	})
	s.rule("5 rule 5", "any key of the account may poll, another account's may not", func(t *testing.T) {
		s.get(t, "/v1/jobs/"+job.text("job_id"), other).wants(t, 200, "")
		s.get(t, "/v1/jobs/"+job.text("job_id"), enterprise.live).wants(t, 403, "forbidden")
	})
	s.rule("4.3", "an unknown job is not found, whatever its id looks like", func(t *testing.T) {
		for _, id := range []string{"01a1fc94-05cf-764e-800e-9c3462621484", "nonsense", "%2e%2e", strings.Repeat("a", 500)} {
			s.get(t, "/v1/jobs/"+id, starter.live).wants(t, 404, "job not found")
		}
	})
	s.rule("3.1 rule 3", "the sandbox has no jobs", func(t *testing.T) {
		s.get(t, "/v1/jobs/"+job.text("job_id"), starter.test).wants(t, 404, "job not found")
	})
	s.Run("with the worker held up", func(t *testing.T) {
		s.pause(t, "worker")
		s := suite{t, s.system}
		s.rule("2.3b", "a pending job has neither result nor reason, and says when to ask again", func(t *testing.T) {
			id := s.score(t, enterprise.live, "held-company.com").wants(t, 202, "").text("job_id")
			r := s.get(t, "/v1/jobs/"+id, enterprise.live).wants(t, 200, "")
			if r.text("status") != "pending" || len(r.body) != 4 || r.header.Get("Retry-After") != "5" {
				t.Errorf("got %s, Retry-After %q", r.raw, r.header.Get("Retry-After"))
			}
		})
		s.rule("decided: coalescing", "calls for one domain share a run; each has its own job and is charged", func(t *testing.T) {
			before := s.get(t, "/v1/usage", starter.live).number("cold_calls")
			a := s.score(t, starter.live, "shared-company.com").wants(t, 202, "")
			b := s.score(t, starter.live, "shared-company.com").wants(t, 202, "")
			if a.text("job_id") == b.text("job_id") {
				t.Error("two calls have one job")
			}
			if after := s.get(t, "/v1/usage", starter.live).number("cold_calls"); after != before+2 {
				t.Errorf("cold calls went from %v to %v", before, after)
			}
			if runs := strings.Count(s.cli(t, "run", "list"), "shared-company.com"); runs != 1 {
				t.Errorf("%d runs for two calls", runs)
			}
		})
		rdb, err := redis.Open(t.Context(), s.runtime.RedisURL)
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		// The write of a worker at the end of a run.
		end := func(t *testing.T, domain, state string) reply {
			t.Helper()
			id := s.score(t, enterprise.live, domain).wants(t, 202, "").text("job_id")
			run, err := rdb.HGet(t.Context(), redis.Job(id), "run").Result()
			if err == nil {
				err = rdb.HSet(t.Context(), redis.Run(run), "state", state, "finished_at", time.Now().UnixMilli()).Err()
			}
			if err != nil {
				t.Fatal(err)
			}
			return s.get(t, "/v1/jobs/"+id, enterprise.live).wants(t, 200, "")
		}
		for state, reason := range map[string]string{
			"failed": "sfn_failed", "timed_out": "sfn_timed_out", "succeeded": "scoring_completed_no_record",
		} {
			s.rule("3.1", "a run that ended as "+state+" fails its job with "+reason, func(t *testing.T) {
				r := end(t, strings.ReplaceAll(state, "_", "-")+"-run.com", state)
				if r.text("status") != "failed" || r.text("failure_reason") != reason || r.text("completed_at") == "" ||
					r.at("result_ref") != nil || r.at("score_url") != nil {
					t.Errorf("got %s", r.raw)
				}
			})
		}
		s.rule("3.1", "a run that an operator aborted fails its job with sfn_aborted", func(t *testing.T) {
			id := s.score(t, enterprise.live, "aborted-run.com").wants(t, 202, "").text("job_id")
			run, err := rdb.HGet(t.Context(), redis.Job(id), "run").Result()
			if err != nil {
				t.Fatal(err)
			}
			s.cli(t, "run", "abort", run)
			if r := s.poll(t, enterprise.live, id); r.text("failure_reason") != "sfn_aborted" {
				t.Errorf("got %s", r.raw)
			}
		})
		s.rule("3.1 rule 1", "a job is settled by the poll that sees its run over, and not before", func(t *testing.T) {
			id := s.score(t, enterprise.live, "lazy-run.com").wants(t, 202, "").text("job_id")
			run, err := rdb.HGet(t.Context(), redis.Job(id), "run").Result()
			if err != nil {
				t.Fatal(err)
			}
			s.cli(t, "run", "abort", run)
			if status := rdb.HGet(t.Context(), redis.Job(id), "status").Val(); status != "pending" {
				t.Errorf("before the poll the job is %s", status)
			}
			s.poll(t, enterprise.live, id)
			if status := rdb.HGet(t.Context(), redis.Job(id), "status").Val(); status != "failed" {
				t.Errorf("after the poll the job is %s", status)
			}
		})
	})
}

func (s suite) history(starter customer) {
	enterprise := s.customer(s.T, "enterprise")
	const domain = "history-company.com"
	s.rule("4.4", "records come newest first, with their fields and no others", func(t *testing.T) {
		s.scored(t, enterprise.live, domain)
		for range 4 {
			r := s.post(t, enterprise.live, `{"domain":"`+domain+`","force_fresh":true}`).wants(t, 202, "")
			s.poll(t, enterprise.live, r.text("job_id"))
		}
		r := s.get(t, "/v1/score/"+domain+"/history", starter.live).wants(t, 200, "")
		if len(r.list("records")) != 5 || r.text("domain") != domain || r.at("next_cursor") != nil || r.at("mode") != nil {
			t.Fatalf("got %s", r.raw)
		}
		last := "9"
		for _, rec := range r.list("records") {
			at := rec.(map[string]any)["scored_at"].(string)
			if at >= last {
				t.Errorf("%s stands after %s", at, last)
			}
			last = at
		}
	})
	s.rule("4.4", "pages of any size hold every record once, and the last has no cursor", func(t *testing.T) {
		whole := s.get(t, "/v1/score/"+domain+"/history", starter.live).list("records")
		for limit := 1; limit <= 6; limit++ {
			var records []any
			path := fmt.Sprintf("/v1/score/%s/history?limit=%d", domain, limit)
			for cursor := ""; ; {
				r := s.get(t, path+cursor, starter.live).wants(t, 200, "")
				records = append(records, r.list("records")...)
				if r.at("next_cursor") == nil {
					break
				}
				cursor = "&cursor=" + r.text("next_cursor")
			}
			if fmt.Sprint(records) != fmt.Sprint(whole) {
				t.Errorf("pages of %d hold %v", limit, records)
			}
		}
	})
	s.rule("4.4", "limit is 1 to 500", func(t *testing.T) {
		for _, limit := range []string{"0", "-1", "501", "1.5", "ten", "", "99999999999999999999"} {
			s.get(t, "/v1/score/"+domain+"/history?limit="+limit, starter.live).wants(t, 400, "limit must be between 1 and 500")
		}
		for _, limit := range []string{"1", "500"} {
			s.get(t, "/v1/score/"+domain+"/history?limit="+limit, starter.live).wants(t, 200, "")
		}
	})
	s.rule("4.4", "a malformed cursor, and one of another company, is invalid_cursor", func(t *testing.T) {
		own := s.get(t, "/v1/score/"+domain+"/history?limit=1", starter.live).text("next_cursor")
		for _, cursor := range []string{"", "x", "%00", own + "x", "B" + own[1:]} {
			s.get(t, "/v1/score/"+domain+"/history?cursor="+cursor, starter.live).wants(t, 400, "invalid_cursor")
		}
		s.get(t, "/v1/score/"+first+"/history?cursor="+own, starter.live).wants(t, 400, "invalid_cursor")
	})
	s.rule("decided: history", "a span, the order and the formats select and write the same records", func(t *testing.T) {
		path := "/v1/score/" + domain + "/history"
		all := s.get(t, path, starter.live).wants(t, 200, "").list("records")
		at := func(i int) string { return all[i].(map[string]any)["scored_at"].(string) }
		last := len(all) - 1
		oldest := s.get(t, path+"?order=oldest", starter.live).wants(t, 200, "").list("records")
		for i := range all {
			if one := oldest[last-i].(map[string]any)["scored_at"]; one != at(i) {
				t.Errorf("record %d is of %v, from the other end of %s", i, one, at(i))
			}
		}
		span := s.get(t, path+"?from="+at(last)+"&to="+at(0), starter.live).wants(t, 200, "").list("records")
		if len(span) != last || span[0].(map[string]any)["scored_at"] != at(1) {
			t.Errorf("%d records from %s and before %s", len(span), at(last), at(0))
		}
		for format, lines := range map[string]int{"ndjson": len(all), "csv": len(all) + 1} {
			r := s.get(t, path+"?format="+format, starter.live)
			whole := strings.Contains(r.raw, at(0)) && strings.Contains(r.raw, at(last))
			if r.status != 200 || strings.Count(r.raw, "\n") != lines || !whole {
				t.Errorf("%s: %d %s", format, r.status, r.raw)
			}
		}
		// The pages of a format lead to each other.
		next, seen := path+"?format=csv&order=oldest&limit=1", 0
		for next != "" {
			r := s.get(t, next, starter.live)
			seen += strings.Count(r.raw, "\n") - 1
			link, _, _ := strings.Cut(strings.TrimPrefix(r.header.Get("Link"), "<"), ">")
			next = link
		}
		if seen != len(all) {
			t.Errorf("the pages in CSV have %d of %d records", seen, len(all))
		}
		for query, code := range map[string]string{"from=x": "from invalid", "to=x": "to invalid", "order=up": "order invalid",
			"from=2026-02-02&to=2026-02-01": "from invalid", "format=xml": "format invalid"} {
			s.get(t, path+"?"+query, starter.live).wants(t, 400, code)
		}
	})
	s.rule("decided: changes", "the parts of a change sum to the delta exactly", func(t *testing.T) {
		r := s.get(t, "/v1/score/"+domain+"/changes", starter.live).wants(t, 200, "")
		sum := 0.0
		for _, part := range []string{"observation", "coverage", "premium", "formula", "defunct"} {
			sum += r.number(part)
		}
		if math.Abs(sum-r.number("delta")) > 1e-9 {
			t.Errorf("the parts sum to %v: %s", sum, r.raw)
		}
		for _, bad := range []string{"from=x", "from=2026-02-30"} {
			s.get(t, "/v1/score/"+domain+"/changes?"+bad, starter.live).wants(t, 400, "from invalid")
		}
		s.get(t, "/v1/score/"+domain+"/changes?to=x", starter.live).wants(t, 400, "to invalid")
		s.get(t, "/v1/score/"+domain+"/changes?from=2026-05-02&to=2026-05-01", starter.live).wants(t, 400, "from invalid")
		s.get(t, "/v1/score/"+domain+"/changes?from=1999-01-01", starter.live).wants(t, 404, "no_history")
		s.get(t, "/v1/score/never-scored.com/changes", starter.live).wants(t, 404, "no_history")
	})
	s.rule("decided: signals of a score", "contributions sum to the base, and base and premium give the composite", func(t *testing.T) {
		for _, c := range []struct{ key, domain string }{{starter.live, domain}, {starter.live, first}, {starter.test, "acme.test"}} {
			r := s.get(t, "/v1/score/"+c.domain+"/signals", c.key).wants(t, 200, "")
			sum := 0.0
			for _, signal := range r.list("signals") {
				sum += signal.(map[string]any)["contribution"].(float64)
			}
			if n := len(r.list("signals")); n != 67 || math.Abs(sum-r.number("base_score")) > 1e-9 {
				t.Errorf("%s: %d signals sum to %v: %s", c.domain, n, sum, r.raw)
			}
			composite := s.get(t, "/v1/score/"+c.domain, c.key).number("composite_score")
			computed := r.number("base_score") + r.number("scale_premium")
			if math.Abs(computed-composite) > 0.05+1e-9 || r.number("composite_score") != composite {
				t.Errorf("%s has the composite %v: %s", c.domain, composite, r.raw)
			}
		}
		s.get(t, "/v1/score/never-scored.com/signals", starter.live).wants(t, 404, "no score available for this domain")
	})
	s.rule("decided: as_of", "score and signals of an instant are those that were stored then", func(t *testing.T) {
		records := s.get(t, "/v1/score/"+domain+"/history", starter.live).list("records")
		for i, rec := range records {
			at := rec.(map[string]any)["scored_at"].(string)
			for _, path := range []string{"/v1/score/" + domain, "/v1/score/" + domain + "/signals"} {
				r := s.get(t, path+"?as_of="+at, starter.live).wants(t, 200, "")
				composite := rec.(map[string]any)["composite_score"]
				if r.text("scored_at") != at || r.number("composite_score") != composite || r.at("rank") != nil {
					t.Errorf("record %d of %s: %s", i, at, r.raw)
				}
			}
		}
		for _, path := range []string{"/v1/score/" + domain, "/v1/score/" + domain + "/signals"} {
			s.get(t, path+"?as_of=2001-01-01", starter.live).wants(t, 404, "no score available for this domain")
			s.get(t, path+"?as_of=soon", starter.live).wants(t, 400, "as_of invalid")
		}
	})
	s.rule("4.4", "a company never scored has no_history", func(t *testing.T) {
		s.get(t, "/v1/score/never-scored.com/history", starter.live).wants(t, 404, "no_history")
	})
}

func (s suite) universe(starter customer) {
	s.rule("4.8", "the distribution counts every company once, in 20 and 12 bins", func(t *testing.T) {
		s.cli(t, "facts", "import", "../examples/companies.csv")
		s.cli(t, "run", "start", "--wait", "stripe.com", "apple.com", "microsoft.com", "walmart.com", "airbnb.com", "exxonmobil.com")
		var r reply
		eventually(t, "the new companies are counted", func() bool {
			r = s.get(t, "/v1/distribution", starter.live).wants(t, 200, "")
			return r.number("universe.count") >= 10
		})
		count := r.number("universe.count")
		sum := func(path string) (n float64) {
			for _, bin := range r.list(path) {
				n += bin.(map[string]any)["count"].(float64)
			}
			return n
		}
		bins, premiums := r.list("universe.composite_hist"), r.list("universe.scale_premium_hist")
		if len(bins) != 20 || len(premiums) != 12 || sum("universe.composite_hist") != count ||
			sum("universe.scale_premium_hist") != count {
			t.Errorf("got %s", r.raw)
		}
		for i, bin := range bins {
			if want := fmt.Sprintf("%d-%d", 5*i, 5*i+5); bin.(map[string]any)["range"] != want {
				t.Errorf("bin %d is %v, want %s", i, bin, want)
			}
		}
		for i, bin := range premiums {
			if want := fmt.Sprintf("%d-%d", i, i+1); bin.(map[string]any)["range"] != want {
				t.Errorf("bin %d is %v, want %s", i, bin, want)
			}
		}
		var ratings, profiles float64
		for _, rating := range scoring.Ratings() {
			ratings += r.at("universe.rating_dist").(map[string]any)[string(rating)].(float64)
		}
		for _, profile := range []string{"growth", "established", "unclassified"} {
			profiles += r.number("universe.profile_split." + profile)
		}
		if ratings != count || profiles != count {
			t.Errorf("ratings add up to %v, profiles to %v of %v", ratings, profiles, count)
		}
		if r.text("pipeline_version") != scoring.PipelineVersion || r.at("mode") != nil {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("4.8", "mean, percentiles, minimum and maximum agree with the scores", func(t *testing.T) {
		r := s.get(t, "/v1/distribution", starter.live)
		for _, name := range []string{"p50", "p90", "mean", "max"} {
			if r.number("universe."+name) < r.number("universe.min") || r.number("universe."+name) > r.number("universe.max") {
				t.Errorf("%s is outside of minimum and maximum: %s", name, r.raw)
			}
		}
	})
	var cohort reply
	s.rule("4.5", "the target is left out of its cohort's numbers", func(t *testing.T) {
		before := s.get(t, "/v1/distribution", starter.live).number("universe.count")
		from, scored := "../examples/companies.csv", 800.0
		if !testing.Verbose() { // enough for a cohort
			from, scored = s.firstExamples(t, 150), 140
		}
		s.cli(t, "run", "start", "--from", from, "--wait")
		eventually(t, "the examples are counted", func() bool {
			return s.get(t, "/v1/distribution", starter.live).number("universe.count") >= before+scored
		})
		cohort = s.get(t, "/v1/company/apple.com/cohort", starter.live).wants(t, 200, "")
		count := cohort.number("cohort.count")
		members := cohort.list("members")
		if count < 1 || len(members) != int(math.Min(count, 200)) {
			t.Fatalf("count %v, %d members", count, len(members))
		}
		var sum, below, above float64
		own := cohort.number("target.composite_score")
		for _, m := range members {
			member := m.(map[string]any)
			composite := member["composite_score"].(float64)
			sum += composite
			if composite < own {
				below++
			}
			if composite > own {
				above++
			}
			if member["domain"] == "apple.com" {
				t.Error("the target is among its peers")
			}
		}
		percentile := 100 * (below + (count-below-above)/2) / count // the middle of a tie
		if count <= 200 && (math.Abs(sum/count-cohort.number("cohort.mean")) > 1e-9 || above+1 != cohort.number("cohort.rank") ||
			math.Abs(percentile-cohort.number("cohort.percentile")) > 1e-9) {
			t.Errorf("the members say mean %v, rank %v, percentile %v; the answer %v", sum/count, above+1, percentile, cohort.at("cohort"))
		}
	})
	s.rule("4.5", "peers share sector, scope and profile, at most 200, highest first", func(t *testing.T) {
		last := math.Inf(1)
		for _, m := range cohort.list("members") {
			member := m.(map[string]any)
			if member["business_profile"] != cohort.text("target.business_profile") || member["composite_score"].(float64) > last {
				t.Errorf("member %v after %v", member, last)
			}
			last = member["composite_score"].(float64)
		}
	})
	s.rule("4.5", "delta is the target minus the cohort's mean", func(t *testing.T) {
		for name, v := range cohort.at("bucket_means").(map[string]any) {
			b := v.(map[string]any)
			if math.Abs(b["target"].(float64)-b["cohort"].(float64)-b["delta"].(float64)) > 1e-9 {
				t.Errorf("%s: %v", name, b)
			}
		}
	})
	s.rule("4.5", "a target without peers, and one without a profile, has count 0", func(t *testing.T) {
		r := s.get(t, "/v1/company/"+first+"/cohort", starter.live).wants(t, 200, "")
		if r.text("target.business_profile") != "unclassified" || r.number("cohort.count") != 0 || len(r.list("members")) != 0 ||
			r.at("members") == nil {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("4.5", "a target never scored has no_history", func(t *testing.T) {
		s.get(t, "/v1/company/never-scored.com/cohort", starter.live).wants(t, 404, "no_history")
	})
	s.rule("4.6", "window is required and one of three", func(t *testing.T) {
		const code = "window must be one of ['7d','30d','90d']"
		for _, query := range []string{"", "?window=", "?window=1d", "?window=7D", "?window=7d%20", "?windows=7d"} {
			s.get(t, "/v1/movers"+query, starter.live).wants(t, 400, code)
		}
	})
	s.rule("4.6", "each window is as long as it says, and without older records nobody moved", func(t *testing.T) {
		for window, days := range map[string]int{"7d": 7, "30d": 30, "90d": 90} {
			r := s.get(t, "/v1/movers?window="+window, starter.live).wants(t, 200, "")
			start, err := time.Parse(time.RFC3339, r.text("window_start"))
			if err != nil {
				t.Fatal(err)
			}
			end, err := time.Parse(time.RFC3339, r.text("window_end"))
			if err != nil || end.Sub(start) != time.Duration(days)*24*time.Hour || r.text("window") != window {
				t.Errorf("%s: from %v to %v", window, start, end)
			}
			if len(r.list("gainers")) != 0 || len(r.list("decliners")) != 0 {
				t.Errorf("%s: %s", window, r.raw)
			}
		}
	})
	s.rule("4.6", "equal requests get equal bodies", func(t *testing.T) {
		a, b := s.get(t, "/v1/movers?window=7d", starter.live), s.get(t, "/v1/movers?window=7d", starter.live)
		if a.raw != b.raw {
			t.Errorf("first %s, then %s", a.raw, b.raw)
		}
	})
}

// firstExamples returns a file with the first companies of the examples.
func (s suite) firstExamples(t *testing.T, n int) string {
	t.Helper()
	text, err := os.ReadFile("../examples/companies.csv")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := slices.Index(rows[0], "domain")
	var domains []string
	for _, row := range rows[1 : n+1] {
		domains = append(domains, row[column])
	}
	file := filepath.Join(t.TempDir(), "domains.txt")
	if err := os.WriteFile(file, []byte(strings.Join(domains, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (s suite) usage(starter, enterprise customer) {
	s.rule("4.7", "usage has its fields, and total is cached plus cold", func(t *testing.T) {
		r := s.get(t, "/v1/usage", starter.live).wants(t, 200, "")
		if r.text("user_id") != starter.account || r.text("tier") != "starter" || r.at("mode") != nil ||
			r.number("total_calls") != r.number("cached_calls")+r.number("cold_calls") || r.number("total_calls") == 0 {
			t.Errorf("got %s", r.raw)
		}
		now := time.Now().UTC()
		start := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC)
		if r.text("period") != start.Format("2006-01") || r.text("last_reset") != start.Format("2006-01-02T15:04:05.000Z") ||
			r.text("next_reset") != start.AddDate(0, 1, 0).Format("2006-01-02T15:04:05.000Z") {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("4.7", "reading usage changes nothing", func(t *testing.T) {
		a, b := s.get(t, "/v1/usage", starter.live), s.get(t, "/v1/usage", starter.live)
		if a.raw != b.raw {
			t.Errorf("first %s, then %s", a.raw, b.raw)
		}
	})
	s.rule("4.7", "a caller with no calls has zeros and not a 404", func(t *testing.T) {
		fresh := s.customer(t, "growth")
		r := s.get(t, "/v1/usage", fresh.live).wants(t, 200, "")
		if r.number("total_calls") != 0 || r.at("cold_calls") != 0.0 || r.at("cached_calls") != 0.0 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("4.7", "null means unmetered", func(t *testing.T) {
		r := s.get(t, "/v1/usage", enterprise.live).wants(t, 200, "")
		limits := r.at("tier_limits").(map[string]any)
		if v, ok := limits["cold_calls_included"]; !ok || v != nil {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("8.1", "tiers have their windows and budgets", func(t *testing.T) {
		for tier, want := range map[string][3]any{
			"free": {1000.0, 0.0, 168.0}, "starter": {10000.0, 100.0, 24.0}, "growth": {100000.0, 1000.0, 6.0},
			"scale": {1000000.0, 10000.0, 1.0}, "enterprise": {nil, nil, 0.25},
		} {
			r := s.get(t, "/v1/usage", s.customer(t, tier).live).wants(t, 200, "")
			if got := [3]any{r.at("tier_limits.cached_calls_included"), r.at("tier_limits.cold_calls_included"),
				r.at("tier_limits.freshness_window_hours")}; got != want {
				t.Errorf("%s: %v, want %v", tier, got, want)
			}
		}
	})
	s.rule("4.7", "only score bodies count as cached calls", func(t *testing.T) {
		c := s.customer(t, "starter")
		for _, path := range []string{"/v1/usage", "/v1/distribution", "/v1/movers?window=7d", "/v1/signals", "/v1/company/" + first +
			"/cohort",
			"/v1/company/" + first + "/confidence", "/v1/score/" + first + "/history", "/v1/score/" + first + "/signals"} {
			s.get(t, path, c.live).wants(t, 200, "")
		}
		for _, path := range []string{"/v1/score/acme.test", "/v1/usage"} {
			s.get(t, path, c.test).wants(t, 200, "")
		}
		if r := s.get(t, "/v1/usage", c.live); r.number("total_calls") != 0 {
			t.Errorf("got %s", r.raw)
		}
	})
}

func (s suite) explanations(starter customer) {
	s.rule("4.9", "the manifest has 67 signals whose weights add up, the same live and in the sandbox", func(t *testing.T) {
		live, test := s.get(t, "/v1/signals", starter.live).wants(t, 200, ""), s.get(t, "/v1/signals", starter.test).wants(t, 200, "")
		if live.raw != test.raw || live.at("mode") != nil || len(live.list("signals")) != 67 {
			t.Fatalf("live %.200s, sandbox %.200s", live.raw, test.raw)
		}
		weights := make(map[string]float64)
		composite := 0.0
		for _, v := range live.list("signals") {
			signal := v.(map[string]any)
			weights[signal["bucket"].(string)] += signal["weight"].(float64)
			composite += signal["composite_weight"].(float64)
		}
		for bucket, sum := range weights {
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("the weights of %s add up to %v", bucket, sum)
			}
		}
		if len(weights) != 4 || math.Abs(composite-1) > 1e-6 {
			t.Errorf("%d buckets, composite weights add up to %v", len(weights), composite)
		}
	})
	s.rule("4.10", "confidence names band, completeness, missing signals and warnings", func(t *testing.T) {
		r := s.get(t, "/v1/company/"+first+"/confidence", starter.live).wants(t, 200, "")
		if r.text("band") != "directional" || r.at("data_completeness_pct") != 0.0 || len(r.list("missing_signals")) != 67 ||
			r.at("data_warnings") == nil {
			t.Errorf("got %.400s", r.raw)
		}
		r = s.get(t, "/v1/company/apple.com/confidence", starter.live).wants(t, 200, "")
		if r.number("data_completeness_pct") <= 0 || len(r.list("missing_signals"))+int(r.number("signals_observed"))+
			len(r.list("not_applicable_signals")) != 67 {
			t.Errorf("got %.400s", r.raw)
		}
	})
	s.rule("4.10", "a company never scored has no_history", func(t *testing.T) {
		s.get(t, "/v1/company/never-scored.com/confidence", starter.live).wants(t, 404, "no_history")
	})
}

// routes are all addresses that need a key.
var routes = []struct{ method, path string }{
	{"POST", "/v1/score"}, {"POST", "/v1/scores"}, {"POST", "/v1/scores/batch"}, {"GET", "/v1/score/acme.test"},
	{"GET", "/v1/score/acme.test/history"}, {"GET", "/v1/score/acme.test/changes"}, {"GET", "/v1/score/acme.test/signals"},
	{"GET", "/v1/jobs?ids=x"}, {"GET", "/v1/jobs/x"},
	{"GET", "/v1/company/acme.test/cohort"}, {"GET", "/v1/company/acme.test/confidence"}, {"GET", "/v1/movers?window=7d"},
	{"GET", "/v1/usage"}, {"GET", "/v1/usage/history"}, {"GET", "/v1/distribution"}, {"GET", "/v1/signals"},
}

func (s suite) keys(starter customer) {
	s.rule("5 rule 4", "every endpoint refuses a missing, mistyped, unknown or foreign key", func(t *testing.T) {
		typo := []byte(starter.live)
		typo[len(typo)-1] ^= 1
		for _, key := range []string{"", "x", string(typo), strings.ToUpper(starter.live), starter.live + " x", "svc_live_", "svc_test_abc",
			strings.Repeat("k", 4000)} {
			for _, route := range routes {
				s.call(t, route.method, route.path, key, "").wants(t, 401, "unauthorized")
			}
		}
	})
	s.rule("5 rule 8", "a key with another prefix is unauthorized", func(t *testing.T) {
		for _, key := range []string{strings.Replace(starter.live, "svc_live_", "svc_prod_", 1), strings.TrimPrefix(starter.live, "svc_")} {
			s.get(t, "/v1/usage", key).wants(t, 401, "unauthorized")
		}
	})
	s.rule("5 rule 2", "the prefix alone selects the mode", func(t *testing.T) {
		if r := s.get(t, "/v1/usage", starter.test); r.text("mode") != "sandbox" {
			t.Errorf("got %s", r.raw)
		}
		swapped := strings.Replace(starter.live, "svc_live_", "svc_test_", 1)
		s.get(t, "/v1/usage", swapped).wants(t, 401, "unauthorized")
	})
	s.rule("5 rule 1", "no other scheme exists", func(t *testing.T) {
		s.get(t, "/v1/usage", "", "Authorization", "Bearer "+starter.live).wants(t, 401, "unauthorized")
		s.get(t, "/v1/usage?X-API-Key="+starter.live, "").wants(t, 401, "unauthorized")
	})
	s.rule("5 rule 3", "a revoked key stops", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		s.cli(t, "key", "revoke", c.liveID)
		eventually(t, "the revoked key is refused", func() bool { return s.get(t, "/v1/usage", c.live).status == 401 })
	})
	s.rule("5 rule 3", "a list of keys shows no key", func(t *testing.T) {
		list := s.cli(t, "key", "list", "--account", starter.account)
		if strings.Contains(list, starter.live) || !strings.Contains(list, "svc_live_") {
			t.Errorf("got %s", list)
		}
	})
}

func (s suite) sandbox(starter, free customer) {
	s.rule("5 sandbox", "the four companies have their numbers", func(t *testing.T) {
		for domain, want := range map[string][2]any{
			"acme.test": {"SVC-1", 67.2}, "unicorn.test": {"SVC-1+", 79.4}, "struggling.test": {"SVC-4", 32.1},
			"cohort.test": {"SVC-3", 45.0},
		} {
			for _, r := range []reply{s.score(t, starter.test, domain), s.get(t, "/v1/score/"+domain, free.test)} {
				r.wants(t, 200, "")
				if got := [2]any{r.at("svc_rating"), r.at("composite_score")}; got != want {
					t.Errorf("%s: %v, want %v", domain, got, want)
				}
			}
		}
		if r := s.get(t, "/v1/score/unicorn.test", starter.test); r.number("scale_premium") != 7.8 {
			t.Errorf("got %s", r.raw)
		}
		if r := s.get(t, "/v1/company/struggling.test/confidence", starter.test); r.text("band") != "directional" ||
			len(r.list("missing_signals")) == 0 || len(r.list("data_warnings")) == 0 {
			t.Errorf("got %.300s", r.raw)
		}
	})
	s.rule("5 sandbox", "every answer begins with mode sandbox, but for the signals", func(t *testing.T) {
		for _, path := range []string{"/v1/score/acme.test", "/v1/score/acme.test/history", "/v1/score/acme.test/signals",
			"/v1/company/acme.test/cohort", "/v1/company/acme.test/confidence",
			"/v1/movers?window=30d", "/v1/usage", "/v1/distribution"} {
			if r := s.get(t, path, starter.test).wants(t, 200, ""); !strings.HasPrefix(r.raw, `{"mode":"sandbox",`) {
				t.Errorf("%s: %.80s", path, r.raw)
			}
		}
	})
	s.rule("5 sandbox", "test keys reach canned domains only, live keys no test domain", func(t *testing.T) {
		for _, path := range []string{"/v1/score/%s", "/v1/score/%s/history", "/v1/score/%s/changes", "/v1/score/%s/signals",
			"/v1/company/%s/cohort", "/v1/company/%s/confidence"} {
			s.get(t, fmt.Sprintf(path, "example.com"), starter.test).wants(t, 400, onlyCanned)
			s.get(t, fmt.Sprintf(path, "other.test"), starter.test).wants(t, 400, onlyCanned)
			for _, domain := range []string{"acme.test", "other.test", "a.b.test"} {
				s.get(t, fmt.Sprintf(path, domain), starter.live).wants(t, 400, "test domains require a svc_test_ key")
			}
		}
		s.score(t, starter.test, "example.com").wants(t, 400, onlyCanned)
		s.score(t, starter.live, "acme.test").wants(t, 400, "test domains require a svc_test_ key")
	})
	s.rule("5 sandbox", "history has 4 to 12 daily records that end now, paged as live", func(t *testing.T) {
		for _, domain := range sandboxDomains {
			whole := s.get(t, "/v1/score/"+domain+"/history", starter.test).wants(t, 200, "").list("records")
			newest, err := time.Parse(time.RFC3339, whole[0].(map[string]any)["scored_at"].(string))
			if len(whole) < 4 || len(whole) > 12 || err != nil || time.Since(newest) > 25*time.Hour {
				t.Errorf("%s: %d records, the newest of %v", domain, len(whole), newest)
			}
			var paged []any
			for cursor := ""; ; {
				r := s.get(t, "/v1/score/"+domain+"/history?limit=3"+cursor, starter.test).wants(t, 200, "")
				paged = append(paged, r.list("records")...)
				if r.at("next_cursor") == nil {
					break
				}
				cursor = "&cursor=" + r.text("next_cursor")
			}
			if fmt.Sprint(paged) != fmt.Sprint(whole) {
				t.Errorf("%s: pages hold %v", domain, paged)
			}
		}
		s.get(t, "/v1/score/acme.test/history?cursor=x", starter.test).wants(t, 400, "invalid_cursor")
	})
	s.rule("5 sandbox", "the cohort has 12 members named cohort-NN.test", func(t *testing.T) {
		r := s.get(t, "/v1/company/cohort.test/cohort", starter.test).wants(t, 200, "")
		var names []string
		for _, m := range r.list("members") {
			names = append(names, m.(map[string]any)["domain"].(string))
		}
		slices.Sort(names)
		if len(names) != 12 || names[0] != "cohort-01.test" || names[11] != "cohort-12.test" || r.number("cohort.count") != 12 {
			t.Errorf("members %v", names)
		}
	})
	s.rule("5 sandbox", "the universe has 12 companies", func(t *testing.T) {
		r := s.get(t, "/v1/distribution", starter.test).wants(t, 200, "")
		if r.number("universe.count") != 12 {
			t.Errorf("got %s", r.raw)
		}
		if score := s.get(t, "/v1/score/acme.test", starter.test); score.number("rank.cohort_size") != 12 {
			t.Errorf("got %s", score.raw)
		}
	})
	s.rule("5 sandbox", "movers are five up and five down in every window", func(t *testing.T) {
		lists := ""
		for _, window := range []string{"7d", "30d", "90d"} {
			r := s.get(t, "/v1/movers?window="+window, starter.test).wants(t, 200, "")
			if len(r.list("gainers")) != 5 || len(r.list("decliners")) != 5 || r.text("window") != window {
				t.Errorf("got %s", r.raw)
			}
			if got := fmt.Sprint(r.list("gainers"), r.list("decliners")); lists != "" && lists != got {
				t.Errorf("%s differs", window)
			} else {
				lists = got
			}
		}
		s.get(t, "/v1/movers", starter.test).wants(t, 400, "window must be one of ['7d','30d','90d']")
	})
	s.rule("5 sandbox", "usage is canned, within what the tier includes", func(t *testing.T) {
		r := s.get(t, "/v1/usage", starter.test).wants(t, 200, "")
		if r.number("cold_calls") <= 0 || r.number("cold_calls") >= r.number("tier_limits.cold_calls_included") ||
			r.number("cached_calls") <= 0 || r.number("cached_calls") >= r.number("tier_limits.cached_calls_included") ||
			r.number("total_calls") != r.number("cold_calls")+r.number("cached_calls") || r.text("user_id") != starter.account {
			t.Errorf("got %s", r.raw)
		}
		if r := s.get(t, "/v1/usage", free.test); r.at("cold_calls") != 0.0 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule("5 sandbox", "two calls differ in dates at most", func(t *testing.T) {
		for _, path := range []string{"/v1/score/acme.test", "/v1/company/acme.test/confidence", "/v1/distribution",
			"/v1/company/acme.test/cohort"} {
			if a, b := s.get(t, path, starter.test), s.get(t, path, starter.test); a.raw != b.raw {
				t.Errorf("%s: %s and %s", path, a.raw, b.raw)
			}
		}
	})
	s.rule("5 sandbox", "sandbox calls count as nothing", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live)
		s.score(t, starter.test, "acme.test").wants(t, 200, "")
		s.get(t, "/v1/score/acme.test", starter.test).wants(t, 200, "")
		if after := s.get(t, "/v1/usage", starter.live); after.raw != before.raw {
			t.Errorf("usage went from %s to %s", before.raw, after.raw)
		}
	})
}

func (s suite) errors(starter customer) {
	s.rule("7", "a body without a domain is body.domain required", func(t *testing.T) {
		for _, body := range []string{`{}`, `{"domain":null}`, `{"domain":""}`, `{"domain":"  "}`, `{"wait":true}`} {
			s.post(t, starter.live, body).wants(t, 400, "body.domain required")
		}
	})
	s.rule("7", "a body that is no JSON object is body invalid", func(t *testing.T) {
		for _, body := range []string{"{", "null", "[]", `"example.com"`, "domain=example.com", `{"domain":"a.com"}}`,
			`{"domain":"a.com","force_fresh":"yes"}`} {
			s.post(t, starter.live, body).wants(t, 400, "body invalid")
		}
		s.call(t, "POST", "/v1/score", starter.live, "").wants(t, 400, "body invalid")
	})
	s.rule("7", "a bad domain in a path is domain invalid", func(t *testing.T) {
		for _, domain := range []string{"localhost", "127.0.0.1", "a%20b.com", "%ff.com", "exa_mple.com"} {
			for _, path := range []string{"/v1/score/%s", "/v1/score/%s/history", "/v1/score/%s/changes", "/v1/score/%s/signals",
				"/v1/company/%s/cohort", "/v1/company/%s/confidence"} {
				s.get(t, fmt.Sprintf(path, domain), starter.live).wants(t, 400, "domain invalid")
			}
		}
	})
	s.rule("7", "unknown addresses and methods have errors of the same shape", func(t *testing.T) {
		for _, path := range []string{"/", "/v1", "/v2/score", "/v1/nothing", "/v1/company/apple.com", "/v1/score/a.com/b/c"} {
			s.get(t, path, starter.live).wants(t, 404, "not found")
		}
		for _, route := range [][2]string{{"DELETE", "/v1/score/apple.com"}, {"PUT", "/v1/score"}, {"GET", "/v1/score"},
			{"POST", "/v1/usage"}, {"PATCH", "/v1/jobs/x"}} {
			s.call(t, route[0], route[1], starter.live, "").wants(t, 405, "method not allowed")
		}
	})
	s.rule("7", "a request that is too large is refused", func(t *testing.T) {
		s.post(t, starter.live, `{"domain":"`+strings.Repeat("a", 100<<10)+`"}`).wants(t, 413, "request too large")
		for _, path := range []string{"/v1/score", "/v1/scores", "/v1/scores/batch"} {
			s.raw(t, "POST", path, starter.live, "Content-Length: 1000000\r\n\r\n").wants(t, 413, "request too large")
		}
		for _, route := range routes {
			s.raw(t, route.method, route.path, starter.live, "X-Large: "+strings.Repeat("a", headersRead)).wants(t, 431,
				"request too large")
		}
	})
}

func (s suite) headers(starter customer) {
	cacheable := []string{"/v1/score/" + first, "/v1/score/" + first + "/history", "/v1/score/" + first + "/changes?to=2100-01-01",
		"/v1/score/" + first + "/signals",
		"/v1/company/apple.com/cohort", "/v1/company/apple.com/confidence", "/v1/movers?window=7d", "/v1/distribution", "/v1/signals"}
	s.rule("decided: ETag", "an unchanged answer is 304, and free", func(t *testing.T) {
		for _, path := range cacheable {
			r := s.get(t, path, starter.live).wants(t, 200, "")
			tag := r.header.Get("ETag")
			if !strings.HasPrefix(tag, `"`) || !strings.HasPrefix(r.header.Get("Cache-Control"), "private, max-age=") {
				t.Errorf("%s: ETag %q, Cache-Control %q", path, tag, r.header.Get("Cache-Control"))
			}
			before := s.get(t, "/v1/usage", starter.live)
			for _, header := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
				again := s.get(t, path, starter.live, "If-None-Match", header)
				if again.status != 304 && again.header.Get("ETag") != tag {
					continue // the universe was counted between the two
				}
				if again.status != 304 || again.raw != "" || again.header.Get("ETag") != tag {
					t.Errorf("%s with %s: %d, ETag %s", path, header, again.status, again.header.Get("ETag"))
				}
			}
			if after := s.get(t, "/v1/usage", starter.live); after.raw != before.raw {
				t.Errorf("%s: 304 changed usage from %s to %s", path, before.raw, after.raw)
			}
			if r := s.get(t, path, starter.live, "If-None-Match", `"other"`); r.status != 200 {
				t.Errorf("%s with another tag: %d", path, r.status)
			}
		}
	})
	s.rule("decided: compression", "large bodies are compressed when asked for, under a tag of their own", func(t *testing.T) {
		plain := s.get(t, "/v1/signals", starter.live)
		for _, encoding := range []string{"gzip", "br"} {
			r := s.get(t, "/v1/signals", starter.live, "Accept-Encoding", encoding)
			if r.header.Get("Content-Encoding") != encoding || len(r.raw) >= len(plain.raw)/2 ||
				r.header.Get("ETag") == plain.header.Get("ETag") || r.header.Get("Vary") != "Accept-Encoding" {
				t.Errorf("%s: %v, %d of %d bytes", encoding, r.header, len(r.raw), len(plain.raw))
			}
			if again := s.get(t, "/v1/signals", starter.live, "If-None-Match", r.header.Get("ETag")); again.status != 304 {
				t.Errorf("%s: the tag of the compressed body answers %d", encoding, again.status)
			}
		}
	})
	s.rule("decided: X-Request-Id", "a sane id is kept, another is replaced", func(t *testing.T) {
		if r := s.get(t, "/v1/usage", starter.live, "X-Request-Id", "abc-DEF_123.4"); r.header.Get("X-Request-Id") != "abc-DEF_123.4" {
			t.Errorf("got %q", r.header.Get("X-Request-Id"))
		}
		for _, id := range []string{"short", "with space here", strings.Repeat("a", 129), "new\tline-1234"} {
			if r := s.get(t, "/v1/usage", starter.live, "X-Request-Id", id); r.header.Get("X-Request-Id") == id ||
				len(r.header.Get("X-Request-Id")) != 36 {
				t.Errorf("%q became %q", id, r.header.Get("X-Request-Id"))
			}
		}
	})
	s.rule("decided: RateLimit", "every answer to a valid key tells what is left of the month", func(t *testing.T) {
		c := s.customer(t, "starter")
		cold := s.score(t, c.live, "rate-company.com").wants(t, 202, "")
		if got := cold.header.Get("RateLimit"); !strings.HasPrefix(got, `"cold";r=99;t=`) {
			t.Errorf("RateLimit is %q", got)
		}
		if got := cold.header.Get("RateLimit-Policy"); !strings.HasPrefix(got, `"cold";q=100;w=`) {
			t.Errorf("RateLimit-Policy is %q", got)
		}
		if got := s.score(t, c.live, first).wants(t, 200, "").header.Get("RateLimit"); !strings.HasPrefix(got, `"cold";r=99;t=`) {
			t.Errorf("RateLimit of an inline score is %q", got)
		}
		// Each of these but the second 304 and the errors counts as a cached call, after the inline score.
		tag, cached := "", 9_999
		for _, step := range []struct {
			path string
			tag  bool
			cost int
		}{{"/v1/score/" + first, false, 1}, {"/v1/score/" + first, false, 1}, {"/v1/score/" + first, true, 0},
			{"/v1/score/not_a_domain", false, 0}, {"/v1/usage", false, 0}, {"/v1/distribution", false, 0}} {
			var headers []string
			if step.tag {
				headers = []string{"If-None-Match", tag}
			}
			r := s.get(t, step.path, c.live, headers...)
			tag, cached = r.header.Get("ETag"), cached-step.cost
			if want := fmt.Sprintf(`"cached";r=%d;t=`, cached); !strings.Contains(r.header.Get("RateLimit"), want) {
				t.Errorf("RateLimit of %s is %q, want %s", step.path, r.header.Get("RateLimit"), want)
			}
		}
		if got := s.score(t, c.test, "acme.test").header.Get("RateLimit"); !strings.Contains(got, `"cached";r=`) {
			t.Errorf("RateLimit of the sandbox is %q", got)
		}
		if r := s.get(t, "/v1/usage", "svc_live_unknown"); r.header.Get("RateLimit") != "" {
			t.Errorf("RateLimit %q of no account", r.header.Get("RateLimit"))
		}
	})
	s.rule("decided: Server-Timing", "answers say what answered", func(t *testing.T) {
		for path, want := range map[string]string{"/v1/distribution": "table", "/v1/usage": "redis", "/v1/score/" + first +
			"/history?limit=499": "clickhouse"} {
			if r := s.get(t, path, starter.live); !strings.HasPrefix(r.header.Get("Server-Timing"), want) {
				t.Errorf("%s: %q, want %s", path, r.header.Get("Server-Timing"), want)
			}
		}
	})
	s.rule("decided: CORS", "no answer invites a browser of another site", func(t *testing.T) {
		for _, r := range []reply{
			s.get(t, "/v1/signals", starter.live, "Origin", "https://example.com"),
			s.call(t, "OPTIONS", "/v1/score", "", "", "Origin", "https://example.com", "Access-Control-Request-Method", "POST"),
		} {
			for name := range r.header {
				if strings.HasPrefix(name, "Access-Control-") {
					t.Errorf("%s: %s", name, r.header.Get(name))
				}
			}
		}
	})
}

func (s suite) idempotency(enterprise customer) {
	s.rule("decided: Idempotency-Key", "the same key and request replay the first 202 without another charge", func(t *testing.T) {
		before := s.get(t, "/v1/usage", enterprise.live).number("cold_calls")
		a := s.score(t, enterprise.live, "replayed-company.com", "Idempotency-Key", "one").wants(t, 202, "")
		s.poll(t, enterprise.live, a.text("job_id"))
		b := s.score(t, enterprise.live, "replayed-company.com", "Idempotency-Key", "one").wants(t, 202, "")
		if a.raw != b.raw {
			t.Errorf("first %s, then %s", a.raw, b.raw)
		}
		if after := s.get(t, "/v1/usage", enterprise.live).number("cold_calls"); after != before+1 {
			t.Errorf("cold calls went from %v to %v", before, after)
		}
	})
	s.rule("decided: Idempotency-Key", "the same key with another request is refused", func(t *testing.T) {
		s.score(t, enterprise.live, "other-company.com", "Idempotency-Key", "one").wants(t, 422, "idempotency_key_reused")
	})
	s.rule("decided: Idempotency-Key", "keys of different accounts have nothing to do with each other", func(t *testing.T) {
		s.score(t, s.customer(t, "enterprise").live, "other-company.com", "Idempotency-Key", "one").wants(t, 202, "")
	})
	s.rule("decided: Idempotency-Key", "an unusable key is refused", func(t *testing.T) {
		s.score(t, enterprise.live, "other-company.com", "Idempotency-Key", strings.Repeat("k", 256)).wants(t, 400,
			"idempotency_key invalid")
	})
	s.rule("decided: Idempotency-Key", "of many calls at once with one key one is charged", func(t *testing.T) {
		c := s.customer(t, "starter")
		jobs := make([]string, 20)
		var calls sync.WaitGroup
		for i := range jobs {
			calls.Go(func() { jobs[i] = s.score(t, c.live, "storm-company.com", "Idempotency-Key", "storm").text("job_id") })
		}
		calls.Wait()
		if slices.Sort(jobs); jobs[0] == "" || jobs[0] != jobs[len(jobs)-1] {
			t.Errorf("jobs %v", jobs)
		}
		if r := s.get(t, "/v1/usage", c.live); r.number("cold_calls") != 1 {
			t.Errorf("got %s", r.raw)
		}
	})
}

func (s suite) operators() {
	admin := func(t *testing.T, path string) (int, string) {
		t.Helper()
		body := new(strings.Builder)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.admin+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if _, err := fmt.Fprint(body, readAll(t, res)); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, body.String()
	}
	s.rule("decided: health", "healthz and readyz answer on the listener of operators only", func(t *testing.T) {
		for _, path := range []string{"/healthz", "/readyz"} {
			status, body := admin(t, path)
			if status != 200 || path == "/readyz" && !strings.Contains(body, `"clock":"ok"`) {
				t.Errorf("%s: %d %s", path, status, body)
			}
			s.get(t, path, "").wants(t, 404, "not found")
		}
	})
	s.rule("decided: metrics", "metrics count requests by route, status and tier", func(t *testing.T) {
		_, body := admin(t, "/metrics")
		for _, line := range []string{
			`companyscore_http_requests_total{route="/v1/score/*",status="200",tier="sandbox"}`,
			`companyscore_http_requests_total{route="/v1/jobs/:job_id",status="404"`,
			`companyscore_cold_calls_total{outcome="admitted"}`, `companyscore_cold_calls_total{outcome="replayed"}`,
			"companyscore_http_request_seconds_bucket", "companyscore_lane_waiting_runs", "companyscore_lane_next_seconds",
			"companyscore_universe_age_seconds",
			`companyscore_clock_ahead_seconds{of="redis"} 0`, `companyscore_clock_ahead_seconds{of="newest_record"} 0`,
		} {
			if !strings.Contains(body, line) {
				t.Errorf("no %s", line)
			}
		}
		if strings.Contains(body, first) {
			t.Error("a domain is a label")
		}
	})
	s.rule("decided: docs", "the description and its page are there without a key, and send nobody elsewhere", func(t *testing.T) {
		r := s.get(t, "/openapi.json", "").wants(t, 200, "")
		if r.text("openapi") != "3.1.0" {
			t.Errorf("got %.100s", r.raw)
		}
		for path, kind := range map[string]string{"/docs": "text/html", "/docs/": "text/html", "/docs/concepts": "text/html",
			"/docs/docs.js": "text/javascript", "/docs/swagger-ui.css": "text/css",
			"/docs/swagger-ui-bundle.js": "text/javascript"} {
			r := s.get(t, path, "").wants(t, 200, "")
			if !strings.HasPrefix(r.header.Get("Content-Type"), kind) || !strings.Contains(r.header.Get("Content-Security-Policy"),
				"default-src 'none'") {
				t.Errorf("%s: %v", path, r.header)
			}
		}
	})
	s.rule("7", "without Redis a cold call is scoring engine unavailable, and costs nothing", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		s.signal(t, "redis-server", syscall.SIGSTOP)
		r := s.score(t, c.live, "no-redis.com")
		s.signal(t, "redis-server", syscall.SIGCONT)
		r.wants(t, 500, "scoring engine unavailable")
		if message := r.text("message"); strings.Contains(message, "not charged") || !strings.Contains(message, "not known") {
			t.Errorf("the message of a call that may be charged is %q", message)
		}
		eventually(t, "the call is not charged", func() bool { return s.get(t, "/v1/usage", c.live).number("cold_calls") == 0 })
	})
}

func readAll(t *testing.T, res *http.Response) string {
	t.Helper()
	var b strings.Builder
	buf := make([]byte, 1<<16)
	for {
		n, err := res.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}

// TestLimits tests budgets, breakers, windows and lifetimes with small values.
func TestLimits(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, `
tiers:
  starter: {freshness_window: 1h, cached_calls_included: 1000, cold_calls_included: 3}
  growth: {freshness_window: 1s, cached_calls_included: 1000, cold_calls_included: 1000}
  scale: {freshness_window: 1h, cached_calls_included: 1000, cold_calls_included: 5}
breakers:
  cold_per_key: {limit: 4, window: 1h}
  cold_per_account: {budget_multiple: 1, window: 24h}
job_ttl: 4s
`)}
	s.manyWithinLimits()
	s.rule("8.2 rule 1", "after the monthly budget cold calls are cold_budget_exhausted until the month ends", func(t *testing.T) {
		c := s.customer(t, "starter")
		for i := range 3 {
			s.score(t, c.live, fmt.Sprintf("budget-%d.com", i)).wants(t, 202, "")
		}
		now := time.Now().UTC()
		r := s.score(t, c.live, "budget-4.com").wants(t, 429, "cold_budget_exhausted")
		end := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || math.Abs(end.Sub(now).Seconds()-float64(wait)) > 3 || r.text("reason") != "monthly_cap" {
			t.Errorf("Retry-After %q (the month ends in %v), %s", r.header.Get("Retry-After"), end.Sub(now), r.raw)
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 3 {
			t.Errorf("a rejected call was charged: %s", u.raw)
		}
		if got := r.header.Get("RateLimit"); !strings.HasPrefix(got, `"cold";r=0;t=`) {
			t.Errorf("RateLimit is %q", got)
		}
	})
	s.rule("8.2 rule 5", "a stored score is served although the budget is used up", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.score(t, c.live, "kept-company.com").wants(t, 202, "")
		eventually(t, "the company is scored", func() bool { // on a busy machine its job expires before
			return s.get(t, "/v1/score/kept-company.com", c.live).status == 200
		})
		for i := range 2 {
			s.score(t, c.live, fmt.Sprintf("kept-%d.com", i)).wants(t, 202, "")
		}
		s.score(t, c.live, "kept-9.com").wants(t, 429, "cold_budget_exhausted")
		s.score(t, c.live, "kept-company.com").wants(t, 200, "")
		s.get(t, "/v1/score/kept-company.com", c.live).wants(t, 200, "")
	})
	s.rule("8.2 rule 2", "one key is stopped by its hourly breaker, and another of the account is not", func(t *testing.T) {
		c := s.customer(t, "growth")
		for i := range 4 {
			s.score(t, c.live, fmt.Sprintf("key-%d.com", i)).wants(t, 202, "")
		}
		r := s.score(t, c.live, "key-9.com").wants(t, 429, "rate limited")
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || wait > 3600 || wait < 3500 || r.text("reason") != "per_key_cold_1h" {
			t.Errorf("Retry-After %q, %s", r.header.Get("Retry-After"), r.raw)
		}
		other, _ := s.key(t, c.account, "live")
		s.score(t, other, "key-9.com").wants(t, 202, "")
	})
	s.rule("8.2 rule 3", "an account is stopped by its daily breaker, whatever the key", func(t *testing.T) {
		c := s.customer(t, "scale")
		for i := range 3 {
			s.score(t, c.live, fmt.Sprintf("account-%d.com", i)).wants(t, 202, "")
		}
		other, _ := s.key(t, c.account, "live")
		for i := range 2 {
			s.score(t, other, fmt.Sprintf("account-b%d.com", i)).wants(t, 202, "")
		}
		// As if a new month had begun: its count is 0, the last 24 hours are as they were.
		rdb, err := redis.Open(t.Context(), s.runtime.RedisURL)
		if err != nil {
			t.Fatal(err)
		}
		defer rdb.Close()
		if err := rdb.Set(t.Context(), redis.ColdMonth(c.account, redis.Period(time.Now())), 0, time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		r := s.score(t, other, "account-9.com").wants(t, 429, "rate limited")
		wait, err := strconv.Atoi(r.header.Get("Retry-After"))
		if err != nil || wait > 86_400 || wait < 86_300 || r.text("reason") != "account_cold_24h" {
			t.Errorf("Retry-After %q, %s", r.header.Get("Retry-After"), r.raw)
		}
	})
	s.rule("8.1", "a score older than the tier's window is made again", func(t *testing.T) {
		c := s.customer(t, "growth")
		s.score(t, c.live, "stale-company.com").wants(t, 202, "")
		eventually(t, "the company is scored", func() bool { return s.get(t, "/v1/score/stale-company.com", c.live).status == 200 })
		eventually(t, "the score is stale", func() bool {
			status := s.score(t, c.live, "stale-company.com").status
			return status == 202 || status == 429
		})
	})
	s.rule("3.1", "a job expires and is then not found", func(t *testing.T) {
		c := s.customer(t, "scale")
		id := s.score(t, c.live, "expired-company.com").wants(t, 202, "").text("job_id")
		eventually(t, "the job has expired", func() bool { return s.get(t, "/v1/jobs/"+id, c.live).status == 404 })
		s.get(t, "/v1/jobs/"+id, c.live).wants(t, 404, "job not found")
	})
}

// TestTimeout tests runs that exceed the deadline.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "run_deadline: 1s\n")}
	s.rule("3.1", "a run that hits its deadline fails its job with sfn_timed_out", func(t *testing.T) {
		c := s.customer(t, "starter")
		s.get(t, "/v1/usage", c.live).wants(t, 200, "")
		// force_fresh of an enterprise key starts a run without reading a stored score.
		e := s.customer(t, "enterprise")
		s.get(t, "/v1/usage", e.live).wants(t, 200, "")
		s.pause(t, "clickhouse")
		id := s.post(t, e.live, `{"domain":"slow-company.com","force_fresh":true}`).wants(t, 202, "").text("job_id")
		if r := s.poll(t, e.live, id); r.text("failure_reason") != "sfn_timed_out" {
			t.Errorf("got %s", r.raw)
		}
	})
}

// bursts is the number of repetitions of the storm; `make contract` uses 20.
func bursts() int {
	if testing.Verbose() {
		return 20
	}
	return 3
}

// TestStorm checks that 500 concurrent calls use a budget of 100 exactly.
func TestStorm(t *testing.T) {
	t.Parallel()
	s := suite{t, start(t, "breakers: {cold_per_key: {limit: 100000, window: 1h}}\n")}
	const calls, budget = 500, 100
	s.rule("decided: storm", fmt.Sprintf("%d calls at once against a budget of %d: exactly %d are admitted, %d times", calls, budget,
		budget, bursts()), func(t *testing.T) {
		for burst := range bursts() {
			c := s.customer(t, "starter")
			statuses := make([]int, calls)
			var all sync.WaitGroup
			for i := range calls {
				all.Go(func() { statuses[i] = s.score(t, c.live, fmt.Sprintf("storm-%d-%d.com", burst, i)).status })
			}
			all.Wait()
			counts := make(map[int]int)
			for _, status := range statuses {
				counts[status]++
			}
			cold := s.get(t, "/v1/usage", c.live).number("cold_calls")
			if counts[202] != budget || counts[429] != calls-budget || cold != budget {
				t.Errorf("burst %d: statuses %v, %v cold calls charged", burst, counts, cold)
			}
		}
	})
}
