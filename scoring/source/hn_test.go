package source

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// hit is a story of so many days before the instant.
func hit(id int, url string, daysAgo float64, points, comments int) string {
	at := instant.Add(-time.Duration(daysAgo * float64(day))).Unix()
	return fmt.Sprintf(`{"objectID":"%d","title":"t","url":%q,"points":%d,"num_comments":%d,"created_at_i":%d}`, id, url, points, comments,
		at)
}

func hits(of ...string) string { return `{"hits":[` + strings.Join(of, ",") + `],"nbHits":1}` }

func TestStories(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"none", `{"hits":[],"nbHits":0}`, "hn_mentions_365d absent, hn_engagement_365d absent, hn_mentions_trend_90d absent"},
		{
			"good", hits(
				hit(1, "https://brindleworks.com/a", 1, 10, 5), hit(2, "http://Blog.Brindleworks.com/b", 80, 7, 0),
				hit(3, "https://brindleworks.com/c", 100, 1, 1), hit(4, "https://brindleworks.com/d", 300, 100, 50),
			),
			"hn_mentions_365d 4, hn_engagement_365d 174, hn_mentions_trend_90d 0.2877",
		},
		{
			"two in half a year make no trend", hits(hit(1, "https://brindleworks.com/a", 10, 0, 0), hit(2, "https://brindleworks.com/b",
				200, 0, 0)),
			"hn_mentions_365d 2, hn_engagement_365d 0, hn_mentions_trend_90d absent",
		},
		{
			"others, old ones, and one that stands twice", hits(
				hit(1, "https://brindleworks.com/a", 5, 1, 0), hit(1, "https://brindleworks.com/a", 5, 1, 0),
				hit(2, "https://notbrindleworks.com/a", 5, 1, 0), hit(3, "https://brindleworks.com.evil.example/", 5, 1, 0),
				hit(4, "https://brindleworks.com/old", 366, 1, 0), hit(5, "", 5, 1, 0), hit(6, "https://brindleworks.com/next", -1, 1, 0),
			),
			"hn_mentions_365d 1, hn_engagement_365d 1, hn_mentions_trend_90d absent",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseStories(strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			wantSpoken(t, observeStories(got, "brindleworks.com", instant), test.want)
		})
	}
}

func TestStoriesThatAreNone(t *testing.T) {
	t.Parallel()
	good := hits(hit(1, "https://brindleworks.com/a", 1, 10, 5))
	for _, body := range []string{"", "{}", good[:len(good)-20], "<html>", `{"hits":null}`, `{"message":"too many requests"}`,
		`{"hits":[{"points":"many"}]}`} {
		if got, err := parseStories(strings.NewReader(body)); err == nil {
			t.Errorf("%q: got %v, want an error", body, got)
		}
	}
}

func FuzzStories(f *testing.F) {
	f.Add(hits(hit(1, "https://brindleworks.com/a", 1, 10, 5)))
	f.Fuzz(func(t *testing.T, body string) {
		if got, err := parseStories(strings.NewReader(body)); err == nil {
			wantValid(t, observeStories(got, "brindleworks.com", instant))
		}
	})
}
