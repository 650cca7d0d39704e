package source

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// timeline gives the days before the instant the values, the last one for today.
func timeline(values ...float64) string {
	var data []string
	for i, v := range values {
		at := instant.Truncate(day).Add(-time.Duration(len(values)-1-i) * day)
		data = append(data, fmt.Sprintf(`{"date":"%s","value":%g,"norm":34567}`, at.Format("20060102T150405Z"), v))
	}
	return `{"timeline":[{"series":"Article Count","data":[` + strings.Join(data, ",") + `]}]}`
}

func repeat(n int, v float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = v
	}
	return values
}

func TestNews(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, volume, tone, want string }{
		{"none", `{}`, `{}`, "news_volume_90d absent, news_volume_trend_30d absent, news_tone_90d not_found"},
		{"all days none", timeline(repeat(91, 0)...), timeline(repeat(91, 0)...),
			"news_volume_90d absent, news_volume_trend_30d absent, news_tone_90d not_found"},
		{
			"four are too few for a trend", timeline(1, 1, 1, 1), timeline(2, 2, 2, 2),
			"news_volume_90d 4, news_volume_trend_30d absent, news_tone_90d not_found",
		},
		{
			"good", timeline(append(repeat(60, 1), repeat(30, 2)...)...), timeline(3, 0, -1, 0),
			"news_volume_90d 120, news_volume_trend_30d 0.6466, news_tone_90d 1",
		},
		{
			"enough articles without a tone", timeline(20), timeline(0, 0),
			"news_volume_90d 20, news_volume_trend_30d 2.0369, news_tone_90d not_found",
		},
		{"a negative count is none", timeline(-5, 6), timeline(1),
			"news_volume_90d 6, news_volume_trend_30d 1.0986, news_tone_90d not_found"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			volume, err := parseTimeline(strings.NewReader(test.volume))
			if err != nil {
				t.Fatal(err)
			}
			tone, err := parseTimeline(strings.NewReader(test.tone))
			if err != nil {
				t.Fatal(err)
			}
			s := builder{source: "gdelt"}
			articles := observeVolume(&s, volume, instant)
			observeTone(&s, tone, articles)
			wantSpoken(t, s.result, test.want)
		})
	}
}

func TestNewsRefusals(t *testing.T) {
	t.Parallel()
	_, err := parseTimeline(strings.NewReader("Please limit requests to one every 5 seconds or contact us."))
	if code := WarningCode(err); code != "rate_limited" {
		t.Errorf("asked too often: got %q (%v), want rate_limited", code, err)
	}
	if _, err = parseTimeline(strings.NewReader("The specified phrase is too short.\n")); !errors.Is(err, errAmbiguous) {
		t.Errorf("short phrase: got %v, want %v", err, errAmbiguous)
	}
	good := timeline(1, 2)
	for _, body := range []string{"", "<html>", good[:len(good)-9], `{"timeline":[{"data":[{"date":"yesterday","value":1}]}]}`,
		`{"timeline":7}`, "[]"} {
		if got, err := parseTimeline(strings.NewReader(body)); err == nil || errors.Is(err, errAmbiguous) {
			t.Errorf("%q: got %v %v, want an error", body, got, err)
		}
	}
}

// The tone is a second request. Without it the volume stays.
func TestNewsWithoutTone(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Endpoint("gdelt", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("mode") == "timelinetone" {
			fmt.Fprint(w, "Please limit requests to one every 5 seconds or contact us.")
			return
		}
		fmt.Fprint(w, timeline(20))
	}))
	req := requestFor("brindleworks.com")
	req.Company = wikidataSays("name", "Brindleworks")
	got, err := NewGDELT(network.Client()).Fetch(t.Context(), req)
	if code := WarningCode(err); err == nil || code != fetch.CodeRateLimited {
		t.Errorf("got %v", err)
	}
	wantSpoken(t, got, "news_volume_90d 20, news_volume_trend_30d 2.0369")
}

// TestSourcesEndInTime adds up the deadlines of each source and those that it waits for. The sum
// fits the 85 s that a run has for its sources.
func TestSourcesEndInTime(t *testing.T) {
	t.Parallel()
	plans := make(map[string]Plan)
	for _, s := range Live(fakenet.New(t).Client(), "", slog.New(slog.DiscardHandler)) {
		plans[s.Name()] = s.Plan()
	}
	var end func(name string) time.Duration
	end = func(name string) (latest time.Duration) {
		for _, other := range plans[name].After {
			latest = max(latest, end(other))
		}
		return latest + plans[name].Deadline
	}
	for name := range plans {
		if at := end(name); at > 85*time.Second {
			t.Errorf("%s can end after %s", name, at)
		}
	}
	// Two answers of GDELT that take 23 s each fit its deadline.
	if p := fetch.PolicyOf("gdelt"); p.Total < 23*time.Second || p.Deadline < 2*23*time.Second {
		t.Errorf("GDELT has %s for an answer and %s for both", p.Total, p.Deadline)
	}
}

func TestSearchable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Brindleworks":                     "Brindleworks",
		"Brindleworks, Inc.":               "Brindleworks",
		"Quill & Tarn Holdings Ltd":        "Quill & Tarn",
		`Red "Kite" Foods\`:                "Red Kite Foods",
		"Apple":                            string(scoring.ReasonAmbiguousName),
		"Target Corporation":               string(scoring.ReasonAmbiguousName),
		"Zipp":                             string(scoring.ReasonAmbiguousName),
		"":                                 string(scoring.ReasonUnresolvedIdentity),
		` "" `:                             string(scoring.ReasonUnresolvedIdentity),
		"Holding":                          "Holding",
		"S.A.":                             string(scoring.ReasonAmbiguousName),
		"Ångström Värmeverk Aktiebolag AB": "Ångström Värmeverk Aktiebolag",
	} {
		phrase, reason := searchable(name)
		if got := phrase + string(reason); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func FuzzTimeline(f *testing.F) {
	f.Add(timeline(1, 2, 3))
	f.Add("Please limit requests to one every 5 seconds")
	f.Fuzz(func(t *testing.T, body string) {
		got, err := parseTimeline(strings.NewReader(body))
		if err != nil {
			return
		}
		s := builder{source: "gdelt"}
		observeTone(&s, got, observeVolume(&s, got, instant))
		wantValid(t, s.result)
	})
}

func FuzzSearchable(f *testing.F) {
	f.Add(`Quill "&" Tarn Ltd.`)
	f.Fuzz(func(t *testing.T, name string) {
		phrase, reason := searchable(name)
		if (phrase == "") == (reason == "") || strings.ContainsAny(phrase, "\"\\\n\r") {
			t.Errorf("%q: got %q and %q", name, phrase, reason)
		}
	})
}
