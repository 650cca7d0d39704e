package contract

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"companyscore/internal/test/openapicheck"
)

// tried has the sections of the specification with tested rules.
var tried sync.Map

// law lists every section of the specification about visible behaviour, its numbered rules,
// and decisions where the specification is silent.
var law = []string{
	"2.1", "2.2", "2.3", "2.4", "2.5", "2.3b", "2.6", "2.7",
	"3.1", "3.1 rule 1", "3.1 rule 2", "3.1 rule 3",
	"4", "4.1", "4.1 rule 1", "4.1 rule 2", "4.1 rule 3", "4.1 rule 4", "4.1 rule 5", "4.1 rule 6",
	"4.2", "4.3", "4.4", "4.5", "4.6", "4.7", "4.8", "4.9", "4.10",
	"5 rule 1", "5 rule 2", "5 rule 3", "5 rule 4", "5 rule 5", "5 rule 6", "5 rule 7", "5 rule 8", "5 sandbox",
	"6",
	"7", "7 rule 1", "7 rule 2", "7 rule 3", "7 rule 4", "7 rule 5", "7 rule 6", "7 rule 7",
	"8.1", "8.2 rule 1", "8.2 rule 2", "8.2 rule 3", "8.2 rule 4", "8.2 rule 5", "8.3",
	"9 rule 1", "9 rule 2", "9 rule 3", "9 rule 4", "9 rule 5", "9 rule 6", "9 rule 7",
	"decided: coalescing", "decided: Idempotency-Key", "decided: storm", "decided: servers", "decided: tiers file",
	"decided: ETag", "decided: compression", "decided: X-Request-Id", "decided: RateLimit", "decided: Server-Timing", "decided: CORS",
	"decided: description", "decided: docs", "decided: health", "decided: metrics", "decided: elsewhere", "decided: batch",
	"decided: scores of many", "decided: jobs of many",
	"decided: evidence", "decided: history", "decided: changes", "decided: signals of a score", "decided: as_of",
	"decided: request log", "decided: usage history", "decided: epochs",
	"decided: HTTP", "decided: connections", "decided: answer bytes", "decided: stop",
}

// errorTable lists every error of the specification with its status and an address that
// returns it.
var errorTable = []string{
	"POST /v1/score 400 body.domain required",
	"POST /v1/score 400 " + onlyCanned,
	"GET /v1/score/{domain} 400 " + onlyCanned,
	"POST /v1/score 400 test domains require a svc_test_ key",
	"GET /v1/score/{domain} 400 test domains require a svc_test_ key",
	"GET /v1/score/{domain}/history 400 invalid_cursor",
	"GET /v1/score/{domain}/history 400 limit must be between 1 and 500",
	"GET /v1/movers 400 window must be one of ['7d','30d','90d']",
	"POST /v1/score 401 unauthorized",
	"POST /v1/score 403 free_tier_sandbox_only",
	"GET /v1/jobs/{job_id} 403 forbidden",
	"GET /v1/score/{domain} 404 no score available for this domain",
	"GET /v1/score/{domain}/history 404 no_history",
	"GET /v1/company/{domain}/cohort 404 no_history",
	"GET /v1/company/{domain}/confidence 404 no_history",
	"GET /v1/jobs/{job_id} 404 job not found",
	"POST /v1/scores 400 body.domains invalid",
	"POST /v1/scores 422 idempotency_key_reused",
	"POST /v1/scores 429 cold_budget_exhausted",
	"GET /v1/jobs 400 ids invalid",
	"GET /v1/score/{domain}/history 400 order invalid",
	"GET /v1/score/{domain}/history 400 format invalid",
	"POST /v1/scores/batch 400 body.domains required",
	"POST /v1/scores/batch 400 body.domains invalid",
	"GET /v1/score/{domain} 400 include must be one of ['evidence']",
	"GET /v1/score/{domain} 400 as_of invalid",
	"POST /v1/score 400 body.include invalid",
	"POST /v1/scores/batch 400 body.include invalid",
	"POST /v1/score 422 idempotency_key_reused",
	"POST /v1/score 429 cold_budget_exhausted",
	"POST /v1/score 429 rate limited",
	"GET /v1/score/{domain} 500 internal error",
	"POST /v1/score 500 scoring engine unavailable",
}

// wholeSuite reports whether all tests ran.
func wholeSuite() bool {
	for _, name := range []string{"run", "skip", "fuzz", "list", "bench"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}

// complete reports whether every section had a tested rule, and every error of the
// specification and every answer of the OpenAPI document occurred.
func complete(out io.Writer) bool {
	var missing []string
	for _, section := range law {
		if _, ok := tried.Load(section); !ok {
			missing = append(missing, "no rule was tried of "+section)
		}
	}
	tried.Range(func(section, _ any) bool {
		if !slices.Contains(law, section.(string)) {
			missing = append(missing, "the law has no section "+section.(string))
		}
		return true
	})
	for _, kind := range errorTable {
		if _, ok := answered.Load(kind); !ok {
			missing = append(missing, "never answered: "+kind)
		}
	}
	promised := 0
	d, err := openapicheck.Load()
	if err != nil {
		missing = append(missing, err.Error())
	} else {
		for path, item := range d.Paths.Map() {
			for method, op := range item.Operations() {
				for status := range op.Responses.Map() {
					kind := method + " " + path + " " + status
					promised++
					if _, ok := answered.Load(kind); !ok && !strings.HasPrefix(status, "5") && !(*composed && leftOut[kind]) {
						missing = append(missing, "described and never seen: "+kind)
					}
				}
			}
		}
	}
	for _, line := range missing {
		fmt.Fprintln(out, "audit: FAIL", line)
	}
	if len(missing) == 0 {
		fmt.Fprintf(out, "audit: ok   %d sections were tried, %d errors and %d kinds of answers were seen\n", len(law), len(errorTable),
			promised)
	}
	return len(missing) == 0
}
