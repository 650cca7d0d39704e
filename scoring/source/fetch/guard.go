package fetch

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"companyscore/internal/domainname"
)

// guard decides which hosts and addresses may be asked at all. It never changes
// after it was made.
type guard struct {
	hosts    []string       // never to be asked, with everything below them
	prefixes []netip.Prefix // in addition to refused
}

// newGuard reads names and address ranges that must never be asked.
func newGuard(never []string) (guard, error) {
	var g guard
	for _, entry := range never {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			g.prefixes = append(g.prefixes, prefix.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(entry); err == nil {
			g.prefixes = append(g.prefixes, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		host, err := domainname.Clean(entry)
		if err != nil {
			return guard{}, fmt.Errorf("%q is neither a domain nor an address range: %w", entry, err)
		}
		g.hosts = append(g.hosts, host)
	}
	return g, nil
}

// host returns the canonical spelling of a host that a stranger chose, or says
// why it is refused: only names below a public suffix pass, no address in
// whatever notation.
func (g guard) host(raw string) (string, error) {
	if raw == "" || strings.ContainsAny(raw, ":/?#@[]%\\") {
		return "", fmt.Errorf("host %q is no host name", raw)
	}
	clean, err := domainname.Clean(raw)
	if err != nil {
		return "", fmt.Errorf("host %q: %w", raw, err)
	}
	if err := domainname.CheckPublic(clean); err != nil {
		return "", fmt.Errorf("host %q: %w", raw, err)
	}
	for _, never := range g.hosts {
		if clean == never || strings.HasSuffix(clean, "."+never) {
			return "", fmt.Errorf("host %q is on the list of hosts never to ask", raw)
		}
	}
	// Clean takes www. away; here it is a host of its own.
	ascii, err := toASCII(raw)
	if err != nil {
		return "", fmt.Errorf("host %q: %w", raw, err)
	}
	return ascii, nil
}

// url refuses a URL that a stranger chose unless it is plain http or https to a
// host that passes, on the scheme's own port and without user name. It returns
// the URL with the canonical host and without fragment.
func (g guard) url(u *url.URL) (*url.URL, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q: only http and https are asked", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("a URL with a user name is refused")
	case u.Opaque != "" || u.Host == "":
		return nil, fmt.Errorf("the URL has no host")
	}
	if port := u.Port(); port != "" && port != defaultPort(u.Scheme) || strings.HasSuffix(u.Host, ":") {
		return nil, fmt.Errorf("port %q: only port %s is asked with %s", port, defaultPort(u.Scheme), u.Scheme)
	}
	host, err := g.host(u.Hostname())
	if err != nil {
		return nil, err
	}
	clean := *u
	clean.Host, clean.Fragment, clean.RawFragment = host, "", ""
	return &clean, nil
}

// address refuses an address that is not public or that the operator excluded.
func (g guard) address(addr netip.Addr) error {
	if err := CheckAddress(addr); err != nil {
		return err
	}
	addr = addr.Unmap()
	if i := slices.IndexFunc(g.prefixes, func(p netip.Prefix) bool { return p.Contains(addr) }); i >= 0 {
		return fmt.Errorf("address %s is on the list of addresses never to ask (%s)", addr, g.prefixes[i])
	}
	return nil
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}
