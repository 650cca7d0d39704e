package server

import "testing"

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

func TestJobStatuses(t *testing.T) { tryStatuses(t, "GET /v1/jobs/{job_id}", jobStatuses) }
