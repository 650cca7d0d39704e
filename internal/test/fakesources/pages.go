package fakesources

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// links of the home page, with their texts.
func (s *Site) links() []struct {
	shown      bool
	path, text string
} {
	return []struct {
		shown      bool
		path, text string
	}{
		{s.Team, "/about", "About"}, {s.Careers, "/careers", "Careers"}, {s.Pricing, "/pricing", "Pricing"},
		{s.Customers, "/customers", "Customers"},
		{s.Docs, "/docs", "Docs"}, {s.Blog, "/blog", "Blog"}, {s.Security, "/security", "Security"}, {s.Products, "/products", "Products"},
		{s.Integrations, "/integrations", "Integrations"}, {s.Login, "/login", "Log in"}, {s.Status, "/system-status", "System status"},
		{s.Sales, "/contact-sales", "Contact sales"}, {s.Terms, "/refund-policy", "Refund policy"},
	}
}

// page is one page of the company's site.
func (c *Company) page(at *url.URL, now time.Time) reply {
	s := &c.Site
	html := func(body string) reply {
		r := reply{kind: "text/html; charset=utf-8", body: []byte(body)}
		if s.HSTS {
			r.header = map[string]string{"Strict-Transport-Security": "max-age=31536000"}
		}
		return r
	}
	missing := reply{status: http.StatusNotFound, kind: "text/html", body: []byte("<h1>Not found</h1>")}
	switch at.Path {
	case "/":
		return html(c.home())
	case "/robots.txt":
		return reply{kind: "text/plain", body: []byte("User-agent: *\nDisallow: /private\n")}
	case "/.well-known/security.txt":
		if !s.SecurityText {
			return missing
		}
		return reply{kind: "text/plain", body: fmt.Appendf(nil, "Contact: mailto:security@%s\nExpires: %s\n", c.Domain,
			now.Add(300*day).Format(time.RFC3339))}
	case "/sitemap.xml":
		if s.Pages == 0 {
			return missing
		}
		var b strings.Builder
		b.WriteString(`<?xml version="1.0" encoding="UTF-8"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">`)
		for i := range s.Pages {
			path := fmt.Sprintf("/topic/%d", i)
			if i < s.CaseStudies {
				path = fmt.Sprintf("/customers/story-%d", i)
			}
			fmt.Fprintf(&b, "<url><loc>https://%s%s</loc></url>", c.Domain, path)
		}
		b.WriteString("</urlset>")
		return reply{kind: "application/xml", body: []byte(b.String())}
	case "/feed":
		if s.Posts == nil {
			return missing
		}
		var b strings.Builder
		b.WriteString(`<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>`)
		for i, post := range s.Posts {
			fmt.Fprintf(&b, "<item><title>%d</title><pubDate>%s</pubDate></item>", i, post.Format(time.RFC1123Z))
		}
		b.WriteString("</channel></rss>")
		return reply{kind: "application/rss+xml", body: []byte(b.String())}
	}
	for _, link := range s.links() {
		if link.path != at.Path || !link.shown {
			continue
		}
		more := ""
		switch {
		case link.path == "/pricing" && s.Priced:
			more = "<p>From $29 / month.</p>"
		case link.path == "/careers":
			switch s.Board {
			case "greenhouse":
				more = `<a href="https://boards.greenhouse.io/` + c.Label + `">See all</a>`
			case "lever":
				more = `<a href="https://jobs.lever.co/` + c.Label + `">See all</a>`
			case "ashby":
				more = `<a href="https://jobs.ashbyhq.com/` + c.Label + `">See all</a>`
			case "":
			default:
				more = `<a href="https://` + s.Board + `/jobs">See all</a>`
			}
		}
		return html("<html lang=en><title>" + link.text + "</title><body><p>" + prose + "</p>" + more + "</body></html>")
	}
	return missing
}

// prose is text without evidence for any signal.
const prose = "We have been doing what we do for as long as we can remember, and those who know us know that we do it well. " +
	"It began in a small room with a large table, and the table is still there. Whoever comes by may sit down at it and have a cup of " +
	"tea with us."

func (c *Company) home() string {
	s := &c.Site
	var b strings.Builder
	fmt.Fprintf(&b,
		`<!doctype html><html lang="en"><head><title>%s | %s</title><meta name="description" content="%s"><meta property="og:site_name" content="%s">`,
		c.Name, c.Sector.words, c.Sector.words, c.Name)
	for _, language := range s.Languages {
		fmt.Fprintf(&b, `<link rel="alternate" hreflang="%s" href="https://%s/%s/">`, language, c.Domain, language)
	}
	if s.Posts != nil {
		b.WriteString(`<link rel="alternate" type="application/rss+xml" href="/feed">`)
	}
	organization := object{"@context": "https://schema.org", "@type": "Organization", "name": c.Name, "url": "https://" + c.Domain}
	if s.Employees > 0 {
		organization["numberOfEmployees"] = object{"@type": "QuantitativeValue", "value": s.Employees}
	}
	if !s.Founded.IsZero() {
		organization["foundingDate"] = s.Founded.Format(time.DateOnly)
	}
	var founders list
	for _, name := range s.Leaders {
		founders = append(founders, object{"@type": "Person", "name": name})
	}
	if founders != nil {
		organization["founder"] = founders
	}
	fmt.Fprintf(&b, `<script type="application/ld+json">%s</script>`, page(organization).body)
	if s.Paying {
		b.WriteString(`<script src="https://js.stripe.com/v3/"></script>`)
	}
	fmt.Fprintf(&b, "</head><body><h1>%s</h1><p>%s</p>", c.Name, prose)
	if s.Testimonial {
		b.WriteString(`<blockquote cite="https://zz-happy.net/">They are lovely.</blockquote>`)
	}
	for _, link := range s.links() {
		if link.shown {
			fmt.Fprintf(&b, `<a href="%s">%s</a> `, link.path, link.text)
		}
	}
	for _, network := range s.Social {
		fmt.Fprintf(&b, `<a href="https://www.%s/%s">us</a> `, network, c.Label)
	}
	b.WriteString("</body></html>")
	return b.String()
}
