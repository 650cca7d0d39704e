// Package site parses what a company's website serves: HTML pages, structured data,
// sitemaps, feeds and security.txt. It is pure: it opens no files and no connections.
// Input may be hostile: time and memory of each parser are linear in its length.
package site

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of one page. The parser skips what exceeds them.
const (
	pageBytesMax     = 2 << 20
	pageElementsMax  = 20_000 // elements in attributesOf, or with an itemtype
	pageLinksMax     = 2_000
	pageTextMax      = 512 << 10
	attributeMax     = 2 << 10
	structuredMax    = 256 << 10 // bytes of one JSON-LD script
	structuredsMax   = 16        // JSON-LD scripts
	structuredsBytes = 512 << 10 // of all JSON-LD scripts
	headingsBytesMax = 8 << 10
	linkTextMax      = 120 // bytes
	languagesMax     = 400
	feedsMax         = 5
)

// Link is one link of a page. URL is absolute, http or https, without fragment.
// Text is the text of the link in lower case, or its label.
type Link struct {
	URL  *url.URL
	Text string
}

// Page is the content of one HTML page that sources use.
type Page struct {
	Title, Description, SiteName string
	// Headings is the text of the h1 headings, LinkText that of the links, one per line.
	// Each has about 8 KiB at most.
	Headings, LinkText string
	// Languages are the primary subtags of the page's lang and hreflang attributes, sorted.
	Languages []string
	// TextRunes counts the characters of the visible text without scripts, spaces excluded.
	TextRunes int
	// ScriptFiles counts scripts with a src attribute.
	ScriptFiles int
	// Links are the links, embeds and frames in the order of the page, at most 2,000.
	Links []Link
	// Feeds are the RSS and Atom feeds that link elements name, at most 5.
	Feeds []*url.URL
	// Organizations are the organisations in the structured data, at most 32.
	Organizations []Organization
	// Structured is the names and descriptions in the structured data.
	Structured string
	// Reviewed is true if the page has reviews, ratings or attributed quotations.
	Reviewed bool
	// Priced is true if the text has a price per period or per user.
	Priced bool
	// Paying is true if the page loads a payment script or links to a checkout.
	Paying bool
	// Parked is true if the domain is for sale or shows a placeholder.
	Parked bool
}

// NeedsScripts reports whether the page has almost no text until its scripts run.
// Missing evidence on such a page does not count as absent.
func (p *Page) NeedsScripts() bool { return p.TextRunes < 200 && p.ScriptFiles > 3 }

var (
	price = regexp.MustCompile(`(?i)(\$|€|£)\s?\d+([.,]\d+)?\s*(/|per)\s*(mo|month|user|seat|year|yr)`)
	// parkedText matches the text of parked domains. Only short pages are searched:
	// real sites write about domains too.
	parkedText = regexp.MustCompile(`(?i)\b(this )?domain( name)? (is |may be )(for sale|parked)|\bbuy this domain\b|\bthis domain has (expired|been registered)|\bdomain is parked\b|` +
		`\bparked (free|by|at) |\bdomain for sale\b|\bdiese domain (steht|ist) (zum verkauf|zu verkaufen)|\bthis (web ?page|site) is parked|\bwebsite coming soon\b.{0,80}\bdomain\b`)
)

// parkedRunesMax is the longest text, in characters, that is searched for parkedText.
const parkedRunesMax = 3000

// parkingHosts serve parked domains only.
var parkingHosts = []string{"sedoparking.com", "parkingcrew.net", "bodis.com", "above.com", "hugedomains.com", "dan.com", "afternic.com",
	"parklogic.com", "undeveloped.com"}

// IsParkingHost reports whether a host serves parked domains only.
func IsParkingHost(host string) bool { return under(host, parkingHosts) }

// payingHosts serve payment scripts.
var payingHosts = []string{"js.stripe.com", "paddle.com", "chargebee.com", "recurly.com", "braintreegateway.com", "braintree-api.com",
	"shopify.com", "shopifycdn.com", "checkout.stripe.com", "buy.stripe.com", "paypal.com", "lemonsqueezy.com", "gumroad.com"}

// ParsePage reads an HTML page in UTF-8 that was served from base. It reads at most
// 2 MiB, token by token, without building a tree: hostile input can make a tree take
// quadratic time. It reads malformed HTML as far as the tokenizer does.
func ParsePage(body []byte, base *url.URL) Page {
	body = body[:min(len(body), pageBytesMax)]
	r := pageReader{}
	r.readTokens(body)
	p := r.page
	if r.base != nil {
		if u, err := base.Parse(strings.TrimSpace(*r.base)); err == nil && webScheme(u) {
			base = u
		}
	}
	p.Title = squeeze(r.title.String(), 300)
	p.Headings = squeeze(r.headings.String(), headingsBytesMax)
	p.Structured = strings.TrimSpace(r.structured.String())
	p.addReferences(r.references, base)
	if r.lang != nil {
		r.addLanguage(*r.lang)
	}
	for tag := range r.languages {
		p.Languages = append(p.Languages, tag)
	}
	slices.Sort(p.Languages)
	p.Organizations = p.Organizations[:min(len(p.Organizations), organizationsMax)]
	p.Priced = price.MatchString(r.text.String())
	p.Parked = p.Parked || p.TextRunes <= parkedRunesMax && (parkedText.MatchString(p.Title) || parkedText.MatchString(r.text.String()))
	return p
}

// pageReader collects what ParsePage needs from the tokens of one page.
type pageReader struct {
	page       Page    // without the fields that need the whole page
	base, lang *string // nil until an element has the attribute
	title      strings.Builder
	// text is the start of the text that a reader sees, with single spaces.
	text       strings.Builder
	headings   strings.Builder
	structured strings.Builder // text of the structured data
	references []*reference    // in the order of the page
	languages  map[string]bool

	elements        int // read elements, at most pageElementsMax
	structureds     int // JSON-LD scripts
	structuredBytes int

	raw         atom.Atom        // the element whose text is not HTML
	jsonLD      bool             // raw is a JSON-LD script
	open        *strings.Builder // text of the open link or title, nil if none is open
	openTag     atom.Atom
	titled      bool // the first title was seen
	inHeading   bool
	inQuotation bool
}

// reference is an element that leads to a URL.
type reference struct {
	tag       atom.Atom
	href      string
	rel, kind string // of a link element
	label     string // when the element has no text
	text      strings.Builder
}

// attributesOf are the attributes that are read, by element. Attributes of other
// elements are skipped, except itemtype.
var attributesOf = map[atom.Atom][]string{
	atom.Html: {"lang"}, atom.Base: {"href"}, atom.Title: nil,
	atom.Meta:   {"name", "property", "content"},
	atom.Link:   {"rel", "type", "href", "hreflang"},
	atom.Script: {"src", "type"},
	atom.Iframe: {"src"}, atom.Embed: {"src"},
	atom.A: {"href", "hreflang", "aria-label", "title"},
}

// Bounds of the attributes of one element.
const (
	attributesRead = 64
	attributesKept = 8
)

// attributes are the names and values of one element's attributes.
type attributes [][2]string

// lookup returns the first attribute of a name.
func (a attributes) lookup(name string) (value string, ok bool) {
	for _, pair := range a {
		if pair[0] == name {
			return pair[1], true
		}
	}
	return "", false
}

// get returns the first attribute of a name, "" if there is none.
func (a attributes) get(name string) string {
	value, _ := a.lookup(name)
	return value
}

// setFirst sets field to an attribute, if there is one and field is not set.
func (a attributes) setFirst(field **string, name string) {
	if value, ok := a.lookup(name); ok && *field == nil {
		*field = &value
	}
}

// readTokens reads the whole page.
func (r *pageReader) readTokens(page []byte) {
	r.languages = make(map[string]bool)
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(len(page) + 4096)
	for {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			r.readText(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			r.readStart(z)
		case html.EndTagToken:
			name, _ := z.TagName()
			r.readEnd(atom.Lookup(name))
		}
	}
}

func (r *pageReader) readText(text []byte) {
	switch {
	case r.raw == atom.Script && r.jsonLD:
		r.readStructured(text)
	case r.raw == atom.Title:
		r.addOpen(text)
		return
	case r.raw == 0:
		r.addOpen(text)
		r.addVisible(text)
		if r.inHeading && r.headings.Len() < headingsBytesMax {
			r.headings.Write(text)
		}
	}
	r.raw = 0
}

func (r *pageReader) readStart(z *html.Tokenizer) {
	name, more := z.TagName()
	tag := atom.Lookup(name)
	wanted, isRead := attributesOf[tag]
	var pairs [attributesKept][2]string
	attrs := attributes(pairs[:0])
	for i := 0; more && i < attributesRead; i++ {
		var key, value []byte
		key, value, more = z.TagAttr()
		k := string(key)
		if (slices.Contains(wanted, k) || k == "itemtype" || tag == atom.Blockquote && k == "cite") && len(attrs) < attributesKept &&
			len(value) <= attributeMax {
			attrs = append(attrs, [2]string{k, string(value)})
		}
	}
	r.raw, r.jsonLD = 0, false
	switch tag {
	case atom.Script:
		r.raw = tag
		if r.jsonLD = strings.EqualFold(strings.TrimSpace(attrs.get("type")), "application/ld+json"); r.jsonLD {
			return
		}
		if attrs.get("src") == "" {
			return
		}
		r.page.ScriptFiles++
	case atom.Style, atom.Noscript, atom.Template, atom.Textarea, atom.Noembed, atom.Noframes, atom.Xmp:
		r.raw = tag
		return
	case atom.Iframe, atom.Title:
		r.raw = tag
	case atom.H1:
		r.inHeading = true
	case atom.Blockquote:
		r.inQuotation = true
		r.page.Reviewed = r.page.Reviewed || attrs.get("cite") != ""
	case atom.Cite:
		r.page.Reviewed = r.page.Reviewed || r.inQuotation
	}
	itemType := attrs.get("itemtype")
	if !isRead && itemType == "" {
		r.addSpace() // words of neighbouring elements are not one word
		return
	}
	if r.elements++; r.elements > pageElementsMax {
		return
	}
	r.page.Reviewed = r.page.Reviewed || strings.HasSuffix(itemType, "/Review") || strings.HasSuffix(itemType, "/AggregateRating")
	if isRead {
		r.readElement(tag, attrs)
	}
}

// readElement reads an element of attributesOf.
func (r *pageReader) readElement(tag atom.Atom, attrs attributes) {
	if language, ok := attrs.lookup("hreflang"); ok {
		r.addLanguage(language)
	}
	switch tag {
	case atom.Html:
		attrs.setFirst(&r.lang, "lang")
	case atom.Base:
		attrs.setFirst(&r.base, "href")
	case atom.Meta:
		r.page.readMeta(attrs)
	case atom.Title:
		r.open, r.openTag = nil, tag
		if !r.titled {
			r.titled, r.open = true, &r.title
		}
	case atom.A:
		label, ok := attrs.lookup("aria-label")
		if !ok {
			label = attrs.get("title")
		}
		link := &reference{tag: tag, href: attrs.get("href"), label: label}
		r.references = append(r.references, link)
		r.open, r.openTag = &link.text, tag
	case atom.Link:
		r.references = append(r.references, &reference{tag: tag, href: attrs.get("href"), rel: attrs.get("rel"), kind: attrs.get("type")})
	default:
		r.references = append(r.references, &reference{tag: tag, href: attrs.get("src")})
	}
}

func (r *pageReader) readEnd(tag atom.Atom) {
	r.raw = 0
	switch tag {
	case r.openTag:
		r.open, r.openTag = nil, 0
	case atom.H1:
		r.inHeading = false
		r.headings.WriteByte('\n')
	case atom.Blockquote:
		r.inQuotation = false
	}
	switch tag {
	case atom.A, atom.Span, atom.B, atom.I, atom.Em, atom.Strong: // can end within a word
	default:
		r.addSpace()
	}
}

// readStructured reads a JSON-LD script within the bounds of a page.
func (r *pageReader) readStructured(script []byte) {
	r.structuredBytes += len(script)
	if r.structureds++; r.structureds > structuredsMax || len(script) > structuredMax || r.structuredBytes > structuredsBytes {
		return
	}
	found := ParseStructured(script)
	r.page.Reviewed = r.page.Reviewed || found.Reviewed
	if r.structured.Len() < headingsBytesMax {
		r.structured.WriteString(found.Text)
	}
	r.page.Organizations = append(r.page.Organizations, found.Organizations...)
}

// addSpace ends a word.
func (r *pageReader) addSpace() {
	r.addOpen([]byte(" "))
	r.addVisible([]byte(" "))
}

// addOpen adds text to the open link or title.
func (r *pageReader) addOpen(text []byte) {
	if r.open != nil {
		r.open.Write(text)
	}
}

// addVisible counts text that a reader sees and keeps the first pageTextMax bytes of it.
func (r *pageReader) addVisible(text []byte) {
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		text = text[size:]
		length := r.text.Len()
		if unicode.IsSpace(c) {
			if length > 0 && length < pageTextMax && r.text.String()[length-1] != ' ' {
				r.text.WriteByte(' ')
			}
			continue
		}
		r.page.TextRunes++
		if length < pageTextMax {
			r.text.WriteRune(c)
		}
	}
}

// addLanguage adds the primary subtag of a language tag.
func (r *pageReader) addLanguage(tag string) {
	tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
	tag, _, _ = strings.Cut(tag, "_")
	if (len(tag) == 2 || len(tag) == 3) && isLetters(tag) && len(r.languages) < languagesMax {
		r.languages[tag] = true
	}
}

func (p *Page) readMeta(attrs attributes) {
	content := squeeze(attrs.get("content"), 1000)
	switch strings.ToLower(attrs.get("name")) {
	case "description":
		set(&p.Description, content)
	case "application-name":
		set(&p.SiteName, content)
	}
	switch strings.ToLower(attrs.get("property")) {
	case "og:site_name":
		p.SiteName = content
	case "og:description":
		set(&p.Description, content)
	}
}

// addReferences sorts the references of a page into links, feeds and known scripts.
// It stops at pageLinksMax links.
func (p *Page) addReferences(references []*reference, base *url.URL) {
	var words strings.Builder
	for _, ref := range references {
		u := resolve(base, ref.href)
		if u == nil {
			continue
		}
		switch ref.tag {
		case atom.Link:
			kind := strings.ToLower(strings.TrimSpace(ref.kind))
			rel := strings.Fields(strings.ToLower(ref.rel))
			if slices.Contains(rel, "alternate") && (kind == "application/rss+xml" || kind == "application/atom+xml") &&
				len(p.Feeds) < feedsMax {
				p.Feeds = append(p.Feeds, u)
			}
			continue
		case atom.Script:
			p.Paying = p.Paying || under(u.Hostname(), payingHosts)
			p.Parked = p.Parked || under(u.Hostname(), parkingHosts)
			if _, ok := FindBoard(u); !ok && !TracksApplicants(u) {
				continue
			}
		case atom.A:
			p.Paying = p.Paying || u.Hostname() == "buy.stripe.com" || u.Hostname() == "checkout.stripe.com"
		}
		text := strings.ToLower(squeeze(ref.text.String(), linkTextMax))
		if text == "" {
			text = strings.ToLower(squeeze(ref.label, linkTextMax))
		}
		p.Links = append(p.Links, Link{URL: u, Text: text})
		if words.Len() < headingsBytesMax {
			words.WriteString(text)
			words.WriteByte('\n')
		}
		if len(p.Links) == pageLinksMax {
			break
		}
	}
	p.LinkText = strings.TrimSpace(words.String())
}

func isLetters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

// resolve returns the absolute URL of a link, or nil if it does not lead to a web page.
func resolve(base *url.URL, href string) *url.URL {
	href = strings.TrimSpace(href)
	if href == "" || strings.HasPrefix(href, "#") || len(href) > attributeMax {
		return nil
	}
	u, err := base.Parse(href)
	if err != nil || !webScheme(u) {
		return nil
	}
	u.Fragment, u.RawFragment = "", ""
	return u
}

// webScheme reports whether u is a plain http or https address on a default port.
func webScheme(u *url.URL) bool {
	port := u.Port()
	return (u.Scheme == "http" && (port == "" || port == "80") || u.Scheme == "https" && (port == "" || port == "443")) &&
		u.Hostname() != "" && u.User == nil
}

// under reports whether host is one of the names or below one.
func under(host string, names []string) bool {
	host = strings.ToLower(host)
	for _, name := range names {
		if host == name || strings.HasSuffix(host, "."+name) {
			return true
		}
	}
	return false
}

// squeeze replaces each run of spaces by one and cuts the text at limit bytes.
func squeeze(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > limit {
		text = strings.ToValidUTF8(text[:limit], "")
	}
	return text
}

// set sets a field unless it has a value.
func set(field *string, text string) {
	if *field == "" {
		*field = text
	}
}
