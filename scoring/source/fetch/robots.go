package fetch

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	robotsMaxBytes = 512_000
	robotsTTL      = day
	crawlDelayMax  = 10 * time.Second
	sitemapsMax    = 200
	sitemapMaxURL  = 2 * kiB
)

// robots are the rules of one host that apply to Product. No rules allow everything.
type robots struct {
	rules []robotsRule
	delay time.Duration
	// sitemaps are the first distinct sitemaps, sitemapCount counts all.
	sitemaps     []string
	sitemapCount int
}

// robotsRule is one Allow or Disallow line. In pattern, * stands for any text and a final $ for
// the end of the path.
type robotsRule struct {
	allow   bool
	pattern string
}

// parseRobots parses the first 512,000 bytes of a robots.txt as RFC 9309 says. It skips lines that
// are no rules. Only the groups of the most specific name count: a group applies if its name begins
// Product, or to everybody if there is no such group.
func parseRobots(text []byte) *robots {
	r := new(robots)
	seen := make(map[string]bool)      // sitemaps
	best, group, hasRule := 0, 0, true // best and group are the lengths of names, 0 is no match
	all := strings.TrimPrefix(string(text[:min(len(text), robotsMaxBytes)]), "\xef\xbb\xbf")
	for line := range strings.FieldsFuncSeq(all, func(c rune) bool { return c == '\n' || c == '\r' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		value = strings.TrimSpace(value)
		if i := strings.IndexFunc(value, func(c rune) bool { return c <= ' ' || c == 0x7f }); i >= 0 {
			value = value[:i]
		}
		switch key = strings.ToLower(strings.TrimSpace(key)); key {
		case "user-agent", "useragent":
			if hasRule {
				group, hasRule = 0, false
			}
			// Only the product token counts: "companyscore/1.0" is companyscore.
			name, _, _ := strings.Cut(strings.ToLower(value), "/")
			if name == "*" || name != "" && strings.HasPrefix(Product, name) {
				group = max(group, len(name))
			}
			if group > best {
				best, r.rules, r.delay = group, nil, 0
			}
		case "allow", "disallow":
			if hasRule = true; value != "" && group > 0 && group == best {
				r.rules = append(r.rules, robotsRule{key == "allow", canonicalPattern(value)})
			}
		case "crawl-delay", "crawldelay":
			hasRule = true
			if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e6 && group > 0 && group == best {
				r.delay = min(max(r.delay, time.Duration(s*float64(time.Second))), crawlDelayMax)
			}
		case "sitemap":
			if value == "" || len(value) > sitemapMaxURL || seen[value] {
				continue
			}
			seen[value] = true
			if r.sitemapCount++; len(r.sitemaps) < sitemapsMax {
				r.sitemaps = append(r.sitemaps, strings.Clone(value))
			}
		}
	}
	return r
}

// allows reports whether robots.txt allows a page. The longest rule that matches decides, and an
// Allow rule among equal ones. The time is linear in the lengths of path and rules.
func (r *robots) allows(u *url.URL) bool {
	if u.Path == "/robots.txt" {
		return true
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if u.RawQuery != "" {
		path += "?" + u.RawQuery
	}
	path = canonicalPath(path)
	longest, allowed := 0, true
	for _, rule := range r.rules {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && matchesPattern(rule.pattern, path) {
			longest, allowed = n, rule.allow
		}
	}
	return allowed
}

// canonicalPattern returns a pattern that begins with a slash or a star and does not end in a star.
func canonicalPattern(value string) string {
	value = strings.TrimRight(value, "*")
	if !strings.HasPrefix(value, "/") && !strings.HasPrefix(value, "*") {
		value = "/" + value
	}
	return canonicalPath(value)
}

// canonicalPath escapes what is not ASCII and unescapes letters, digits and -._~, so that equal
// paths are equal texts.
func canonicalPath(path string) string {
	if !strings.ContainsFunc(path, func(c rune) bool { return c == '%' || c > 0x7f }) {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c, escaped := path[i], false
		if c == '%' && i+2 < len(path) {
			if n, err := strconv.ParseUint(path[i+1:i+3], 16, 8); err == nil {
				c, escaped = byte(n), true
				i += 2
			}
		}
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
		if c > 0x7f || escaped && !plain {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// matchesPattern reports whether a pattern matches the beginning of a path, or all of it if the
// pattern ends in $.
func matchesPattern(pattern, path string) bool {
	pattern, whole := strings.CutSuffix(pattern, "$")
	part, rest, more := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, part) {
		return false
	}
	path = path[len(part):]
	for more {
		part, rest, more = strings.Cut(rest, "*")
		if whole && !more {
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return !whole || path == ""
}
