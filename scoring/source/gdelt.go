package source

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// GDELT is the source of news: the number and tone of articles that name a company.
type GDELT struct{ live }

// NewGDELT returns the source.
func NewGDELT(c *fetch.Client) *GDELT { return &GDELT{newLive(c, "gdelt", "web", "wikidata")} }

// Fetch counts the articles of the last three months that name the company, and reads their tone
// if there are enough of them.
func (g *GDELT) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "gdelt"}
	name, reason := searchable(req.Company.Get(Name))
	if reason != "" {
		s.missing(reason, "news_volume_90d", "news_volume_trend_30d", "news_tone_90d")
		return s.result, nil
	}
	ask := func(mode string) ([]point, error) {
		return fetch.Get(ctx, g.client, fetch.Request{
			Source: "gdelt", Endpoint: "gdelt", Path: "/api/v2/doc/doc", Types: []string{"*"}, Query: url.Values{
				"query": {`"` + name + `"`}, "mode": {mode}, "timespan": {"3months"}, "format": {"json"},
			},
		}, func(res *fetch.Response) ([]point, error) { return parseTimeline(res.Body) })
	}
	volume, err := ask("timelinevolraw")
	if errors.Is(err, errAmbiguous) {
		s.missing(scoring.ReasonAmbiguousName, "news_volume_90d", "news_volume_trend_30d", "news_tone_90d")
		return s.result, nil
	}
	if err != nil {
		return Result{}, err
	}
	articles := observeVolume(&s, volume, req.Now)
	var tone []point
	if articles >= newsToneMin {
		if tone, err = ask("timelinetone"); err != nil {
			return s.result, err
		}
	}
	observeTone(&s, tone, articles)
	return s.result, nil
}

// commonWords are words of six letters and more that are far more often common words than company
// names.
//
//go:embed commonwords.txt
var commonWordsText string

var commonWords = strings.Fields(commonWordsText)

// searchable returns a company's name as a search phrase. If there is no name, or if it is a
// common word, it returns the reason.
func searchable(name string) (phrase string, reason scoring.Reason) {
	words := strings.FieldsFunc(scoring.CleanName(name), func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"\\,;:!?()[]{}<>|*~^", r)
	})
	for len(words) > 1 && slices.Contains(legalEndings, strings.ToLower(strings.ReplaceAll(words[len(words)-1], ".", ""))) {
		words = words[:len(words)-1]
	}
	switch {
	case len(words) == 0:
		return "", scoring.ReasonUnresolvedIdentity
	case len(words) == 1 && (utf8.RuneCountInString(words[0]) < 6 || slices.Contains(commonWords, strings.ToLower(words[0]))):
		return "", scoring.ReasonAmbiguousName
	}
	return strings.Join(words, " "), ""
}

// point is the value of one day of a timeline.
type point struct {
	At    time.Time
	Value float64
}

// errAmbiguous means that a name is too short or too common to search for.
var errAmbiguous = errors.New("the news search rejects the name")

// parseTimeline parses a timeline. Rejections are plain text, sometimes with status 200: too many
// requests is an Error with the code rate_limited, a keyword that is too short or too common is
// errAmbiguous.
func parseTimeline(body io.Reader) ([]point, error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	if text = bytes.TrimSpace(text); !bytes.HasPrefix(text, []byte("{")) {
		text := strings.ToLower(string(text[:min(len(text), 500)]))
		switch {
		case strings.Contains(text, "limit requests"), strings.Contains(text, "too many requests"):
			return nil, &Error{Code: fetch.CodeRateLimited, Err: errors.New("the news search limits requests")}
		case strings.Contains(text, "too short"), strings.Contains(text, "too common"), strings.Contains(text, "too long"):
			return nil, errAmbiguous
		}
		return nil, errors.New("the answer is not a JSON object")
	}
	var answer struct {
		Timeline []struct {
			Data []struct {
				Date  string  `json:"date"`
				Value float64 `json:"value"`
			} `json:"data"`
		} `json:"timeline"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.Timeline) == 0 {
		return nil, nil // no articles
	}
	var found []point
	for _, data := range answer.Timeline[0].Data {
		at, err := time.Parse("20060102T150405Z", data.Date)
		if err != nil {
			return nil, fmt.Errorf("a date of the timeline: %w", err)
		}
		found = append(found, point{at, data.Value})
	}
	return found, nil
}

const (
	newsTrendMin = 5  // articles in 90 days
	newsToneMin  = 10 // articles in 90 days
)

// observeVolume derives the signals from the articles of each day, as of now, and returns the
// number of articles in 90 days.
func observeVolume(s *builder, volume []point, now time.Time) (articles float64) {
	var last, previous float64
	for _, p := range volume {
		// A negative count is 0.
		switch age := now.Sub(p.At); {
		case p.Value < 0, age < 0, age > 92*day:
		case age <= 30*day:
			last += p.Value
		default:
			previous += p.Value
		}
	}
	articles = last + previous
	if articles == 0 {
		s.absent("news_volume_90d")
	} else {
		s.ok("news_volume_90d", articles)
	}
	if articles < newsTrendMin {
		s.absent("news_volume_trend_30d")
	} else {
		s.ok("news_volume_trend_30d", math.Log((last+3)/(previous/2+3)))
	}
	return articles
}

// observeTone adds the mean tone over the days that have one.
func observeTone(s *builder, tone []point, articles float64) {
	var sum float64
	n := 0
	for _, p := range tone {
		if p.Value != 0 {
			sum += p.Value
			n++
		}
	}
	if n == 0 || articles < newsToneMin {
		s.missing(scoring.ReasonNotFound, "news_tone_90d")
		return
	}
	s.ok("news_tone_90d", sum/float64(n))
}
