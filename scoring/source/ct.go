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

// CT is the source of certificate logs: how many host names a company uses.
type CT struct{ client *fetch.Client }

// NewCT returns the source.
func NewCT(c *fetch.Client) *CT { return &CT{client: c} }

// Name is the key of the source.
func (*CT) Name() string { return "ct" }

// Plan says when the source runs.
func (*CT) Plan() Plan { return Plan{Deadline: fetch.PolicyOf("ct").Deadline} }

// Fetch counts the host names in unexpired certificates. When the first log
// search fails it asks the other; when that fails, too, the first failure counts.
func (c *CT) Fetch(ctx context.Context, req Request) (Result, error) {
	s := says{source: "ct"}
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

// issuedPagesMax bounds the pages that are read of the second log search. What
// lies beyond does not move the signal.
const issuedPagesMax = 10

// issued counts the host names in the answers of the second log search.
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

// hostNames collects the host names of certificates that lie below a domain, and
// the domain itself.
type hostNames struct {
	domain string
	seen   map[string]bool
}

// add counts a name of a certificate once. Wildcards, e-mail addresses and names
// of others are passed over.
func (h *hostNames) add(name string) {
	name = bare(strings.TrimSpace(name))
	if below(name, h.domain) && !strings.ContainsAny(name, "*@ ") && len(name) <= 253 && len(h.seen) < namesMax {
		h.seen[name] = true
	}
}

func (h *hostNames) full() bool { return len(h.seen) >= namesMax }

// certTime reads the end of a certificate's validity as the log searches write it.
func certTime(text string) (at time.Time, err error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err = time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, err
}

// parseNames counts the host names below a domain in an answer of crt.sh, a list
// of certificates. It reads the list as a stream and stops at namesMax names.
// Certificates that ended before now are passed over.
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

// issuances is a page of the other log search.
type issuances struct {
	Names []string // different host names
	// Last is the id to continue after, empty when the page is empty.
	Last string
}

// parseIssuances reads a page of Cert Spotter's issuances, likewise.
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
