package fetch

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/temoto/robotstxt"
)

const (
	robotsMaxBytes = 512_000
	robotsTTL      = day
	crawlDelayMax  = 10 * time.Second
	sitemapsMax    = 20
)

// robots are the rules of one host.
type robots struct {
	group    *robotstxt.Group // nil: everything is allowed
	delay    time.Duration
	sitemaps []string
}

// parseRobots parses a robots.txt. In doubt it reads a rule as the stricter one.
func parseRobots(text []byte) (*robots, error) {
	text = text[:min(len(text), robotsMaxBytes)]
	data, err := robotstxt.FromBytes(normalizeRobots(text))
	if err != nil {
		return nil, fmt.Errorf("read robots.txt: %w", err)
	}
	group := data.FindGroup(Product)
	r := &robots{group: group, delay: min(group.CrawlDelay, crawlDelayMax)}
	for _, sitemap := range data.Sitemaps {
		if len(r.sitemaps) < sitemapsMax && !slices.Contains(r.sitemaps, sitemap) {
			r.sitemaps = append(r.sitemaps, sitemap)
		}
	}
	return r, nil
}

// allows reports whether robots.txt allows a page.
func (r *robots) allows(u *url.URL) bool {
	if r.group == nil || u.Path == "/robots.txt" {
		return true
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	return r.group.Test(path)
}

// Bounds of patterns. A pattern beyond them is read as the stricter rule: disallow everything
// with its literal prefix, or allow nothing.
const (
	patternMaxBytes = 500
	patternStarsMax = 8
	patternsMax     = 1000
)

// normalizeRobots rewrites a robots.txt so that the library reads it as RFC 9309 says, in bounded
// time. It keeps only groups that can apply to Product. Allow rules come first, since they win
// among rules of equal length. It drops lines that are not rules, and reads "Disallow: *" as
// "Disallow: /". The library matches a pattern anywhere in a path. That makes a Disallow rule
// wider, which is safe, and an Allow rule too wide, so Allow rules with an unanchored pattern are
// dropped.
func normalizeRobots(text []byte) []byte {
	t := robotsNormalizer{}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		if i := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
			value = value[:i]
		}
		t.line(strings.ToLower(strings.TrimSpace(key)), value)
	}
	t.flush()
	return t.out.Bytes()
}

// robotsNormalizer collects the lines of one group at a time.
type robotsNormalizer struct {
	out            bytes.Buffer
	agents         []string // of the group, those that can match Product
	hasRule        bool     // a rule followed the agents
	allows, others bytes.Buffer
	patterns       int
}

func (t *robotsNormalizer) line(key, value string) {
	switch key {
	case "user-agent", "useragent":
		if t.hasRule {
			t.flush()
		}
		// Only the product token counts: "companyscore/1.0" is companyscore.
		value, _, _ = strings.Cut(strings.ToLower(value), "/")
		if (value == "*" || value != "" && strings.HasPrefix(Product, value)) && !slices.Contains(t.agents, value) {
			t.agents = append(t.agents, value)
		}
	case "disallow":
		if strings.Trim(value, "*") == "" && value != "" {
			value = "/"
		}
		if t.hasRule = true; t.exceedsBounds(value) {
			value = value[:strings.IndexAny(value+"*", "*$")]
			value = "/" + strings.TrimPrefix(value, "/")
		}
		t.rule(&t.others, "Disallow", value)
	case "allow":
		t.hasRule = true
		inner := strings.TrimPrefix(strings.TrimPrefix(value, "/"), "*")
		unanchored := strings.ContainsAny(inner, "*$") && !strings.HasPrefix(value, "/*") && !strings.HasPrefix(value, "*")
		if value != "" && !unanchored && !t.exceedsBounds(value) {
			t.rule(&t.allows, "Allow", value)
		}
	case "crawl-delay", "crawldelay":
		t.hasRule = true
		if seconds, err := strconv.ParseFloat(value, 64); err == nil && seconds >= 0 && seconds < 1e6 {
			t.rule(&t.others, "Crawl-delay", value)
		}
	case "sitemap":
		if value != "" {
			fmt.Fprintf(&t.out, "Sitemap: %s\n", value)
		}
	}
}

// exceedsBounds counts a pattern and reports whether it exceeds the bounds.
func (t *robotsNormalizer) exceedsBounds(value string) bool {
	if !strings.ContainsAny(value, "*$") {
		return false
	}
	if len(t.agents) > 0 {
		t.patterns++
	}
	return len(value) > patternMaxBytes || strings.Count(value, "*") > patternStarsMax || t.patterns > patternsMax
}

func (t *robotsNormalizer) rule(to *bytes.Buffer, name, value string) {
	if len(t.agents) > 0 {
		fmt.Fprintf(to, "%s: %s\n", name, value)
	}
}

// flush writes the group.
func (t *robotsNormalizer) flush() {
	for _, agent := range t.agents {
		fmt.Fprintf(&t.out, "User-agent: %s\n", agent)
	}
	if len(t.agents) > 0 && t.allows.Len()+t.others.Len() == 0 {
		t.others.WriteString("Disallow:\n") // a group without rules allows everything
	}
	_, _ = t.allows.WriteTo(&t.out)
	_, _ = t.others.WriteTo(&t.out)
	t.agents, t.hasRule = nil, false
}
