package recording

import (
	"bytes"
	"html"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"companyscore/internal/domainname"
)

// Private is what belongs to the caller and must not be in a recording.
type Private struct {
	// Contact is fetch.Config.Contact.
	Contact string
	// Tokens are the values of tokens.
	Tokens []string
	// Resolvers are the operator's own DNS servers, IP:port.
	Resolvers []string
}

// Replacements of what is private. They have the form of what they replace, so that a body stays valid.
const (
	redactedMail  = "redacted@example.com"
	redactedURL   = "https://example.com/redacted"
	redactedToken = "REDACTED"
	redactedIPv4  = "192.0.2.1"
	redactedIPv6  = "2001:db8::1"
)

// keptHeaders are the headers of answers that a recording keeps. Others can identify the caller, as
// cookies and echoes of its address do.
var keptHeaders = []string{"Age", "Cache-Control", "Content-Encoding", "Content-Language", "Content-Length", "Content-Type", "Date",
	"Etag", "Expires", "Last-Modified", "Link", "Location", "Retry-After", "Server", "Strict-Transport-Security", "Vary", "X-Robots-Tag"}

// keptHeader reports whether a recording keeps a header. All that announce limits are kept.
func keptHeader(name string) bool { return slices.Contains(keptHeaders, name) || isLimit(name) }

// isLimit reports whether a header announces a limit of the provider.
func isLimit(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, "x-ratelimit") || strings.HasPrefix(name, "ratelimit") || strings.HasPrefix(name, "x-rate-limit") ||
		name == "retry-after"
}

// kept returns the headers of an answer that a recording keeps.
func kept(header http.Header) http.Header {
	left := make(http.Header)
	for name, values := range header {
		if keptHeader(name) {
			left[name] = slices.Clone(values)
		}
	}
	return left
}

// echoHeaders are headers in which servers tell a caller its address.
var echoHeaders = []string{"X-Client-Ip", "X-Real-Ip", "X-Forwarded-For", "Cf-Connecting-Ip", "True-Client-Ip", "X-Your-Ip",
	"X-Remote-Addr"}

// echoed returns the addresses of the caller in the headers of an answer.
func echoed(header http.Header) (found []netip.Addr) {
	for _, name := range echoHeaders {
		for _, value := range header[name] {
			for part := range strings.SplitSeq(value, ",") {
				if addr, err := netip.ParseAddr(strings.TrimSpace(part)); err == nil {
					found = append(found, addr.Unmap())
				}
			}
		}
	}
	return found
}

// ownAddresses returns the addresses of this machine, but for loopback.
func ownAddresses() (found []netip.Addr) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil && !prefix.Addr().IsLoopback() {
			found = append(found, prefix.Addr().Unmap())
		}
	}
	return found
}

// redactor replaces what is private. It is immutable.
type redactor struct {
	texts     []replacement
	addresses []replacement
}

type replacement struct{ old, new []byte }

// newRedactor returns the redactor of a recording of some domains. A URL of the contact on one of
// them stays: it is part of the company's own pages.
func newRedactor(private Private, addresses []netip.Addr, domains []string) *redactor {
	r := new(redactor)
	for part := range strings.SplitSeq(private.Contact, ";") {
		part = strings.TrimSpace(part)
		switch u, err := url.Parse(part); {
		case part == "":
		case !strings.Contains(part, "://"):
			r.text(part, redactedMail)
		case err == nil && slices.ContainsFunc(domains, func(d string) bool {
			return domainname.Registrable(d) == domainname.Registrable(strings.ToLower(u.Hostname()))
		}):
			r.text("(+"+private.Contact, "(+"+redactedURL)
		default:
			r.text(part, redactedURL)
		}
	}
	for _, token := range private.Tokens {
		r.text(token, redactedToken)
	}
	for _, server := range private.Resolvers {
		if at, err := netip.ParseAddrPort(server); err == nil && !at.Addr().IsLoopback() {
			addresses = append(addresses, at.Addr())
		}
	}
	for _, addr := range addresses {
		by := redactedIPv4
		if addr.Is6() {
			by = redactedIPv6
			r.address(addr.StringExpanded(), by)
			r.address(strings.ToUpper(addr.WithZone("").String()), by)
		}
		r.address(addr.WithZone("").String(), by)
	}
	return r
}

// text replaces a text, also as it is escaped in URLs, HTML and JSON.
func (r *redactor) text(old, by string) {
	if old == "" {
		return
	}
	quoted := strconv.Quote(old)
	for _, form := range []string{old, strings.ToLower(old), strings.ToUpper(old), url.QueryEscape(old), url.PathEscape(old),
		html.EscapeString(old), quoted[1 : len(quoted)-1], strings.ReplaceAll(old, "/", `\/`), strings.ReplaceAll(old, "@", "&#64;"),
		strings.ReplaceAll(old, "@", `\u0040`)} {
		if !slices.ContainsFunc(r.texts, func(have replacement) bool { return string(have.old) == form }) {
			r.texts = append(r.texts, replacement{[]byte(form), []byte(by)})
		}
	}
}

func (r *redactor) address(old, by string) {
	r.addresses = append(r.addresses, replacement{[]byte(old), []byte(by)})
}

// bytes returns a text without what is private.
func (r *redactor) bytes(text []byte) []byte {
	for _, t := range r.texts {
		text = bytes.ReplaceAll(text, t.old, t.new)
	}
	for _, a := range r.addresses {
		text = replaceAddress(text, a)
	}
	return text
}

// replaceAddress replaces an address that is not a part of a longer one.
func replaceAddress(text []byte, a replacement) []byte {
	var out []byte
	rest := text
	for {
		i := bytes.Index(rest, a.old)
		if i < 0 {
			break
		}
		end := i + len(a.old)
		before, after := byte(' '), byte(' ')
		if i > 0 {
			before = rest[i-1]
		}
		if end < len(rest) {
			after = rest[end]
		}
		out = append(out, rest[:i]...)
		if isAddressByte(before, a.old) || isAddressByte(after, a.old) && !endsSentence(rest[end:]) {
			out = append(out, a.old...)
		} else {
			out = append(out, a.new...)
		}
		rest = rest[end:]
	}
	if out == nil {
		return text
	}
	return append(out, rest...)
}

// isAddressByte reports whether a byte beside an address can be a part of it.
func isAddressByte(c byte, address []byte) bool {
	if bytes.IndexByte(address, ':') >= 0 {
		return c == ':' || c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return c == '.' || c >= '0' && c <= '9'
}

// endsSentence reports whether a text begins with a full stop or a port and not with a further part of an address.
func endsSentence(rest []byte) bool {
	return (rest[0] == '.' || rest[0] == ':') && (len(rest) == 1 || rest[0] == '.' && (rest[1] < '0' || rest[1] > '9') ||
		rest[0] == ':' && rest[1] <= ' ')
}

var (
	ipv4Text = regexp.MustCompile(`\b[0-9]{1,3}(\.[0-9]{1,3}){3}(:[0-9]+)?\b`)
	ipv6Text = regexp.MustCompile(`\[[0-9A-Fa-f:.%a-z]*:[0-9A-Fa-f:.%a-z]*\](:[0-9]+)?`)
	bareIPv6 = regexp.MustCompile(`\b[0-9A-Fa-f]{1,4}:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*`)
)

// withoutAddresses replaces all addresses in the text of an error: of the caller, of resolvers, and
// of overrides.
func withoutAddresses(text string) string {
	for _, pattern := range []*regexp.Regexp{ipv4Text, ipv6Text, bareIPv6} {
		text = pattern.ReplaceAllString(text, "ADDRESS")
	}
	return text
}
