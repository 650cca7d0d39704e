package source

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/url"
	"strings"
	"time"

	"companyscore/scoring/source/fetch"
)

// Wayback is the source of the web archive: the age of a site and how often it changes. It reads
// the archive's index, not the archived pages.
type Wayback struct{ live }

// NewWayback returns the source.
func NewWayback(c *fetch.Client) *Wayback { return &Wayback{newLive(c, "wayback")} }

// Fetch reads the first capture of the home page, and if there is one the captures of the last
// two years.
func (w *Wayback) Fetch(ctx context.Context, req Request) (Result, error) {
	ask := func(more url.Values) ([]capture, error) {
		query := url.Values{"url": {req.Domain}, "output": {"json"}, "filter": {"statuscode:200"}}
		maps.Copy(query, more)
		return fetch.Get(ctx, w.client, fetch.Request{Source: "wayback", Endpoint: "wayback", Path: "/cdx/search/cdx", Query: query},
			func(res *fetch.Response) ([]capture, error) { return parseCaptures(res.Body) })
	}
	var found archive
	var err error
	if found.first, err = ask(url.Values{"fl": {"timestamp"}, "limit": {"1"}}); err != nil {
		return Result{}, err
	}
	if len(found.first) == 0 {
		return found.observe(req.Now), nil
	}
	found.recent, err = ask(url.Values{
		"fl": {"timestamp,digest"}, "collapse": {"timestamp:8"}, "limit": {"1000"},
		"from": {req.Now.Add(-archiveSpan).UTC().Format("20060102")},
	})
	if err != nil {
		var s builder
		found.observeAge(&s, req.Now)
		return s.result, err
	}
	return found.observe(req.Now), nil
}

// capture is one archived copy of a home page.
type capture struct {
	At     time.Time
	Digest string // hash of the content; empty if not requested
}

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
	timestamp, digest := -1, -1
	for i, column := range rows[0] {
		switch column {
		case "timestamp":
			timestamp = i
		case "digest":
			digest = i
		}
	}
	if timestamp < 0 {
		return nil, errors.New("the answer has no column timestamp")
	}
	var found []capture
	for _, row := range rows[1:] {
		if len(row) <= max(timestamp, digest) {
			continue
		}
		at, err := time.Parse("20060102150405", row[timestamp])
		if err != nil || at.Year() < 1990 {
			continue
		}
		c := capture{At: at}
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
)

// archive is the captures of a home page.
type archive struct {
	first  []capture // captures of the last archiveSpan, in any order, at most one a day
	recent []capture // copies of the last archiveSpan, in any order, at most one a day
}

// observe derives the signals from the captures, as of now.
func (a archive) observe(now time.Time) Result {
	var s builder
	a.observeAge(&s, now)
	if rate, months := a.changeRate(now); months >= changeMonthsMin {
		s.ok("homepage_change_rate_365d", rate)
	} else {
		s.absent("homepage_change_rate_365d")
	}
	return s.result
}

// observeAge adds the age of the oldest capture.
func (a archive) observeAge(s *builder, now time.Time) {
	s.source = "wayback"
	if oldest, ok := a.oldest(now); ok {
		s.ok("web_presence_years", years(now.Sub(oldest)))
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
// new content, and the number of those months.
func (a archive) changeRate(now time.Time) (rate float64, months int) {
	firstSeen := make(map[string]time.Time, len(a.recent))
	for _, c := range a.recent {
		if at, ok := firstSeen[c.Digest]; !ok || c.At.Before(at) {
			firstSeen[c.Digest] = c.At
		}
	}
	changed := make(map[string]bool) // by month
	for _, c := range a.recent {
		if c.At.After(now) || now.Sub(c.At) > 365*day {
			continue
		}
		month := c.At.Format("2006-01")
		changed[month] = changed[month] || c.At.Equal(firstSeen[c.Digest])
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
