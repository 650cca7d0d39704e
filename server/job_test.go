package server

import (
	"fmt"
	"strings"
	"testing"
)

var jobStatuses = withCommon("GET /v1/jobs/{pending}", []attempt{
	{name: "pending", key: "growth", request: "GET /v1/jobs/{pending}", want: 200,
		has:   []string{`"job_id":"{pending}","status":"pending","domain":"pending.com"`},
		sends: []string{"Retry-After", "5", "Cache-Control", "no-store"}},
	{name: "complete", key: "growth", request: "GET /v1/jobs/{complete}", want: 200,
		has: []string{`"status":"complete"`, `"result_ref":{"domain":"complete.com","scored_at":"2026-05-01T12:00:00.000Z"}`,
			`"score_url":"/v1/score/complete.com"`}, sends: []string{"Retry-After", ""}},
	{name: "failed", key: "growth", request: "GET /v1/jobs/{aborted}", want: 200,
		has: []string{`"status":"failed"`, `"failure_reason":"sfn_aborted"`}},
	{name: "job of another account", key: "starter", request: "GET /v1/jobs/{complete}", want: 403, code: "forbidden",
		sends: []string{"Cache-Control", "no-store"}},
	{name: "unknown job", key: "growth", request: "GET /v1/jobs/01a1fc94-05cf-764e-800e-9c3462621484", want: 404, code: "job not found"},
	{name: "not an id", key: "growth", request: "GET /v1/jobs/x%20y", want: 404, code: "job not found"},
	{name: "test key", key: "sandbox", request: "GET /v1/jobs/{complete}", want: 404, code: "job not found"},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "GET /v1/jobs/{complete}", want: 500, code: "internal error"},
})

var jobsStatuses = withCommon("GET /v1/jobs?ids={pending}", withBytes("GET /v1/jobs?ids={pending}", "", []attempt{
	{name: "pending and others", key: "growth", request: "GET /v1/jobs?ids={pending},{complete},{aborted},none", want: 200,
		has: []string{`{"job_id":"{pending}","status":200,"job":{"job_id":"{pending}","status":"pending","domain":"pending.com"`,
			`"status":"complete"`, `"score_url":"/v1/score/complete.com"`, `"failure_reason":"sfn_aborted"`,
			`{"job_id":"none","status":404,"error":{"error":"job not found"`},
		sends: []string{"Retry-After", "5", "Cache-Control", "no-store"}},
	{name: "ended", key: "growth", request: "GET /v1/jobs?ids={complete},{aborted}", want: 200, has: []string{`"status":"complete"`},
		sends: []string{"Retry-After", ""}},
	{name: "of another account", key: "starter", request: "GET /v1/jobs?ids={complete},{pending}", want: 200,
		has:   []string{`{"jobs":[{"job_id":"{complete}","status":403,"error":{"error":"forbidden"`, `{"job_id":"{pending}","status":403,`},
		sends: []string{"Retry-After", ""}},
	{name: "test key", key: "sandbox", request: "GET /v1/jobs?ids={complete}", want: 200, has: []string{`"status":404`}},
	{name: "a thousand", key: "growth", request: "GET /v1/jobs?ids=" + strings.Repeat("a", 36) + numbered(999), want: 200,
		has: []string{`"status":404`}},
	{name: "no ids", key: "growth", request: "GET /v1/jobs", want: 400, code: "ids invalid"},
	{name: "empty id", key: "growth", request: "GET /v1/jobs?ids={pending},", want: 400, code: "ids invalid", has: []string{"Id 2 of ids"}},
	{name: "long id", key: "growth", request: "GET /v1/jobs?ids=" + strings.Repeat("a", jobIDMax+1), want: 400, code: "ids invalid"},
	{name: "an id twice", key: "growth", request: "GET /v1/jobs?ids={pending},{complete},{pending}", want: 400, code: "ids invalid",
		has: []string{"Ids 1 and 3 of ids are the same"}},
	{name: "too many ids", key: "growth", request: "GET /v1/jobs?ids=a" + numbered(1000), want: 400, code: "ids invalid"},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "GET /v1/jobs?ids={complete}", want: 500, code: "internal error"},
}))

// numbered returns n more ids of a list, as long as those of jobs.
func numbered(n int) string {
	var list strings.Builder
	for i := range n {
		fmt.Fprintf(&list, ",%036d", i)
	}
	return list.String()
}

func TestJobsStatuses(t *testing.T) { tryStatuses(t, "GET /v1/jobs", jobsStatuses) }

func TestJobStatuses(t *testing.T) { tryStatuses(t, "GET /v1/jobs/{job_id}", jobStatuses) }
