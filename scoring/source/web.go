package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/site"
)

// Web is the source of the company's own site. It reads at most 14 pages, under robots.txt. One of
// them can be a careers page on another site.
type Web struct{ live }

// NewWeb returns the source.
func NewWeb(c *fetch.Client) *Web { return &Web{newLive(c, "web")} }

var _ Source = (*Web)(nil)

// Fetch reads the home page and the pages that it links to. If the home page cannot be read the
// source fails. Other failures only reduce the evidence.
func (w *Web) Fetch(ctx context.Context, req Request) (Result, error) {
	visit, err := w.client.Visit(ctx, req.Domain)
	var failure *fetch.Error
	if errors.As(err, &failure) && failure.Code == fetch.CodeDNS && req.Domain == req.Registrable {
		// Some domains have an address for www only.
		if visit, err = w.client.Visit(ctx, "www."+req.Domain); err != nil {
			err = failure
		}
	}
	if err != nil {
		return Result{}, err
	}
	page, err := visit.Get(ctx, "/", fetch.HTML)
	if err != nil {
		return Result{}, err
	}
	if page.Status != http.StatusOK {
		return Result{}, &fetch.Error{Code: fetch.CodeHTTP, Status: page.Status, Err: fmt.Errorf("the home page of %s has status %d",
			req.Domain, page.Status)}
	}
	c := crawl{visit: visit, req: req, pages: map[site.Kind]*site.Page{}, links: map[site.Kind]linkState{}, moved: visit.RedirectedTo()}
	c.readHome(page)
	if !c.home.Parked {
		c.readRest(ctx)
	}
	return c.observe(), nil
}

// crawl is the state of one visit.
type crawl struct {
	visit *fetch.Site
	req   Request
	moved string // other registrable domain that the home page redirects to
	at    *url.URL
	home  site.Page
	found site.Map
	hsts  bool

	pages        map[site.Kind]*site.Page
	links        map[site.Kind]linkState
	securityText bool
	sitemap      sitemapFacts
	feed         site.Dated
	// noSitemap and noFeed are why they could not be read.
	noSitemap, noFeed scoring.Reason
}

// linkState is the state of a link of the home page.
type linkState int

const (
	linkNone    linkState = iota // there is no such link
	linkAlive                    // the page was read
	linkDead                     // the page does not exist
	linkUnknown                  // the page was not read, or the request failed
)

// shown reports whether a link counts as evidence: it is on the home page and not known to be
// dead.
func (s linkState) shown() bool { return s == linkAlive || s == linkUnknown }

// sitemapFacts are the totals over all sitemap files.
type sitemapFacts struct {
	urls, caseStudies int
	content           site.Dated
}

// visited are the kinds of pages to read, in order. Those with parsed also contribute text.
var visited = []struct {
	kind   site.Kind
	parsed bool
}{
	{site.Team, true}, {site.Careers, true}, {site.Pricing, true}, {site.Customers, true}, {site.Docs, false}, {site.Blog, false},
	{site.Security, false},
}

func (c *crawl) readHome(page *fetch.Page) {
	c.home = site.ParsePage(page.Body, page.URL)
	c.at = page.URL
	c.home.Parked = c.home.Parked || site.IsParkingHost(page.URL.Hostname())
	c.hsts = page.URL.Scheme == "https" && lasting(page.Header.Get("Strict-Transport-Security"))
	c.found = site.Sort(c.home.Links, page.URL, c.home.SiteName)
	for kind, link := range c.found {
		if link != nil {
			c.links[site.Kind(kind)] = linkUnknown
		}
	}
}

// lasting reports whether a Strict-Transport-Security header has a positive max-age.
func lasting(header string) bool {
	for directive := range strings.SplitSeq(header, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		if strings.EqualFold(name, "max-age") {
			seconds, err := strconv.ParseInt(strings.Trim(value, `"`), 10, 64)
			return err == nil && seconds > 0
		}
	}
	return false
}

// readRest reads the other pages. It reads files at well-known paths first, two concurrently. It
// then reads the links one by one, so that only the last ones are skipped when the visit's limit
// is reached.
func (c *crawl) readRest(ctx context.Context) {
	var group errgroup.Group
	group.SetLimit(2)
	for _, step := range []func(context.Context){c.readSecurityText, c.readSitemap, c.readFeed} {
		group.Go(func() error { step(ctx); return nil })
	}
	_ = group.Wait() // the steps return no error
	asked := map[string]bool{c.at.String(): true}
	for _, v := range visited {
		// Several links can lead to one page.
		if link := c.found[v.kind]; link != nil && !asked[link.String()] && !isBoard(link) {
			asked[link.String()] = true
			c.readPage(ctx, v.kind, v.parsed, link)
		}
	}
}

func (c *crawl) readSecurityText(ctx context.Context) {
	page, err := c.visit.Get(ctx, "/.well-known/security.txt", fetch.Text)
	if err == nil && page.Status == http.StatusOK {
		c.securityText = site.ValidSecurityTXT(page.Body, "text/plain", c.req.Now)
	}
}

func (c *crawl) readFeed(ctx context.Context) {
	ref := "/feed"
	if len(c.home.Feeds) > 0 {
		ref = c.home.Feeds[0].String()
	}
	body, ok := c.document(ctx, ref, fetch.Feed, &c.noFeed)
	if !ok {
		return
	}
	if dated, err := site.ParseFeed(body, c.req.Now); err == nil {
		c.feed = dated
	}
}

// document reads a feed or a sitemap. ok is false if it does not exist or is of another type. unread
// is set to the reason if the request fails.
func (c *crawl) document(ctx context.Context, ref string, kind fetch.PageKind, unread *scoring.Reason) ([]byte, bool) {
	page, err := c.visit.Get(ctx, ref, kind)
	if err == nil {
		return page.Body, page.Status == http.StatusOK
	}
	if code := WarningCode(err); code != fetch.CodeParse && code != fetch.CodeAddress {
		*unread = reasonOf(code)
	}
	return nil, false
}

// Bounds of the sitemaps that are read: those of a list, and all with the indexes among them.
const (
	listedRead   = 3
	sitemapsRead = 4
)

// readSitemap reads the sitemaps in robots.txt, or /sitemap.xml, and some of the children of an
// index.
func (c *crawl) readSitemap(ctx context.Context) {
	files, count := c.visit.Sitemaps(), c.visit.SitemapCount()
	if len(files) == 0 {
		files, count = []string{"/sitemap.xml"}, 1
	}
	left := sitemapsRead
	if len(files) == 1 {
		top, ok := c.sitemapAt(ctx, files[0], &left)
		if ok && !top.Index {
			c.sitemap.add(top)
			c.sitemap.urls = top.Count
		}
		if !ok || !top.Index {
			return
		}
		files, count = top.Children, top.Count
	}
	c.readList(ctx, files, count, &left)
}

// sitemapAt reads one sitemap, unless left, the number of sitemaps to read, is 0.
func (c *crawl) sitemapAt(ctx context.Context, file string, left *int) (site.Sitemap, bool) {
	if *left == 0 {
		return site.Sitemap{}, false
	}
	*left--
	body, ok := c.document(ctx, file, fetch.Sitemap, &c.noSitemap)
	if !ok {
		return site.Sitemap{}, false
	}
	s, err := site.ParseSitemap(body, file, c.req.Now)
	return s, err == nil
}

// readList reads some of a list of count sitemaps, of which files are the first, and one child of
// each index among them. It estimates the number of pages in all of them.
func (c *crawl) readList(ctx context.Context, files []string, count int, left *int) {
	var sizes []int
	for _, file := range contentFirst(files)[:min(len(files), listedRead)] {
		s, ok := c.sitemapAt(ctx, file, left)
		share := 1
		if ok && s.Index && len(s.Children) > 0 {
			share = s.Count
			s, ok = c.sitemapAt(ctx, contentFirst(s.Children)[0], left)
		}
		if ok && !s.Index {
			c.sitemap.add(s)
			sizes = append(sizes, share*s.Count)
		}
	}
	if len(sizes) == 0 {
		return
	}
	if count <= len(sizes) {
		for _, size := range sizes {
			c.sitemap.urls += size
		}
		return
	}
	slices.Sort(sizes)
	median := float64(sizes[(len(sizes)-1)/2]+sizes[len(sizes)/2]) / 2
	c.sitemap.urls = int(median * float64(count))
}

// contentFirst returns sitemaps with one of articles first.
func contentFirst(files []string) []string {
	i := slices.IndexFunc(files, site.IsContent)
	if i <= 0 {
		return files
	}
	return slices.Concat(files[i:i+1], files[:i], files[i+1:])
}

func (f *sitemapFacts) add(s site.Sitemap) {
	f.caseStudies += s.CaseStudies
	f.content.Recent += s.Content.Recent
	if s.Content.Newest.After(f.content.Newest) {
		f.content.Newest = s.Content.Newest
	}
}

func (c *crawl) readPage(ctx context.Context, kind site.Kind, parsed bool, link *url.URL) {
	get := c.visit.Get
	if kind == site.Careers {
		get = c.visit.GetElsewhere
	}
	page, err := get(ctx, link.String(), fetch.HTML)
	state := linkUnknown
	var content *site.Page
	switch {
	case err != nil && WarningCode(err) == fetch.CodeParse:
		state = linkDead
	case err != nil:
	case page.Status == http.StatusOK:
		state = linkAlive
		if parsed {
			p := site.ParsePage(page.Body, page.URL)
			content = &p
		}
	default:
		state = linkDead
	}
	// Other links to the same page get the same state.
	for other, to := range c.found {
		if to != nil && to.String() == link.String() {
			c.links[site.Kind(other)] = state
		}
	}
	if content != nil {
		c.pages[kind] = content
	}
}

// pageSignals depend on the content of the pages.
var pageSignals = []string{"team_page_present", "careers_page_present", "product_surface", "customer_proof", "monetization_evidence"}

// observe derives the signals. A page that needs its scripts proves no absence.
func (c *crawl) observe() Result {
	s := builder{source: "web"}
	if c.moved != "" {
		s.claim(Redirected, "", c.moved, "the home page leads to "+c.at.Hostname())
	}
	if c.home.Parked {
		s.result.Defunct = true
		s.claim(Parked, "", "parked", "the home page offers the name itself, or is a placeholder")
		s.absent(pageSignals...)
		s.absent("ats_in_use", "site_language_count", "social_profile_breadth", "site_size_urls", "content_freshness_days",
			"content_cadence_90d", "employee_count", "organization_age_years")
		s.part("security_program", 0)
		s.part("leadership_disclosure", 0)
		return s.result
	}
	blind := c.home.NeedsScripts()
	c.observePages(&s, blind)
	c.observeProfile(&s, blind)
	c.observeContent(&s, blind)
	c.claim(&s)
	s.result.Site = scoring.SiteText{Title: c.home.Title, Description: c.home.Description, Headings: c.home.Headings,
		Structured: c.home.Structured, Links: c.home.LinkText}
	return s.result
}

// points counts the true values.
func points(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

func (c *crawl) observePages(s *builder, blind bool) {
	boards := c.boards()
	if len(boards) > 0 {
		s.ok("ats_in_use", 1)
	}
	if blind {
		s.missing(scoring.ReasonNotApplicable, pageSignals...)
		s.noPart(scoring.ReasonNotApplicable, "security_program")
		if len(boards) == 0 {
			s.missing(scoring.ReasonNotApplicable, "ats_in_use")
		}
		return
	}
	if len(boards) == 0 {
		s.absent("ats_in_use")
	}
	s.count("team_page_present", points(c.links[site.Team].shown()))
	s.count("careers_page_present", points(c.links[site.Careers].shown() || len(boards) > 0))
	s.count("product_surface", points(
		c.links[site.Pricing].shown(), c.links[site.Docs].shown(), c.links[site.Products].shown(),
		c.links[site.Integrations].shown(), c.links[site.Login].shown(), c.links[site.Status].shown(),
	))
	customers, pricing := c.pages[site.Customers], c.pages[site.Pricing]
	s.count("customer_proof", points(
		c.links[site.Customers].shown(),
		c.home.Reviewed || customers != nil && customers.Reviewed,
		c.sitemap.caseStudies >= 5,
	))
	s.count("monetization_evidence", points(
		c.links[site.Pricing].shown(),
		pricing != nil && pricing.Priced,
		c.links[site.Sales].shown(),
		c.links[site.Terms].shown() || c.home.Paying || pricing != nil && pricing.Paying,
	))
	s.part("security_program", float64(points(c.securityText, c.links[site.Security].shown(), c.hsts)))
}

// isBoard reports whether a link leads to an applicant tracking system, which need not be read.
func isBoard(link *url.URL) bool {
	_, ok := site.FindBoard(link)
	return ok || site.TracksApplicants(link)
}

// boards returns the applicant tracking systems of the company: "provider/token" for readable job
// boards, else the host name.
func (c *crawl) boards() (found []string) {
	pages := []*site.Page{&c.home}
	if careers := c.pages[site.Careers]; careers != nil {
		pages = append(pages, careers)
	}
	for _, page := range pages {
		for _, link := range page.Links {
			name := ""
			if board, ok := site.FindBoard(link.URL); ok {
				name = board.Provider + "/" + board.Token
			} else if site.TracksApplicants(link.URL) {
				name = site.Registrable(link.URL.Hostname())
			}
			if name != "" && !slices.Contains(found, name) && len(found) < 10 {
				found = append(found, name)
			}
		}
	}
	return found
}

// organizations returns the organisations on the home page and the team page that are the
// company: those with a URL on the domain, or the only one without a URL.
func (c *crawl) organizations() (own []site.Organization, byAddress bool) {
	var silent []site.Organization
	pages := []*site.Page{&c.home}
	if team := c.pages[site.Team]; team != nil {
		pages = append(pages, team)
	}
	for i, page := range pages {
		for _, org := range page.Organizations {
			switch u, err := c.at.Parse(org.URL); {
			case org.URL == "" && org.Top && i == 0:
				silent = append(silent, org)
			case org.URL != "" && err == nil && c.isOwn(u.Hostname()):
				own = append(own, org)
			}
		}
	}
	if len(own) > 0 || len(silent) != 1 || c.moved != "" {
		return own, true
	}
	return silent, false
}

func (c *crawl) isOwn(host string) bool {
	host = strings.ToLower(host)
	return host == c.req.Registrable || strings.HasSuffix(host, "."+c.req.Registrable)
}

func (c *crawl) observeProfile(s *builder, blind bool) {
	organizations, _ := c.organizations()
	var leaders []string
	var employees float64
	var founded time.Time
	networks := map[string]bool{}
	add := func(u *url.URL) {
		if name := site.Network(u); name != "" {
			networks[name] = true
		}
	}
	for _, org := range organizations {
		leaders = append(leaders, org.People...)
		employees = cmp.Or(employees, org.Employees)
		if founded.IsZero() && !org.Founded.After(c.req.Now) {
			founded = org.Founded
		}
		for _, profile := range org.SameAs {
			if u, err := url.Parse(profile); err == nil {
				add(u)
			}
		}
	}
	for _, link := range c.home.Links {
		add(link.URL)
	}
	// none records a fact that the page does not show.
	none := func(signal string) {
		if blind {
			s.missing(scoring.ReasonNotApplicable, signal)
		} else {
			s.absent(signal)
		}
	}
	give := func(signal string, value float64) {
		if value > 0 {
			s.ok(signal, value)
		} else {
			none(signal)
		}
	}
	give("employee_count", employees)
	if founded.IsZero() {
		none("organization_age_years")
	} else {
		s.ok("organization_age_years", years(founded, c.req.Now))
	}
	give("social_profile_breadth", float64(len(networks)))
	if languages := len(c.home.Languages); languages > 1 {
		s.ok("site_language_count", float64(languages))
	} else {
		none("site_language_count")
	}
	if blind && len(leaders) == 0 {
		s.noPart(scoring.ReasonNotApplicable, "leadership_disclosure")
	} else {
		s.part("leadership_disclosure", 0, leaders...)
	}
}

func (c *crawl) observeContent(s *builder, blind bool) {
	if c.sitemap.urls > 0 {
		s.ok("site_size_urls", float64(c.sitemap.urls))
	} else if c.noSitemap != "" {
		s.missing(c.noSitemap, "site_size_urls")
	} else {
		s.absent("site_size_urls")
	}
	content := c.feed
	content.Merge(c.sitemap.content)
	switch {
	case !content.Newest.IsZero():
		s.ok("content_freshness_days", max(0, days(c.req.Now.Sub(content.Newest))))
		s.count("content_cadence_90d", content.Recent)
	case c.noFeed != "" || c.noSitemap != "":
		s.missing(cmp.Or(c.noFeed, c.noSitemap), "content_freshness_days", "content_cadence_90d")
	case blind:
		s.missing(scoring.ReasonNotApplicable, "content_freshness_days", "content_cadence_90d")
	default:
		s.absent("content_freshness_days", "content_cadence_90d")
	}
}

// claim adds identity claims. A home page on another domain gives none about this company.
func (c *crawl) claim(s *builder) {
	for _, board := range c.boards() {
		s.claim(JobBoard, "", board, "linked from the home or careers page")
	}
	if link := c.found[site.Careers]; link != nil && c.links[site.Careers].shown() {
		s.claim(CareersPage, "", link.String(), "linked from the home page")
	}
	organizations, byAddress := c.organizations()
	names := site.NamesOf(c.at.Hostname())
	var profiles []*url.URL
	for _, org := range organizations {
		why := "structured data of the home page"
		if byAddress {
			s.claim(Name, "jsonld", scoring.CleanName(names.Part(org.Name)), why)
			why += ", whose address is " + org.URL
		}
		s.claim(LegalName, "jsonld", scoring.CleanName(org.LegalName), why)
		s.claim(Country, "jsonld", org.Country, why)
		for _, profile := range org.SameAs {
			if u, err := url.Parse(profile); err == nil {
				profiles = append(profiles, u)
			}
		}
	}
	if c.moved != "" {
		return
	}
	for _, link := range c.home.Links {
		profiles = append(profiles, link.URL)
	}
	var accounts []string
	for _, u := range profiles {
		account := site.GitHubAccount(u)
		same := func(known string) bool { return strings.EqualFold(known, account) }
		if account != "" && !slices.ContainsFunc(accounts, same) {
			accounts = append(accounts, account)
		}
	}
	if len(accounts) == 1 {
		s.claim(GitHub, "", accounts[0], "the only account on github.com that the home page links to")
	}
	c.claimNames(s, names)
}

// claimNames adds the names in the page's own description and in its title. A description that does
// not resemble the domain, such as "Home", gives none if the title does.
func (c *crawl) claimNames(s *builder, names site.Names) {
	title, similar := names.Name(c.home.Title)
	why := "first part of the title of the home page"
	if similar {
		why = "part of the title of the home page that resembles the domain"
	}
	if _, own := names.Name(c.home.SiteName); own || !similar {
		s.claim(Name, "site_name", scoring.CleanName(names.Part(c.home.SiteName)), "og:site_name of the home page")
	}
	s.claim(Name, "title", scoring.CleanName(title), why)
}
