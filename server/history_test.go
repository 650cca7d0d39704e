package server

import "testing"

var historyStatuses = withDomain("GET /v1/score/%s/history", withBytes("GET /v1/score/stored.com/history", "", []attempt{
	{name: "whole history", key: "growth", request: "GET /v1/score/stored.com/history", want: 200, has: []string{`"composite_score":61.4`,
		`"composite_score":58.2`, `"composite_score":50`}, sends: []string{"Cache-Control", "private, max-age=30"}},
	{name: "first page", key: "free", request: "GET /v1/score/stored.com/history?limit=1", want: 200,
		has: []string{`"composite_score":61.4`, `"next_cursor":"{cursor}"}`}},
	{name: "next page", key: "growth", request: "GET /v1/score/stored.com/history?limit=500&cursor={cursor}", want: 200,
		has: []string{`"records":[{"scored_at":"2026-04-21T12:00:00.000Z","composite_score":58.2`}},
	{name: "page past the end", key: "growth", request: "GET /v1/score/stored.com/history?cursor={last cursor}", want: 200,
		has: []string{`"records":[]}`}},
	{name: "limit of 0", key: "growth", request: "GET /v1/score/stored.com/history?limit=0", want: 400,
		code: "limit must be between 1 and 500"},
	{name: "limit of 501", key: "growth", request: "GET /v1/score/stored.com/history?limit=501", want: 400,
		code: "limit must be between 1 and 500"},
	{name: "not a number", key: "sandbox", request: "GET /v1/score/acme.test/history?limit=", want: 400,
		code: "limit must be between 1 and 500"},
	{name: "not a cursor", key: "growth", request: "GET /v1/score/stored.com/history?cursor=x", want: 400, code: "invalid_cursor"},
	{name: "cursor of another company", key: "growth", request: "GET /v1/score/peer.com/history?cursor={cursor}", want: 400,
		code: "invalid_cursor"},
	{name: "company without a score", key: "growth", request: "GET /v1/score/never.com/history", want: 404, code: "no_history",
		sends: []string{"Cache-Control", "no-store"}},
}))

func TestHistoryStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/score/{domain}/history", historyStatuses)
}
