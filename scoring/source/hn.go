package source

import (
	"context"
	"errors"
	"io"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"companyscore/scoring/source/fetch"
)

// HackerNews is the source of the attention of developers: links to the company's domain on
// Hacker News.
type HackerNews struct{ live }

// NewHackerNews returns the source.
func NewHackerNews(c *fetch.Client) *HackerNews { return &HackerNews{newLive(c, "hn")} }

// Fetch searches for the links of the last year, the newest 1,000 of them.
func (h *HackerNews) Fetch(ctx context.Context, req Request) (Result, error) {
	// The start of a day, so that the request can be cached all day.
	since := req.Now.Add(-365 * day).Truncate(day).Unix()
	stories, err := fetch.Get(ctx, h.client, fetch.Request{
		Source: "hn", Endpoint: "hn", Path: "/api/v1/search_by_date", Query: url.Values{
			"query": {req.Registrable}, "restrictSearchableAttributes": {"url"}, "typoTolerance": {"false"}, "tags": {"story"},
			"numericFilters": {"created_at_i>" + strconv.FormatInt(since, 10)}, "hitsPerPage": {"1000"},
		},
	}, func(res *fetch.Response) ([]story, error) { return parseStories(res.Body) })
	if err != nil {
		return Result{}, err
	}
	return observeStories(stories, req.Registrable, req.Now), nil
}

// story is a link submitted to Hacker News.
type story struct {
	Host string // of the link, lower case
	At   time.Time
	// Engagement is points plus comments.
	Engagement int
}

// parseStories parses a page of search hits. It skips hits without a link and duplicates.
func parseStories(body io.Reader) ([]story, error) {
	var page struct {
		Hits *[]struct {
			ID        string `json:"objectID"`
			URL       string `json:"url"`
			Points    int    `json:"points"`
			Comments  int    `json:"num_comments"`
			CreatedAt int64  `json:"created_at_i"`
		} `json:"hits"`
	}
	if err := decodeJSON(body, &page); err != nil {
		return nil, err
	}
	if page.Hits == nil {
		return nil, errors.New("the answer has no hits")
	}
	seen := make(map[string]bool, len(*page.Hits))
	found := make([]story, 0, len(*page.Hits))
	for _, hit := range *page.Hits {
		u, err := url.Parse(hit.URL)
		if err != nil || u.Hostname() == "" || hit.ID != "" && seen[hit.ID] {
			continue
		}
		seen[hit.ID] = true
		found = append(found, story{
			Host: strings.ToLower(u.Hostname()), At: time.Unix(hit.CreatedAt, 0),
			Engagement: max(hit.Points, 0) + max(hit.Comments, 0),
		})
	}
	return found, nil
}

// hnTrendMin is the number of stories in half a year that a trend needs.
const hnTrendMin = 3

// observeStories derives the signals from the stories that link to a domain or its subdomains, as
// of now. It skips other stories.
func observeStories(stories []story, domain string, now time.Time) Result {
	s := builder{source: "hn"}
	var year, engagement, last, previous int
	for _, found := range stories {
		age := now.Sub(found.At)
		if age < 0 || age > 365*day || !below(found.Host, domain) {
			continue
		}
		year++
		engagement += found.Engagement
		switch {
		case age <= 90*day:
			last++
		case age <= 180*day:
			previous++
		}
	}
	s.count("hn_mentions_365d", year)
	if year == 0 {
		s.absent("hn_engagement_365d")
	} else {
		s.ok("hn_engagement_365d", float64(engagement))
	}
	if last+previous < hnTrendMin {
		s.absent("hn_mentions_trend_90d")
	} else {
		s.ok("hn_mentions_trend_90d", math.Log(float64(last+2)/float64(previous+2)))
	}
	return s.result
}

// below reports whether a host is the domain or one of its subdomains.
func below(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}
