package server

import (
	"net/url"
	"strings"

	"companyscore/internal/account"
	"companyscore/internal/domainname"
	"companyscore/server/sandbox"
)

// pathDomain returns the canonical domain in a path, if the caller may ask for
// it. rest is what the route's wildcard matched: a host name, or an address with
// its scheme. A slash that is not escaped leads to another address. The result is
// a copy.
func pathDomain(mode account.Mode, rest string) (string, error) {
	raw, err := url.PathUnescape(rest)
	if err != nil {
		return "", errPathDomain.with("The domain in the path is not well escaped.")
	}
	if !strings.Contains(raw, "://") && strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return "", &errNotFound
	}
	return canonical(mode, strings.Clone(raw), errPathDomain)
}

// canonical returns the spelling of a domain under which it is stored, if a key
// of that mode may ask for it. invalid is what to answer for a text that is no domain.
func canonical(mode account.Mode, raw string, invalid problem) (string, error) {
	domain, err := domainname.Clean(raw)
	if err != nil {
		return "", invalid.with("%s", explain(err))
	}
	if mode == account.Test {
		if !sandbox.Has(domain) {
			return "", &errSandboxOnly
		}
		return domain, nil
	}
	if domainname.IsTest(domain) {
		return "", &errTestDomain
	}
	if err := domainname.CheckPublic(domain); err != nil {
		return "", invalid.with("%s", explain(err))
	}
	return domain, nil
}

// explain makes a sentence of what is wrong with a domain.
func explain(err error) string {
	return "The domain cannot be scored: " + strings.TrimPrefix(err.Error(), domainname.ErrInvalid.Error()+": ") + "."
}
