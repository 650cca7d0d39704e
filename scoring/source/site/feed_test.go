package site

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParseFeed(t *testing.T) {
	t.Parallel()
	day := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, time.UTC) }
	f := func(name, feed string, want Dated, failed bool) {
		t.Helper()
		got, err := ParseFeed([]byte(feed), now)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != failed {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	f("RSS", `<?xml version="1.0"?><rss version="2.0"><channel><pubDate>Sun, 01 Nov 2026 10:00:00 GMT</pubDate>
		<item><pubDate>Mon, 05 Oct 2026 00:00:00 +0000</pubDate></item><item><pubDate>Wed, 1 Jan 2020 00:00:00 GMT</pubDate></item></channel></rss>`, Dated{day(2026, 10, 5), 1}, false)
	f("Atom, the first publication counts", `<feed xmlns="http://www.w3.org/2005/Atom"><updated>2026-10-31T00:00:00Z</updated>
		<entry><published>2026-01-01T00:00:00Z</published><updated>2026-10-30T00:00:00Z</updated></entry><entry><updated>2026-09-01T00:00:00Z</updated></entry></feed>`, Dated{day(2026, 9, 1), 1}, false)
	f("RDF", `<rdf:RDF xmlns:rdf="x" xmlns:dc="y"><item><dc:date>2026-10-02</dc:date></item></rdf:RDF>`, Dated{day(2026, 10, 2), 1}, false)
	f("the future is no date", `<rss><item><pubDate>Fri, 01 Jan 2038 00:00:00 GMT</pubDate></item></rss>`, Dated{}, false)
	f("cut off", `<rss><item><pubDate>Mon, 05 Oct 2026 00:00:00 +0000</pubDate></item><item><pubD`, Dated{day(2026, 10, 5), 1}, false)
	f("no items", `<rss><channel/></rss>`, Dated{}, false)
	f("a page", `<html><body>Not here</body></html>`, Dated{}, true)
	f("empty", ``, Dated{}, true)
	f("entities are not expanded",
		`<!DOCTYPE rss [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;">]><rss><item><pubDate>&b;</pubDate></item></rss>`, Dated{}, false)
	item := func(inside string) string {
		return `<rss><channel><title>A&nbsp;&eacute; &amp; &foo; & b</title><item>` + inside + `</item></channel></rss>`
	}
	f("entities of HTML, and unknown ones", item(`<pubDate>Mon, 05 Oct 2026 00:00:00 Z</pubDate>`), Dated{day(2026, 10, 5), 1}, false)
	f("an unreadable date after the publication", item(`<pubDate>Mon, 05 Oct 2026 00:00:00 Z</pubDate><dc:date>soon</dc:date>`),
		Dated{day(2026, 10, 5), 1}, false)
	f("an unreadable date before it", item(`<dc:date></dc:date><pubDate>lun, 05 oct 2026 00:00:00 Z</pubDate>`), Dated{day(2026, 10, 5), 1},
		false)
	f("an update before the publication", item(`<updated>2026-10-30</updated><pubDate>2026-10-05</pubDate><updated>2026-10-29</updated>`),
		Dated{day(2026, 10, 5), 1}, false)
	f("open elements", item(`<description><p>one<br>two</p></description>`)+`<item><pubDate>5/10/2026 12:00:00 AM</pubDate></item>`,
		Dated{day(2026, 5, 10), 0}, false)
	f("no UTF-8", item("<title>\xc9\xe9</title><pubDate>2026-10-05</pubDate>"), Dated{day(2026, 10, 5), 1}, false)
	f("no UTF-8, although declared", `<?xml version="1.0" encoding="UTF-8"?>`+item("<title>\xc9</title><pubDate>2026-10-05</pubDate>"),
		Dated{day(2026, 10, 5), 1}, false)
	f("nested deep", `<rss>`+strings.Repeat("<a>", 100000), Dated{}, false)
	f("an older character set", `<?xml version="1.0" encoding="ISO-8859-1"?><rss><item><title>`+"\xe9"+
		`</title><pubDate>Mon, 05 Oct 2026 00:00:00 +0000</pubDate></item></rss>`, Dated{day(2026, 10, 5), 1}, false)
}

func TestParseSitemap(t *testing.T) {
	t.Parallel()
	f := func(name, location, text string, want Sitemap, failed bool) {
		t.Helper()
		got, err := ParseSitemap([]byte(text), location, now)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != failed {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	const own = "https://quillworks.com/sitemap.xml"
	f("pages", own, `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
		<url><loc>https://quillworks.com/</loc><lastmod>2026-10-31</lastmod></url>
		<url><loc> https://quillworks.com/customers/ovenly </loc></url><url><loc>https://quillworks.com/customers</loc></url>
		<url><loc>https://quillworks.com/blog/a</loc><lastmod>2026-10-02T10:00:00+02:00</lastmod></url>
		<url><loc>https://quillworks.com/blog/b</loc><lastmod>2025-10-02</lastmod></url></urlset>`,
		Sitemap{Count: 5, CaseStudies: 1, Content: Dated{time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC), 1}}, false)
	f("an index", own,
		`<sitemapindex><sitemap><loc>https://quillworks.com/a.xml</loc></sitemap><sitemap><loc>https://quillworks.com/b.xml.gz</loc></sitemap></sitemapindex>`,
		Sitemap{Index: true, Count: 2, Children: []string{"https://quillworks.com/a.xml", "https://quillworks.com/b.xml.gz"}}, false)
	f("news", own,
		`<urlset><url><loc>https://quillworks.com/x</loc><n:news xmlns:n="y"><n:publication_date>2026-10-20</n:publication_date></n:news></url></urlset>`,
		Sitemap{Count: 1, Content: Dated{time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC), 1}}, false)
	f("a file of posts", "https://quillworks.com/post-sitemap.xml",
		`<urlset><url><loc>https://quillworks.com/hello</loc><lastmod>2026-10-20</lastmod></url></urlset>`,
		Sitemap{Count: 1, Content: Dated{time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC), 1}}, false)
	var stamped strings.Builder
	for i := range 20 {
		fmt.Fprintf(&stamped, "<url><loc>https://quillworks.com/blog/%d</loc><lastmod>2026-10-31</lastmod></url>", i)
	}
	f("one date on all pages is that of the file", own, "<urlset>"+stamped.String()+"</urlset>", Sitemap{Count: 20}, false)
	f("lines", own, "https://quillworks.com/\nhttps://quillworks.com/customers/a\n\n", Sitemap{Count: 2, CaseStudies: 1}, false)
	f("cut off", own, `<urlset><url><loc>https://quillworks.com/</loc></url><url><loc>https://quill`, Sitemap{Count: 1}, false)
	f("a page", own, `<html></html>`, Sitemap{}, true)
	f("an excuse", own, `not found`, Sitemap{}, true)
	f("empty", own, ``, Sitemap{}, true)
	many := "<urlset>" + strings.Repeat("<url><loc>https://a.b/</loc></url>", 60_000) + "</urlset>"
	f("more than are read", own, many, Sitemap{Count: 50_000}, false)
}

func TestValidSecurityTXT(t *testing.T) {
	t.Parallel()
	f := func(name, text, contentType string, want bool) {
		t.Helper()
		if got := ValidSecurityTXT([]byte(text), contentType, now); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	const good = "# comment\nContact: mailto:security@quillworks.com\nExpires: 2027-01-01T00:00:00.000Z\n"
	f("good", good, "text/plain; charset=utf-8", true)
	f("signed", "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\ncontact: https://quillworks.com/s\r\nexpires: 2027-01-01t00:00:00z\n"+
		"-----BEGIN PGP SIGNATURE-----\n", "text/plain", true)
	f("a page", good, "text/html", false)
	f("no type", good, "", false)
	f("expired", "Contact: mailto:a@b\nExpires: 2026-10-31T00:00:00Z", "text/plain", false)
	f("no expiry", "Contact: mailto:a@b", "text/plain", false)
	f("two expiries", good+"Expires: 2028-01-01T00:00:00Z\n", "text/plain", false)
	f("no contact", "Expires: 2027-01-01T00:00:00Z", "text/plain", false)
	f("commented out", "#Contact: mailto:a@b\nExpires: 2027-01-01T00:00:00Z", "text/plain", false)
	f("empty", "", "text/plain", false)
}
