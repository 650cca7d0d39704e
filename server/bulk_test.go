package server

import (
	"strings"
	"testing"
)

var bulkStatuses = withCommon("POST /v1/scores", withBytes("POST /v1/scores", `{"domains":["stored.com"]}`, []attempt{
	{name: "all stored", key: "growth", request: "POST /v1/scores", body: `{"domains":["stored.com"],"partial":true}`, want: 200,
		has:   []string{`{"summary":{"stored":1,"started":0,"refused":0},"results":[{"domain":"stored.com","status":200,"score":{`},
		sends: []string{"Cache-Control", "no-store", "Retry-After", ""}},
	{name: "stored and started", key: "enterprise", request: "POST /v1/scores", body: `{"domains":["stored.com","https://www.bulk-one.com/"]}`,
		headers: []string{"Idempotency-Key", "bulk-one"}, want: 202, has: []string{`{"summary":{"stored":1,"started":1,"refused":0}`, `{"domain":"bulk-one.com","status":202,"job":{"job_id":"`},
		sends: []string{"Cache-Control", "no-store", "Retry-After", "5"}},
	{name: "dry run", key: "growth", request: "POST /v1/scores", body: `{"domains":["stored.com","bulk-dry.com"],"dry_run":true}`, want: 200,
		has: []string{`{"dry_run":true,"summary":{"stored":1,"started":1,"refused":0},"results":[{"domain":"stored.com","status":200},` +
			`{"domain":"bulk-dry.com","status":202}]}`}},
	{name: "dry run beyond a limit", key: "spent month", request: "POST /v1/scores", body: `{"domains":["bulk-dry.com"],"dry_run":true}`,
		want: 200, has: []string{`"summary":{"stored":0,"started":0,"refused":1}`, `"status":429`, `"reason":"monthly_cap"`}},
	{name: "forced", key: "enterprise", request: "POST /v1/scores", body: `{"domains":["stored.com"],"force_fresh":true}`,
		headers: []string{"Idempotency-Key", "bulk-forced"}, want: 202, has: []string{`"summary":{"stored":0,"started":1,"refused":0}`}},
	{name: "canned companies", key: "sandbox", request: "POST /v1/scores", body: `{"domains":["acme.test"],"partial":true}`, want: 200,
		has:   []string{`{"mode":"sandbox","summary":{"stored":1,"started":0,"refused":0},"results":[{"domain":"acme.test","status":200,"score":{`},
		sends: []string{"Server-Timing", "sandbox"}},
	{name: "part of them", key: "spent month", request: "POST /v1/scores", body: `{"domains":["stored.com","bulk-two.com"],"partial":true}`,
		want: 200, has: []string{`{"summary":{"stored":1,"started":0,"refused":1}`,
			`{"domain":"bulk-two.com","status":429,"error":{"error":"cold_budget_exhausted"`}},
	{name: "budget of the month", key: "spent month", request: "POST /v1/scores", body: `{"domains":["stored.com","bulk-two.com"]}`, want: 429,
		code: "cold_budget_exhausted", reason: "monthly_cap", has: []string{"needs 1 cold calls", "leaves 0"}},
	{name: "limit of the key", key: "spent hour", request: "POST /v1/scores", body: `{"domains":["bulk-two.com"]}`, want: 429,
		code: "rate limited", reason: "per_key_cold_1h"},
	{name: "limit of the account", key: "spent day", request: "POST /v1/scores", body: `{"domains":["bulk-two.com"]}`, want: 429,
		code: "rate limited", reason: "account_cold_24h"},
	{name: "free tier", key: "free", request: "POST /v1/scores", body: `{"domains":["stored.com"]}`, want: 403, code: "free_tier_sandbox_only"},
	{name: "no JSON", key: "growth", request: "POST /v1/scores", body: `{"domains":`, want: 400, code: "body invalid"},
	{name: "wrong type of partial", key: "growth", request: "POST /v1/scores", body: `{"domains":["a.com"],"partial":"yes"}`, want: 400,
		code: "body invalid", has: []string{"partial must be true or false"}},
	{name: "no domains", key: "growth", request: "POST /v1/scores", body: `{}`, want: 400, code: "body.domains required"},
	{name: "list of 1,001", key: "growth", request: "POST /v1/scores", body: `{"domains":["a"` + strings.Repeat(`,"a"`, batchMax) +
		`]}`, want: 400, code: "body.domains invalid"},
	{name: "a company twice", key: "growth", request: "POST /v1/scores", body: `{"domains":["a.com","b.com","WWW.A.com"]}`, want: 400,
		code: "body.domains invalid", has: []string{"domains[0] and domains[2] are the same company, a.com"}},
	{name: "no domain", key: "growth", request: "POST /v1/scores", body: `{"domains":["a.com","127.0.0.1"]}`, want: 400,
		code: "body.domains invalid", has: []string{"domains[1]: The domain cannot be scored"}},
	{name: "test domain", key: "growth", request: "POST /v1/scores", body: `{"domains":["acme.test"]}`, want: 400,
		code: liveOnly, has: []string{"domains[0]: "}},
	{name: "real domain with a test key", key: "sandbox", request: "POST /v1/scores", body: `{"domains":["stored.com"]}`, want: 400,
		code: sandboxOnly},
	{name: "unknown include", key: "growth", request: "POST /v1/scores", body: `{"domains":["stored.com"],"include":["signals"]}`,
		want: 400, code: "body.include invalid"},
	{name: "long Idempotency-Key", key: "growth", request: "POST /v1/scores", body: `{"domains":["stored.com"]}`,
		headers: []string{"Idempotency-Key", strings.Repeat("a", 256)}, want: 400, code: "idempotency_key invalid"},
	{name: "Idempotency-Key of another request", key: "growth", request: "POST /v1/scores", body: `{"domains":["never.com"]}`,
		headers: []string{"Idempotency-Key", "used-key"}, want: 422, code: "idempotency_key_reused"},
	{name: "large body", key: "growth", request: "POST /v1/scores", body: strings.Repeat(" ", batchBodyMax+1), want: 413,
		code: "request too large"},
	{name: "compressed body", key: "growth", request: "POST /v1/scores", body: `{"domains":["stored.com"]}`,
		headers: []string{"Content-Encoding", "gzip"}, want: 415, code: "content encoding not supported"},
	{name: "stores are closed", on: storesClosed, key: "growth", request: "POST /v1/scores", body: `{"domains":["never.com"]}`, want: 500,
		code: "scoring engine unavailable"},
}))

func TestBulkStatuses(t *testing.T) { tryStatuses(t, "POST /v1/scores", bulkStatuses) }
