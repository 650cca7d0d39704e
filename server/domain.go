package server

import (
	"net/url"
	"strings"

	"companyscore/internal/account"
	"companyscore/internal/domainname"
	"companyscore/server/sandbox"
)

// pathDomain returns the canonical domain in a path. rest is the match of the wildcard of
// the route: an escaped host name or URL. The error is a problem if rest is not a domain, if
// it has a further path segment, or if a key of that mode cannot read the domain. The result
// is a copy.
func pathDomain(mode account.Mode, rest string) (string, error) {
	raw, err := url.PathUnescape(rest)
	if err != nil {
		return "", errDomain.with("The domain in the path has an invalid escape sequence.")
	}
	if !strings.Contains(raw, "://") && strings.Contains(strings.TrimSuffix(rest, "/"), "/") {
		return "", &errNotFound
	}
	return canonical(mode, strings.Clone(raw), errDomain)
}

// canonical returns the canonical form of a domain. The error is a problem if a key of that
// mode cannot read the domain, or invalid with a message if raw is not a domain.
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

// explain returns the message for an invalid domain.
func explain(err error) string {
	return "The domain cannot be scored: " + strings.TrimPrefix(err.Error(), domainname.ErrInvalid.Error()+": ") + "."
}
