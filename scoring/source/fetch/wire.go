package fetch

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// Wire stands between a client and the network. Every exchange of the client passes through it, so
// a recording can keep what passes and a replay can answer in place of the network. Its methods
// are safe for concurrent use. next makes the exchange on the network.
type Wire interface {
	// Turn waits until the request of x may be sent. It fails if the limits of the provider or its
	// circuit breaker do not admit the request before the deadline. The caller calls release after
	// the answer was read.
	Turn(x Exchange, next func() (release func(), err error)) (release func(), err error)
	// Pause waits before a retry. It returns false if the deadline of ctx comes first.
	Pause(ctx context.Context, d time.Duration) bool
	// HTTP sends one request and returns the answer, without following a redirect.
	HTTP(x Exchange, req *http.Request, next func() (*http.Response, error)) (*http.Response, error)
	// DNS sends one query to one resolver.
	DNS(x Exchange, query *dns.Msg, next func() (*dns.Msg, error)) (*dns.Msg, error)
	// TLS makes one handshake.
	TLS(x Exchange, next func() (Handshake, error)) (Handshake, error)
}

// Exchange identifies an exchange. Equal requests of one source have equal exchanges, but for the
// context.
type Exchange struct {
	// Source is the key of the source that asks. A source also asks for the addresses of hosts.
	Source string
	// Request is the request in one line: "GET https://example.com/ Accept: text/html",
	// "example.com. MX udp 1" with the number of the resolver, or "TLS example.com".
	Request string
	// Run is the context that the source gave to the client. It ends at the deadline of the source.
	Run context.Context
}

// Handshake is what a server showed in a TLS handshake.
type Handshake struct {
	// Version is the TLS version, such as tls.VersionTLS13.
	Version uint16
	// Chain has the certificates as the server sent them, the leaf first. It is never empty.
	Chain []*x509.Certificate
	// Fault is why verification of the chain failed, empty if it succeeded.
	Fault string
}

// direct is the wire without a recording.
type direct struct{}

func (direct) Turn(_ Exchange, next func() (func(), error)) (func(), error) { return next() }

func (direct) HTTP(_ Exchange, _ *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
	return next()
}

func (direct) DNS(_ Exchange, _ *dns.Msg, next func() (*dns.Msg, error)) (*dns.Msg, error) {
	return next()
}

func (direct) TLS(_ Exchange, next func() (Handshake, error)) (Handshake, error) { return next() }

func (direct) Pause(ctx context.Context, d time.Duration) bool { return Pause(ctx, d) }

// Pause waits for d. It returns false at once if the deadline of ctx comes first, and false if ctx
// ends.
func Pause(ctx context.Context, d time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type askedKey struct{}

// asked is who asks, and the context that the client was called with.
type asked struct {
	source string
	run    context.Context
}

// withSource adds to ctx which source asks.
func withSource(ctx context.Context, source string) context.Context {
	return context.WithValue(ctx, askedKey{}, asked{source, ctx})
}

// exchange returns the exchange of a request that is made under ctx.
func exchange(ctx context.Context, request string) Exchange {
	by, _ := ctx.Value(askedKey{}).(asked)
	if by.run == nil {
		by.run = ctx
	}
	return Exchange{Source: by.source, Request: request, Run: by.run}
}

// sentHeaders are the headers that change an answer.
var sentHeaders = []string{"Accept", "If-None-Match", "If-Modified-Since"}

// getExchange returns the exchange of a GET request.
func getExchange(ctx context.Context, u *url.URL, header http.Header) Exchange {
	var b strings.Builder
	b.WriteString("GET " + u.String())
	for _, name := range sentHeaders {
		if value := header.Get(name); value != "" {
			b.WriteString(" " + name + ": " + value)
		}
	}
	return exchange(ctx, b.String())
}

// roundTrip sends one request, to a known server or to any host.
func (c *Client) roundTrip(req *http.Request, known bool) (*http.Response, error) {
	return c.wire.HTTP(getExchange(req.Context(), req.URL, req.Header), req, func() (*http.Response, error) {
		switch {
		case !known:
			return c.untrusted.RoundTrip(req)
		case c.cfg.Overrides == nil:
			return c.known.RoundTrip(req)
		}
		return c.roundTripOverride(req)
	})
}

// roundTripOverride sends a request for a known server to its override. The caller sees the URLs
// of the known server only.
func (c *Client) roundTripOverride(req *http.Request) (*http.Response, error) {
	for _, e := range Endpoints {
		at := c.cfg.Overrides.Endpoints[e.Name]
		if base := c.bases[e.Name]; base == nil || base.Host != req.URL.Host {
			continue
		}
		to, err := url.Parse(strings.TrimSuffix(at, "/") + req.URL.RequestURI())
		if err != nil {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("override of %s: %w", e.Name, err)}
		}
		sent := req.Clone(req.Context())
		sent.URL, sent.Host = to, to.Host
		res, err := c.known.RoundTrip(sent)
		if err != nil {
			return nil, err
		}
		res.Request = req
		if to := res.Header.Get("Location"); to != "" {
			res.Header.Set("Location", c.cfg.Overrides.original(to))
		}
		return res, nil
	}
	return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("%s is not a server of the overrides", req.URL.Host)}
}

// original returns the URL of the known server that a URL of an override replaces. It returns any
// other URL unchanged.
func (r *Overrides) original(location string) string {
	for _, e := range Endpoints {
		at := strings.TrimSuffix(r.Endpoints[e.Name], "/")
		if rest, ok := strings.CutPrefix(location, at); ok && at != "" && (rest == "" || strings.ContainsAny(rest[:1], "/?#")) {
			return e.Base + rest
		}
	}
	return location
}
