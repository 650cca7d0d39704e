package server

import "testing"

var usageStatuses = withCommon("GET /v1/usage", []attempt{
	{name: "metered account", key: "spent month", request: "GET /v1/usage", want: 200,
		has: []string{`"user_id":"account of spent month","period":"2026-05","tier":"starter"`, `"cold_calls":3`,
			`"cold_calls_included":3`}, sends: []string{"Cache-Control", "no-store"}},
	{name: "new month", key: "spent day", request: "GET /v1/usage", want: 200,
		has: []string{`"cold_calls":0`, `"last_reset":"2026-05-01T00:00:00.000Z","next_reset":"2026-06-01T00:00:00.000Z"`}},
	{name: "unmetered account", key: "enterprise", request: "GET /v1/usage", want: 200,
		has: []string{`"cached_calls_included":null,"cold_calls_included":null,"freshness_window_hours":0.25`}},
	{name: "test key", key: "sandbox", request: "GET /v1/usage", want: 200, has: []string{`"mode":"sandbox"`},
		sends: []string{"Server-Timing", "sandbox"}},
	{name: "POST", key: "starter", request: "POST /v1/usage", want: 405, code: "method not allowed", sends: []string{"Allow", "GET, HEAD"}},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "GET /v1/usage", want: 500, code: "internal error",
		sends: []string{"Cache-Control", "no-store"}},
})

func TestUsageStatuses(t *testing.T) { tryStatuses(t, "GET /v1/usage", usageStatuses) }
