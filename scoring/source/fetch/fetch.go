// Package fetch is the network client of the data sources. It enforces the limits of each
// provider, and guards against hosts that come from untrusted input.
//
// A test sets Config.Overrides to send all connections to fakes on loopback. The rest of the
// client is unchanged.
//
// The client makes four kinds of requests:
//
//   - Get sends a request to a known server (an Endpoint) or to a URL that a provider
//     returned, and caches the parsed answer;
//   - Visit opens the site of a scored company and reads its pages under robots.txt;
//   - Handshake reads the certificate of a host;
//   - Lookup sends a query to the configured resolvers.
package fetch

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/miekg/dns"
)

// Request is one request to a known server, or to a URL that a provider returned.
type Request struct {
	// Source is the key of the source that sends the request. Its policy applies.
	Source string
	// Endpoint is the name of a server in Endpoints. Path and Query are appended to its base.
	// Path begins with a slash and is already escaped.
	Endpoint string
	Path     string
	Query    url.Values
	// URL is set instead of Endpoint for a server that is not in Endpoints, for example the
	// registry of an RDAP bootstrap file. It must be https, its host must pass the guard, and the
	// quota with the name of the source applies.
	URL string
	// Plain allows http in URL. Answers over http can be read and forged on the way.
	Plain bool
	// Accept is the Accept header, application/json if empty.
	Accept string
	// Types are the accepted media types of the answer. If empty: application/json and every type
	// that ends in +json. "*" accepts any type.
	Types []string
	// BodyMax lowers the policy's bound of the body, in bytes, unless it is 0.
	BodyMax int64
	// TTL replaces the policy's TTL unless it is 0. A negative value disables the cache.
	TTL time.Duration
}

// Response is an answer with status 2xx.
type Response struct {
	Status int
	Header http.Header
	// URL is the URL of the answer after redirects.
	URL *url.URL
	// Body is decompressed. A read beyond the policy's bound fails with CodeTooLarge. It cannot
	// be read after the deadline of the request.
	Body io.Reader
}

// Get sends a request and returns what parse makes of the answer. parse reads the body as a
// stream and need not read all of it. It can be called again after a retry. An error of parse
// becomes CodeParse unless it has a code.
//
// The result is cached as JSON for the policy's TTL, so its type needs exported fields and should
// be small. A "not found" answer (IsNotFound) is cached for 6 hours, any other failure of the
// provider for 10 minutes. Equal concurrent requests share one answer. After the TTL the client
// sends a conditional request if the answer had an ETag or a Last-Modified header.
//
// Errors are *Error. If the wait for a turn in the source's quota would outlast the deadline of
// ctx, Get fails at once with CodeRateLimited.
func Get[T any](ctx context.Context, c *Client, req Request, parse func(*Response) (T, error)) (T, error) {
	return get(ctx, c, req, parse)
}

// PageKind selects the accepted media types and the size limit of a page.
type PageKind int

// The kinds of pages.
const (
	HTML    PageKind = iota + 1 // text/html, application/xhtml+xml; 2 MiB
	Text                        // text/plain; 32 KiB
	Feed                        // XML, RSS, Atom, also as a gzipped file; 4 MiB
	JSON                        // application/json, application/ld+json; 2 MiB
	Sitemap                     // as Feed, and text/plain; 4 MiB
)

// Page is a page of a scored company's site, with any status.
type Page struct {
	Status int
	Header http.Header
	// URL is the URL of the page after redirects.
	URL *url.URL
	// Type is the media type without parameters.
	Type string
	// Body is the decompressed page. HTML and text are valid UTF-8: invalid bytes are replaced.
	// XML and JSON are unchanged. It is empty unless the status is 200. Callers must not change
	// it: it can be shared with the cache.
	Body []byte
}

// Certificate is the result of a TLS handshake. It is never used to trust content.
type Certificate struct {
	// Organization is the owner in an OV or EV certificate, else empty.
	Organization string
	Issuer       string
	NotAfter     time.Time
	// Version is the TLS version, such as tls.VersionTLS13.
	Version uint16
	// Fault is why verification of the chain failed, empty if it succeeded.
	Fault string
}

// Visit opens the site of a host for one run. It reads robots.txt and waits for the host's quota.
// One Site reads at most 14 pages, robots.txt included, and 12 MiB, at one page per second and
// two concurrently. It uses https, and http if the host refuses the connection on port 443. The
// error has CodeRobots if robots.txt cannot be read, CodeAddress if the guard rejects the host,
// CodeDNS if it has no address.
func (c *Client) Visit(ctx context.Context, host string) (*Site, error) { return c.visit(ctx, host) }

// Get reads one page, given by an absolute URL or a path, of a host under the site's registrable
// domain. It follows at most 5 redirects, never from https to http, and to one other registrable
// domain per visit, under the robots.txt of that host. A status other than 200 is not an error,
// except that 429 and 503 end the visit: later calls fail with CodeHTTP. A page that robots.txt
// disallows fails with CodeRobots. A page whose turn would come after the deadline, or beyond the
// bounds of the visit, fails with CodeRateLimited. Pages are cached for 15 minutes, then
// revalidated. Get is safe for concurrent use.
func (s *Site) Get(ctx context.Context, ref string, kind PageKind) (*Page, error) {
	return s.get(ctx, ref, kind)
}

// GetElsewhere reads one page of any public host, as Get does within the site: under the robots.txt
// of that host, and within the bounds of the visit.
func (s *Site) GetElsewhere(ctx context.Context, ref string, kind PageKind) (*Page, error) {
	return s.getElsewhere(ctx, ref, kind)
}

// Handshake makes one TLS handshake with a host on port 443 and returns its certificate. A
// certificate that fails verification is not an error.
func (c *Client) Handshake(ctx context.Context, host string) (Certificate, error) {
	return c.handshake(ctx, host)
}

// Lookup returns the DNS records of a name. It tries each resolver until one answers, and repeats
// a truncated answer over TCP. Answers are cached for their TTL, at least 5 minutes and at most 6
// hours. Callers must not change the message: it can be shared. NXDOMAIN and an empty answer are
// not errors. The error has CodeDNS or CodeTimeout, or CodeRateLimited if the wait would outlast
// the deadline.
func (c *Client) Lookup(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	return c.resolver.lookup(withSource(ctx, "dns"), name, qtype)
}
