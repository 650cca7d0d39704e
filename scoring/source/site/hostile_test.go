package site

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile returns pages of a size in bytes that some HTML parsers read very slowly.
func hostile(size int) map[string]string {
	fill := func(unit string) string { return strings.Repeat(unit, size/len(unit)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size-64; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	whole := func(list string) string { return list[:strings.LastIndexByte(list, '}')+1] }
	half := func(a, b string) string { return a[:len(a)/2] + b[:len(b)/2] }
	return map[string]string{
		"nested div":           fill("<div>"),
		"nested formatting":    half(numbered("<b x=%d>"), fill("<p>")),
		"nested links":         numbered("<a href=/%d>"),
		"links and misnesting": numbered("<a href=/%d><p></a>"),
		"tables":               fill("<table><a>"),
		"end tags":             half(fill("<div>"), fill("</span>")),
		"attributes":           "<a " + numbered("a%d=1 ") + ">",
		"one attribute":        "<a href=\"" + fill("x") + "\">",
		"long links":           numbered("<a href=\"/" + strings.Repeat("x", 1900) + "%d\">x</a>"),
		"unclosed comment":     fill("<!--"),
		"unclosed scripts":     fill("<script>"),
		"empty scripts":        fill("<script src=x></script>"),
		"structured data": fill(`<script type="application/ld+json">{"@type":"Organization","name":"a","x":` +
			strings.Repeat(`[{"@graph":`, 25) + "1" + strings.Repeat(`}]`, 25) + `}</script>`),
		"structured list": `<script type="application/ld+json">[` +
			strings.Repeat(`{"@type":"Organization","name":"a","founder":[{"@id":"b"}]},`, 4000) + `1]</script>`,
		"structured wide": strings.Repeat(`<script type="application/ld+json">{`+whole(numbered(`"%d":{"@id":"b"},`)[:size/8-100])+
			`}</script>`, 8),
		"structured people": strings.Repeat(`<script type="application/ld+json">{"@type":"Organization","name":"a","founder":[`+
			strings.Repeat(`[{"name":"x"}],`, size/8/20)+`0]}</script>`, 8),
		"prices":        fill("$1,1,"),
		"spaces":        fill("$          "),
		"parked words":  fill("website coming soon "),
		"entities":      fill("&amp"),
		"markers":       fill("<i itemtype=x>"),
		"languages":     numbered("<link hreflang=a%d>"),
		"less-than":     fill("<"),
		"select":        fill("<select><option>"),
		"svg":           fill("<svg><math><annotation-xml>"),
		"template":      fill("<template><tr>"),
		"plaintext":     "<plaintext>" + fill("<a href=x>"),
		"zero bytes":    fill("\x00<"),
		"invalid UTF-8": fill("\xff\xfe<a>\xf0"),
		"headings":      fill("<h1>x"),
		"frameset":      fill("<frameset><frame>"),
	}
}

func TestHostilePagesKeepBounds(t *testing.T) {
	t.Parallel()
	for name, page := range hostile(256 << 10) {
		p := parse(t, page)
		if len(p.Links) > pageLinksMax || len(p.Headings) > headingsBytesMax || len(p.LinkText) > headingsBytesMax ||
			len(p.Organizations) > organizationsMax {
			t.Errorf("%s: the bounds do not hold: %d links, %d bytes of headings, %d of links, %d organisations", name, len(p.Links),
				len(p.Headings), len(p.LinkText), len(p.Organizations))
		}
	}
}

// BenchmarkHostilePage measures the processor time of one page of 2 MiB.
func BenchmarkHostilePage(b *testing.B) {
	base := mustURL(b, "https://www.quillworks.com/")
	for name, page := range hostile(pageBytesMax) {
		body := []byte(page)
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				ParsePage(body, base)
			}
		})
	}
}

// largeSitemaps are files of 50,000 entries, some of which take long, by name.
func largeSitemaps() map[string]string {
	fill := func(root, entry string) string {
		var b strings.Builder
		b.WriteString("<" + root + ">")
		for i := range sitemapURLs {
			fmt.Fprintf(&b, entry, i)
		}
		return b.String() + "</" + root + ">"
	}
	return map[string]string{
		"index":     fill("sitemapindex", "<sitemap><loc>https://quillworks.com/maps/%d.xml</loc></sitemap>"),
		"articles":  fill("urlset", "<url><loc>https://quillworks.com/blog/%d</loc><lastmod>2026-10-02</lastmod></url>"),
		"odd dates": fill("urlset", "<url><loc>https://a.com/blog/%d</loc><lastmod>5 de outubro de 2026 às 1h02</lastmod></url>"),
		"no dates":  fill("urlset", "<url><loc>https://a.com/blog/%d</loc><lastmod>1 1 1 1 1 1 1 1 1 1 1 1</lastmod></url>"),
		"entities":  fill("urlset", "<url><loc>https://a.com/blog/%d?&amp;&nbsp;&foo;&&</loc></url>"),
		"no UTF-8":  fill("urlset", "<url><loc>https://a.com/blog/%d\xff\xfe</loc></url>"),
		"end tags":  fill("urlset", "<url><loc>https://a.com/blog/%d</a></loc></b></url>"),
		"lines":     strings.ReplaceAll(fill("x", "https://a.com/blog/%d\n"), "<x>", ""),
	}
}

func TestLargeSitemapsKeepBounds(t *testing.T) {
	t.Parallel()
	for name, text := range largeSitemaps() {
		s, err := ParseSitemap([]byte(text), "https://quillworks.com/sitemap.xml", now)
		if err != nil || s.Count > sitemapURLs || len(s.Children) > childrenKept || name == "index" && s.Count != sitemapURLs {
			t.Errorf("%s: %d entries, %d kept, %v", name, s.Count, len(s.Children), err)
		}
	}
}

// BenchmarkLargeSitemap measures the time and the memory of one sitemap of 50,000 entries.
func BenchmarkLargeSitemap(b *testing.B) {
	for name, text := range largeSitemaps() {
		body := []byte(text)
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(min(len(body), xmlBytesMax)))
			for b.Loop() {
				_, _ = ParseSitemap(body, "https://quillworks.com/sitemap.xml", now)
			}
		})
	}
}

// hostileLinks are links of one page that take long to sort, by name.
func hostileLinks(t testing.TB) map[string][]Link {
	const own, other = "https://www.quillworks.com/", "https://www.ovenly.com/"
	fill := func(link, text string) []Link {
		u := mustURL(t, link)
		return slices.Repeat([]Link{{URL: u, Text: text[:min(len(text), linkTextMax)]}}, pageLinksMax)
	}
	long := strings.Repeat("a ", 60)
	return map[string][]Link{
		"named":        fill(own+"p/7", "about "+long),
		"named away":   fill(other+"jobs", "jobs at "+long),
		"accents":      fill(own+strings.Repeat("ü/", 900), "über "+strings.Repeat("ü ", 55)),
		"signs":        fill(own+"p/7", strings.Repeat("( 1 ", 30)),
		"end signs":    fill(own+"p/7", "a"+strings.Repeat(" ", 110)+"a"),
		"long paths":   fill(own+strings.Repeat("security/", 200), "security"),
		"many hosts":   fill("https://"+strings.Repeat("jobs.", 40)+"ovenly.com/", "jobs at quillworks"),
		"names of two": fill(own+"q/security", "about q u i l l w"),
	}
}

func TestHostileLinksAreSorted(t *testing.T) {
	t.Parallel()
	for name, links := range hostileLinks(t) {
		for kind, u := range Sort(links, mustURL(t, "https://www.quillworks.com/"), strings.Repeat("q", 300)) {
			if u != nil && !webScheme(u) {
				t.Errorf("%s: %s leads to %s", name, kindNames[kind], u)
			}
		}
	}
}

// BenchmarkHostileLinks measures the processor time of the links of one page.
func BenchmarkHostileLinks(b *testing.B) {
	base := mustURL(b, "https://www.quillworks.com/")
	for name, links := range hostileLinks(b) {
		b.Run(strings.ReplaceAll(name, " ", "_"), func(b *testing.B) {
			for b.Loop() {
				Sort(links, base)
			}
		})
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add([]byte(home))
	for _, page := range hostile(2000) {
		f.Add([]byte(page))
	}
	base := mustURL(f, "https://www.quillworks.com/")
	f.Fuzz(func(t *testing.T, body []byte) {
		p := ParsePage(body, base)
		for _, l := range p.Links {
			if !webScheme(l.URL) {
				t.Errorf("a link leads to %s", l.URL)
			}
		}
		for _, text := range []string{p.Title, p.Description, p.SiteName, p.Headings, p.LinkText, p.Structured} {
			if utf8.Valid(body) && !utf8.ValidString(text) {
				t.Errorf("%q is no text", text)
			}
		}
		for _, u := range Sort(p.Links, base) {
			if u != nil && !webScheme(u) {
				t.Errorf("a link leads to %s", u)
			}
		}
	})
}

func FuzzParseStructured(f *testing.F) {
	f.Add([]byte(`{"@graph":[{"@type":"Organization","name":"A","founder":{"@id":"#b"}},{"@id":"#b","name":"B"}]}`))
	f.Fuzz(func(t *testing.T, script []byte) {
		for _, org := range ParseStructured(script).Organizations {
			if org.Employees < 0 || len(org.People) > namesMax || len(org.SameAs) > namesMax || org.Country != "" && len(org.Country) != 2 {
				t.Errorf("%+v", org)
			}
		}
	})
}

func FuzzParseFeed(f *testing.F) {
	f.Add([]byte(`<rss><item><pubDate>Mon, 05 Oct 2026 00:00:00 +0000</pubDate></item></rss>`))
	f.Add([]byte(`<feed><entry><published>2026-10-05T00:00:00Z</published></entry></feed>`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if d, _ := ParseFeed(body, now); d.Newest.After(now.AddDate(0, 0, 2)) || d.Recent < 0 || d.Recent > 0 && d.Newest.IsZero() {
			t.Errorf("%+v", d)
		}
	})
}

func FuzzParseSitemap(f *testing.F) {
	f.Add([]byte(`<urlset><url><loc>https://a.com/blog/x</loc><lastmod>2026-10-05</lastmod></url></urlset>`))
	f.Add([]byte(`<sitemapindex><sitemap><loc>https://a.com/x.xml</loc></sitemap></sitemapindex>`))
	f.Add([]byte("https://a.com/\nhttps://a.com/b\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := ParseSitemap(body, "https://a.com/sitemap.xml", now)
		if s.Count > sitemapURLs || len(s.Children) > childrenKept || s.CaseStudies > s.Count || err != nil && s.Count > 0 {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

func FuzzValidSecurityTXT(f *testing.F) {
	f.Add([]byte("Contact: mailto:a@b\nExpires: 2027-01-01T00:00:00Z"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if ValidSecurityTXT(body, "text/plain", now) && !strings.Contains(strings.ToLower(string(body)), "contact") {
			t.Error("valid without a contact")
		}
	})
}
