package fetch

import (
	"context"
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

// Product is the name under which the client is known to servers and in robots.txt.
const Product = "companyscore"

// Config says how the client reaches the network.
type Config struct {
	// Contact is how the operator can be reached: an e-mail address, or a URL, or
	// both separated by "; ". It is part of the User-Agent, and required.
	Contact string
	// Resolvers are the DNS servers to ask, as IP:port; empty means two public
	// ones. Overrides replaces them.
	Resolvers []string
	// Tokens are bearer tokens by the name that Endpoint.Token gives.
	Tokens map[string]string
	// Redis keeps the limits that all workers share; nil when there is one worker only.
	Redis goredis.UniversalClient
	// Overrides sends everything to servers of its own; nil for the real network.
	Overrides *Overrides
	// Never lists domains, addresses and address ranges that are not asked: those of
	// companies that do not want to be, and the service's own.
	Never []string
	// Now is the clock of what is kept; nil means time.Now. Waits follow the real one.
	Now func() time.Time
	// Registry publishes the metrics of the client; nil publishes none.
	Registry prometheus.Registerer
	// Logger is told of limits that cannot be shared; nil means nobody is.
	Logger *slog.Logger
}

// Client is safe for concurrent use. It needs no closing.
type Client struct {
	cfg          Config
	userAgent    string
	dialer       *dialer
	resolver     *resolver
	limits       *limits
	breakers     *lru[string, *breaker]
	failures     int                 // in a row, after which a server is left alone
	bases        map[string]*url.URL // of the endpoints that are on, by name
	known        http.RoundTripper
	untrusted    http.RoundTripper
	roots        *x509.CertPool // nil: those of the system
	answers      *lru[string, *cachedAnswer]
	pages        *lru[string, *cachedPage]
	inFlight     inFlight
	certificates *lru[string, cachedCertificate]
	metrics      *metrics
}

// The memory of kept answers and of kept pages is bounded.
const (
	answersMaxBytes = 32 << 20
	pagesMaxBytes   = 32 << 20
)

// New returns a client, or says all that is wrong with the configuration.
func New(cfg Config) (*Client, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	var faults []error
	faults = append(faults, CheckContact(cfg.Contact))
	g, err := newGuard(cfg.Never)
	faults = append(faults, err)
	resolvers, scale := cfg.Resolvers, 1.0
	if len(resolvers) == 0 {
		resolvers = publicResolvers
	}
	c := &Client{cfg: cfg, metrics: newMetrics(cfg.Registry), bases: make(map[string]*url.URL), failures: failuresMax}
	var overrides *overrideAddresses
	if r := cfg.Overrides; r != nil {
		overrides, err = r.addresses()
		faults = append(faults, err)
		if r.CA != "" {
			c.roots, err = readRoots(r.CA)
			faults = append(faults, err)
		}
		resolvers, scale = r.Resolvers, r.Scale
		c.failures = max(c.failures, r.Failures)
	}
	for _, e := range Endpoints {
		base := e.Base
		if cfg.Overrides != nil {
			base = cfg.Overrides.Endpoints[e.Name]
		}
		if base == "" {
			continue
		}
		if c.bases[e.Name], err = url.Parse(strings.TrimSuffix(base, "/")); err != nil {
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
	c.resolver = &resolver{servers: resolvers, limits: c.limits, now: cfg.Now, answers: newLRU[question, answer](dnsAnswersMax)}
	c.dialer = &dialer{resolver: c.resolver, guard: g, overrides: overrides, slots: newLRU[netip.Addr, *semaphore.Weighted](hostsMax)}
	c.breakers = newLRU[string, *breaker](hostsMax)
	c.known = transport(c.dialer.known, c.roots, true)
	c.untrusted = transport(c.dialer.untrusted, c.roots, false)
	c.answers = newLRU[string, *cachedAnswer](answersMaxBytes)
	c.pages = newLRU[string, *cachedPage](pagesMaxBytes)
	c.certificates = newLRU[string, cachedCertificate](hostsMax)
	c.inFlight.ended = make(map[string]chan struct{})
	return c, nil
}

var contactPattern = regexp.MustCompile(`^[^\s@;]+@[^\s@;]+\.[^\s@;]+$|^https?://[^\s;]+\.[^\s;]+$`)

// CheckContact returns an error unless contact says how to reach the operator.
func CheckContact(contact string) error {
	if contact == "" {
		return errors.New("a contact is required: give with --contact the e-mail address or the URL at which the operator can be reached")
	}
	for part := range strings.SplitSeq(contact, ";") {
		if !contactPattern.MatchString(strings.TrimSpace(part)) || strings.ContainsAny(part, "()<>\"\\") {
			return fmt.Errorf("contact %q: give an e-mail address, or a URL, or both separated by a semicolon", contact)
		}
	}
	return nil
}

// userAgent names the product, its version and the operator. It never looks like
// a browser's.
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

// call makes out a request in full.
func (c *Client) call(req Request) (*call, error) {
	made := &call{policy: PolicyOf(req.Source), header: make(http.Header)}
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
		if err == nil && u.Scheme != "https" {
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
		base := c.bases[e.Name]
		if base == nil {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("the overrides name no server for %s", e.Name)}
		}
		text := base.String() + req.Path
		if len(req.Query) > 0 {
			text += "?" + req.Query.Encode()
		}
		u, err := url.Parse(text)
		if err != nil || u.Host != base.Host || u.User != nil {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("%s: the path %q does not make a URL", req.Source, req.Path)}
		}
		made.endpoint, made.url, made.quota = e, u, e.Quota
		if e.TokenQuota != "" && c.cfg.Tokens[e.Token] != "" {
			made.quota = e.TokenQuota
		}
		return made, nil
	}
	panic("fetch: no endpoint " + req.Endpoint)
}

// HasToken reports whether there is a token for an endpoint.
func (c *Client) HasToken(endpoint string) bool {
	for _, e := range Endpoints {
		if e.Name == endpoint {
			return e.Token != "" && c.cfg.Tokens[e.Token] != ""
		}
	}
	return false
}

// exchange makes a call as often as its policy and the deadline allow.
func (c *Client) exchange(ctx context.Context, call *call, handle func(*http.Response) error) error {
	for tries := 0; ; tries++ {
		err := c.send(ctx, call, handle)
		if err == nil || tries >= call.policy.Retries || !retryable(err) || !waitRetry(ctx, tries, err) {
			return err
		}
	}
}
