package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// RDAP is the source of domain registrations: age and expiry. It reads no personal data.
type RDAP struct{ live }

// NewRDAP returns the source.
func NewRDAP(c *fetch.Client) *RDAP { return &RDAP{newLive(c, "rdap")} }

// rdapTypes are the media types of RDAP answers. Some registries refuse requests for the first
// alone.
const rdapTypes = "application/rdap+json, application/json"

// Fetch queries the registry of the domain's suffix. If the registry has no RDAP server, the
// signals are missing. If the registry does not have the domain, it is not registered.
func (r *RDAP) Fetch(ctx context.Context, req Request) (Result, error) {
	listed, err := fetch.Get(ctx, r.client, fetch.Request{
		Source: "rdap", Endpoint: "rdap.bootstrap", Path: "/rdap/dns.json", TTL: day,
	}, func(res *fetch.Response) (registries, error) { return parseRegistries(res.Body) })
	if ctx.Err() != nil {
		return Result{}, err
	}
	question := fetch.Request{Source: "rdap", Accept: rdapTypes}
	if err != nil {
		question.Endpoint, question.Path = "rdap.fallback", "/domain/"+req.Registrable
	} else {
		base, ok := listed.of(req.Registrable)
		if !ok {
			return registration{}.observe(req.Now), nil
		}
		question.URL, question.Plain = base+"domain/"+req.Registrable, true
	}
	found, err := fetch.Get(ctx, r.client, question, func(res *fetch.Response) (registration, error) { return parseRegistration(res.Body) })
	switch {
	case fetch.IsNotFound(err):
		result := registration{}.observe(req.Now)
		// The fallback answers the same for a suffix without a registry, and an answer over plain
		// http can be forged.
		result.Unregistered = strings.HasPrefix(question.URL, "https://")
		return result, nil
	case err != nil:
		return Result{}, err
	}
	return found.observe(req.Now), nil
}

// registration is the dates of a domain. A zero time is unknown.
type registration struct {
	Registered, Expires time.Time
}

// parseRegistration parses the answer of a registry, an RFC 9083 domain object. The first event
// of a kind counts.
func parseRegistration(body io.Reader) (registration, error) {
	var answer struct {
		Class     string `json:"objectClassName"`
		Name      string `json:"ldhName"`
		ErrorCode int    `json:"errorCode"`
		Events    []struct {
			Action string `json:"eventAction"`
			Date   string `json:"eventDate"`
		} `json:"events"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return registration{}, err
	}
	if answer.ErrorCode != 0 {
		return registration{}, fmt.Errorf("the registry answers with error %d", answer.ErrorCode)
	}
	if answer.Class != "domain" && answer.Name == "" {
		return registration{}, errors.New("the answer is not a domain object")
	}
	var found registration
	for _, event := range answer.Events {
		var date *time.Time
		switch strings.ToLower(event.Action) {
		case "registration":
			date = &found.Registered
		case "expiration":
			date = &found.Expires
		default:
			continue
		}
		// A redacted or malformed date is unknown.
		if at, err := parseRDAPTime(event.Date); err == nil && date.IsZero() {
			*date = at
		}
	}
	return found, nil
}

// parseRDAPTime parses RFC 3339, the zone +0000 of some registrars, and the forms without zone or
// time that some registries send.
func parseRDAPTime(text string) (at time.Time, err error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if at, err = time.Parse(layout, strings.TrimSpace(text)); err == nil && plausible(at) {
			return at.UTC(), nil
		}
	}
	if err == nil {
		err = fmt.Errorf("the year %d is not plausible", at.Year())
	}
	return time.Time{}, err
}

// plausible rejects dates that are clearly wrong.
func plausible(at time.Time) bool { return at.Year() >= 1980 && at.Year() < 2200 }

// observe derives the signals from a registration, as of now.
func (r registration) observe(now time.Time) Result {
	s := builder{source: "rdap"}
	if r.Registered.IsZero() || r.Registered.After(now) {
		s.missing(scoring.ReasonNotFound, "organization_age_years")
	} else {
		s.ok("organization_age_years", years(r.Registered, now))
	}
	if r.Expires.IsZero() {
		s.missing(scoring.ReasonNotFound, "domain_renewal_runway_days")
	} else {
		s.ok("domain_renewal_runway_days", days(r.Expires.Sub(now)))
	}
	return s.result
}

// registries maps top-level domains to the RDAP base URL of their registry, with a trailing
// slash.
type registries map[string]string

// parseRegistries parses the bootstrap file of RFC 9224. Of several base URLs of a registry the
// first with https counts, and plain http only if there is no other. URLs that the client would
// refuse, such as those with a port, are skipped.
func parseRegistries(body io.Reader) (registries, error) {
	var file struct {
		Services [][][]string `json:"services"`
	}
	if err := decodeJSON(body, &file); err != nil {
		return nil, err
	}
	found := make(registries)
	for _, service := range file.Services {
		if len(service) != 2 {
			continue
		}
		var best string
		for _, base := range service[1] {
			u, err := url.Parse(base)
			if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Port() != "" || u.User != nil ||
				u.RawQuery != "" || u.Fragment != "" {
				continue
			}
			if base = u.String(); best == "" || u.Scheme == "https" && strings.HasPrefix(best, "http:") {
				best = base
			}
		}
		if best == "" {
			continue
		}
		for _, tld := range service[0] {
			found[strings.ToLower(strings.Trim(tld, "."))] = strings.TrimSuffix(best, "/") + "/"
		}
	}
	if len(found) == 0 {
		return nil, errors.New("the list of registries is empty")
	}
	return found, nil
}

// of returns the base URL of the longest listed suffix of a domain.
func (r registries) of(domain string) (base string, ok bool) {
	for suffix := domain; suffix != ""; {
		if base, ok = r[suffix]; ok {
			return base, true
		}
		_, suffix, _ = strings.Cut(suffix, ".")
	}
	return "", false
}

const day = 24 * time.Hour

// days returns a duration in days.
func days(span time.Duration) float64 { return span.Hours() / 24 }

// years returns the years of 365.25 days from one time to another. Unlike a time.Duration it can
// exceed 292 years.
func years(from, to time.Time) float64 { return float64(to.Unix()-from.Unix()) / (365.25 * 24 * 3600) }
