package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"companyscore/internal/domainname"
)

const (
	pagesMax     = 14
	siteMaxBytes = 12 << 20
	hopsMax      = 10 // redirects of the whole visit
	pageTTL      = 15 * time.Minute
)

// kindRules are the media types and the size limit, in bytes, of each kind of page.
var kindRules = map[PageKind]struct {
	accept string
	types  []string
	max    int64
}{
	HTML: {"text/html,application/xhtml+xml", []string{"text/html", "application/xhtml+xml"}, 2 * miB},
	Text: {"text/plain", []string{"text/plain"}, 32 * kiB},
	Feed: {"application/xml,text/xml,application/rss+xml,application/atom+xml,application/gzip",
		[]string{"application/xml", "text/xml", "application/rss+xml", "application/atom+xml", "application/gzip", "application/x-gzip"},
		4 * miB},
	Sitemap: {"application/xml,text/xml,text/plain,application/gzip",
		[]string{"application/xml", "text/xml", "text/plain", "application/rss+xml", "application/atom+xml", "application/gzip",
			"application/x-gzip"}, 4 * miB},
	JSON: {"application/json,application/ld+json", []string{"application/json", "application/ld+json"}, 2 * miB},
}

// Site is one visit to the site of a host. It is for one run and needs no Close.
type Site struct {
	client *Client
	policy Policy
	scheme string // of pages that are given by a path
	host   string // the host of Visit

	mu           sync.Mutex
	rules        map[string]*robots // by scheme and host
	pages        int
	hops         int
	bytes        int64
	redirectedTo string // the other registrable domain that a redirect led to
	ended        error  // the reason why the visit is over
}

// Sitemaps returns the first 200 distinct sitemap URLs in the robots.txt of the host.
func (s *Site) Sitemaps() []string { return slices.Clone(s.ownRobots().sitemaps) }

// SitemapCount returns the number of distinct sitemap URLs in the robots.txt of the host.
func (s *Site) SitemapCount() int { return s.ownRobots().sitemapCount }

// ownRobots returns the robots.txt rules of the host.
func (s *Site) ownRobots() *robots {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.rules[s.scheme+"://"+s.host]; r != nil {
		return r
	}
	return new(robots)
}

// RedirectedTo returns the other registrable domain that a redirect led to, or "".
func (s *Site) RedirectedTo() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.redirectedTo
}

func (c *Client) visit(ctx context.Context, host string) (*Site, error) {
	ctx = withSource(ctx, "web")
	host, err := c.dialer.guard.host(host)
	if err != nil {
		return nil, &Error{Code: CodeAddress, Err: err}
	}
	s := &Site{client: c, policy: c.policy("web"), scheme: "https", host: host, rules: make(map[string]*robots)}
	_, err = s.robots(ctx, &url.URL{Scheme: "https", Host: host})
	if errors.Is(err, syscall.ECONNREFUSED) {
		s.scheme = "http"
		_, err = s.robots(ctx, &url.URL{Scheme: "http", Host: host})
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// robots returns the robots.txt rules of the host of u. It reads each once per visit.
func (s *Site) robots(ctx context.Context, u *url.URL) (*robots, error) {
	origin := u.Scheme + "://" + u.Host
	s.mu.Lock()
	known := s.rules[origin]
	s.mu.Unlock()
	if known != nil {
		return known, nil
	}
	page, err := s.load(ctx, &url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/robots.txt"}, nil)
	var e *Error
	switch {
	case err != nil && errors.As(err, &e) && e.Code == CodeHTTP && !isStatus(err, http.StatusTooManyRequests):
		// An unreachable robots.txt disallows everything.
		return nil, &Error{Code: CodeRobots, Status: e.Status, Err: fmt.Errorf("robots.txt of %s cannot be read: %w", u.Host, err)}
	case err != nil:
		return nil, err
	case page.Status/100 == 5:
		return nil, &Error{Code: CodeRobots, Status: page.Status, Err: fmt.Errorf("robots.txt of %s cannot be read: status %d", u.Host,
			page.Status)}
	}
	rules := new(robots)
	if page.Status == http.StatusOK {
		rules = parseRobots(page.Body)
	}
	if rules.delay > 0 {
		s.client.limits.setPace("web", u.Host, rules.delay)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rules[origin] = rules
	return rules, nil
}

func isStatus(err error, status int) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == status
}

func (s *Site) get(ctx context.Context, ref string, kind PageKind) (*Page, error) {
	u, err := s.address(ref)
	if err != nil {
		return nil, err
	}
	if own := domainname.Registrable(s.host); domainname.Registrable(u.Host) != own && domainname.Registrable(u.Host) != s.RedirectedTo() {
		return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("page %q is on another site than %s", ref, own)}
	}
	return s.load(ctx, u, &kind)
}

func (s *Site) getElsewhere(ctx context.Context, ref string, kind PageKind) (*Page, error) {
	u, err := s.address(ref)
	if err != nil {
		return nil, err
	}
	return s.load(ctx, u, &kind)
}

// address returns the URL of a page if its host passes the guard.
func (s *Site) address(ref string) (*url.URL, error) {
	base := &url.URL{Scheme: s.scheme, Host: s.host, Path: "/"}
	u, err := base.Parse(ref)
	if err == nil {
		u, err = s.client.dialer.guard.url(u)
	}
	if err != nil {
		return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("page %q: %w", ref, err)}
	}
	return u, nil
}

// load reads a page and follows its redirects. kind is nil for robots.txt, which robots.txt rules
// do not apply to.
func (s *Site) load(ctx context.Context, u *url.URL, kind *PageKind) (*Page, error) {
	ctx = withSource(ctx, s.policy.Source)
	if err := s.countPage(); err != nil {
		return nil, err
	}
	seen, pauses := []string{u.String()}, newPauses()
	for tries := 0; ; {
		if kind != nil {
			rules, err := s.robots(ctx, u)
			if err != nil {
				return nil, err
			}
			if !rules.allows(u) {
				return nil, &Error{Code: CodeRobots, Err: fmt.Errorf("robots.txt of %s disallows %s", u.Host, u.Path)}
			}
		}
		page, to, err := s.read(ctx, u, kind)
		switch {
		case err != nil && tries < s.policy.Retries && u.Path == "/" && retryable(err) && s.client.waitRetry(ctx, pauses, err):
			tries++
			continue
		case err != nil:
			return nil, err
		case to == "":
			return page, nil
		}
		if u, err = s.checkRedirect(u, to); err != nil {
			return nil, err
		}
		if slices.Contains(seen, u.String()) || len(seen) > redirectsMax {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("redirects of %s form a loop or exceed %d hops", seen[0], redirectsMax)}
		}
		seen = append(seen, u.String())
	}
}

// countPage counts a page against the bounds of the visit.
func (s *Site) countPage() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ended != nil:
		return s.ended
	case s.pages >= pagesMax:
		return &Error{Code: CodeRateLimited, Err: fmt.Errorf("the limit of %d pages of %s is reached", pagesMax, s.host)}
	case s.bytes >= siteMaxBytes:
		return &Error{Code: CodeTooLarge, Err: fmt.Errorf("the size limit is reached: %d bytes of %s", s.bytes, s.host)}
	}
	s.pages++
	return nil
}

// end ends the visit, unless the page at u, which is the cause, is of another site.
func (s *Site) end(u *url.URL, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := domainname.Registrable(u.Host); at == domainname.Registrable(s.host) || at == s.redirectedTo {
		s.ended = cause
	}
}

// checkRedirect returns the target of a redirect if the visit may follow it.
func (s *Site) checkRedirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	if err == nil {
		to, err = s.client.dialer.guard.url(to)
	}
	if err == nil && from.Scheme == "https" && to.Scheme != "https" {
		err = errors.New("it leads away from https")
	}
	if err != nil {
		return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("the redirect of %s is not allowed: %w", from.Host, err)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hops++; s.hops > hopsMax {
		return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("%s redirects more than %d times", s.host, hopsMax)}
	}
	there := domainname.Registrable(to.Host)
	if there != domainname.Registrable(from.Host) && there != domainname.Registrable(s.host) && there != s.redirectedTo {
		if s.redirectedTo != "" {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("%s redirects to a third site, %s", s.host, there)}
		}
		s.redirectedTo = there
	}
	return to, nil
}

// cachedPage is a page that an earlier visit read. It is immutable.
type cachedPage struct {
	page           Page
	location       string // of a redirect
	fresh          time.Time
	etag, modified string
}

// read returns a page from the cache or by one request, and the target of a redirect.
func (s *Site) read(ctx context.Context, u *url.URL, kind *PageKind) (page *Page, location string, err error) {
	c := s.client
	rule := kindRules[Text]
	lifetime := pageTTL
	if kind == nil {
		rule.types, rule.max, lifetime = []string{"*"}, robotsMaxBytes, robotsTTL
	} else {
		rule = kindRules[*kind]
	}
	key := fmt.Sprintf("page %s %s", rule.accept, u)
	if kind == nil {
		key = "robots " + u.String()
	}
	cached, _ := c.pages.get(key)
	if cached != nil && c.cfg.Now().Before(cached.fresh) {
		c.metrics.cacheHits.WithLabelValues(s.policy.Source).Inc()
		return &cached.page, cached.location, nil
	}
	header := http.Header{"Accept": {rule.accept}}
	if kind == nil {
		header.Set("Accept", "text/plain")
	}
	if cached != nil && cached.etag != "" {
		header.Set("If-None-Match", cached.etag)
	} else if cached != nil && cached.modified != "" {
		header.Set("If-Modified-Since", cached.modified)
	}
	next := &cachedPage{fresh: c.cfg.Now().Add(lifetime)}
	err = s.request(ctx, u, header, func(res *http.Response) error {
		next.etag, next.modified = res.Header.Get("ETag"), res.Header.Get("Last-Modified")
		next.location = redirect(res)
		next.page = Page{Status: res.StatusCode, Header: res.Header, URL: u, Type: mediaType(res.Header)}
		switch {
		case res.StatusCode == http.StatusNotModified && cached != nil:
			next.page, next.location, next.etag, next.modified = cached.page, cached.location, cached.etag, cached.modified
			return nil
		case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusServiceUnavailable && kind != nil:
			return &Error{Code: CodeHTTP, Status: res.StatusCode, Err: fmt.Errorf("%s answered %s: the visit ends", u.Host, res.Status)}
		case res.StatusCode != http.StatusOK:
			return nil
		}
		next.page.Body, err = s.body(res, rule.types, rule.max, kind)
		return err
	})
	if isStatus(err, http.StatusTooManyRequests) || kind != nil && isStatus(err, http.StatusServiceUnavailable) {
		s.end(u, err)
	}
	if err != nil {
		return nil, "", err
	}
	c.pages.put(key, next, int64(len(key)+len(next.page.Body)+len(next.location))+4*entryBytes)
	return &next.page, next.location, nil
}

// request makes one request to an untrusted server. It does not follow redirects.
func (s *Site) request(ctx context.Context, u *url.URL, header http.Header, handle func(*http.Response) error) (err error) {
	c := s.client
	done, err := c.wire.Turn(getExchange(ctx, u, header), func() (func(), error) {
		return c.limits.acquire(ctx, "web", u.Host, s.policy.need())
	})
	if err != nil {
		c.metrics.requestEnded(s.policy.Source, err)
		return err
	}
	defer done()
	defer func() { c.metrics.requestEnded(s.policy.Source, err) }()
	ctx, cancel := context.WithTimeout(withConnect(ctx, s.policy.Connect), s.policy.Total)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return &Error{Code: CodeHTTP, Err: err}
	}
	req.Header = header
	req.Header.Set("User-Agent", c.userAgent)
	req.Header.Set("Accept-Encoding", "gzip")
	res, err := c.roundTrip(req, false)
	if err != nil {
		return classify(err)
	}
	defer res.Body.Close()
	return timeoutIfLate(ctx, u.Host, handle(res))
}

// body reads a page within the bounds of the page and of the visit.
func (s *Site) body(res *http.Response, types []string, limit int64, kind *PageKind) ([]byte, error) {
	if err := checkType(res.Header, types); err != nil {
		return nil, err
	}
	s.mu.Lock()
	room := siteMaxBytes - s.bytes
	s.mu.Unlock()
	wire := limit
	if kind == nil {
		wire = 8 * limit // robots.txt is truncated at the limit, not an error
	}
	r, err := openBody(res, min(wire, room))
	if err != nil {
		return nil, err
	}
	if t := mediaType(res.Header); t == "application/gzip" || t == "application/x-gzip" {
		file, err := gzip.NewReader(r)
		if err != nil {
			return nil, asParse(fmt.Errorf("open the gzipped file: %w", err))
		}
		r = &cappedReader{r: file, left: limit, what: "the unpacked file"}
	}
	if kind == nil {
		r = io.LimitReader(r, limit)
	}
	text, err := io.ReadAll(r)
	s.mu.Lock()
	s.bytes += int64(len(text))
	s.mu.Unlock()
	if err != nil {
		return nil, asParse(fmt.Errorf("read the page: %w", err))
	}
	if kind != nil && (*kind == HTML || *kind == Text) {
		return toUTF8(text, res.Header.Get("Content-Type")), nil
	}
	return text, nil
}

// toUTF8 converts a page to UTF-8 from the encoding that it or its header declares.
func toUTF8(text []byte, contentType string) []byte {
	encoding, name, _ := charset.DetermineEncoding(text, contentType)
	if name != "utf-8" {
		if converted, err := encoding.NewDecoder().Bytes(text); err == nil {
			text = converted
		}
	}
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte(strings.ToValidUTF8("\xff", "\uFFFD")))
	}
	return text
}
