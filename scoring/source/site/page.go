// Package site reads what a company's own website sends: pages, structured data,
// sitemaps, feeds and security.txt. It is pure: bytes go in, facts come out. All
// input is hostile; the time and memory each parser takes grow with the length of
// its input and no faster.
package site

import (
	"bytes"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Bounds of one page. What exceeds them is not read.
const (
	pageBytesMax     = 2 << 20
	pageElementsMax  = 20_000 // of those that are kept
	pageLinksMax     = 2_000
	pageTextMax      = 512 << 10
	attributeMax     = 2 << 10
	structuredMax    = 256 << 10 // bytes of one JSON-LD script
	structuredsMax   = 16        // JSON-LD scripts
	structuredsBytes = 512 << 10 // of all JSON-LD scripts
	headingsBytesMax = 8 << 10
	linkTextMax      = 120 // bytes
)

// Link is one place a page leads to. URL is absolute, http or https, without
// fragment; Text is the words of the link in lower case.
type Link struct {
	URL  *url.URL
	Text string
}

// Page is what one HTML page shows.
type Page struct {
	Title, Description, SiteName string
	// Headings is the text of the first headings, LinkText of the links.
	Headings, LinkText string
	// Languages are the primary subtags the page says it exists in, sorted.
	Languages []string
	// TextRunes is the length of the text a reader sees without running scripts.
	TextRunes int
	// ScriptFiles counts scripts that are loaded from elsewhere.
	ScriptFiles int
	// Links are in the order of the page, embeds and frames included.
	Links []Link
	// Feeds are the feeds the page announces.
	Feeds []*url.URL
	// Organizations are those the structured data describes.
	Organizations []Organization
	// Structured is the text of the structured data that names what is done.
	Structured string
	// Reviewed says that the page shows reviews or quoted customers.
	Reviewed bool
	// Priced says that the text holds a price with a period or a unit.
	Priced bool
	// Paying says that a payment script is loaded.
	Paying bool
	// Parked says that the name is offered for sale or shows a placeholder.
	Parked bool
}

// NeedsScripts reports whether the page shows next to nothing without running
// its scripts, so that a lack of evidence on it says nothing.
func (p *Page) NeedsScripts() bool { return p.TextRunes < 200 && p.ScriptFiles > 3 }

var (
	price = regexp.MustCompile(`(?i)(\$|€|£)\s?\d+([.,]\d+)?\s*(/|per)\s*(mo|month|user|seat|year|yr)`)
	// parkedText marks pages of names that nobody uses. Only short pages are
	// searched for it: a real site may well write about domains.
	parkedText = regexp.MustCompile(`(?i)\b(this )?domain( name)? (is |may be )(for sale|parked)|\bbuy this domain\b|\bthis domain has (expired|been registered)|\bdomain is parked\b|` +
		`\bparked (free|by|at) |\bdomain for sale\b|\bdiese domain (steht|ist) (zum verkauf|zu verkaufen)|\bthis (web ?page|site) is parked|\bwebsite coming soon\b.{0,80}\bdomain\b`)
)

// parkedRunesMax is the longest text of a page that is taken for a placeholder.
const parkedRunesMax = 3000

// parkingHosts serve nothing but names without a site.
var parkingHosts = []string{"sedoparking.com", "parkingcrew.net", "bodis.com", "above.com", "hugedomains.com", "dan.com", "afternic.com", "parklogic.com", "undeveloped.com"}

// Parks reports whether a host serves nothing but names without a site.
func Parks(host string) bool { return under(host, parkingHosts) }

// payingHosts load the scripts with which customers pay.
var payingHosts = []string{"js.stripe.com", "paddle.com", "chargebee.com", "recurly.com", "braintreegateway.com", "braintree-api.com", "shopify.com", "shopifycdn.com", "checkout.stripe.com", "buy.stripe.com", "paypal.com", "lemonsqueezy.com", "gumroad.com"}

// ParsePage reads an HTML page in UTF-8 that was served from base. At most 2 MiB
// are read. Malformed HTML is read as far as it makes sense.
func ParsePage(body []byte, base *url.URL) (Page, error) {
	body = body[:min(len(body), pageBytesMax)]
	var p Page
	c := condense(body)
	p.TextRunes, p.ScriptFiles = c.runes, c.scriptFiles
	doc, err := goquery.NewDocumentFromReader(&c.out)
	if err != nil {
		return p, fmt.Errorf("parse page: %w", err)
	}
	if href, ok := doc.Find("base[href]").First().Attr("href"); ok {
		if u, err := base.Parse(strings.TrimSpace(href)); err == nil && webScheme(u) {
			base = u
		}
	}
	p.Title = squeeze(doc.Find("title").First().Text(), 300)
	p.readMeta(doc)
	p.Headings = squeeze(c.headings.String(), headingsBytesMax)
	p.readLinks(doc, base)
	p.readLanguages(doc)
	p.readStructured(doc)
	p.Reviewed = p.Reviewed || c.quoted || doc.Find("[itemtype$='/Review'], [itemtype$='/AggregateRating']").Length() > 0
	p.Priced = price.MatchString(c.text.String())
	p.Parked = p.Parked || p.TextRunes <= parkedRunesMax && (parkedText.MatchString(p.Title) || parkedText.MatchString(c.text.String()))
	return p, nil
}

// condensed is a page without what nobody reads here.
type condensed struct {
	out         bytes.Buffer // HTML of the elements that matter, flat and bounded
	text        strings.Builder
	headings    strings.Builder
	runes       int
	scriptFiles int
	quoted      bool // a quotation with its source
}

// kept are the elements that survive condensing, with the attributes that do.
var kept = map[atom.Atom][]string{
	atom.Html: {"lang"}, atom.Base: {"href"}, atom.Title: nil,
	atom.Meta:   {"name", "property", "content"},
	atom.Link:   {"rel", "type", "href", "hreflang"},
	atom.Script: {"src", "type"},
	atom.Iframe: {"src"}, atom.Embed: {"src"},
	atom.A: {"href", "hreflang", "aria-label", "title"},
}

// itemtype is an attribute that matters on any element.
const itemtype = "itemtype"

// condense reads a page token by token and writes the elements that matter. The
// tree that a browser would build can take quadratic time to build from hostile
// input; that of the condensed page cannot: it is flat, and nothing in it nests.
func condense(page []byte) *condensed {
	c := &condensed{}
	z := html.NewTokenizer(bytes.NewReader(page))
	z.SetMaxBuf(len(page) + 4096)
	elements, structureds, structuredBytes := 0, 0, 0
	open := atom.Atom(0) // the element within out that awaits its end
	heading, quoting := false, false
	var raw atom.Atom // the element whose text is no HTML
	structured := false
	for {
		switch z.Next() {
		case html.ErrorToken:
			c.close(&open)
			return c
		case html.TextToken:
			text := z.Text()
			switch {
			case raw == atom.Script && structured:
				structuredBytes += len(text)
				if structureds++; structureds <= structuredsMax && len(text) <= structuredMax && structuredBytes <= structuredsBytes {
					c.out.WriteString(`<script type="application/ld+json">`)
					c.out.Write(text)
					c.out.WriteString("</script>")
				}
			case raw == atom.Title:
				c.write(open, text)
			case raw == 0:
				c.write(open, text)
				c.read(text)
				if heading && c.headings.Len() < headingsBytesMax {
					c.headings.Write(text)
				}
			}
			if raw != atom.Title {
				raw = 0
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, more := z.TagName()
			tag := atom.Lookup(name)
			var attributes [8][2]string
			n := 0
			wanted, keep := kept[tag]
			for i := 0; more && i < 64; i++ {
				var k, v []byte
				k, v, more = z.TagAttr()
				if (slices.Contains(wanted, string(k)) || string(k) == itemtype || tag == atom.Blockquote && string(k) == "cite") && n < len(attributes) && len(v) <= attributeMax {
					attributes[n] = [2]string{string(k), string(v)}
					n++
				}
			}
			attribute := func(key string) string {
				for _, a := range attributes[:n] {
					if a[0] == key {
						return a[1]
					}
				}
				return ""
			}
			raw = 0
			structured = false
			switch tag {
			case atom.Script:
				raw = tag
				structured = strings.EqualFold(strings.TrimSpace(attribute("type")), "application/ld+json")
				if structured {
					continue
				}
				if attribute("src") == "" {
					continue
				}
				c.scriptFiles++
			case atom.Style, atom.Noscript, atom.Template, atom.Textarea, atom.Noembed, atom.Noframes, atom.Xmp:
				raw = tag
				continue
			case atom.Iframe, atom.Title:
				raw = tag
			case atom.H1:
				heading = true
			case atom.Blockquote:
				quoting = true
				c.quoted = c.quoted || attribute("cite") != ""
			case atom.Cite:
				c.quoted = c.quoted || quoting
			}
			if itemtype := attribute(itemtype); itemtype != "" && !keep {
				// A marker without content stands for any other element.
				tag, keep = atom.Span, true
			}
			if !keep {
				// Words of neighbouring elements are not one word.
				c.write(open, []byte(" "))
				c.read([]byte(" "))
				continue
			}
			if elements++; elements > pageElementsMax {
				continue
			}
			if tag == atom.A || tag == atom.Title {
				c.close(&open)
			}
			c.out.WriteByte('<')
			c.out.WriteString(tag.String())
			for _, a := range attributes[:n] {
				c.out.WriteByte(' ')
				c.out.WriteString(a[0])
				c.out.WriteString(`="`)
				c.out.WriteString(html.EscapeString(a[1]))
				c.out.WriteByte('"')
			}
			c.out.WriteByte('>')
			switch tag {
			case atom.Script, atom.Iframe, atom.Span:
				c.out.WriteString("</" + tag.String() + ">")
			case atom.A, atom.Title:
				open = tag
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			tag := atom.Lookup(name)
			raw = 0
			switch tag {
			case open:
				c.close(&open)
			case atom.H1:
				heading = false
				c.headings.WriteByte('\n')
			case atom.Blockquote:
				quoting = false
			}
			if tag != atom.A && tag != atom.Span && tag != atom.B && tag != atom.I && tag != atom.Em && tag != atom.Strong {
				c.write(open, []byte(" "))
				c.read([]byte(" "))
			}
		}
	}
}

func (c *condensed) close(open *atom.Atom) {
	if *open != 0 {
		c.out.WriteString("</" + open.String() + ">")
		*open = 0
	}
}

// write adds text to the element that is open; text outside of one is not needed in the tree.
func (c *condensed) write(open atom.Atom, text []byte) {
	if open == 0 || c.out.Len() > pageBytesMax {
		return
	}
	c.out.WriteString(html.EscapeString(string(text)))
}

// read counts text that a reader sees and keeps the first of it, spaces joined.
func (c *condensed) read(text []byte) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		space := unicode.IsSpace(r)
		kept := c.text.Len()
		if space {
			if kept > 0 && kept < pageTextMax && c.text.String()[kept-1] != ' ' {
				c.text.WriteByte(' ')
			}
			continue
		}
		c.runes++
		if kept < pageTextMax {
			c.text.WriteRune(r)
		}
	}
}

func (p *Page) readMeta(doc *goquery.Document) {
	doc.Find("meta").EachWithBreak(func(_ int, s *goquery.Selection) bool {
		content := squeeze(s.AttrOr("content", ""), 1000)
		switch strings.ToLower(s.AttrOr("name", "")) {
		case "description":
			set(&p.Description, content)
		case "application-name":
			set(&p.SiteName, content)
		}
		switch strings.ToLower(s.AttrOr("property", "")) {
		case "og:site_name":
			p.SiteName = content
			set(&p.SiteName, content)
		case "og:description":
			set(&p.Description, content)
		}
		return true
	})
}

func (p *Page) readLinks(doc *goquery.Document, base *url.URL) {
	var words strings.Builder
	doc.Find("a[href], iframe[src], embed[src], script[src], link[href]").EachWithBreak(func(_ int, s *goquery.Selection) bool {
		name := goquery.NodeName(s)
		href := s.AttrOr("href", "")
		if name != "a" && name != "link" {
			href = s.AttrOr("src", "")
		}
		u := resolve(base, href)
		if u == nil {
			return true
		}
		switch name {
		case "link":
			kind := strings.ToLower(strings.TrimSpace(s.AttrOr("type", "")))
			rel := strings.Fields(strings.ToLower(s.AttrOr("rel", "")))
			if slices.Contains(rel, "alternate") && (kind == "application/rss+xml" || kind == "application/atom+xml") && len(p.Feeds) < 5 {
				p.Feeds = append(p.Feeds, u)
			}
			return true
		case "script":
			p.Paying = p.Paying || under(u.Hostname(), payingHosts)
			p.Parked = p.Parked || under(u.Hostname(), parkingHosts)
			if _, ok := FindBoard(u); !ok && !TracksApplicants(u) {
				return true
			}
		case "a":
			p.Paying = p.Paying || u.Hostname() == "buy.stripe.com" || u.Hostname() == "checkout.stripe.com"
		}
		text := strings.ToLower(squeeze(s.Text(), linkTextMax))
		if text == "" {
			text = strings.ToLower(squeeze(s.AttrOr("aria-label", s.AttrOr("title", "")), linkTextMax))
		}
		p.Links = append(p.Links, Link{URL: u, Text: text})
		if words.Len() < headingsBytesMax {
			words.WriteString(text)
			words.WriteByte('\n')
		}
		return len(p.Links) < pageLinksMax
	})
	p.LinkText = strings.TrimSpace(words.String())
}

// readLanguages collects what rel=alternate and links say about other languages.
func (p *Page) readLanguages(doc *goquery.Document) {
	found := map[string]bool{}
	add := func(tag string) {
		tag, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		tag, _, _ = strings.Cut(tag, "_")
		if (len(tag) == 2 || len(tag) == 3) && isLetters(tag) && len(found) < 400 {
			found[tag] = true
		}
	}
	doc.Find("[hreflang]").Each(func(_ int, s *goquery.Selection) { add(s.AttrOr("hreflang", "")) })
	add(doc.Find("html").AttrOr("lang", ""))
	for tag := range found {
		p.Languages = append(p.Languages, tag)
	}
	slices.Sort(p.Languages)
}

func isLetters(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < 'a' || r > 'z' }) < 0
}

func (p *Page) readStructured(doc *goquery.Document) {
	var words strings.Builder
	doc.Find(`script[type="application/ld+json"]`).Each(func(_ int, s *goquery.Selection) {
		found := ParseStructured([]byte(s.Text()))
		p.Reviewed = p.Reviewed || found.Reviewed
		if words.Len() < headingsBytesMax {
			words.WriteString(found.Text)
		}
		p.Organizations = append(p.Organizations, found.Organizations...)
	})
	p.Organizations = p.Organizations[:min(len(p.Organizations), organizationsMax)]
	p.Structured = strings.TrimSpace(words.String())
}

// resolve makes a link absolute. It is nil for what is no link to a web page.
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
	return (u.Scheme == "http" && (port == "" || port == "80") || u.Scheme == "https" && (port == "" || port == "443")) && u.Hostname() != "" && u.User == nil
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

// squeeze joins runs of spaces and cuts the text at a number of bytes.
func squeeze(text string, max int) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > max {
		text = strings.ToValidUTF8(text[:max], "")
	}
	return text
}

func set(field *string, text string) {
	if *field == "" {
		*field = text
	}
}
