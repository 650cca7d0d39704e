package fakesources

import (
	"math/rand/v2"
	"slices"
)

// Kind is a way in which a source fails for one company.
type Kind string

// The kinds of faults.
const (
	Hang      Kind = "hang"      // no answer until the client gives up
	Limited   Kind = "limited"   // status 429 with Retry-After
	Broken    Kind = "broken"    // status 503
	Crashed   Kind = "crashed"   // status 500
	Forbidden Kind = "forbidden" // status 403
	Malformed Kind = "malformed" // an answer that is none
	Truncated Kind = "truncated" // half of the answer
	Refused   Kind = "refused"   // the connection is closed, or the name server refuses
	Robots    Kind = "robots"    // robots.txt cannot be had
)

// kinds are those that can be told of each source. Those of an HTTP interface
// are the default.
//
// The web archive's limit is never hit: a client that is refused there has to
// leave it alone for ten minutes, and would so for all companies.
var kinds = map[string][]Kind{
	"":        {Hang, Limited, Broken, Crashed, Malformed, Truncated, Refused},
	"wayback": {Hang, Broken, Crashed, Malformed, Truncated, Refused},
	"dns":     {Hang, Broken, Malformed, Refused},
	"tls":     {Hang, Refused},
	"web":     {Hang, Forbidden, Malformed, Refused, Robots},
}

// failing are the sources that can fail for one company. Tranco is asked for no
// company, so it cannot.
var failing = []string{"rdap", "dns", "tls", "ct", "web", "wikidata", "wikipedia", "sec", "gleif", "github", "jobs", "wayback", "hn", "gdelt"}

// code is the warning that a customer reads of a fault.
func (k Kind) code(source string) string {
	switch {
	case k == Hang:
		return "timeout"
	case k == Limited:
		return "rate_limited"
	case k == Robots:
		return "blocked_by_robots"
	case source == "dns":
		return "dns_failure"
	case k == Malformed, k == Truncated:
		return "parse_error"
	}
	return "http_error"
}

// plan decides which sources fail for a company, each with the probability share.
func plan(random *rand.Rand, share float64, hangs bool) map[string]Kind {
	faults := make(map[string]Kind)
	for _, source := range failing {
		all := kinds[source]
		if all == nil {
			all = kinds[""]
		}
		// Hanging costs a run most of its time, so it is rarer than the others.
		kind := all[random.IntN(len(all))]
		if kind == Hang && (random.IntN(2) == 0 || !hangs) {
			kind = all[1+random.IntN(len(all)-1)]
		}
		if random.Float64() < share {
			faults[source] = kind
		}
	}
	return faults
}

// Fault is one that was injected: a source that failed when it was asked about
// a company.
type Fault struct {
	Source string
	Kind   Kind
}

// Injected lists what failed for a company until now, by source.
func (w *World) Injected(domain string) []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []Fault
	for source, kind := range w.hit[domain] {
		faults = append(faults, Fault{source, kind})
	}
	slices.SortFunc(faults, func(a, b Fault) int {
		if a.Source < b.Source {
			return -1
		}
		return 1
	})
	return faults
}
