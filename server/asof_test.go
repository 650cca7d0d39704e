package server

import "testing"

var scoreSignalsStatuses = withDomain("GET /v1/score/%s/signals", []attempt{
	{name: "newest score", key: "growth", request: "GET /v1/score/stored.com/signals", want: 200,
		has:   []string{`"scored_at":"2026-05-01T11:59:00.000Z"`, `"composite_score":61.4`},
		sends: []string{"Cache-Control", "private, max-age=30"}},
	{name: "score of an instant", key: "growth", request: "GET /v1/score/stored.com/signals?as_of=2026-05-02", want: 200,
		has: []string{`"scored_at":"2026-05-01T11:59:00.000Z"`}},
	{name: "canned company", key: "sandbox", request: "GET /v1/score/acme.test/signals?as_of=2026-05-02", want: 200,
		has: []string{`{"mode":"sandbox"`, `"id":"employee_count"`}},
	{name: "no instant", key: "growth", request: "GET /v1/score/stored.com/signals?as_of=yesterday", want: 400, code: "as_of invalid"},
	{name: "before the first score", key: "growth", request: "GET /v1/score/stored.com/signals?as_of=2001-01-01", want: 404,
		code: "no score available for this domain"},
	{name: "company without a score", key: "growth", request: "GET /v1/score/never.com/signals", want: 404,
		code: "no score available for this domain"},
})

func TestScoreSignalsStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/score/{domain}/signals", scoreSignalsStatuses)
}
