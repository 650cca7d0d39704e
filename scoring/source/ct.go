package source

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"companyscore/scoring/source/fetch"
)

// CT is the source of certificate transparency logs: the number of host names of a company.
type CT struct{ live }

// NewCT returns the source.
func NewCT(c *fetch.Client) *CT { return &CT{newLive(c, "ct")} }

// Fetch counts the host names in unexpired certificates. If crt.sh fails it uses Cert Spotter. If
// both fail, the code is that of the first failure.
func (c *CT) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "ct"}
	n, err := fetch.Get(ctx, c.client, fetch.Request{
		Source: "ct", Endpoint: "ct.crtsh", Path: "/", Query: url.Values{
			"q": {"%." + req.Registrable}, "output": {"json"}, "exclude": {"expired"}, "deduplicate": {"Y"},
		},
	}, func(res *fetch.Response) (int, error) { return parseNames(res.Body, req.Registrable, req.Now) })
	if err != nil {
		var second error
		if n, second = c.issued(ctx, req); second != nil {
			return Result{}, fmt.Errorf("%w; the other log search: %w", err, second)
		}
	}
	s.count("subdomain_breadth", n)
	return s.result, nil
}

// issuedPagesMax bounds the pages of Cert Spotter. More pages do not change the signal.
const issuedPagesMax = 10

// issued counts the host names in the answers of Cert Spotter.
func (c *CT) issued(ctx context.Context, req Request) (int, error) {
	seen := make(map[string]bool)
	query := url.Values{"domain": {req.Registrable}, "include_subdomains": {"true"}, "expand": {"dns_names"}}
	for range issuedPagesMax {
		page, err := fetch.Get(ctx, c.client, fetch.Request{Source: "ct", Endpoint: "ct.certspotter", Path: "/v1/issuances", Query: query},
			func(res *fetch.Response) (issuances, error) {
				return parseIssuances(res.Body, req.Registrable, req.Now)
			})
		if err != nil {
			return 0, err
		}
		for _, name := range page.Names {
			seen[name] = true
		}
		if page.Last == "" || len(seen) >= namesMax {
			break
		}
		query.Set("after", page.Last)
	}
	return min(len(seen), namesMax), nil
}

// namesMax bounds the host names that are counted.
const namesMax = 5000

// hostNames collects the distinct host names at and below a domain.
type hostNames struct {
	domain string
	seen   map[string]bool
}

// add adds a name of a certificate. It skips wildcards, e-mail addresses and names outside of the
// domain.
func (h *hostNames) add(name string) {
	name = bare(strings.TrimSpace(name))
	if below(name, h.domain) && !strings.ContainsAny(name, "*@ ") && len(name) <= 253 && len(h.seen) < namesMax {
		h.seen[name] = true
	}
}

func (h *hostNames) full() bool { return len(h.seen) >= namesMax }

// certTime parses the end of a certificate's validity in the formats of both log searches.
func certTime(text string) (at time.Time, err error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, err
}

// parseNames counts the host names at and below a domain in an answer of crt.sh, a list of
// certificates. It reads the list as a stream, stops at namesMax names, and skips certificates
// that expired before now.
func parseNames(body io.Reader, domain string, now time.Time) (int, error) {
	names := hostNames{domain: domain, seen: make(map[string]bool)}
	err := eachElement(body, func(decoder *json.Decoder) (bool, error) {
		var certificate struct {
			CommonName string `json:"common_name"`
			Names      string `json:"name_value"`
			NotAfter   string `json:"not_after"`
		}
		if err := decoder.Decode(&certificate); err != nil {
			return false, err
		}
		if end, err := certTime(certificate.NotAfter); err == nil && end.Before(now) {
			return true, nil
		}
		names.add(certificate.CommonName)
		for name := range strings.SplitSeq(certificate.Names, "\n") {
			names.add(name)
		}
		return !names.full(), nil
	})
	return len(names.seen), err
}

// issuances is a page of Cert Spotter.
type issuances struct {
	Names []string // different host names
	// Last is the id of the last issuance, for the next page; empty for an empty page.
	Last string
}

// parseIssuances parses a page of Cert Spotter as parseNames does one of crt.sh.
func parseIssuances(body io.Reader, domain string, now time.Time) (issuances, error) {
	names := hostNames{domain: domain, seen: make(map[string]bool)}
	var page issuances
	err := eachElement(body, func(decoder *json.Decoder) (bool, error) {
		var issuance struct {
			ID       string   `json:"id"`
			Names    []string `json:"dns_names"`
			NotAfter string   `json:"not_after"`
		}
		if err := decoder.Decode(&issuance); err != nil {
			return false, err
		}
		page.Last = issuance.ID
		if end, err := certTime(issuance.NotAfter); err == nil && end.Before(now) {
			return true, nil
		}
		for _, name := range issuance.Names {
			names.add(name)
		}
		return !names.full(), nil
	})
	for name := range names.seen {
		page.Names = append(page.Names, name)
	}
	return page, err
}
