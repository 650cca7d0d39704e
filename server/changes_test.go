package server

import (
	"testing"
	"time"
)

var changesStatuses = withDomain("GET /v1/score/%s/changes", []attempt{
	{name: "two records", key: "growth", request: "GET /v1/score/stored.com/changes?from=2026-04-25&to=2026-05-01T12:00:00Z", want: 200,
		has:   []string{`"composite_score":58.2`, `"composite_score":61.4`, `"delta":3.2`},
		sends: []string{"Cache-Control", "private, max-age=30"}},
	{name: "one record twice", key: "free", request: "GET /v1/score/stored.com/changes?from=2026-05-01T12:00:00Z", want: 200,
		has: []string{`"delta":0`, `"signals":[]`}},
	{name: "offset with a plus that is not escaped", key: "growth",
		request: "GET /v1/score/stored.com/changes?from=2026-04-25T00:00:00+02:00&to=2026-05-01T14:00:00%2B02:00", want: 200,
		has: []string{`"delta":3.2`}},
	{name: "space that is no plus", key: "growth", request: "GET /v1/score/stored.com/changes?from=2026-04-25+00:00", want: 400,
		code: "from invalid"},
	{name: "canned company", key: "sandbox", request: "GET /v1/score/acme.test/changes", want: 200,
		has: []string{`"mode":"sandbox"`, `"delta":`}},
	{name: "not an instant", key: "growth", request: "GET /v1/score/stored.com/changes?from=yesterday", want: 400, code: "from invalid"},
	{name: "not a day", key: "growth", request: "GET /v1/score/stored.com/changes?to=2026-02-30", want: 400, code: "to invalid"},
	{name: "from after to", key: "sandbox", request: "GET /v1/score/acme.test/changes?from=2026-05-02&to=2026-05-01", want: 400,
		code: "from invalid"},
	{name: "before the first record", key: "growth", request: "GET /v1/score/stored.com/changes?from=1999-01-01", want: 404,
		code: "no_history"},
	{name: "company without a score", key: "growth", request: "GET /v1/score/never.com/changes", want: 404, code: "no_history",
		sends: []string{"Cache-Control", "no-store"}},
})

func TestChangesStatuses(t *testing.T) {
	tryStatuses(t, "GET /v1/score/{domain}/changes", changesStatuses)
}

func TestInstantsHaveOneReading(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-05-01T00:00:00+02:00": "2026-04-30T22:00:00Z", "2026-05-01T00:00:00 02:00": "2026-04-30T22:00:00Z",
		"2026-05-01T00:00:00.5 05:30": "2026-04-30T18:30:00.5Z",
		"2026-05-01T00:00:00-02:00":   "2026-05-01T02:00:00Z", "2026-05-01T00:00:00Z": "2026-05-01T00:00:00Z",
		"2026-05-01":       "2026-05-01T00:00:00Z",
		"2026-05-01 02:00": "", "2026-05-01T00:00:00 2:00": "", "2026-05-01T00:00:00Z 02:00": "", " 02:00": "",
		"2026-05-01T00:00:00  02:00": "", "2026-05-01 00:00:00Z": "",
	} {
		got := ""
		if at, err := parseInstant(text); err == nil {
			got = at.Format(time.RFC3339Nano)
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
