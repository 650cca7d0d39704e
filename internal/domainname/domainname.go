// Package domainname turns what people write for a company's domain into the
// one canonical spelling under which everything is stored: a lower-case host
// name in A-label form, without scheme, leading "www.", port, path or trailing dot.
package domainname

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// ErrInvalid is wrapped by all errors of invalid domains. The message of the wrapping error
// has the reason.
var ErrInvalid = errors.New("invalid domain")

const (
	inputMaxBytes = 2048
	nameMaxBytes  = 253
	labelMaxBytes = 63
)

// special holds top-level names that never lead to a company on the internet:
// RFC 6761 and its successors, and names that private networks use.
var special = []string{
	"alt", "arpa", "corp", "example", "home", "internal", "intranet", "invalid",
	"lan", "local", "localhost", "onion", "test",
}

// Parse returns the canonical form of raw, or an error that wraps ErrInvalid
// when raw is not a registered-looking name below a public suffix. Names under
// the reserved suffix "test" are refused; see Clean and IsTest for those.
// Parse(Parse(x)) equals Parse(x).
func Parse(raw string) (string, error) {
	host, err := Clean(raw)
	if err != nil {
		return "", err
	}
	if err := CheckPublic(host); err != nil {
		return "", err
	}
	return host, nil
}

// Clean returns the canonical spelling of raw without asking whether its suffix
// exists, or an error that wraps ErrInvalid when raw cannot be a host name.
func Clean(raw string) (string, error) {
	if len(raw) > inputMaxBytes {
		return "", invalid("longer than %d bytes", inputMaxBytes)
	}
	if !utf8.ValidString(raw) {
		return "", invalid("not valid UTF-8")
	}
	host := strings.TrimSpace(raw)
	host = stripScheme(host)
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if host == "" {
		return "", invalid("empty")
	}
	if strings.Contains(host, "@") {
		return "", invalid("user names and e-mail addresses are not domains")
	}
	if strings.HasPrefix(host, "[") {
		return "", invalid("IP addresses are not domains")
	}
	host, err := stripPort(host)
	if err != nil {
		return "", err
	}
	host, err = idna.Lookup.ToASCII(host)
	if err != nil {
		return "", invalid("not a host name: %v", err)
	}
	host = stripWWW(strings.TrimSuffix(host, "."))
	if len(host) > nameMaxBytes {
		return "", invalid("longer than %d characters", nameMaxBytes)
	}
	return host, checkLabels(host)
}

// CheckPublic returns nil when host, in canonical form, lies below a known
// public suffix, and an error that wraps ErrInvalid otherwise.
func CheckPublic(host string) error {
	top := host[strings.LastIndexByte(host, '.')+1:]
	if slices.Contains(special, top) {
		return invalid("names under .%s are reserved", top)
	}
	suffix, icann := publicsuffix.PublicSuffix(host)
	if !icann && !strings.Contains(suffix, ".") {
		return invalid(".%s is not a known top-level domain", top)
	}
	if suffix == host {
		return invalid("%s is a public suffix, not a company's domain", host)
	}
	return nil
}

// Registrable returns what one registers to own host, given in canonical form:
// the public suffix and one label. It is host itself when that cannot be told.
func Registrable(host string) string {
	if name, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return name
	}
	return host
}

// IsTest reports whether host, in canonical form, lies under the suffix "test",
// which is reserved for the sandbox.
func IsTest(host string) bool { return strings.HasSuffix(host, ".test") }

func stripScheme(s string) string {
	if scheme, rest, ok := strings.Cut(s, "://"); ok && isScheme(scheme) {
		return rest
	}
	return strings.TrimPrefix(s, "//")
}

func isScheme(s string) bool {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		other := '0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return s != ""
}

func stripPort(s string) (string, error) {
	host, port, ok := strings.Cut(s, ":")
	if !ok {
		return s, nil
	}
	if strings.Contains(port, ":") {
		return "", invalid("IP addresses are not domains")
	}
	for _, c := range []byte(port) {
		if c < '0' || c > '9' {
			return "", invalid("what follows the colon is not a port")
		}
	}
	return host, nil
}

// stripWWW removes every leading "www." that is not itself the registered name,
// so that the result is stable when cleaned again.
func stripWWW(host string) string {
	for {
		rest, ok := strings.CutPrefix(host, "www.")
		if !ok {
			return host
		}
		if _, err := publicsuffix.EffectiveTLDPlusOne(rest); err != nil {
			return host
		}
		host = rest
	}
}

func checkLabels(host string) error {
	labels := strings.Split(host, ".")
	if len(labels) < 2 {
		return invalid("a domain needs a dot, such as example.com")
	}
	for _, label := range labels {
		if label == "" || len(label) > labelMaxBytes {
			return invalid("each part between dots must have 1 to %d characters", labelMaxBytes)
		}
		for _, c := range []byte(label) {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
				return invalid("the character %q cannot stand in a domain", c)
			}
		}
	}
	// A last part that reads as a number makes the whole an IPv4 address in one
	// of its many spellings.
	if last := labels[len(labels)-1]; '0' <= last[0] && last[0] <= '9' {
		return invalid("IP addresses are not domains")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}
