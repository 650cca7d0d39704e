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

// Pageviews is the source of attention: the pageviews of the articles about a company and its
// sector.
type Pageviews struct{ live }

// NewPageviews returns the source.
func NewPageviews(c *fetch.Client) *Pageviews {
	return &Pageviews{newLive(c, "wikipedia", "wikidata", "web", "sec")}
}

var _ Source = (*Pageviews)(nil)

const (
	// viewDays are read in one request: a year, a quarter, and a margin that shows whether the
	// article is that old.
	viewDays = 460
	// viewLag is the number of days until counts are complete.
	viewLag = 2
	// sectorSmoothing is added to the views of a sector's articles, so that small numbers make no
	// trend.
	sectorSmoothing = 270
)

var articleSignals = []string{"wikipedia_pageviews_30d", "pageviews_trend_30d", "pageviews_trend_365d"}

// Fetch reads the pageviews of the company's article and of the sector's articles.
func (w *Pageviews) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "wikipedia"}
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

// views returns the pageviews of an article up to viewLag days ago. They are cached for ttl, or
// for the policy's TTL if ttl is 0.
func (w *Pageviews) views(ctx context.Context, wiki, title string, now time.Time, ttl time.Duration) (views, error) {
	last := now.UTC().Truncate(day).AddDate(0, 0, -viewLag)
	first := last.AddDate(0, 0, 1-viewDays)
	return fetch.Get(ctx, w.client, fetch.Request{
		Source: "wikipedia", Endpoint: "wikipedia", TTL: ttl,
		Path: "/api/rest_v1/metrics/pageviews/per-article/" + wiki + ".wikipedia/all-access/user/" + url.PathEscape(title) + "/daily/" +
			first.Format("20060102") + "00/" + last.Format("20060102") + "00",
	}, func(res *fetch.Response) (views, error) { return parseViews(res.Body, first) })
}

// sector observes the pageviews of the company's sector.
func (w *Pageviews) sector(ctx context.Context, s *builder, req Request) error {
	const signal = "sector_attention_trend_365d"
	articles := scoring.SectorArticles(req.Sector())
	if len(articles) == 0 {
		reason := scoring.ReasonNotApplicable
		if !req.HasAnswered("wikidata") || !req.HasAnswered("web") {
			reason = scoring.ReasonUnresolvedIdentity
		}
		s.missing(reason, signal)
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

// views are the pageviews of an article by day, oldest first. A day without views is 0.
type views struct{ Days [viewDays]int }

// parseViews parses an answer whose first day is first. It skips days outside of the range.
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

// span returns the sum of the views of some days that end a number of days before the last one.
func (v views) span(days, before int) (total float64) {
	for _, n := range v.Days[viewDays-before-days : viewDays-before] {
		total += float64(n)
	}
	return total
}

// covers reports whether the article had views before the last days, with a margin of a week for
// rarely read articles.
func (v views) covers(days int) bool {
	for _, n := range v.Days[:min(viewDays, viewDays-days+7)] {
		if n > 0 {
			return true
		}
	}
	return false
}

// yearTrend returns the log ratio of the last quarter and the same quarter a year before.
func (v views) yearTrend(smoothing float64) float64 {
	return math.Log((v.span(90, 0) + smoothing) / (v.span(90, 365) + smoothing))
}

func (v views) observe(s *builder) {
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
