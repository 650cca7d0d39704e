// Package fetch is how sources reach the network: one client that holds the
// limits and manners each provider is owed, and the guard against hosts that a
// stranger chose.
//
// A test gives New a Rehearsal whose Endpoints lead to its own servers on
// loopback; everything else about the client is then as in earnest.
//
// There are four ways out, and no other:
//
//   - Get asks a known server (an Endpoint) or a URL that a provider gave us, and
//     keeps what was made of the answer;
//   - Visit opens the site of a scored company and reads its pages under robots.txt;
//   - Handshake looks at the certificate of a host;
//   - Lookup asks the configured resolvers.
package fetch

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/miekg/dns"
)

// Request is one question to a known server, or to a server whose URL a provider
// gave us.
type Request struct {
	// Source is the key of the source that asks; its policy holds.
	Source string
	// Endpoint is the name of the server, of Endpoints. Path, beginning with a
	// slash and already escaped where needed, and Query are appended to its base.
	Endpoint string
	Path     string
	Query    url.Values
	// URL is given instead of Endpoint for a server that is not known beforehand,
	// such as the registry that the list of RDAP servers names. It must be https,
	// the host passes the guard, and the quota named after the source holds.
	URL string
	// Accept is the Accept header, application/json when empty.
	Accept string
	// Types are the media types that the answer may have. When empty these are
	// application/json and everything that ends in +json. "*" allows any.
	Types []string
	// BodyMax lowers the policy's bound of the answer when it is not 0.
	BodyMax int64
	// TTL replaces the policy's when it is not 0; a negative one keeps nothing.
	TTL time.Duration
}

// Response is an answer with status 2xx.
type Response struct {
	Status int
	Header http.Header
	// URL is where the answer came from, after redirects.
	URL *url.URL
	// Body is decompressed, and bounded by the policy: reading beyond the bound
	// fails with CodeTooLarge. It ends with the request's deadline.
	Body io.Reader
}

// Get asks and returns what parse makes of the answer. Parse reads the body as a
// stream, and need not read all of it; it may be called again after a retry. An
// error of parse is a CodeParse failure unless it has a code of its own.
//
// What parse returned is kept for the policy's TTL, encoded as JSON: it must
// survive that, so its fields are exported and it is small. An answer of "there
// is no such thing" (IsNotFound) is kept 6 hours, another failure 10 minutes.
// Equal requests under way at the same time are one. After the TTL the provider
// is asked whether anything changed, if it gave an ETag or a Last-Modified.
//
// The errors are *Error. The wait for the source's turn counts: when it would
// outlast the deadline of ctx, Get fails at once with CodeRateLimited.
func Get[T any](ctx context.Context, c *Client, req Request, parse func(*Response) (T, error)) (T, error) {
	return get(ctx, c, req, parse)
}

// PageKind says what kind of page is asked for: which media types are accepted
// and how large it may be.
type PageKind int

// The kinds of pages.
const (
	HTML PageKind = iota + 1 // text/html, application/xhtml+xml; 2 MiB
	Text                     // text/plain; 32 KiB
	Feed                     // XML, RSS, Atom, also as a gzipped file; 4 MiB
	JSON                     // application/json, application/ld+json; 2 MiB
)

// Page is a page of a scored company's site, whatever its status.
type Page struct {
	Status int
	Header http.Header
	// URL is where the page came from, after redirects.
	URL *url.URL
	// Type is the media type without parameters.
	Type string
	// Body is the page decompressed; HTML and text are UTF-8 with invalid bytes
	// replaced, XML and JSON are as they came. It is empty for a status other than
	// 200, and must not be changed: the page may be one that was kept.
	Body []byte
}

// Certificate is what a TLS handshake shows. It is never used to trust content.
type Certificate struct {
	// Organization names the owner in an OV or EV certificate; it is empty otherwise.
	Organization string
	Issuer       string
	NotAfter     time.Time
	// Version is the TLS version, such as tls.VersionTLS13.
	Version uint16
	// Fault says why the chain would not be trusted, empty when it would.
	Fault string
}

// Visit opens the site of a host for one run: it reads robots.txt, and waits
// where it must. Not more than 14 pages, robots.txt among them, and 12 MiB are
// read through one Site, one page a second and two at once. https is asked first,
// and http when nothing listens there. The error has CodeRobots when robots.txt
// cannot be had and so forbids everything, CodeAddress when the host leads to
// where nobody may be sent, CodeDNS when it has no address.
func (c *Client) Visit(ctx context.Context, host string) (*Site, error) { return c.visit(ctx, host) }

// Get reads one page, given by an absolute URL or a path, of a host under the
// site's registrable domain. Redirects are followed by the rules: at most 5, never
// from https to http, to another registrable domain only once for the whole visit
// and under that host's robots.txt. A status other than 200 is no error, except
// that 429 and 503 end the visit: later calls fail with CodeHTTP. A page that
// robots.txt forbids fails with CodeRobots, one whose turn would come after the
// deadline or beyond the visit's bounds with CodeRateLimited. A page is not read
// again within 15 minutes, and later only if it has changed. Get may be called
// from several goroutines.
func (s *Site) Get(ctx context.Context, ref string, kind PageKind) (*Page, error) {
	return s.get(ctx, ref, kind)
}

// Handshake makes one TLS handshake with a host on port 443 and returns what its
// certificate says. A certificate that would not be trusted is no error.
func (c *Client) Handshake(ctx context.Context, host string) (Certificate, error) {
	return c.handshake(ctx, host)
}

// Lookup asks the resolvers for the records of a name: a refusal or a timeout of
// one is asked of the other, a truncated answer again over TCP. Answers are kept
// for their TTL, at least 5 minutes and at most 6 hours. The message may be
// shared with other callers and must not be changed. NXDOMAIN and an empty
// answer are messages, not errors; the error has CodeDNS or CodeTimeout.
func (c *Client) Lookup(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	return c.resolver.lookup(ctx, name, qtype)
}
