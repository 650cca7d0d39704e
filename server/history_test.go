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
	{name: "span", key: "growth", request: "GET /v1/score/stored.com/history?from=2026-04-21&to=2026-04-22T00:00:00Z", want: 200,
		has: []string{`"records":[{"scored_at":"2026-04-21T12:00:00.000Z","composite_score":58.2`}},
	{name: "oldest first", key: "growth", request: "GET /v1/score/stored.com/history?order=oldest&limit=1", want: 200,
		has: []string{`"composite_score":50`, `"next_cursor":"{oldest cursor}"`}},
	{name: "next of the oldest", key: "growth", request: "GET /v1/score/stored.com/history?order=oldest&limit=1&cursor={oldest cursor}",
		want: 200, has: []string{`"composite_score":58.2`}},
	{name: "CSV", key: "growth", request: "GET /v1/score/stored.com/history?format=csv&from=2026-04-21&to=2026-04-22", want: 200,
		has:   []string{"domain,scored_at,composite_score,", "\nstored.com,2026-04-21T12:00:00.000Z,58.2,"},
		sends: []string{"Content-Type", "text/csv; charset=utf-8", "Link", ""}},
	{name: "lines", key: "growth", request: "GET /v1/score/stored.com/history?format=ndjson&limit=1", want: 200,
		has: []string{`{"scored_at":"`, `"composite_score":61.4`}, sends: []string{"Content-Type", "application/x-ndjson", "Link",
			`</v1/score/stored.com/history?format=ndjson&limit=1&cursor={cursor}>; rel="next"`}},
	{name: "CSV of the sandbox", key: "sandbox", request: "GET /v1/score/acme.test/history?format=csv&order=oldest&limit=2", want: 200,
		has: []string{"\nacme.test,"}},
	{name: "no instant", key: "growth", request: "GET /v1/score/stored.com/history?from=soon", want: 400, code: "from invalid"},
	{name: "no end", key: "growth", request: "GET /v1/score/stored.com/history?to=", want: 400, code: "to invalid"},
	{name: "from after to", key: "growth", request: "GET /v1/score/stored.com/history?from=2026-05-01&to=2026-04-01", want: 400,
		code: "from invalid"},
	{name: "unknown order", key: "growth", request: "GET /v1/score/stored.com/history?order=asc", want: 400, code: "order invalid"},
	{name: "unknown format", key: "growth", request: "GET /v1/score/stored.com/history?format=xlsx", want: 400, code: "format invalid"},
	{name: "cursor of the other order", key: "growth", request: "GET /v1/score/stored.com/history?order=oldest&cursor={cursor}", want: 400,
		code: "invalid_cursor"},
	{name: "cursor from the future", key: "growth", request: "GET /v1/score/stored.com/history?cursor={future cursor}", want: 400,
		code: "invalid_cursor"},
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
