package fakesources

import (
	"math/rand/v2"
	"slices"
)

// Kind is how a source fails for one company.
type Kind string

// The kinds of faults.
const (
	Hang      Kind = "hang"      // no answer until the client gives up
	Limited   Kind = "limited"   // status 429 with Retry-After
	Broken    Kind = "broken"    // status 503
	Crashed   Kind = "crashed"   // status 500
	Forbidden Kind = "forbidden" // status 403
	Malformed Kind = "malformed" // an unusable answer
	Truncated Kind = "truncated" // half of the answer
	Refused   Kind = "refused"   // the connection is closed, or the name server refuses
	Robots    Kind = "robots"    // robots.txt cannot be read
)

// kinds are the faults of each source that can be told apart; "" is the default of HTTP sources.
//
// The web archive never limits requests: the client would then pause it for ten minutes, for all
// companies.
var kinds = map[string][]Kind{
	"":        {Hang, Limited, Broken, Crashed, Malformed, Truncated, Refused},
	"wayback": {Hang, Broken, Crashed, Malformed, Truncated, Refused},
	"dns":     {Hang, Broken, Malformed, Refused},
	"tls":     {Hang, Refused},
	"web":     {Hang, Forbidden, Malformed, Refused, Robots},
}

// failing are the sources that can fail for one company. Tranco gets no request about a company.
var failing = []string{"rdap", "dns", "tls", "ct", "web", "wikidata", "wikipedia", "sec", "gleif", "github", "jobs", "wayback", "hn",
	"gdelt"}

// code returns the warning code of a fault.
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

// plan selects the sources that fail for a company, each with probability share.
func plan(random *rand.Rand, share float64, hangs bool) map[string]Kind {
	faults := make(map[string]Kind)
	for _, source := range failing {
		all := kinds[source]
		if all == nil {
			all = kinds[""]
		}
		// A hang takes most of the time of a run, so it is rarer than other faults.
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

// Fault is an injected fault: a source that failed for a company.
type Fault struct {
	Source string
	Kind   Kind
}

// Code returns the warning code of the fault.
func (f Fault) Code() string { return f.Kind.code(f.Source) }

// Injected returns the faults of a company so far, sorted by source.
func (fakes *Fakes) Injected(domain string) []Fault {
	fakes.mu.Lock()
	defer fakes.mu.Unlock()
	var faults []Fault
	for source, kind := range fakes.hit[domain] {
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
