package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Pageviews is the source of attention: how often the articles about a company,
// and about its sector, are read.
type Pageviews struct{ client *fetch.Client }

// NewPageviews returns the source.
func NewPageviews(c *fetch.Client) *Pageviews { return &Pageviews{client: c} }

var _ Source = (*Pageviews)(nil)

// Name is the key of the source.
func (*Pageviews) Name() string { return "wikipedia" }

// Plan says when the source runs: after those that name the article, and those
// that tell the sector.
func (*Pageviews) Plan() Plan {
	return Plan{After: []string{"wikidata", "web", "sec"}, Deadline: fetch.PolicyOf("wikipedia").Deadline}
}

const (
	// viewDays are read in one call: a quarter, a year, and some days to tell
	// whether the article is as old.
	viewDays = 460
	// viewLag is how many days it takes until counts are complete.
	viewLag = 2
	// sectorSmoothing is added to the views of a sector's articles, so that few
	// views more or less are no trend.
	sectorSmoothing = 270
)

var articleSignals = []string{"wikipedia_pageviews_30d", "pageviews_trend_30d", "pageviews_trend_365d"}

// Fetch reads the views of the company's article and of those of its sector.
func (w *Pageviews) Fetch(ctx context.Context, req Request) (Result, error) {
	s := says{source: "wikipedia"}
	wiki, title, ok := strings.Cut(req.Company.Get(Wikipedia), ":")
	var failure error
	switch {
	case ok && slices.Contains(wikis, wiki) && title != "":
		views, err := w.views(ctx, wiki, title, req.Now, 0)
		switch {
		case fetch.IsNotFound(err):
			s.missing(scoring.ReasonNotFound, articleSignals...)
		case err != nil:
			failure = err
		default:
			views.observe(&s)
		}
	case req.HasAnswered("wikidata"):
		s.absent(articleSignals...)
	default:
		s.missing(scoring.ReasonUnresolvedIdentity, articleSignals...)
	}
	if err := w.sector(ctx, &s, req); err != nil {
		failure = errors.Join(failure, err)
	}
	return s.result, failure
}

// views reads an article's views up to two days ago. They are kept for the ttl, or
// as long as the policy says when it is 0.
func (w *Pageviews) views(ctx context.Context, wiki, title string, now time.Time, ttl time.Duration) (views, error) {
	last := now.UTC().Truncate(day).AddDate(0, 0, -viewLag)
	first := last.AddDate(0, 0, 1-viewDays)
	return fetch.Get(ctx, w.client, fetch.Request{
		Source: "wikipedia", Endpoint: "wikipedia", TTL: ttl,
		Path: "/api/rest_v1/metrics/pageviews/per-article/" + wiki + ".wikipedia/all-access/user/" + url.PathEscape(title) + "/daily/" + first.Format("20060102") + "00/" + last.Format("20060102") + "00",
	}, func(res *fetch.Response) (views, error) { return parseViews(res.Body, first) })
}

// sector observes the attention that the sector of the company gets.
func (w *Pageviews) sector(ctx context.Context, s *says, req Request) error {
	const signal = "sector_attention_trend_365d"
	articles := scoring.SectorArticles(req.Sector())
	if len(articles) == 0 {
		s.missing(scoring.ReasonNotApplicable, signal)
		return nil
	}
	var sum views
	found := false
	for _, title := range articles {
		article, err := w.views(ctx, "en", title, req.Now, day)
		if fetch.IsNotFound(err) {
			continue // renamed
		}
		if err != nil {
			return err
		}
		found = true
		for i, n := range article.Days {
			sum.Days[i] += n
		}
	}
	if !found {
		s.missing(scoring.ReasonNotFound, signal)
		return nil
	}
	s.ok(signal, sum.yearTrend(sectorSmoothing))
	return nil
}

// views are the reads of an article by day, oldest first. A day nobody read it is 0.
type views struct{ Days [viewDays]int }

// parseViews reads an answer whose first day is first. Days outside of what was
// asked for are left out.
func parseViews(body io.Reader, first time.Time) (views, error) {
	var v views
	var answer struct {
		Items *[]struct {
			Timestamp string `json:"timestamp"`
			Views     int    `json:"views"`
		} `json:"items"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return v, err
	}
	if answer.Items == nil {
		return v, errors.New("an answer without items")
	}
	for _, item := range *answer.Items {
		on, err := time.Parse("2006010215", item.Timestamp)
		if err != nil || item.Views < 0 {
			return v, fmt.Errorf("%d views at %.30q", item.Views, item.Timestamp)
		}
		if i := int(math.Floor(on.Sub(first).Hours() / 24)); i >= 0 && i < viewDays {
			v.Days[i] = item.Views
		}
	}
	return v, nil
}

// span sums the views of days that ended a number of days before the last one.
func (v views) span(days, before int) (total float64) {
	for _, n := range v.Days[viewDays-before-days : viewDays-before] {
		total += float64(n)
	}
	return total
}

// covers reports whether the article was read before the last days already, with a
// week's grace for articles that few read.
func (v views) covers(days int) bool {
	for _, n := range v.Days[:min(viewDays, viewDays-days+7)] {
		if n > 0 {
			return true
		}
	}
	return false
}

// yearTrend compares the last quarter with the same one a year before.
func (v views) yearTrend(smoothing float64) float64 {
	return math.Log((v.span(90, 0) + smoothing) / (v.span(90, 365) + smoothing))
}

func (v views) observe(s *says) {
	s.ok("wikipedia_pageviews_30d", v.span(30, 0))
	if v.covers(60) {
		s.ok("pageviews_trend_30d", math.Log((v.span(30, 0)+30)/(v.span(30, 30)+30)))
	} else {
		s.missing(scoring.ReasonInsufficientHistory, "pageviews_trend_30d")
	}
	if v.covers(455) {
		s.ok("pageviews_trend_365d", v.yearTrend(90))
	} else {
		s.missing(scoring.ReasonInsufficientHistory, "pageviews_trend_365d")
	}
}
