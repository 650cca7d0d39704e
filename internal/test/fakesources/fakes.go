package fakesources

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// Config configures Start.
type Config struct {
	// Companies is the number of companies, at most 225.
	Companies int
	// Seed selects the companies and their faults. Equal seeds give equal companies and faults.
	Seed uint64
	// Latency is the delay of every answer; name servers have a quarter of it.
	Latency time.Duration
	// Faults is the share of the pairs of company and source that fail, 0 to 1.
	Faults float64
	// Hangs allows faults of servers that never answer. A run then takes as long as the deadline
	// of its slowest source.
	Hangs bool
	// Now is the clock of the invented companies; zero is the real one. A fixed one gives the
	// same answers at any time.
	Now time.Time
	// Ranked is the number of domains in the lists of traffic ranks.
	Ranked int
	// Dir is the directory for the files that a client needs.
	Dir string
	// Scale multiplies the client's limits.
	Scale float64
}

// Fakes is a set of invented companies and the fakes of all sources. It is safe for concurrent
// use.
type Fakes struct {
	Companies []*Company
	cfg       Config
	now       time.Time
	servers   *servers
	done      chan struct{}
	close     func() error

	byDomain, byName, byQID, byCIK, byLEI, byLabel map[string]*Company

	mu     sync.Mutex
	faults map[string]map[string]Kind // planned, by domain and source
	hit    map[string]map[string]Kind // injected, by domain and source
	spans  map[string]*span           // by domain
	lists  map[string][]byte          // of traffic ranks, by date
}

// span is the time of the requests about one company.
type span struct{ first, last time.Time }

// registry is the host of the RDAP registry of all companies.
const registry = "rdap.zz-registry.com"

// Start starts the fakes.
func Start(cfg Config) (*Fakes, error) {
	if cfg.Companies < 1 || cfg.Companies > len(firstWords)*len(secondWords) {
		return nil, fmt.Errorf("%d companies: there are between 1 and %d", cfg.Companies, len(firstWords)*len(secondWords))
	}
	if cfg.Now.IsZero() {
		cfg.Now = time.Now()
	}
	fakes := &Fakes{
		cfg: cfg, now: cfg.Now.UTC().Truncate(time.Second), done: make(chan struct{}),
		byDomain: make(map[string]*Company), byName: make(map[string]*Company), byQID: make(map[string]*Company),
		byCIK: make(map[string]*Company),
		byLEI: make(map[string]*Company), byLabel: make(map[string]*Company), faults: make(map[string]map[string]Kind),
		hit: make(map[string]map[string]Kind), spans: make(map[string]*span), lists: make(map[string][]byte),
	}
	for number := range cfg.Companies {
		c := invent(cfg.Seed, number, fakes.now)
		fakes.Companies = append(fakes.Companies, c)
		for _, index := range []struct {
			of  map[string]*Company
			key string
		}{{fakes.byDomain, c.Domain}, {fakes.byName, c.Name}, {fakes.byQID, c.QID}, {fakes.byCIK, c.CIK}, {fakes.byLEI, c.LEI},
			{fakes.byLabel, c.Label}} {
			index.of[index.key] = c
		}
		fakes.spans[c.Domain] = new(span)
	}
	fakes.Fail(cfg.Seed, cfg.Faults)
	var err error
	fakes.servers, err = listen(cfg.Dir, fakes.now, fakes.known, http.HandlerFunc(fakes.site), dns.HandlerFunc(fakes.zone), fakes.owner,
		fakes.shaken)
	if err != nil {
		return nil, err
	}
	fakes.close = sync.OnceValue(func() error {
		close(fakes.done)
		return fakes.servers.close()
	})
	fakes.servers.overrides.Scale, fakes.servers.overrides.Failures = cfg.Scale, 1_000_000
	return fakes, nil
}

// Fail replaces the planned faults and clears the record of injected ones. The seed selects which pairs
// of company and source fail; share is their share, 0 to 1. No request may be in flight.
func (fakes *Fakes) Fail(seed uint64, share float64) {
	fakes.mu.Lock()
	defer fakes.mu.Unlock()
	for _, c := range fakes.Companies {
		fakes.faults[c.Domain] = plan(rand.New(rand.NewPCG(^seed, uint64(c.Number))), share, fakes.cfg.Hangs)
		fakes.hit[c.Domain] = make(map[string]Kind)
	}
}

// Overrides returns the overrides that send a client to the fakes.
func (fakes *Fakes) Overrides() fetch.Overrides { return fakes.servers.overrides }

// Close stops the fakes. It may be called again.
func (fakes *Fakes) Close() error { return fakes.close() }

// InFlight returns the greatest number of companies with requests at one time: between the first
// request and the last answer about each.
func (fakes *Fakes) InFlight() int {
	fakes.mu.Lock()
	defer fakes.mu.Unlock()
	most := 0
	for _, at := range fakes.spans {
		n := 0
		for _, other := range fakes.spans {
			if !at.first.IsZero() && !other.first.After(at.first) && other.last.After(at.first) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// asked records the start of a request about a company; done records its end.
func (fakes *Fakes) asked(c *Company) (done func()) {
	note := func(first bool) {
		fakes.mu.Lock()
		defer fakes.mu.Unlock()
		s := fakes.spans[c.Domain]
		if now := time.Now(); first && s.first.IsZero() {
			s.first = now
		} else {
			s.last = now
		}
	}
	note(true)
	return func() { note(false) }
}

// fault returns how a source fails for a company, "" if it does not, and records the fault as
// injected.
func (fakes *Fakes) fault(c *Company, source string) Kind {
	fakes.mu.Lock()
	defer fakes.mu.Unlock()
	kind := fakes.faults[c.Domain][source]
	if kind != "" {
		fakes.hit[c.Domain][source] = kind
	}
	return kind
}

// wait waits for a share of the latency. It returns false if the client left first.
func (fakes *Fakes) wait(gone <-chan struct{}, latency time.Duration) bool {
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
	case <-fakes.done:
	}
	return false
}

// reply is an HTTP answer.
type reply struct {
	status int // 0 is 200
	kind   string
	body   []byte
	header map[string]string
}

var nothing = reply{status: http.StatusNotFound, kind: "application/json", body: []byte(`{"message":"Not Found"}`)}

// give sends a reply about a company from a source after the latency, or injects a fault. Without
// a company it injects none.
func (fakes *Fakes) give(rw http.ResponseWriter, r *http.Request, c *Company, source string, create func() reply) {
	var kind Kind
	if c != nil {
		defer fakes.asked(c)()
		kind = fakes.fault(c, source)
	}
	// Close the connection at once. On a reused connection a client would retry, and wait each
	// time.
	if kind == Refused || !fakes.wait(r.Context().Done(), fakes.cfg.Latency) {
		panic(http.ErrAbortHandler)
	}
	header := rw.Header()
	switch kind {
	case Hang:
		select {
		case <-r.Context().Done():
		case <-fakes.done:
		}
		panic(http.ErrAbortHandler)
	case Limited:
		header.Set("Retry-After", "1")
		http.Error(rw, "too many requests", http.StatusTooManyRequests)
		return
	case Broken:
		http.Error(rw, "overloaded", http.StatusServiceUnavailable)
		return
	case Crashed:
		http.Error(rw, "broken", http.StatusInternalServerError)
		return
	case Forbidden:
		http.Error(rw, "no", http.StatusForbidden)
		return
	}
	answer := create()
	header.Set("Content-Type", answer.kind)
	for name, value := range answer.header {
		header.Set(name, value)
	}
	switch kind {
	case Malformed:
		if source == "web" {
			header.Set("Content-Type", "application/octet-stream")
		}
		_, _ = rw.Write([]byte(`{"oops": [`)) // the client may have left, here and below
		return
	case Truncated:
		header.Set("Content-Length", fmt.Sprint(len(answer.body)+100))
		_, _ = rw.Write(answer.body[:len(answer.body)/2])
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	}
	if answer.status != 0 {
		rw.WriteHeader(answer.status)
	}
	_, _ = rw.Write(answer.body)
}

// owner returns the organisation in a host's certificate.
func (fakes *Fakes) owner(host string) string {
	if c := fakes.byDomain[host]; c != nil && c.OV {
		return c.Name + " Inc."
	}
	return ""
}

// shaken handles handshakes without a request.
func (fakes *Fakes) shaken(host string) error {
	c := fakes.byDomain[host]
	if c == nil {
		return nil
	}
	defer fakes.asked(c)()
	kind := fakes.fault(c, "tls")
	fakes.wait(nil, fakes.cfg.Latency)
	switch kind {
	case Hang:
		fakes.wait(nil, fetch.PolicyOf("tls").Total+time.Second)
		return errors.New("hung up")
	case Refused:
		return errors.New("refused")
	}
	return nil
}

// zone answers DNS queries.
func (fakes *Fakes) zone(rw dns.ResponseWriter, query *dns.Msg) {
	if len(query.Question) != 1 {
		return
	}
	q := query.Question[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	c := fakes.companyOf(name)
	answer := new(dns.Msg)
	answer.SetReply(query)
	send := func() { _ = rw.WriteMsg(answer) } // the client may have left
	if c == nil {
		if name == registry && q.Qtype == dns.TypeA {
			answer.Answer = records(name + ". 300 IN A " + address)
		} else if name != registry {
			answer.Rcode = dns.RcodeNameError
		}
		send()
		return
	}
	defer fakes.asked(c)()
	fakes.wait(nil, fakes.cfg.Latency/4)
	if q.Qtype != dns.TypeA && q.Qtype != dns.TypeAAAA {
		switch fakes.fault(c, "dns") {
		case Hang:
			return
		case Broken:
			answer.Rcode = dns.RcodeServerFailure
			send()
			return
		case Refused:
			answer.Rcode = dns.RcodeRefused
			send()
			return
		case Malformed:
			_, _ = rw.Write([]byte{1, 2, 3}) // the client may have left
			return
		}
	}
	var exists bool
	answer.Answer, exists = c.records(name, q.Qtype)
	if !exists {
		answer.Rcode = dns.RcodeNameError
	}
	send()
}

// companyOf returns the company of a domain name, nil if there is none.
func (fakes *Fakes) companyOf(name string) *Company {
	for {
		if c := fakes.byDomain[name]; c != nil {
			return c
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return nil
		}
		name = rest
	}
}

// ranks returns the list of a date as a zip archive. There are lists only for the ages that the
// client requests: about 1, 31 and 91 days.
func (fakes *Fakes) ranks(date string) ([]byte, error) {
	fakes.mu.Lock()
	defer fakes.mu.Unlock()
	if list := fakes.lists[date]; list != nil {
		return list, nil
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return nil, err
	}
	which := 0
	switch age := fakes.now.Sub(at); {
	case age > 80*day:
		which = 2
	case age > 20*day:
		which = 1
	}
	taken := make(map[int]string)
	for _, c := range fakes.Companies {
		if rank := c.Ranks[which]; rank > 0 {
			taken[rank] = c.Domain
		}
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	archive.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestSpeed) })
	list, err := archive.Create("top-1m.csv")
	if err != nil {
		return nil, err
	}
	var lines bytes.Buffer
	for rank := 1; rank <= fakes.cfg.Ranked; rank++ {
		if domain := taken[rank]; domain != "" {
			fmt.Fprintf(&lines, "%d,%s\r\n", rank, domain)
			delete(taken, rank)
		} else {
			fmt.Fprintf(&lines, "%d,zz-site-%d.net\r\n", rank, rank)
		}
	}
	for rank, domain := range taken { // for lists that are shorter than real ones
		fmt.Fprintf(&lines, "%d,%s\r\n", rank, domain)
	}
	if _, err := lines.WriteTo(list); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	fakes.lists[date] = packed.Bytes()
	return fakes.lists[date], nil
}
