package contract

import (
	"context"
	"flag"
	"fmt"
	"io"
	"sync"
	"testing"

	"companyscore/internal/config"
	"companyscore/internal/test/compose"
)

// composed selects where the rules are tried. scripts/compose-test.sh sets it.
var composed = flag.Bool("compose", false, "try the rules on docker-compose.yml, through its proxy")

// containers are the services of docker-compose.yml, by the names of the children of an `up`.
var containers = map[string]string{"clickhouse": "clickhouse", "redis-server": "redis", "worker": "work", "batch": "batch"}

// deploying is locked while a deployment runs. There is one at a time.
var deploying sync.Mutex

// startComposed starts docker-compose.yml with empty stores. It has one API server, since some rules
// compare two answers within a second, and a call reaches the counts of another server within a second.
func startComposed(t testing.TB, path, tiers string) *system {
	t.Helper()
	deploying.Lock()
	t.Cleanup(deploying.Unlock)
	d, err := compose.Start(t.Context(), tiers, "api-2")
	s := &system{binary: path, issued: new(issued), deployment: d}
	if d != nil {
		t.Cleanup(func() {
			log, err := d.Logs(context.Background())
			if err != nil {
				t.Error(err)
			}
			s.readLog(t, []byte(log))
			if err := d.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.base, s.admin, s.runtime = d.BaseURL, d.AdminURL, &config.Runtime{BaseURL: d.BaseURL, AdminURL: d.AdminURL,
		ClickHouseURL: d.ClickHouseURL, RedisURL: d.RedisURL}
	return s
}

// behindProxy has the rules that do not hold behind the proxy, with the reason.
var behindProxy = map[string]string{
	"decided: answer bytes: only clients that do not read get 429": "nginx sends the server one request of a connection at a time, so 80 " +
		"connections have 80 answers in flight and not thousands",
}

// leftOut are the answers that only rules of behindProxy would bring.
var leftOut = map[string]bool{"GET /v1/score/{domain}/history 429": true, "GET /v1/company/{domain}/cohort 429": true,
	"POST /v1/scores/batch 429": true, "GET /v1/jobs 429": true}

// rewritten are malformed requests that nginx accepts. It sends the server a well-formed request in
// their place, so both read the same.
var rewritten = map[string]bool{"bare LF": true, "a line without colon": true}

// seen has the rules of behindProxy that were left out.
var seen sync.Map

// seenBehindProxy returns why a rule does not hold behind the proxy, "" if it does or there is none.
func seenBehindProxy(rule string) string {
	if !*composed || behindProxy[rule] == "" {
		return ""
	}
	seen.Store(rule, true)
	return behindProxy[rule]
}

// allSeen reports whether each rule of behindProxy exists.
func allSeen(out io.Writer) bool {
	ok := true
	for rule := range behindProxy {
		if _, found := seen.Load(rule); !found {
			ok = false
			fmt.Fprintln(out, "audit: FAIL there is no rule", rule)
		}
	}
	return ok
}
