package source

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Wayback is the source of the web archive: the age of a site and how often it changes. It reads
// the archive's index, not the archived pages.
type Wayback struct{ live }

// NewWayback returns the source.
func NewWayback(c *fetch.Client) *Wayback { return &Wayback{newLive(c, "wayback")} }

// Fetch reads the first capture of the home page, and if there is one the captures of the last
// two years. A site that the archive blocks is not an error.
func (w *Wayback) Fetch(ctx context.Context, req Request) (Result, error) {
	ask := func(more url.Values) ([]capture, error) {
		query := url.Values{"url": {req.Domain}, "output": {"json"}, "filter": {"statuscode:[23]..|-"}}
		maps.Copy(query, more)
		return fetch.Get(ctx, w.client, fetch.Request{Source: "wayback", Endpoint: "wayback", Path: "/cdx/search/cdx", Query: query},
			func(res *fetch.Response) ([]capture, error) { return parseCaptures(res.Body) })
	}
	var found archive
	var err error
	found.first, err = ask(url.Values{"fl": {"timestamp"}, "limit": {"1"}})
	switch {
	case isBlocked(err):
		s := builder{source: "wayback"}
		s.missing(scoring.ReasonNotFound, "web_presence_years", "homepage_change_rate_365d")
		return s.result, nil
	case err != nil:
		return Result{}, err
	case len(found.first) == 0:
		return found.observe(req.Now), nil
	}
	recent := url.Values{
		"fl": {"timestamp,statuscode,digest"}, "limit": {strconv.Itoa(capturesMax)},
		"from": {req.Now.Add(-archiveSpan).UTC().Format("20060102")},
	}
	found.recent, err = ask(recent)
	if err == nil && len(found.recent) >= capturesMax {
		recent.Set("collapse", "timestamp:8")
		found.recent, err = ask(recent)
	}
	if err != nil {
		var s builder
		found.observeAge(&s, req.Now)
		return s.result, err
	}
	return found.observe(req.Now), nil
}

// isBlocked reports whether the archive answered that it excludes the site. Any other refusal is
// about the client.
func isBlocked(err error) bool {
	var refused *fetch.Error
	return errors.As(err, &refused) && (strings.Contains(refused.Refusal, "AccessControlException") ||
		strings.Contains(refused.Refusal, "Blocked Site Error"))
}

// capture is one visit of the archive to a home page.
type capture struct {
	At     time.Time
	Digest string // hash of the content; empty if not requested
	// Status is the HTTP status; "-" if the archive found the content of an earlier capture and
	// stored none; empty if not requested.
	Status string
}

func (c capture) isUnchanged() bool { return c.Status == "-" }
func (c capture) isRedirect() bool  { return strings.HasPrefix(c.Status, "3") }

// parseCaptures parses an answer of the CDX server: rows of which the first names the columns, or
// an empty list. It skips rows with a malformed timestamp.
func parseCaptures(body io.Reader) ([]capture, error) {
	var rows [][]string
	if err := decodeJSON(body, &rows); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, nil
	}
	timestamp, digest, status := slices.Index(rows[0], "timestamp"), slices.Index(rows[0], "digest"), slices.Index(rows[0], "statuscode")
	if timestamp < 0 {
		return nil, errors.New("the answer has no column timestamp")
	}
	var found []capture
	for _, row := range rows[1:] {
		if len(row) <= max(timestamp, digest, status) {
			continue
		}
		at, err := time.Parse("20060102150405", row[timestamp])
		if err != nil || at.Year() < 1990 {
			continue
		}
		c := capture{At: at}
		if status >= 0 {
			c.Status = row[status]
		}
		if digest >= 0 {
			c.Digest = strings.ToUpper(row[digest])
		}
		found = append(found, c)
	}
	if len(found) == 0 && len(rows) > 1 {
		return nil, errors.New("no row of the answer has a timestamp")
	}
	return found, nil
}

const (
	// archiveSpan is the age of the oldest capture that is read to find changes.
	archiveSpan = 730 * day
	// changeMonthsMin is the number of months with a capture that a rate of change needs.
	changeMonthsMin = 4
	// capturesMax is the number of captures from which on only the first of each day are read.
	capturesMax = 5000
)

// archive is the captures of a home page.
type archive struct {
	first  []capture // the first of all captures
	recent []capture // captures of the last archiveSpan, in any order
}

// observe derives the signals from the captures, as of now.
func (a archive) observe(now time.Time) Result {
	var s builder
	a.observeAge(&s, now)
	isCopy := func(c capture) bool { return !c.isRedirect() && !c.isUnchanged() }
	switch rate, months := a.changeRate(now); {
	case slices.ContainsFunc(a.recent, capture.isRedirect) && !slices.ContainsFunc(a.recent, isCopy):
		// The archive has no page, and its unchanged captures can be those of the redirect.
		s.missing(scoring.ReasonNotFound, "homepage_change_rate_365d")
	case months >= changeMonthsMin:
		s.ok("homepage_change_rate_365d", rate)
	default:
		s.absent("homepage_change_rate_365d")
	}
	return s.result
}

// observeAge adds the age of the oldest capture.
func (a archive) observeAge(s *builder, now time.Time) {
	s.source = "wayback"
	if oldest, ok := a.oldest(now); ok {
		s.ok("web_presence_years", years(oldest, now))
	} else {
		s.absent("web_presence_years")
	}
}

func (a archive) oldest(now time.Time) (oldest time.Time, ok bool) {
	for _, copies := range [][]capture{a.first, a.recent} {
		for _, c := range copies {
			if !c.At.After(now) && (!ok || c.At.Before(oldest)) {
				oldest, ok = c.At, true
			}
		}
	}
	return oldest, ok
}

// changeRate returns the share of the last 365 days' months with a capture in which the page had
// new content, and the number of those months. Unchanged captures have none, nor have copies of
// content that was there before. Redirects are no page.
func (a archive) changeRate(now time.Time) (rate float64, months int) {
	redirects := make(map[string]bool) // by digest
	firstSeen := make(map[string]time.Time, len(a.recent))
	for _, c := range a.recent {
		redirects[c.Digest] = redirects[c.Digest] || c.isRedirect()
		if at, ok := firstSeen[c.Digest]; !ok || c.At.Before(at) {
			firstSeen[c.Digest] = c.At
		}
	}
	changed := make(map[string]bool) // by month
	for _, c := range a.recent {
		if c.At.After(now) || now.Sub(c.At) > 365*day || c.isRedirect() || c.isUnchanged() && redirects[c.Digest] {
			continue
		}
		month := c.At.Format("2006-01")
		changed[month] = changed[month] || !c.isUnchanged() && c.At.Equal(firstSeen[c.Digest])
	}
	if len(changed) == 0 {
		return 0, 0
	}
	n := 0
	for _, is := range changed {
		if is {
			n++
		}
	}
	return float64(n) / float64(len(changed)), len(changed)
}
