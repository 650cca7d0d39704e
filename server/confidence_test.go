package server

import "testing"

var confidenceStatuses = withDomain("GET /v1/company/%s/confidence", []attempt{
	{name: "newest score", key: "growth", request: "GET /v1/company/stored.com/confidence", want: 200,
		has:   []string{`"scored_at":"2026-05-01T11:59:00.000Z"`, `"band":"directional"`},
		sends: []string{"Cache-Control", "private, max-age=30"}},
	{name: "canned company without data", key: "sandbox", request: "GET /v1/company/struggling.test/confidence", want: 200,
		has: []string{`"mode":"sandbox"`, `"band":"directional"`}},
	{name: "company without a score", key: "growth", request: "GET /v1/company/never.com/confidence", want: 404, code: "no_history"},
})

func TestConfidenceStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/company/{domain}/confidence", confidenceStatuses)
}

var signalsStatuses = withCommon("GET /v1/signals", []attempt{
	{name: "live key", key: "free", request: "GET /v1/signals", want: 200, has: []string{`"count":67`},
		sends: []string{"Cache-Control", "private, max-age=3600"}},
	{name: "test key", key: "sandbox", request: "GET /v1/signals", want: 200, has: []string{`{"pipeline_version":`},
		sends: []string{"Server-Timing", "table"}},
	{name: "known tag", key: "growth", request: "GET /v1/signals", headers: []string{"If-None-Match", "*"}, want: 304,
		sends: []string{"Vary", "Accept-Encoding"}},
})

func TestSignalsStatuses(t *testing.T) { tryStatuses(t, "GET /v1/signals", signalsStatuses) }
