package fetch

import (
	"cmp"
	"time"
)

// Policy is the limits of one source. The client enforces the table Policies; the documentation
// and `source list` print it.
type Policy struct {
	// Source is the key of the source.
	Source string
	// Deadline bounds the source in one run, waits included.
	Deadline time.Duration
	// Connect bounds one connection attempt. Total bounds one request with its body.
	Connect, Total time.Duration
	// Answer is how long the provider usually takes to answer. A request that has to wait for its
	// turn is not sent if less time would be left. Zero means a quarter of Total.
	Answer time.Duration
	// Retries is the number of retries after a refused connection, 429, 502, 503 or 504, within
	// the deadline.
	Retries int
	// TTL is how long an answer is cached; zero disables the cache.
	TTL time.Duration
	// BodyMax bounds an answer in bytes, on the wire and decompressed.
	BodyMax int64
	// BreakFor is how long the circuit breaker of a server stays open after five consecutive
	// failures.
	BreakFor time.Duration
	// BreakOnRefusal makes the first 429 open the breaker, for providers that punish further
	// requests.
	BreakOnRefusal bool
	// RedirectAnywhere allows redirects to any public host over https, not only to the source's
	// own servers.
	RedirectAnywhere bool
}

// Quota is a limit on requests that one or several endpoints share.
type Quota struct {
	Name string
	// Requests per Per, in bursts of at most Burst, and at most InFlight concurrently.
	Requests int
	Per      time.Duration
	Burst    int
	InFlight int
	// PerHost gives each host a quota of its own.
	PerHost bool
	// Shared makes all workers share the quota through Redis, since the provider counts per IP
	// address. InFlight is per process.
	Shared bool
}

// Endpoint is a known server. Requests use its name instead of a URL, so that Overrides can
// replace it.
type Endpoint struct {
	// Name is the key of the source, or the key, a dot and a server name.
	Name   string
	Source string
	// Base is the base URL, without a trailing slash.
	Base  string
	Quota string
	// Token is the environment variable with the bearer token. TokenQuota is the quota that
	// applies with a token.
	Token, TokenQuota string
}

const (
	kiB = 1 << 10
	miB = 1 << 20
	day = 24 * time.Hour
)

// Policies are the policies of all live sources.
var Policies = []Policy{
	{Source: "rdap", Deadline: 18 * time.Second, Connect: 3 * time.Second, Total: 8 * time.Second, Retries: 1, TTL: 7 * day,
		BodyMax: 8 * miB, BreakFor: time.Minute, RedirectAnywhere: true},
	{Source: "dns", Deadline: 6 * time.Second, Connect: 2 * time.Second, Total: 2 * time.Second, Retries: 1, TTL: 6 * time.Hour,
		BodyMax: 64 * kiB, BreakFor: time.Minute},
	{Source: "tls", Deadline: 8 * time.Second, Connect: 3 * time.Second, Total: 6 * time.Second, TTL: day, BodyMax: 64 * kiB,
		BreakFor: time.Minute},
	{Source: "ct", Deadline: 30 * time.Second, Connect: 3 * time.Second, Total: 20 * time.Second, Retries: 1, TTL: day, BodyMax: 16 * miB,
		BreakFor: time.Minute},
	{Source: "web", Deadline: 25 * time.Second, Connect: 4 * time.Second, Total: 8 * time.Second, Retries: 1, BodyMax: 2 * miB,
		BreakFor: time.Minute},
	{Source: "wikidata", Deadline: 25 * time.Second, Connect: 3 * time.Second, Total: 10 * time.Second, Retries: 1, TTL: day,
		BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "wikipedia", Deadline: 25 * time.Second, Connect: 3 * time.Second, Total: 8 * time.Second, Retries: 1, TTL: 12 * time.Hour,
		BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "sec", Deadline: 30 * time.Second, Connect: 3 * time.Second, Total: 15 * time.Second, Retries: 2, TTL: 12 * time.Hour,
		BodyMax: 40 * miB, BreakFor: time.Minute},
	{Source: "gleif", Deadline: 20 * time.Second, Connect: 3 * time.Second, Total: 8 * time.Second, Retries: 1, TTL: 7 * day,
		BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "github", Deadline: 20 * time.Second, Connect: 3 * time.Second, Total: 8 * time.Second, Retries: 1, TTL: time.Hour,
		BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "jobs", Deadline: 25 * time.Second, Connect: 3 * time.Second, Total: 15 * time.Second, Retries: 1, TTL: 6 * time.Hour,
		BodyMax: 48 * miB, BreakFor: time.Minute},
	{Source: "wayback", Deadline: 30 * time.Second, Connect: 3 * time.Second, Total: 15 * time.Second, TTL: day, BodyMax: 8 * miB,
		BreakFor: 10 * time.Minute, BreakOnRefusal: true},
	{Source: "hn", Deadline: 14 * time.Second, Connect: 3 * time.Second, Total: 6 * time.Second, Retries: 1, TTL: 6 * time.Hour,
		BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "gdelt", Deadline: 50 * time.Second, Connect: 3 * time.Second, Total: 25 * time.Second, Answer: 20 * time.Second,
		TTL: 12 * time.Hour, BodyMax: 8 * miB, BreakFor: time.Minute},
	{Source: "tranco", Deadline: 10 * time.Second, Connect: 3 * time.Second, Total: 120 * time.Second, Retries: 3, TTL: day,
		BodyMax: 64 * miB, BreakFor: time.Minute},
}

// Endpoints are the known servers.
var Endpoints = []Endpoint{
	{Name: "rdap.bootstrap", Source: "rdap", Base: "https://data.iana.org", Quota: "iana"},
	{Name: "rdap.fallback", Source: "rdap", Base: "https://rdap.org", Quota: "rdap.org"},
	{Name: "ct.crtsh", Source: "ct", Base: "https://crt.sh", Quota: "crt.sh"},
	{Name: "ct.certspotter", Source: "ct", Base: "https://api.certspotter.com", Quota: "certspotter",
		Token: "COMPANYSCORE_CERTSPOTTER_TOKEN", TokenQuota: "certspotter token"},
	{Name: "wikidata.query", Source: "wikidata", Base: "https://query.wikidata.org", Quota: "wikimedia"},
	{Name: "wikidata.entity", Source: "wikidata", Base: "https://www.wikidata.org", Quota: "wikimedia"},
	{Name: "wikipedia", Source: "wikipedia", Base: "https://wikimedia.org", Quota: "wikimedia"},
	{Name: "sec.www", Source: "sec", Base: "https://www.sec.gov", Quota: "sec"},
	{Name: "sec.data", Source: "sec", Base: "https://data.sec.gov", Quota: "sec"},
	{Name: "gleif", Source: "gleif", Base: "https://api.gleif.org", Quota: "gleif"},
	{Name: "github", Source: "github", Base: "https://api.github.com", Quota: "github", Token: "COMPANYSCORE_GITHUB_TOKEN",
		TokenQuota: "github token"},
	{Name: "jobs.greenhouse", Source: "jobs", Base: "https://boards-api.greenhouse.io", Quota: "jobs"},
	{Name: "jobs.lever", Source: "jobs", Base: "https://api.lever.co", Quota: "jobs"},
	{Name: "jobs.lever_eu", Source: "jobs", Base: "https://api.eu.lever.co", Quota: "jobs"},
	{Name: "jobs.ashby", Source: "jobs", Base: "https://api.ashbyhq.com", Quota: "jobs"},
	{Name: "wayback", Source: "wayback", Base: "https://web.archive.org", Quota: "wayback"},
	{Name: "hn", Source: "hn", Base: "https://hn.algolia.com", Quota: "hn"},
	{Name: "gdelt", Source: "gdelt", Base: "https://api.gdeltproject.org", Quota: "gdelt"},
	{Name: "tranco", Source: "tranco", Base: "https://tranco-list.eu", Quota: "tranco"},
}

// Quotas are the limits of the endpoints and of hosts that are not known. The latter have the
// name of the source.
var Quotas = []Quota{
	{Name: "iana", Requests: 1, Per: time.Second, Burst: 1, InFlight: 1},
	{Name: "rdap.org", Requests: 1, Per: time.Second, Burst: 1, InFlight: 2, Shared: true},
	{Name: "rdap", Requests: 1, Per: time.Second, Burst: 1, InFlight: 2, PerHost: true},
	{Name: "dns", Requests: 50, Per: time.Second, Burst: 50, InFlight: 64},
	{Name: "tls", Requests: 1, Per: time.Second, Burst: 1, InFlight: 1, PerHost: true},
	{Name: "web", Requests: 1, Per: time.Second, Burst: 1, InFlight: 2, PerHost: true},
	{Name: "crt.sh", Requests: 6, Per: time.Minute, Burst: 1, InFlight: 1, Shared: true},
	{Name: "certspotter", Requests: 8, Per: time.Hour, Burst: 8, InFlight: 1, Shared: true},
	{Name: "certspotter token", Requests: 60, Per: time.Minute, Burst: 5, InFlight: 2, Shared: true},
	{Name: "wikimedia", Requests: 100, Per: time.Minute, Burst: 10, InFlight: 2, Shared: true},
	{Name: "sec", Requests: 5, Per: time.Second, Burst: 5, InFlight: 4, Shared: true},
	{Name: "gleif", Requests: 30, Per: time.Minute, Burst: 5, InFlight: 2, Shared: true},
	{Name: "github", Requests: 60, Per: time.Hour, Burst: 60, InFlight: 1, Shared: true},
	{Name: "github token", Requests: 5000, Per: time.Hour, Burst: 100, InFlight: 1, Shared: true},
	{Name: "jobs", Requests: 2, Per: time.Second, Burst: 2, InFlight: 4, PerHost: true},
	{Name: "wayback", Requests: 15, Per: time.Minute, Burst: 1, InFlight: 1, Shared: true},
	{Name: "hn", Requests: 1, Per: time.Second, Burst: 2, InFlight: 2, Shared: true},
	// With answers after up to 25 s, fewer in flight would lower the rate.
	{Name: "gdelt", Requests: 1, Per: 6 * time.Second, Burst: 1, InFlight: 5, Shared: true},
	{Name: "tranco", Requests: 1, Per: time.Second, Burst: 1, InFlight: 1, Shared: true},
}

// need returns the time that a request must have left after a wait for its turn.
func (p Policy) need() time.Duration { return cmp.Or(p.Answer, p.Total/4) }

// PolicyOf returns the policy of a source. It panics if there is none.
func PolicyOf(source string) Policy {
	for _, p := range Policies {
		if p.Source == source {
			return p
		}
	}
	panic("fetch: no policy for source " + source)
}
