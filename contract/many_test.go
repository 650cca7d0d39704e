package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// many is the answer to POST /v1/scores.
type many struct {
	DryRun  bool `json:"dry_run"`
	Summary struct{ Stored, Started, Refused int }
	Results []struct {
		Domain string
		Status int
		Score  *struct {
			Domain string `json:"domain"`
		}
		Job *struct {
			ID     string `json:"job_id"`
			Status string
			Domain string
			Poll   string `json:"poll_url"`
		}
		Error *struct{ Error, Reason string }
	}
}

// jobs returns the ids of the started jobs.
func (m many) jobs() []string {
	var ids []string
	for _, r := range m.Results {
		if r.Job != nil {
			ids = append(ids, r.Job.ID)
		}
	}
	return ids
}

// named returns n domains with a prefix and a number. No company of them has a score.
func named(prefix string, n int) []string {
	domains := make([]string, n)
	for i := range domains {
		domains[i] = fmt.Sprintf("%s-%d.com", prefix, i)
	}
	return domains
}

// postMany sends POST /v1/scores. fields are pairs of a name and a value of the body.
func (s suite) postMany(t *testing.T, key string, domains []string, fields map[string]any, headers ...string) (reply, many) {
	t.Helper()
	body := map[string]any{"domains": domains}
	for name, value := range fields {
		body[name] = value
	}
	text, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	r := s.call(t, http.MethodPost, "/v1/scores", key, string(text), headers...)
	var m many
	if r.status < 300 {
		decode(t, r.raw, &m)
	}
	return r, m
}

// pollMany polls jobs until none is pending, and returns the last answer.
func (s suite) pollMany(t *testing.T, key string, ids []string) reply {
	t.Helper()
	var r reply
	eventually(t, fmt.Sprintf("%d jobs have ended", len(ids)), func() bool {
		r = s.get(t, "/v1/jobs?ids="+strings.Join(ids, ","), key).wants(t, 200, "")
		return r.header.Get("Retry-After") == ""
	})
	return r
}

func (s suite) many(starter, enterprise, free customer) {
	const section, poll = "decided: scores of many", "decided: jobs of many"
	s.rule(section, "stored scores come inline, each of the others gets a job, and each is charged as alone", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live)
		r, m := s.postMany(t, starter.live, []string{"https://www." + first, "many-new.com"}, nil)
		r.wants(t, 202, "")
		if m.Summary.Stored != 1 || m.Summary.Started != 1 || m.Summary.Refused != 0 || len(m.Results) != 2 ||
			r.header.Get("Retry-After") != "5" {
			t.Fatalf("got %s", r.raw)
		}
		if stored := m.Results[0]; stored.Domain != first || stored.Status != 200 || stored.Score == nil || stored.Score.Domain != first {
			t.Errorf("stored company: %s", r.raw)
		}
		job := m.Results[1]
		if job.Status != 202 || job.Job == nil || job.Job.Status != "pending" || job.Job.Domain != "many-new.com" ||
			job.Job.Poll != "/v1/jobs/"+job.Job.ID {
			t.Fatalf("started company: %s", r.raw)
		}
		s.poll(t, starter.live, job.Job.ID)
		after := s.get(t, "/v1/usage", starter.live)
		if after.number("cold_calls") != before.number("cold_calls")+1 || after.number("cached_calls") != before.number("cached_calls")+1 {
			t.Errorf("before %s, after %s", before.raw, after.raw)
		}
		s.get(t, "/v1/score/many-new.com", starter.live).wants(t, 200, "")
	})
	s.rule(section, "a dry run has the statuses only, and charges and starts nothing", func(t *testing.T) {
		before := s.get(t, "/v1/usage", starter.live)
		r, m := s.postMany(t, starter.live, []string{first, "many-dry.com"}, map[string]any{"dry_run": true})
		r.wants(t, 200, "")
		if !m.DryRun || m.Summary.Stored != 1 || m.Summary.Started != 1 || m.Results[0].Status != 200 || m.Results[0].Score != nil ||
			m.Results[1].Status != 202 || m.Results[1].Job != nil {
			t.Errorf("got %s", r.raw)
		}
		if after := s.get(t, "/v1/usage", starter.live); after.raw != before.raw {
			t.Errorf("before %s, after %s", before.raw, after.raw)
		}
	})
	s.rule(section, "the same key and request replay the first jobs without another charge", func(t *testing.T) {
		domains := named("many-replayed", 60)
		before := s.get(t, "/v1/usage", enterprise.live).number("cold_calls")
		a, m := s.postMany(t, enterprise.live, domains, nil, "Idempotency-Key", "many")
		a.wants(t, 202, "")
		s.pollMany(t, enterprise.live, m.jobs())
		b, _ := s.postMany(t, enterprise.live, domains, nil, "Idempotency-Key", "many")
		if b.wants(t, 202, ""); a.raw != b.raw {
			t.Errorf("first %s, then %s", a.raw, b.raw)
		}
		if after := s.get(t, "/v1/usage", enterprise.live).number("cold_calls"); after != before+60 {
			t.Errorf("cold calls went from %v to %v", before, after)
		}
		r, _ := s.postMany(t, enterprise.live, domains[1:], nil, "Idempotency-Key", "many")
		r.wants(t, 422, "idempotency_key_reused")
		s.score(t, enterprise.live, domains[0], "Idempotency-Key", "many").wants(t, 422, "idempotency_key_reused")
	})
	s.rule(section, "a list that is wrong is refused as a whole, with the place of the fault", func(t *testing.T) {
		for says, domains := range map[string][]string{
			"domains[0] and domains[2] are the same company": {"many-a.com", "many-b.com", "HTTPS://www.many-a.com/x"},
			"domains[1]: The domain cannot be scored":        {"many-a.com", "127.0.0.1"},
			"1 to 1000":                  named("many", 1001),
			"The domains must be a list": {},
		} {
			r, _ := s.postMany(t, starter.live, domains, nil)
			if r.wants(t, 400, "body.domains invalid"); !strings.Contains(r.text("message"), says) {
				t.Errorf("%q is not in %s", says, r.raw)
			}
		}
		r, _ := s.postMany(t, starter.live, []string{"many-a.com"}, map[string]any{"partial": "yes"})
		r.wants(t, 400, "body invalid")
		s.call(t, http.MethodPost, "/v1/scores", starter.live, "{}").wants(t, 400, "body.domains required")
	})
	s.rule(section, "test keys get canned scores, and Free keys score the sandbox only", func(t *testing.T) {
		r, m := s.postMany(t, free.test, []string{"acme.test", "unicorn.test"}, nil)
		if r.wants(t, 200, ""); r.text("mode") != "sandbox" || m.Summary.Stored != 2 {
			t.Errorf("got %s", r.raw)
		}
		r, _ = s.postMany(t, free.test, []string{"acme.test", "example.com"}, nil)
		r.wants(t, 400, onlyCanned)
		r, _ = s.postMany(t, free.live, []string{first}, nil)
		r.wants(t, 403, "free_tier_sandbox_only")
		r, _ = s.postMany(t, starter.live, []string{"acme.test"}, nil)
		r.wants(t, 400, "test domains require a svc_test_ key")
	})
	s.rule(poll, "a thousand jobs come in the order asked for, each as alone", func(t *testing.T) {
		_, m := s.postMany(t, enterprise.live, named("many-polled", 100), nil)
		ids := m.jobs()
		s.pollMany(t, enterprise.live, ids)
		for n := len(ids); n < 1000; n++ {
			ids = append(ids, fmt.Sprintf("01a1fc94-05cf-764e-800e-%012d", n))
		}
		r := s.get(t, "/v1/jobs?ids="+strings.Join(ids, ","), enterprise.live).wants(t, 200, "")
		list := r.list("jobs")
		if len(list) != 1000 {
			t.Fatalf("%d jobs", len(list))
		}
		for i, item := range list {
			it := item.(map[string]any)
			want := 200.0
			if i >= 100 {
				want = 404
			}
			if it["job_id"] != ids[i] || it["status"] != want {
				t.Fatalf("job %d is %v, want %s with %v", i, it, ids[i], want)
			}
		}
		one := s.get(t, "/v1/jobs/"+ids[7], enterprise.live).wants(t, 200, "")
		if alone, _ := json.Marshal(list[7].(map[string]any)["job"]); !sameJSON(t, string(alone), one.raw) {
			t.Errorf("together %s, alone %s", alone, one.raw)
		}
	})
	s.rule(poll, "jobs of other accounts are named and not shown, and the sandbox has none", func(t *testing.T) {
		_, m := s.postMany(t, enterprise.live, []string{"many-foreign.com"}, nil)
		r := s.get(t, "/v1/jobs?ids="+m.jobs()[0], starter.live).wants(t, 200, "")
		if r.list("jobs")[0].(map[string]any)["status"] != 403.0 || strings.Contains(r.raw, "many-foreign.com") {
			t.Errorf("got %s", r.raw)
		}
		r = s.get(t, "/v1/jobs?ids="+m.jobs()[0], enterprise.test).wants(t, 200, "")
		if r.list("jobs")[0].(map[string]any)["status"] != 404.0 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule(poll, "ids are 1 to 1,000, each once", func(t *testing.T) {
		for _, ids := range []string{"", "?ids=", "?ids=a,,b", "?ids=a,b,a", "?ids=a" + strings.Repeat(",b", 1000),
			"?ids=" + strings.Repeat("a", 65)} {
			s.get(t, "/v1/jobs"+ids, starter.live).wants(t, 400, "ids invalid")
		}
	})
}

// sameJSON reports whether two texts are the same JSON.
func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var values [2]any
	for i, text := range []string{a, b} {
		decode(t, text, &values[i])
	}
	x, _ := json.Marshal(values[0])
	y, _ := json.Marshal(values[1])
	return string(x) == string(y)
}

// manyWithinLimits needs the tiers of TestLimits.
func (s suite) manyWithinLimits() {
	const section = "decided: scores of many"
	s.rule(section, "all are started or none, and as many as the budget allows if a part is asked for", func(t *testing.T) {
		c := s.customer(t, "starter") // a budget of 3
		domains := named("many-budget", 5)
		r, _ := s.postMany(t, c.live, domains, nil)
		if r.wants(t, 429, "cold_budget_exhausted"); r.text("reason") != "monthly_cap" || r.header.Get("Retry-After") == "" {
			t.Errorf("got %s", r.raw)
		}
		if u := s.get(t, "/v1/usage", c.live); u.number("cold_calls") != 0 {
			t.Errorf("a refused call was charged: %s", u.raw)
		}
		r, m := s.postMany(t, c.live, domains, map[string]any{"partial": true})
		r.wants(t, 202, "")
		for i, result := range m.Results {
			want := 202
			if i >= 3 {
				want = 429
			}
			if result.Status != want || want == 429 && (result.Error == nil || result.Error.Reason != "monthly_cap") {
				t.Errorf("company %d: %s", i, r.raw)
			}
		}
		eventually(t, "the first company is scored", func() bool { return s.get(t, "/v1/score/"+domains[0], c.live).status == 200 })
		r, m = s.postMany(t, c.live, []string{domains[0], "many-budget-9.com"}, map[string]any{"partial": true})
		if r.wants(t, 200, ""); m.Summary.Stored != 1 || m.Summary.Refused != 1 {
			t.Errorf("got %s", r.raw)
		}
	})
	s.rule(section, "the limit of the key holds for all calls of a request", func(t *testing.T) {
		c := s.customer(t, "growth") // 4 an hour for a key
		r, _ := s.postMany(t, c.live, named("many-key", 5), nil)
		if r.wants(t, 429, "rate limited"); r.text("reason") != "per_key_cold_1h" {
			t.Errorf("got %s", r.raw)
		}
		r, _ = s.postMany(t, c.live, named("many-key", 4), nil)
		r.wants(t, 202, "")
		s.score(t, c.live, "many-key-9.com").wants(t, 429, "rate limited")
	})
	s.rule(section, "requests at once never start more than the budget", func(t *testing.T) {
		c := s.customer(t, "scale") // a budget of 5, and 4 an hour for a key
		other, _ := s.key(t, c.account, "live")
		var started atomic.Int64
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() {
				_, m := s.postMany(t, []string{c.live, other}[i%2], named(fmt.Sprint("many-storm-", i), 2), map[string]any{"partial": true})
				started.Add(int64(len(m.jobs())))
			})
		}
		calls.Wait()
		if u := s.get(t, "/v1/usage", c.live); started.Load() != 5 || u.number("cold_calls") != 5 {
			t.Errorf("%d runs were started; %s", started.Load(), u.raw)
		}
	})
}
