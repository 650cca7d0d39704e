package fetch

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"companyscore/internal/domainname"
)

// guard decides which hosts and addresses the client may connect to. It is immutable.
type guard struct {
	hosts    []string       // excluded by the operator, with their subdomains
	prefixes []netip.Prefix // excluded by the operator, in addition to refused
}

// newGuard reads the domains, addresses and address ranges of Config.Never.
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
			return guard{}, fmt.Errorf("%q is not a domain, an address or an address range: %w", entry, err)
		}
		g.hosts = append(g.hosts, host)
	}
	return g, nil
}

// host returns the canonical spelling of a host that comes from untrusted input. It rejects
// addresses in any notation, and names that are not below a public suffix.
func (g guard) host(raw string) (string, error) {
	if raw == "" || strings.ContainsAny(raw, ":/?#@[]%\\") {
		return "", fmt.Errorf("host %q is not a host name", raw)
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
			return "", fmt.Errorf("host %q is excluded by the operator", raw)
		}
	}
	// Clean removes www., but here www. is a host of its own.
	ascii, err := toASCII(raw)
	if err != nil {
		return "", fmt.Errorf("host %q: %w", raw, err)
	}
	return ascii, nil
}

// url checks a URL that comes from untrusted input. The scheme must be http or https, the port
// the default one, without user name, and the host must pass. It returns the URL with the
// canonical host and without fragment.
func (g guard) url(u *url.URL) (*url.URL, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("scheme %q: only http and https are allowed", u.Scheme)
	case u.User != nil:
		return nil, fmt.Errorf("a URL with a user name is not allowed")
	case u.Opaque != "" || u.Host == "":
		return nil, fmt.Errorf("the URL has no host")
	}
	if port := u.Port(); port != "" && port != defaultPort(u.Scheme) || strings.HasSuffix(u.Host, ":") {
		return nil, fmt.Errorf("port %q: only port %s is allowed with %s", port, defaultPort(u.Scheme), u.Scheme)
	}
	host, err := g.host(u.Hostname())
	if err != nil {
		return nil, err
	}
	clean := *u
	clean.Host, clean.Fragment, clean.RawFragment = host, "", ""
	return &clean, nil
}

// address rejects an address that is not public or that the operator excludes.
func (g guard) address(addr netip.Addr) error {
	if err := CheckAddress(addr); err != nil {
		return err
	}
	addr = addr.Unmap()
	if i := slices.IndexFunc(g.prefixes, func(p netip.Prefix) bool { return p.Contains(addr) }); i >= 0 {
		return fmt.Errorf("address %s is excluded by the operator (%s)", addr, g.prefixes[i])
	}
	return nil
}

func defaultPort(scheme string) string {
	if scheme == "https" {
		return "443"
	}
	return "80"
}
