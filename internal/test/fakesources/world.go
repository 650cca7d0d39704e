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

// Config says what a stand-in plays.
type Config struct {
	// Companies is how many there are, at most 225.
	Companies int
	// Seed decides what they are and what fails. The same seed makes the same.
	Seed uint64
	// Latency is what every answer takes; those of name servers take a quarter.
	Latency time.Duration
	// Faults is the share of the pairs of company and source that fail, 0 to 1.
	Faults float64
	// Hangs says whether some faults are servers that never answer. A run then takes
	// as long as the deadline of its slowest source.
	Hangs bool
	// Ranked is the length of the lists of traffic ranks.
	Ranked int
	// Dir takes the files that a client of the stand-in needs.
	Dir string
	// Scale multiplies the client's limits.
	Scale float64
}

// World is a stand-in at work. It is safe for concurrent use.
type World struct {
	Companies []*Company
	cfg       Config
	now       time.Time
	servers   *servers
	done      chan struct{}

	byDomain, byName, byQID, byCIK, byLEI, byLabel map[string]*Company
	faults                                         map[string]map[string]Kind // planned, by domain and source

	mu    sync.Mutex
	hit   map[string]map[string]Kind // injected, likewise
	spans map[string]*span           // by domain
	lists map[string][]byte          // of ranks, by date
}

// span is the time over which a company was asked about.
type span struct{ first, last time.Time }

// registry is the host of the registry that knows all companies.
const registry = "rdap.zz-registry.com"

// Start begins to play.
func Start(cfg Config) (*World, error) {
	if cfg.Companies < 1 || cfg.Companies > len(firstWords)*len(secondWords) {
		return nil, fmt.Errorf("%d companies: there are between 1 and %d", cfg.Companies, len(firstWords)*len(secondWords))
	}
	w := &World{
		cfg: cfg, now: time.Now().UTC().Truncate(time.Second), done: make(chan struct{}),
		byDomain: make(map[string]*Company), byName: make(map[string]*Company), byQID: make(map[string]*Company), byCIK: make(map[string]*Company),
		byLEI: make(map[string]*Company), byLabel: make(map[string]*Company), faults: make(map[string]map[string]Kind),
		hit: make(map[string]map[string]Kind), spans: make(map[string]*span), lists: make(map[string][]byte),
	}
	for number := range cfg.Companies {
		c := invent(cfg.Seed, number, w.now)
		w.Companies = append(w.Companies, c)
		for _, index := range []struct {
			of  map[string]*Company
			key string
		}{{w.byDomain, c.Domain}, {w.byName, c.Name}, {w.byQID, c.QID}, {w.byCIK, c.CIK}, {w.byLEI, c.LEI}, {w.byLabel, c.Label}} {
			index.of[index.key] = c
		}
		w.faults[c.Domain] = plan(rand.New(rand.NewPCG(^cfg.Seed, uint64(number))), cfg.Faults, cfg.Hangs)
		w.hit[c.Domain], w.spans[c.Domain] = make(map[string]Kind), new(span)
	}
	var err error
	w.servers, err = listen(cfg.Dir, w.known, http.HandlerFunc(w.site), dns.HandlerFunc(w.zone), w.owner, w.shaken)
	if err != nil {
		return nil, err
	}
	w.servers.overrides.Scale, w.servers.overrides.Failures = cfg.Scale, 1_000_000
	return w, nil
}

// Overrides is what points a client at the stand-in.
func (w *World) Overrides() fetch.Overrides { return w.servers.overrides }

// Close ends the stand-in.
func (w *World) Close() error {
	close(w.done)
	return w.servers.close()
}

// InFlight is the greatest number of companies that were being asked about at one
// time: between the first question and the last answer about each.
func (w *World) InFlight() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	most := 0
	for _, at := range w.spans {
		n := 0
		for _, other := range w.spans {
			if !at.first.IsZero() && !other.first.After(at.first) && other.last.After(at.first) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// asked notes that a company is being asked about, until done is called.
func (w *World) asked(c *Company) (done func()) {
	note := func(first bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		s := w.spans[c.Domain]
		if now := time.Now(); first && s.first.IsZero() {
			s.first = now
		} else {
			s.last = now
		}
	}
	note(true)
	return func() { note(false) }
}

// fault returns how a source fails for a company, "" when it does not, and notes
// that it did.
func (w *World) fault(c *Company, source string) Kind {
	kind := w.faults[c.Domain][source]
	if kind != "" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hit[c.Domain][source] = kind
	}
	return kind
}

// wait lets a share of the latency pass. It is false when who asked has gone.
func (w *World) wait(gone <-chan struct{}, latency time.Duration) bool {
	timer := time.NewTimer(latency)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-gone:
	case <-w.done:
	}
	return false
}

// reply is an answer over HTTP.
type reply struct {
	status int // 0 is 200
	kind   string
	body   []byte
	header map[string]string
}

var nothing = reply{status: http.StatusNotFound, kind: "application/json", body: []byte(`{"message":"Not Found"}`)}

// give sends a reply about a company from a source, late, or fails instead. With
// no company it never fails.
func (w *World) give(rw http.ResponseWriter, r *http.Request, c *Company, source string, make func() reply) {
	var kind Kind
	if c != nil {
		defer w.asked(c)()
		kind = w.fault(c, source)
	}
	// A connection is refused at once. On one that was used before, a client would
	// ask again, and wait for each of those that it kept.
	if kind == Refused || !w.wait(r.Context().Done(), w.cfg.Latency) {
		panic(http.ErrAbortHandler)
	}
	header := rw.Header()
	switch kind {
	case Hang:
		select {
		case <-r.Context().Done():
		case <-w.done:
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
	answer := make()
	header.Set("Content-Type", answer.kind)
	for name, value := range answer.header {
		header.Set(name, value)
	}
	switch kind {
	case Malformed:
		if source == "web" {
			header.Set("Content-Type", "application/octet-stream")
		}
		_, _ = rw.Write([]byte(`{"oops": [`)) // who asked may have gone, here as below
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

// owner is the organisation in a host's certificate.
func (w *World) owner(host string) string {
	if c := w.byDomain[host]; c != nil && c.OV {
		return c.Name + " Inc."
	}
	return ""
}

// shaken answers handshakes that look at a certificate.
func (w *World) shaken(host string) error {
	c := w.byDomain[host]
	if c == nil {
		return nil
	}
	defer w.asked(c)()
	kind := w.fault(c, "tls")
	w.wait(nil, w.cfg.Latency)
	switch kind {
	case Hang:
		w.wait(nil, fetch.PolicyOf("tls").Total+time.Second)
		return errors.New("hung up")
	case Refused:
		return errors.New("refused")
	}
	return nil
}

// zone answers for all names.
func (w *World) zone(rw dns.ResponseWriter, query *dns.Msg) {
	if len(query.Question) != 1 {
		return
	}
	q := query.Question[0]
	name := strings.ToLower(strings.TrimSuffix(q.Name, "."))
	c := w.companyOf(name)
	answer := new(dns.Msg)
	answer.SetReply(query)
	send := func() { _ = rw.WriteMsg(answer) } // who asked may have gone
	if c == nil {
		if name == registry && q.Qtype == dns.TypeA {
			answer.Answer = records(name + ". 300 IN A " + address)
		} else if name != registry {
			answer.Rcode = dns.RcodeNameError
		}
		send()
		return
	}
	defer w.asked(c)()
	w.wait(nil, w.cfg.Latency/4)
	if q.Qtype != dns.TypeA && q.Qtype != dns.TypeAAAA {
		switch w.fault(c, "dns") {
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
			_, _ = rw.Write([]byte{1, 2, 3}) // likewise
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

// companyOf is the company that a name belongs to, nil if none.
func (w *World) companyOf(name string) *Company {
	for {
		if c := w.byDomain[name]; c != nil {
			return c
		}
		_, rest, ok := strings.Cut(name, ".")
		if !ok {
			return nil
		}
		name = rest
	}
}

// ranks is the list of a date, as a zip archive. Only dates of which the age in
// days is asked for have one: about 1, 31 and 91 days.
func (w *World) ranks(date string) ([]byte, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if list := w.lists[date]; list != nil {
		return list, nil
	}
	at, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return nil, err
	}
	which := 0
	switch age := w.now.Sub(at); {
	case age > 80*day:
		which = 2
	case age > 20*day:
		which = 1
	}
	taken := make(map[int]string)
	for _, c := range w.Companies {
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
	for rank := 1; rank <= w.cfg.Ranked; rank++ {
		if domain := taken[rank]; domain != "" {
			fmt.Fprintf(&lines, "%d,%s\r\n", rank, domain)
			delete(taken, rank)
		} else {
			fmt.Fprintf(&lines, "%d,zz-site-%d.net\r\n", rank, rank)
		}
	}
	for rank, domain := range taken { // those of a list that is shorter than real ones
		fmt.Fprintf(&lines, "%d,%s\r\n", rank, domain)
	}
	if _, err := lines.WriteTo(list); err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	w.lists[date] = packed.Bytes()
	return w.lists[date], nil
}
