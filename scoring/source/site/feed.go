package site

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
)

// cadence is the span in which new content counts.
const cadence = 90 * 24 * time.Hour

// Dated is the publication dates of some content, as of an instant.
type Dated struct {
	// Newest is zero if nothing has a date.
	Newest time.Time
	// Recent counts what was published in the last 90 days.
	Recent int
}

// add counts a date. It ignores dates before 1990 and more than a day in the future.
func (d *Dated) add(t, now time.Time) {
	if t.IsZero() || t.Year() < 1990 || t.After(now.Add(24*time.Hour)) {
		return
	}
	if t.After(d.Newest) {
		d.Newest = t
	}
	if now.Sub(t) <= cadence {
		d.Recent++
	}
}

// Merge combines two lists that can overlap: the newest date, and the higher count.
func (d *Dated) Merge(other Dated) {
	if other.Newest.After(d.Newest) {
		d.Newest = other.Newest
	}
	d.Recent = max(d.Recent, other.Recent)
}

// Bounds of one XML document.
const (
	xmlBytesMax = 4 << 20
	xmlDepthMax = 64
	feedItems   = 2_000
	sitemapURLs = 50_000
)

// ErrNotXML means that a body is not a document of the expected kind.
var ErrNotXML = errors.New("not the kind of document that was asked for")

// otherCharset matches an XML declaration with a character set other than UTF-8.
var otherCharset = regexp.MustCompile(`(?i)^\s*<\?xml[^>]{0,200}encoding\s*=\s*["'][^"'u]`)

// newDecoder returns an XML decoder that also knows the entities of HTML, and reads unknown ones as
// text. It expands no entities that a document declares. It replaces bytes that are not UTF-8.
func newDecoder(body []byte) *xml.Decoder {
	if !utf8.Valid(body) && !otherCharset.Match(body[:min(len(body), 1000)]) {
		body = bytes.ToValidUTF8(body, []byte("\uFFFD"))
	}
	d := xml.NewDecoder(bytes.NewReader(body))
	d.CharsetReader = charset.NewReaderLabel
	d.Strict, d.Entity = false, xml.HTMLEntity
	return d
}

// ParseFeed parses an RSS, RDF or Atom feed of at most 4 MiB. After a syntax error it returns
// what it has read. A document that is not a feed is ErrNotXML.
func ParseFeed(body []byte, now time.Time) (Dated, error) {
	d := newDecoder(body[:min(len(body), xmlBytesMax)])
	var dated Dated
	var item Dated // dates of the current item
	depth, items, root := 0, 0, ""
	within := false
	for items < feedItems {
		token, err := d.Token()
		if err != nil {
			if root == "" {
				return Dated{}, fmt.Errorf("feed: %w", ErrNotXML)
			}
			return dated, nil
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > xmlDepthMax {
				return dated, nil
			}
			name := token.Name.Local
			if root == "" {
				if root = name; root != "rss" && root != "feed" && root != "RDF" {
					return Dated{}, fmt.Errorf("feed: %w", ErrNotXML)
				}
			}
			switch {
			case name == "item" || name == "entry":
				within, item = true, Dated{}
			case within && (name == "pubDate" || name == "published" || name == "date" || name == "updated"):
				text, err := elementText(d)
				depth--
				if err != nil {
					return dated, nil
				}
				// The publication date counts; the update only if there is no other date.
				if t := parseDate(text); !t.IsZero() && (item.Newest.IsZero() || name != "updated") {
					item.Newest = t
				}
			}
		case xml.EndElement:
			depth--
			if name := token.Name.Local; within && (name == "item" || name == "entry") {
				dated.add(item.Newest, now)
				within = false
				items++
			}
		}
	}
	return dated, nil
}

// elementText returns the first 2 KiB of text up to the end of the element that was just opened.
func elementText(d *xml.Decoder) (string, error) {
	var b strings.Builder
	for depth := 1; depth > 0; {
		token, err := d.Token()
		if err != nil {
			return "", err
		}
		switch token := token.(type) {
		case xml.CharData:
			b.Write(token[:min(len(token), attributeMax-b.Len())])
		case xml.StartElement:
			if depth++; depth > xmlDepthMax {
				return "", errors.New("nested too deep")
			}
		case xml.EndElement:
			depth--
		}
	}
	return strings.TrimSpace(b.String()), nil
}

// Sitemap is the content of one sitemap file.
type Sitemap struct {
	// Index is true if the file lists other sitemaps; these are in Children.
	Index    bool
	Children []string
	// Count is the number of pages, or of the children of an index.
	Count int
	// CaseStudies counts pages below a path of case studies or customers.
	CaseStudies int
	// Content is the dates of articles.
	Content Dated
}

// childrenKept bounds the returned children of an index. Count includes all.
const childrenKept = 200

// ParseSitemap parses a sitemap, an index of sitemaps, or a plain list of URLs, of at most 4 MiB
// and 50,000 entries. location is its URL: every page of a sitemap that is named after a blog
// counts as an article. After a syntax error it returns what it has read. A body that is not a
// sitemap is ErrNotXML.
func ParseSitemap(body []byte, location string, now time.Time) (Sitemap, error) {
	body = bytes.TrimLeft(bytes.TrimPrefix(body[:min(len(body), xmlBytesMax)], []byte("\xef\xbb\xbf")), " \t\r\n")
	s := sitemapReader{now: now, content: contentFile(location), days: map[int]int{}}
	if !bytes.HasPrefix(body, []byte("<")) {
		return s.lines(body)
	}
	return s.xml(body)
}

type sitemapReader struct {
	now     time.Time
	content bool
	found   Sitemap
	// days counts dates of articles by day, to detect files whose dates are the time of their
	// generation.
	days  map[int]int
	dated int
	// free counts dates that are not of the form that sitemaps should have.
	free int
}

// freeDates bounds the dates of one sitemap that are not of the form of the protocol. They take long.
const freeDates = 2_000

// date parses a date; zero if it is malformed.
func (s *sitemapReader) date(text string) time.Time {
	if t := parseW3C(text); !t.IsZero() || s.free >= freeDates {
		return t
	}
	s.free++
	return parseDate(text)
}

func (s *sitemapReader) lines(body []byte) (Sitemap, error) {
	for line := range bytes.Lines(body) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		if u, err := url.Parse(string(line[:min(len(line), attributeMax)])); err != nil || !webScheme(u) {
			break
		}
		s.page(string(line), time.Time{})
		if s.found.Count >= sitemapURLs {
			break
		}
	}
	if s.found.Count == 0 {
		return Sitemap{}, fmt.Errorf("sitemap: %w", ErrNotXML)
	}
	return s.found, nil
}

func (s *sitemapReader) xml(body []byte) (Sitemap, error) {
	d := newDecoder(body)
	depth, root := 0, ""
	var location string
	var changed, published time.Time
	for s.found.Count < sitemapURLs {
		token, err := d.Token()
		if err != nil {
			if root == "" {
				return Sitemap{}, fmt.Errorf("sitemap: %w", ErrNotXML)
			}
			break
		}
		switch token := token.(type) {
		case xml.StartElement:
			if depth++; depth > xmlDepthMax {
				return s.finish(), nil
			}
			name := token.Name.Local
			if root == "" {
				if root = name; root != "urlset" && root != "sitemapindex" {
					return Sitemap{}, fmt.Errorf("sitemap: %w", ErrNotXML)
				}
				s.found.Index = root == "sitemapindex"
			}
			switch {
			case depth == 2 && (name == "url" || name == "sitemap"):
				location, changed, published = "", time.Time{}, time.Time{}
			case depth == 3 && name == "loc", depth == 3 && name == "lastmod", depth == 4 && name == "publication_date":
				text, err := elementText(d)
				depth--
				if err != nil {
					return s.finish(), nil
				}
				switch name {
				case "loc":
					location = text
				case "lastmod":
					changed = s.date(text)
				case "publication_date":
					published = s.date(text)
				}
			}
		case xml.EndElement:
			depth--
			if depth != 1 || location == "" {
				continue
			}
			switch token.Name.Local {
			case "sitemap":
				s.found.Count++
				if len(s.found.Children) < childrenKept {
					s.found.Children = append(s.found.Children, location)
				}
			case "url":
				if !published.IsZero() {
					s.found.Content.add(published, s.now)
					changed = time.Time{}
				}
				s.page(location, changed)
			}
			location = ""
		}
	}
	return s.finish(), nil
}

// page counts one page. changed is zero if it is unknown.
func (s *sitemapReader) page(location string, changed time.Time) {
	s.found.Count++
	u, err := url.Parse(location[:min(len(location), attributeMax)])
	if err != nil {
		return
	}
	segments := pathSegments(u)
	if len(segments) > 1 && has(segments[:len(segments)-1], caseStudySegments) {
		s.found.CaseStudies++
	}
	if changed.IsZero() || !s.content && (len(segments) < 2 || !has(segments[:len(segments)-1], contentSegments)) &&
		!contentLabels[firstLabel(u)] {
		return
	}
	if changed.After(s.now.Add(24*time.Hour)) || changed.Year() < 1990 {
		return
	}
	s.dated++
	s.days[int(changed.Unix()/86400)]++
}

// stampedShare is the share of equal dates from which they count as the date of the file's
// generation.
const stampedShare = 0.9

func (s *sitemapReader) finish() Sitemap {
	for day, count := range s.days {
		if s.dated >= 10 && float64(count) >= stampedShare*float64(s.dated) {
			continue
		}
		before := s.found.Content.Recent
		s.found.Content.add(time.Unix(int64(day)*86400, 0).UTC(), s.now)
		if s.found.Content.Recent > before {
			s.found.Content.Recent = before + count
		}
	}
	return s.found
}

// contentFile reports whether the name of a sitemap is one of a list of articles.
func contentFile(location string) bool {
	u, err := url.Parse(location)
	if err != nil {
		return false
	}
	name := strings.ToLower(u.Path[strings.LastIndexByte(u.Path, '/')+1:])
	for _, word := range []string{"post-", "post_", "posts", "blog", "news", "article", "press"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return strings.HasPrefix(name, "post.") || strings.HasPrefix(name, "sitemap-post")
}

// ValidSecurityTXT reports whether a body is a valid security.txt: media type text/plain, a
// contact, and one expiry in the future.
func ValidSecurityTXT(body []byte, contentType string, now time.Time) bool {
	const bytesMax = 32 << 10
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "text/plain" {
		return false
	}
	contact, expires := false, 0
	valid := false
	for line := range bytes.Lines(body[:min(len(body), bytesMax)]) {
		key, value, ok := strings.Cut(string(line), ":")
		if !ok || strings.HasPrefix(key, "#") {
			continue
		}
		value = strings.TrimSpace(value)
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "contact":
			contact = contact || value != ""
		case "expires":
			expires++
			t, err := time.Parse(time.RFC3339, strings.ToUpper(value))
			valid = err == nil && t.After(now)
		}
	}
	return contact && valid && expires == 1
}
