package fetch

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

func TestRobots(t *testing.T) {
	t.Parallel()
	f := func(text, path string, want bool) {
		t.Helper()
		r := parseRobots([]byte(text))
		u, err := url.Parse("https://example.com" + path)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.allows(u); got != want {
			t.Errorf("%q allows %s: %v, want %v", text, path, got, want)
		}
	}
	f("", "/", true)
	f("User-agent: *\nDisallow:", "/x", true)
	f("User-agent: *\nDisallow: /", "/x", false)
	f("User-agent: *\nDisallow: /", "/robots.txt", true)
	f("User-agent: *\nDisallow: *", "/x", false)
	f("user-agent: *\r\ndisallow: /a\r\n", "/a/b", false)
	f("\ufeffUser-agent: *\nDisallow: /a", "/a", false)
	f("User-agent: *\nDisallow: /a # not here\n", "/ab", false)
	f("User-agent: *\nDisallow: /a", "/b", true)
	f("User-agent: *\nDisallow: /a?b", "/a?b=1", false)
	f("User-agent: *\nDisallow: /a?b", "/a?c=1", true)
	// Only the group of the client's own name counts, in any case, with any version.
	f("User-agent: *\nDisallow: /\n\nUser-agent: CompanyScore/1.0\nDisallow: /private", "/x", true)
	f("User-agent: *\nDisallow:\n\nUser-agent: companyscore\nDisallow: /", "/x", false)
	f("User-agent: other\nUser-agent: companyscore\nDisallow: /", "/x", false)
	f("User-agent: other\nDisallow: /", "/x", true)
	f("User-agent: companyscore\nDisallow: /a\n\nUser-agent: companyscore\nDisallow: /b", "/a", false)
	f("User-agent: companyscore\nDisallow: /a\n\nUser-agent: companyscore\nDisallow: /b", "/b", false)
	// The longest rule wins, and an Allow rule among equal ones.
	f("User-agent: *\nDisallow: /a\nAllow: /a/b", "/a/b/c", true)
	f("User-agent: *\nAllow: /a\nDisallow: /a/b", "/a/b/c", false)
	f("User-agent: *\nDisallow: /a\nAllow: /a", "/a", true)
	f("User-agent: *\nAllow: /a\nDisallow: /a", "/a", true)
	// Patterns.
	f("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf", false)
	f("User-agent: *\nDisallow: /*.pdf$", "/x/y.pdf?z", true)
	f("User-agent: *\nDisallow: /a*b", "/axb", false)
	f("User-agent: *\nDisallow: /\nAllow: /*.html", "/x.html", true)
	f("User-agent: *\nDisallow: /wish\nAllow: /wish/list*", "/wish/list7", true)
	f("User-agent: *\nDisallow: /wish\nAllow: /wish/p/$", "/wish/p/", true)
	f("User-agent: *\nDisallow: /wish\nAllow: /wish/p/$", "/wish/p/7", false)
	f("User-agent: *\nDisallow: /\nAllow: /a*b", "/a1b", true)
	f("User-agent: *\nDisallow: /\nAllow: /a*b", "/x/a1b", false)
	f("User-agent: *\nDisallow: /a*b", "/x/a1b", true)
	f("User-agent: *\nDisallow: /a*b*c$", "/a-b-c-b-c", false)
	f("User-agent: *\nDisallow: /a*b*c$", "/a-c-b", true)
	f("User-agent: *\nDisallow: /a*bc*bc$", "/abc", true)
	f("User-agent: *\nDisallow: /a*$", "/a", false)
	f("User-agent: *\nDisallow: /a$b", "/a$b", false)
	f("User-agent: *\nDisallow: a", "/ab", false)
	f("User-agent: *\nDisallow: /\nAllow: *", "/a", true)
	f("User-agent: *\nDisallow:\nAllow:", "/a", true)
	// The length of the pattern counts, not that of what it matches.
	f("User-agent: *\nDisallow: /*/private\nAllow: /shop/", "/shop/private", false)
	f("User-agent: *\nDisallow: /*p\nAllow: /shop/", "/shop/private", true)
	f("User-agent: *\nAllow: /$\nDisallow: /", "/", true)
	f("User-agent: *\nAllow: /$\nDisallow: /", "/a", false)
	f("User-agent: *\nDisallow: /"+strings.Repeat("*b", 20), "/"+strings.Repeat("b", 19), true)
	f("User-agent: *\nDisallow: /"+strings.Repeat("*b", 20), "/"+strings.Repeat("b", 20), false)
	// Escapes of equal paths are equal.
	f("User-agent: *\nDisallow: /\u00fcber", "/%C3%BCber", false)
	f("User-agent: *\nDisallow: /%c3%bcber", "/\u00fcber", false)
	f("User-agent: *\nDisallow: /%7Ejoe/", "/~joe/x", false)
	f("User-agent: *\nDisallow: /a/b", "/a%2Fb", true)
	// Lines that are not rules are skipped.
	f("<html>\nUser-agent: *\nCrawl-delay: soon\nNoindex: /x\nDisallow: /a\nnonsense", "/a", false)
	f("Disallow: /a\nUser-agent: *\nDisallow: /b", "/a", true)
	f("User-agent: *\nDisallow: \x00/a", "/a", true)

	r := parseRobots([]byte("Sitemap: https://example.com/one.xml\nUser-agent: *\nCrawl-delay: 60\n" +
		"Sitemap: https://example.com/two.xml\nSitemap: https://example.com/one.xml\n"))
	if r.delay != 10*time.Second || r.sitemapCount != 2 ||
		strings.Join(r.sitemaps, " ") != "https://example.com/one.xml https://example.com/two.xml" {
		t.Errorf("%+v", r)
	}
	r = parseRobots([]byte("User-agent: *\nDisallow: /a\n" + strings.Repeat("#", 600_000) + "\nDisallow: /b"))
	if !r.allows(&url.URL{Path: "/b"}) || r.allows(&url.URL{Path: "/a"}) {
		t.Errorf("beyond 512,000 bytes: %+v", r)
	}
	var many strings.Builder
	for i := range 12_000 {
		fmt.Fprintf(&many, "Sitemap: https://example.com/%d.xml\nSitemap: https://example.com/0.xml\n", i%6000)
	}
	if r := parseRobots([]byte(many.String())); r.sitemapCount != 6000 || len(r.sitemaps) != sitemapsMax {
		t.Errorf("many sitemaps: %d, %d kept", r.sitemapCount, len(r.sitemaps))
	}
}

// hostileRobots are files that took seconds to hours before the parser was bounded, by name.
func hostileRobots() map[string]string {
	var agents strings.Builder
	for i := range 18_000 {
		fmt.Fprintf(&agents, "User-agent: a%d\n", i)
	}
	return map[string]string{
		"stars": "User-agent: *\nDisallow: /" + strings.Repeat("*a", 250_000), "patterns": "User-agent: *\n" +
			strings.Repeat("Disallow: /*a*b*c$\n", 25_000),
		"long patterns": "User-agent: *\n" + strings.Repeat("Allow: /"+strings.Repeat("*a", 1500)+"*"+
			strings.Repeat("a", 70)+"b\n", 150),
		"agents and rules": agents.String() + strings.Repeat("Disallow: /x\n", 15_000), "agents": strings.Repeat("User-agent: *\n",
			30_000) + "Disallow: /\n",
		"lines": strings.Repeat("\n", 512_000), "colons": strings.Repeat(":", 512_000), "sitemaps": strings.Repeat("Sitemap: a\n", 46_000),
		"permissions": "User-agent: *\n" + strings.Repeat("Allow: /*a*b*c*d*e*f*g*h\n", 20_000),
	}
}

// hostilePath is long, for patterns that match slowly.
var hostilePath = &url.URL{Path: "/" + strings.Repeat("a", 2000)}

func TestHostileRobotsReadInTime(t *testing.T) {
	t.Parallel()
	for name, text := range hostileRobots() {
		began := time.Now()
		parseRobots([]byte(text)).allows(hostilePath)
		if took := time.Since(began); took > wait.Max {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// BenchmarkHostileRobots: some tenths of a second are usual with the race detector.
func BenchmarkHostileRobots(b *testing.B) {
	for name, text := range hostileRobots() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				parseRobots([]byte(text)).allows(hostilePath)
			}
		})
	}
}

func FuzzRobots(f *testing.F) {
	f.Add("User-agent: *\nDisallow: /", "/x")
	f.Add("User-agent: companyscore\nAllow: /*$\nDisallow: /a\nCrawl-delay: 1e9\nSitemap: x", "/a?b")
	f.Add("user-agent:\x00\ndisallow:\x00\n", "/")
	f.Fuzz(func(t *testing.T, text, path string) {
		r := parseRobots([]byte(text))
		if r.delay < 0 || r.delay > crawlDelayMax || len(r.sitemaps) > sitemapsMax {
			t.Errorf("%q: delay %s, %d sitemaps", text, r.delay, len(r.sitemaps))
		}
		r.allows(&url.URL{Path: "/" + path})
		// A group for the client that disallows everything applies, whatever comes before it.
		closed := parseRobots([]byte(text + "\n\nUser-agent: zzz\nDisallow:\n\nUser-agent: companyscore\nDisallow: /\n"))
		if len(text) > robotsMaxBytes/2 || strings.Contains(strings.ToLower(text), "allow") ||
			strings.Contains(strings.ToLower(text), "agent") {
			return
		}
		if closed.allows(&url.URL{Path: "/x"}) {
			t.Errorf("after %q a prohibition is not seen", text)
		}
	})
}
