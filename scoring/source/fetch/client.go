package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/semaphore"
)

// Product is the name of the client in the User-Agent and in robots.txt.
const Product = "companyscore"

// Config configures a Client.
type Config struct {
	// Contact is an e-mail address, a URL, or both separated by ";". Providers can reach the
	// operator there. It is part of the User-Agent, and required.
	Contact string
	// Resolvers are DNS servers, IP:port. Empty means two public ones. Overrides replaces them.
	Resolvers []string
	// Tokens are bearer tokens by the name in Endpoint.Token.
	Tokens map[string]string
	// Redis stores the quotas that all workers share. nil: each process keeps its own.
	Redis goredis.UniversalClient
	// Overrides sends all connections to fakes; nil uses the real network.
	Overrides *Overrides
	// Never lists domains, addresses and address ranges that the client never connects to: those
	// of companies that opted out, and the service's own.
	Never []string
	// Now is the clock of the caches and of verified certificates; nil means time.Now. Waits use
	// the real clock.
	Now func() time.Time
	// Wire stands between the client and the network; nil is the network alone.
	Wire Wire
	// Registry registers the metrics of the client; nil disables them.
	Registry prometheus.Registerer
	// Logger logs failures of shared quotas; nil disables it.
	Logger *slog.Logger
}

// Client is the network client of the sources. It is safe for concurrent use and needs no Close.
type Client struct {
	cfg          Config
	wire         Wire
	userAgent    string
	dialer       *dialer
	resolver     *resolver
	limits       *limits
	breakers     *lru[string, *breaker]
	failures     int                 // consecutive ones that open a circuit breaker
	slowness     time.Duration       // multiplies the time limits of policies; 1 without overrides
	bases        map[string]*url.URL // of the enabled endpoints, by name
	known        http.RoundTripper
	untrusted    http.RoundTripper
	roots        *x509.CertPool // nil: the system's
	answers      *lru[string, *cachedAnswer]
	pages        *lru[string, *cachedPage]
	inFlight     inFlight
	certificates *lru[string, cachedCertificate]
	metrics      *metrics
}

// Sizes of the caches of answers and of pages.
const (
	answersMaxBytes = 32 << 20
	pagesMaxBytes   = 32 << 20
)

// New returns a client, or all errors of the configuration.
func New(cfg Config) (*Client, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Wire == nil {
		cfg.Wire = direct{}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var faults []error
	faults = append(faults, CheckContact(cfg.Contact))
	g, err := newGuard(cfg.Never)
	faults = append(faults, err)
	resolvers, scale, slowness := cfg.Resolvers, 1.0, 1
	if len(resolvers) == 0 {
		resolvers = publicResolvers
	}
	c := &Client{cfg: cfg, wire: cfg.Wire, metrics: newMetrics(cfg.Registry), bases: make(map[string]*url.URL), failures: failuresMax}
	var overrides *overrideAddresses
	if r := cfg.Overrides; r != nil {
		overrides, err = r.addresses()
		faults = append(faults, err)
		if r.CA != "" {
			c.roots, err = readRoots(r.CA)
			faults = append(faults, err)
		}
		resolvers, scale, slowness = r.Resolvers, r.Scale, max(r.Slowness, 1)
		c.failures = max(c.failures, r.Failures)
	}
	for _, e := range Endpoints {
		if cfg.Overrides != nil && cfg.Overrides.Endpoints[e.Name] == "" {
			continue
		}
		if c.bases[e.Name], err = url.Parse(e.Base); err != nil {
			faults = append(faults, fmt.Errorf("endpoint %s: %w", e.Name, err))
		}
	}
	for _, server := range resolvers {
		if _, err := netip.ParseAddrPort(server); err != nil {
			faults = append(faults, fmt.Errorf("resolver %q: write an IP address and a port, such as 192.0.2.1:53", server))
		}
	}
	if err := errors.Join(faults...); err != nil {
		return nil, fmt.Errorf("configure sources: %w", err)
	}
	c.userAgent = userAgent(cfg.Contact)
	c.limits = newLimits(cfg.Redis, scale, cfg.Logger)
	c.slowness = time.Duration(slowness)
	c.resolver = &resolver{servers: resolvers, policy: c.policy("dns"), limits: c.limits, wire: cfg.Wire, now: cfg.Now,
		answers: newLRU[question, answer](dnsAnswersMax)}
	c.dialer = &dialer{resolver: c.resolver, guard: g, overrides: overrides, slots: newLRU[netip.Addr, *semaphore.Weighted](hostsMax)}
	c.breakers = newLRU[string, *breaker](hostsMax)
	c.known = transport(c.dialer.known, c.roots, true, c.slowness)
	c.untrusted = transport(c.dialer.untrusted, c.roots, false, c.slowness)
	c.answers = newLRU[string, *cachedAnswer](answersMaxBytes)
	c.pages = newLRU[string, *cachedPage](pagesMaxBytes)
	c.certificates = newLRU[string, cachedCertificate](hostsMax)
	c.inFlight.ended = make(map[string]chan struct{})
	return c, nil
}

var (
	emailPattern   = regexp.MustCompile(`^[^\s@;:/]+@[^\s@;:/]+\.[^\s@;:/]+$`)
	addressPattern = regexp.MustCompile(`^https?://[^\s;]+\.[^\s;]+$`)
)

// CheckContact returns an error unless contact is an e-mail address, a URL, or both.
func CheckContact(contact string) error {
	if contact == "" {
		return errors.New("a contact is required: give with --contact the e-mail address or the URL at which the operator can be reached")
	}
	for part := range strings.SplitSeq(contact, ";") {
		part = strings.TrimSpace(part)
		if !emailPattern.MatchString(part) && !addressPattern.MatchString(part) || strings.ContainsAny(part, "()<>\"\\") {
			return fmt.Errorf("contact %q: give an e-mail address, or a URL, or both separated by a semicolon", contact)
		}
	}
	return nil
}

// userAgent returns the product, its version and the contact.
func userAgent(contact string) string {
	version := "1"
	if info, ok := debug.ReadBuildInfo(); ok && strings.HasPrefix(info.Main.Version, "v") {
		version = info.Main.Version[1:]
	}
	return fmt.Sprintf("%s/%s (+%s)", Product, version, contact)
}

func readRoots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the overriding CA: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the overriding CA: %s has no PEM certificate", path)
	}
	return roots, nil
}

// policy returns the policy of a source with the time limits of this client.
func (c *Client) policy(source string) Policy {
	p := PolicyOf(source)
	p.Connect, p.Total = p.Connect*c.slowness, p.Total*c.slowness
	return p
}

// call returns the call that a request describes.
func (c *Client) call(req Request) (*call, error) {
	made := &call{policy: c.policy(req.Source), header: make(http.Header)}
	made.header.Set("Accept", "application/json")
	if req.Accept != "" {
		made.header.Set("Accept", req.Accept)
	}
	if req.BodyMax > 0 {
		made.policy.BodyMax = min(made.policy.BodyMax, req.BodyMax)
	}
	if req.TTL != 0 {
		made.policy.TTL = req.TTL
	}
	if req.Endpoint == "" {
		u, err := url.Parse(req.URL)
		if err == nil {
			u, err = c.dialer.guard.url(u)
		}
		if err == nil && u.Scheme != "https" && !req.Plain {
			err = errors.New("the URL is not https")
		}
		if err != nil {
			return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("%s: %w", req.Source, err)}
		}
		made.url, made.quota = u, req.Source
		return made, nil
	}
	for i := range Endpoints {
		e := &Endpoints[i]
		if e.Name != req.Endpoint {
			continue
		}
		text := e.Base + req.Path
		if len(req.Query) > 0 {
			text += "?" + req.Query.Encode()
		}
		u, err := url.Parse(text)
		if err != nil || "https://"+u.Host != e.Base || u.User != nil {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("%s: the path %q is not valid in a URL", req.Source, req.Path)}
		}
		made.endpoint, made.url, made.quota = e, u, e.Quota
		if e.TokenQuota != "" && c.cfg.Tokens[e.Token] != "" {
			made.quota = e.TokenQuota
		}
		return made, nil
	}
	panic("fetch: no endpoint " + req.Endpoint)
}

// Now returns the time of the clock of the client.
func (c *Client) Now() time.Time { return c.cfg.Now() }

// HasToken reports whether a token is configured for an endpoint.
func (c *Client) HasToken(endpoint string) bool {
	for _, e := range Endpoints {
		if e.Name == endpoint {
			return e.Token != "" && c.cfg.Tokens[e.Token] != ""
		}
	}
	return false
}
