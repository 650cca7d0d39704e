package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"companyscore/internal/test/fakenet"
)

func TestWebReadsSitemaps(t *testing.T) {
	t.Parallel()
	const host = "https://brindleworks.com"
	robots := func(files ...string) reply {
		return reply{200, "text/plain", "Sitemap: " + host + strings.Join(files, "\nSitemap: "+host)}
	}
	index := func(files ...string) reply {
		return reply{200, "application/xml", sitemapIndex(strings.Split(host+strings.Join(files, " "+host), " ")...)}
	}
	pages := func(n int) reply { return reply{200, "application/xml", sitemapOf(n, "p/", "")} }
	var many []string
	for i := range 145 {
		many = append(many, fmt.Sprintf("/s%d.xml", i))
	}
	f := func(name, size, fresh string, mostAsked int, site map[string]reply) {
		t.Helper()
		site["/"] = reply{200, "text/html", "<p>" + strings.Repeat("Words about ovens. ", 30)}
		asked, mu := 0, sync.Mutex{}
		handler := siteOf(site)
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, ".xml") || strings.HasSuffix(r.URL.Path, "map.txt") {
					mu.Lock()
					asked++
					mu.Unlock()
				}
				handler.ServeHTTP(w, r)
			}))
		})
		said := spoken(got)
		if err != nil || said["site_size_urls"] != size || said["content_freshness_days"] != fresh || asked > mostAsked {
			t.Errorf("%s: %s pages, %s days, %d sitemaps read, %v; want %s, %s, at most %d", name, said["site_size_urls"],
				said["content_freshness_days"], asked, err, size, fresh, mostAsked)
		}
	}
	f("one of text", "3", "absent", 1, map[string]reply{"/robots.txt": robots("/map.txt"),
		"/map.txt": {200, "text/plain; charset=utf-8", host + "/a\n" + host + "/b\n" + host + "/c\n"}})
	f("text that is none", "absent", "absent", 1, map[string]reply{"/robots.txt": robots("/map.txt"),
		"/map.txt": {200, "text/plain", "nothing"}})
	f("indexes alone", "180", "absent", 4, map[string]reply{"/robots.txt": robots("/a.xml", "/b.xml", "/c.xml"),
		"/a.xml": index("/a1.xml", "/a2.xml"), "/b.xml": index("/b1.xml", "/b2.xml"), "/c.xml": index("/c1.xml"), "/a1.xml": pages(20),
		"/b1.xml": pages(40)})
	f("an index among files", "95", "absent", 4, map[string]reply{"/robots.txt": robots("/a.xml", "/b.xml", "/c.xml"),
		"/a.xml": pages(10), "/b.xml": index("/b1.xml", "/b2.xml", "/b3.xml"), "/c.xml": pages(25), "/b1.xml": pages(20)})
	f("indexes of indexes", "absent", "absent", 4, map[string]reply{"/robots.txt": robots("/a.xml", "/b.xml"),
		"/a.xml": index("/b.xml"), "/b.xml": index("/a.xml")})
	f("an index below the only index", "80", "absent", 4, map[string]reply{"/robots.txt": robots("/top.xml"),
		"/top.xml": index("/a.xml", "/b.xml"), "/a.xml": index("/a1.xml", "/a2.xml"), "/a1.xml": pages(20)})
	f("articles of an index", "100", "1.5", 4, map[string]reply{"/robots.txt": robots("/a.xml", "/news.xml"), "/a.xml": pages(10),
		"/news.xml": index("/x.xml", "/posts.xml"), "/x.xml": pages(1),
		"/posts.xml": {200, "application/xml", sitemapOf(45, "blog/", "2026-03-0%d")}})
	all := map[string]reply{"/robots.txt": robots(many...)}
	for _, file := range many {
		all[file] = pages(10)
	}
	f("more than are kept", "1450", "absent", 3, all)
}

// TestWebReadsCareersElsewhere checks careers pages on another site, where the board is found.
func TestWebReadsCareersElsewhere(t *testing.T) {
	t.Parallel()
	const text = "<p>We make ovens for bakeries of all sizes, and have done so for forty years in every region of the country. "
	f := func(name, link, board string, wantAsked []string, prepare func(network *fakenet.Network, seen func(http.Handler) http.Handler)) {
		t.Helper()
		var mu sync.Mutex
		var asked []string
		seen := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				asked = append(asked, r.Host+r.URL.Path)
				mu.Unlock()
				h.ServeHTTP(w, r)
			})
		}
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(home(text+`<a href="`+link+`">Careers</a>`)))
			prepare(network, seen)
		})
		company := NewCompany(got.Claims...)
		if err != nil || spoken(got)["careers_page_present"] != "1" || company.Get(JobBoard) != board || company.Get(Redirected) != "" ||
			company.Get(CareersPage) != link || !slices.Equal(asked, wantAsked) {
			t.Errorf("%s: board %q, page %q, moved to %q, asked %q, %v; want board %q, asked %q", name, company.Get(JobBoard),
				company.Get(CareersPage), company.Get(Redirected), asked, err, board, wantAsked)
		}
	}
	frame := reply{200, "text/html", text + `<iframe src="https://boards.greenhouse.io/embed/job_board?for=brindle"></iframe>`}
	f("a page", "https://brindlejobs.com/us", "greenhouse/brindle", []string{"brindlejobs.com/robots.txt", "brindlejobs.com/us"},
		func(network *fakenet.Network, seen func(http.Handler) http.Handler) {
			network.Site("brindlejobs.com", "", seen(siteOf(map[string]reply{"/us": frame})))
		})
	f("a redirect on that site", "https://brindlejobs.com/", "greenhouse/brindle",
		[]string{"brindlejobs.com/robots.txt", "brindlejobs.com/", "brindlejobs.com/us"},
		func(network *fakenet.Network, seen func(http.Handler) http.Handler) {
			pages := siteOf(map[string]reply{"/us": frame})
			network.Site("brindlejobs.com", "", seen(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/" {
					http.Redirect(w, r, "/us", http.StatusFound)
					return
				}
				pages.ServeHTTP(w, r)
			})))
		})
	f("forbidden there", "https://brindlejobs.com/us", "", []string{"brindlejobs.com/robots.txt"},
		func(network *fakenet.Network, seen func(http.Handler) http.Handler) {
			network.Site("brindlejobs.com", "", seen(siteOf(map[string]reply{"/us": frame,
				"/robots.txt": {200, "text/plain", "User-agent: *\nDisallow: /us"}})))
		})
	f("a private address", "https://brindlejobs.com/us", "", nil,
		func(network *fakenet.Network, _ func(http.Handler) http.Handler) {
			network.Records("brindlejobs.com", "brindlejobs.com. 300 IN A 10.0.0.7")
		})
	f("no such host", "https://brindlejobs.com/us", "", nil, func(*fakenet.Network, func(http.Handler) http.Handler) {})
	f("a board itself, which is not read", "https://jobs.lever.co/brindle", "lever/brindle", nil,
		func(network *fakenet.Network, seen func(http.Handler) http.Handler) {
			network.Site("jobs.lever.co", "", seen(siteOf(map[string]reply{"/brindle": frame})))
		})
}

// A refusal of the site of the careers page does not end the visit.
func TestWebRefusedElsewhere(t *testing.T) {
	t.Parallel()
	for _, status := range []int{429, 503} {
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(home(`<a href="https://brindlejobs.com/us">Careers</a><a href="/docs">Docs</a><p>`+
				strings.Repeat("Words about ovens. ", 30))))
			network.Site("brindlejobs.com", "", siteOf(map[string]reply{"/us": {status, "text/html", "no"}}))
		})
		if said := spoken(got); err != nil || said["careers_page_present"] != "1" || said["product_surface"] != "absent" {
			t.Errorf("status %d: careers %s, surface %s, %v", status, said["careers_page_present"], said["product_surface"], err)
		}
	}
}

// TestWebNames checks which names of a page are claimed.
func TestWebNames(t *testing.T) {
	t.Parallel()
	f := func(name, title, siteName, want string) {
		t.Helper()
		got, err := visitTo(t, "brindleworks.com", func(network *fakenet.Network) {
			network.Site("brindleworks.com", "", siteOf(home(`<title>`+title+`</title><meta property="og:site_name" content="`+siteName+`"><p>`+
				strings.Repeat("Words about ovens. ", 30))))
		})
		if best := NewCompany(got.Claims...).Get(Name); err != nil || best != want {
			t.Errorf("%s: %q, %v; want %q", name, best, err, want)
		}
	}
	f("the title", "Ovens | Brindle Works", "", "Brindle Works")
	f("the name of the site", "Ovens | Brindle Works", "Brindle Works Ltd", "Brindle Works Ltd")
	f("a site without a name", "Brindle Works | Ovens", "Home", "Brindle Works")
	f("a slogan for a name", "Brindle Works | Ovens", "Best ovens", "Brindle Works")
	f("a name with a slogan", "Ovens", "Brindle Works | Best ovens", "Brindle Works")
	f("a name unlike the domain", "Best ovens | Quillco", "Quillco Ovens", "Quillco Ovens")
	f("a name unlike the domain in the title", "Quillco | Best ovens", "", "Quillco")
	f("no name", "Homepage", "Home", "")
	f("a title in HTML", "Tom &amp;amp; Ada", "", "Tom & Ada")
}
