package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"companyscore/scoring"
	"companyscore/server/meter"
)

// The attempts that start a run have an Idempotency-Key, so that the tests can run again on the same stores.
var postScoreStatuses = withCommon("POST /v1/score", []attempt{
	{name: "fresh score", key: "starter", request: "POST /v1/score", body: `{"domain":"https://www.stored.com/about"}`, want: 200,
		has: []string{`"domain":"stored.com"`, `"composite_score":61.4`, `"tier":"starter"`}, sends: []string{"Cache-Control", "no-store",
			"RateLimit", `"cold";r=3;t=2635201, "cached";r=...`}},
	{name: "fresh score forced below Enterprise", key: "growth", request: "POST /v1/score",
		body: `{"domain":"stored.com","force_fresh":true}`, want: 200, has: []string{`"composite_score":61.4`}},
	{name: "deprecated wait", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com","wait":null}`, want: 200,
		sends: []string{"Deprecation", "@1778544000", "Sunset", "", "Link", `</docs/versioning>; rel="deprecation"; type="text/plain"`}},
	{name: "deprecated wait in a rejected call", key: "spent month", request: "POST /v1/score", body: `{"domain":"never.com","wait":false}`,
		want: 429, code: "cold_budget_exhausted", reason: "monthly_cap", sends: []string{"Deprecation", "@1778544000"}},
	{name: "without wait", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com","later":"wait"}`, want: 200,
		sends: []string{"Deprecation", "", "Link", ""}},
	{name: "unmetered caller", key: "enterprise", request: "POST /v1/score", body: `{"domain":"stored.com"}`, want: 200,
		sends: []string{"RateLimit", ""}},
	{name: "canned company", key: "sandbox", request: "POST /v1/score", body: `{"domain":"acme.test","force_fresh":true}`, want: 200,
		has: []string{`"mode":"sandbox"`, `"composite_score":67.2`}, sends: []string{"Server-Timing", "sandbox"}},
	{name: "company without a score", key: "enterprise", request: "POST /v1/score", body: `{"domain":"never.com","wait":true}`,
		headers: []string{"Idempotency-Key", "never"}, want: 202, has: []string{`"status":"pending"`, `"domain":"never.com"`},
		sends: []string{"Retry-After", "5", "Cache-Control", "no-store"}},
	{name: "old score", key: "enterprise", request: "POST /v1/score", body: `{"domain":"aged.com"}`, headers: []string{"Idempotency-Key",
		"aged"}, want: 202, has: []string{`"domain":"aged.com"`}},
	{name: "fresh score forced", key: "enterprise", request: "POST /v1/score", body: `{"domain":"stored.com","force_fresh":true}`,
		headers: []string{"Idempotency-Key", "forced"}, want: 202, has: []string{`"domain":"stored.com"`}},
	{name: "repeated call", key: "growth", request: "POST /v1/score", body: `{"domain":"www.pending.com"}`,
		headers: []string{"Idempotency-Key", "used-key"}, want: 202,
		has: []string{`"job_id":"{pending}"`}, sends: []string{"Location", "/v1/jobs/{pending}", "RateLimit",
			`"cold";r=997;t=2635201, "cached";r=...`}},
	{name: "no JSON", key: "growth", request: "POST /v1/score", body: `{"domain":`, want: 400, code: "body invalid"},
	{name: "no object", key: "growth", request: "POST /v1/score", body: `null`, want: 400, code: "body invalid"},
	{name: "wrong type of force_fresh", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com","force_fresh":1}`,
		want: 400, code: "body invalid"},
	{name: "no domain", key: "growth", request: "POST /v1/score", body: `{"domain":" "}`, want: 400, code: "body.domain required"},
	{name: "not a domain", key: "growth", request: "POST /v1/score", body: `{"domain":"127.0.0.1"}`, want: 400,
		code: "body.domain invalid"},
	{name: "wrong type of domain", key: "growth", request: "POST /v1/score", body: `{"domain":["stored.com"]}`, want: 400,
		code: "body.domain invalid"},
	{name: "fresh score with evidence", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com","include":["evidence"]}`,
		want: 200, has: []string{`"evidence":{"pipeline_version":`}},
	{name: "unknown include", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com","include":["signals"]}`, want: 400,
		code: "body.include invalid"},
	{name: "real domain with a test key", key: "sandbox", request: "POST /v1/score", body: `{"domain":"stored.com"}`, want: 400,
		code: sandboxOnly},
	{name: "test domain with a live key", key: "growth", request: "POST /v1/score", body: `{"domain":"acme.test"}`, want: 400,
		code: liveOnly},
	{name: "long Idempotency-Key", key: "growth", request: "POST /v1/score", body: `{"domain":"never.com"}`,
		headers: []string{"Idempotency-Key", strings.Repeat("k", 256)}, want: 400, code: "idempotency_key invalid"},
	{name: "free tier", key: "free", request: "POST /v1/score", body: `{"domain":"stored.com"}`, want: 403, code: "free_tier_sandbox_only",
		has: []string{`"tier":"free"`}},
	{name: "large body", key: "growth", request: "POST /v1/score", body: strings.Repeat(" ", scoreBodyMax+1), want: 413,
		code: "request too large"},
	{name: "compressed body", key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com"}`,
		headers: []string{"Content-Encoding", "gzip"}, want: 415, code: "content encoding not supported"},
	{name: "reused Idempotency-Key", key: "growth", request: "POST /v1/score", body: `{"domain":"never.com"}`,
		headers: []string{"Idempotency-Key", "used-key"}, want: 422, code: "idempotency_key_reused"},
	{name: "budget of the month", key: "spent month", request: "POST /v1/score", body: `{"domain":"never.com"}`, want: 429,
		code: "cold_budget_exhausted", reason: "monthly_cap",
		sends: []string{"Retry-After", "2635200", "RateLimit", `"cold";r=0;t=2635201, "cached";r=...`}},
	{name: "limit of the key", key: "spent hour", request: "POST /v1/score", body: `{"domain":"never.com"}`, want: 429,
		code: "rate limited", reason: "per_key_cold_1h", sends: []string{"Retry-After", "1800"}},
	{name: "limit of the account", key: "spent day", request: "POST /v1/score", body: `{"domain":"never.com"}`, want: 429,
		code: "rate limited", reason: "account_cold_24h",
		sends: []string{"Retry-After", "39600", "RateLimit", `"cold";r=3;t=2635201, "cached";r=...`}},
	{name: "fresh score over the limit", key: "spent month", request: "POST /v1/score", body: `{"domain":"stored.com"}`, want: 200,
		has: []string{`"composite_score":61.4`}},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com"}`, want: 500,
		code: "scoring engine unavailable", has: []string{"was not charged"}},
	{name: "outcome is not known", on: storesClosed, key: "growth", request: "POST /v1/score", body: `{"domain":"stored.com"}`,
		headers: []string{"Idempotency-Key", "new-key"}, want: 500, code: "scoring engine unavailable",
		has: []string{"It is not known whether"}},
})

func TestPostScoreStatuses(t *testing.T) { tryStatuses(t, "POST /v1/score", postScoreStatuses) }

var getScoreStatuses = withDomain("GET /v1/score/%s", []attempt{
	{name: "stored score", key: "growth", request: "GET /v1/score/stored.com", want: 200, has: []string{`"composite_score":61.4`,
		`"tier":"growth"`}, sends: []string{"Cache-Control", "private, max-age=30"}},
	{name: "old score", key: "free", request: "GET /v1/score/https%3A%2F%2Fwww.aged.com", want: 200, has: []string{`"domain":"aged.com"`}},
	{name: "score with evidence", key: "growth", request: "GET /v1/score/stored.com?include=evidence", want: 200,
		has: []string{`"evidence":{"pipeline_version":`}},
	{name: "unknown include", key: "growth", request: "GET /v1/score/stored.com?include=signals", want: 400,
		code: "include must be one of ['evidence']"},
	{name: "score of an instant", key: "growth", request: "GET /v1/score/stored.com?as_of=2026-05-02&include=evidence", want: 200,
		has: []string{`"composite_score":61.4`, `"evidence":{"pipeline_version":`}},
	{name: "score of no instant", key: "growth", request: "GET /v1/score/stored.com?as_of=", want: 400, code: "as_of invalid"},
	{name: "score before the first one", key: "growth", request: "GET /v1/score/stored.com?as_of=2001-01-01", want: 404,
		code: "no score available for this domain"},
	{name: "canned score of an instant", key: "sandbox", request: "GET /v1/score/acme.test?as_of=2026-05-01", want: 200,
		has: []string{`{"mode":"sandbox"`}},
	{name: "company without a score", key: "growth", request: "GET /v1/score/never.com", want: 404,
		code: "no score available for this domain", sends: []string{"Cache-Control", "no-store"}},
	{name: "no domain", key: "growth", request: "GET /v1/score", want: 405, code: "method not allowed", sends: []string{"Allow", "POST"}},
	{name: "DELETE of no domain", key: "growth", request: "DELETE /v1/score", want: 405, code: "method not allowed",
		sends: []string{"Allow", "POST"}},
	{name: "PUT of no domain", key: "growth", request: "PUT /v1/score", want: 405, code: "method not allowed",
		sends: []string{"Allow", "POST"}},
	{name: "PATCH of no domain", key: "growth", request: "PATCH /v1/score/", want: 405, code: "method not allowed",
		sends: []string{"Allow", "POST"}},
	{name: "DELETE of a score", key: "growth", request: "DELETE /v1/score/stored.com", want: 405, code: "method not allowed",
		sends: []string{"Allow", "GET, HEAD"}},
})

func TestGetScoreStatuses(t *testing.T) { tryStatuses(t, "GET /v1/score/{domain}", getScoreStatuses) }

// A caller reads "not charged" only when that is certain.
func TestEngineProblemSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	lost := fmt.Errorf("admit cold call: %w: %w", meter.ErrOutcomeUnknown, errors.New("i/o timeout"))
	for _, c := range []struct {
		err                error
		key, says, conceal string
	}{
		{errors.New("away"), "", "was not charged", "not known"},
		{errors.New("away"), "once", "was not charged", "not known"},
		{lost, "", "not known", "not charged"},
		{lost, "once", "Repeat the request with the same Idempotency-Key", "not charged"},
	} {
		p := engineProblem(c.err, c.key)
		if p.Status != 500 || p.Code != "scoring engine unavailable" || !strings.Contains(p.Message, c.says) ||
			strings.Contains(p.Message, c.conceal) {
			t.Errorf("%v with key %q: %+v; want %q and not %q", c.err, c.key, p, c.says, c.conceal)
		}
	}
}

func TestOldPipelineScoreHasNoRank(t *testing.T) {
	t.Parallel()
	const head = `{"domain":"example.com","scored_at":"2026-05-01T12:00:00.123Z","svc_rating":"SVC-2+","composite_score":61.4,"scale_premium":2.1,` +
		`"buckets":{"team_structure":58.1,"market_position":63.7,"momentum_tailwinds":57.9,"financial_health":56}`
	const tail = `,"x_svc":{"tier":"starter","cache_status":"cached","freshness_window_hours":1}}`
	for version, rank := range map[string]string{scoring.PipelineVersion: `,"rank":{"percentile":100,"cohort_size":2}`, "v0": "", "": ""} {
		s, _ := hotServerOf(t, version)
		hot := request("/v1/score/example.com")
		if !s.hot(hot, time.Now()) {
			t.Fatalf("version %q: not answered from memory", version)
		}
		if got := string(hot.Response.Body()); got != head+rank+tail {
			t.Errorf("version %q from memory: %s", version, got)
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/score/https://www.example.com", nil)
		req.Header.Set("X-API-Key", "any")
		res := do(t, s, req)
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || string(body) != head+rank+tail {
			t.Errorf("version %q: %s, %v", version, body, err)
		}
	}
}
