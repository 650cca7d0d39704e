package source

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
)

// cdx formats captures as the archive's index does.
func cdx(captures ...string) string {
	rows := []string{`["timestamp","digest"]`}
	for _, c := range captures {
		at, digest, _ := strings.Cut(c, " ")
		rows = append(rows, fmt.Sprintf(`[%q,%q]`, at, digest))
	}
	return "[" + strings.Join(rows, ",\n") + "]"
}

// monthly returns one capture in each of n months before the instant, with the digests in turn.
func monthly(n int, digests ...string) []string {
	var rows []string
	for i := n; i > 0; i-- {
		rows = append(rows, instant.Add(-time.Duration(i)*30*day).Format("20060102150405")+" "+digests[(n-i)%len(digests)])
	}
	return rows
}

// withStatus formats captures with a status as the archive's index does.
func withStatus(captures ...string) string {
	rows := []string{`["timestamp","statuscode","digest"]`}
	for _, c := range captures {
		f := strings.Fields(c)
		rows = append(rows, fmt.Sprintf(`[%q,%q,%q]`, f[0], f[1], f[2]))
	}
	return "[" + strings.Join(rows, ",\n") + "]"
}

func TestArchive(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, first, recent, want string }{
		{"never archived", `[]`, `[]`, "web_presence_years absent, homepage_change_rate_365d absent"},
		{
			"an old copy only", `[["timestamp"],["20060310120000"]]`, `[]`,
			"web_presence_years 20, homepage_change_rate_365d absent",
		},
		{
			"a site that never changes", `[["timestamp"],["20160310000000"]]`, cdx(monthly(24, "AAA")...),
			"web_presence_years 10, homepage_change_rate_365d 0",
		},
		{
			"a site that changes each second month", `[["timestamp"],["20160310000000"]]`,
			cdx(monthly(8, "A", "A", "B", "B", "C", "C", "D", "D")...),
			"web_presence_years 10, homepage_change_rate_365d 0.5",
		},
		{
			"content that was there before is not new", `[["timestamp"],["20160310000000"]]`, cdx(monthly(16, "A", "B", "C", "D")...),
			"web_presence_years 10, homepage_change_rate_365d 0",
		},
		{
			"three months are too few", `[["timestamp"],["20251210000000"]]`, cdx(monthly(3, "A", "B")...),
			"web_presence_years 0.2478, homepage_change_rate_365d absent",
		},
		{
			"unchanged captures are no changes", `[["timestamp"],["20160310000000"]]`, withStatus(monthly(8, "200 A", "- B", "200 C", "- C")...),
			"web_presence_years 10, homepage_change_rate_365d 0.25",
		},
		{
			"unchanged for two years", `[["timestamp"],["20160310000000"]]`, withStatus(monthly(24, "- A")...),
			"web_presence_years 10, homepage_change_rate_365d 0",
		},
		{
			"a redirect before each copy", `[["timestamp"],["20160310000000"]]`,
			withStatus(append(monthly(8, "200 A", "200 B", "200 C", "200 D", "- D"), monthly(8, "301 X", "- X")...)...),
			"web_presence_years 10, homepage_change_rate_365d 0.5",
		},
		{
			"redirects only", `[["timestamp"],["20160310000000"]]`, withStatus(monthly(24, "301 A", "302 B", "- A", "- C")...),
			"web_presence_years 10, homepage_change_rate_365d not_found",
		},
		{
			"odd rows are left out", `[["timestamp"],["20160310000000"],["never"],[]]`, cdx("now A", "20260101000000 B"),
			"web_presence_years 10, homepage_change_rate_365d absent",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var found archive
			var err error
			if found.first, err = parseCaptures(strings.NewReader(test.first)); err != nil {
				t.Fatal(err)
			}
			if found.recent, err = parseCaptures(strings.NewReader(test.recent)); err != nil {
				t.Fatal(err)
			}
			wantSpoken(t, found.observe(instant), test.want)
		})
	}
}

// index is a fake of the archive's index. It answers by the number of columns.
type index struct {
	first, recent, daily string
	status               int
	asked                []string
}

func (i *index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	i.asked = append(i.asked, q.Get("filter")+" "+q.Get("collapse"))
	w.Header().Set("Content-Type", "application/json")
	body := i.first
	switch {
	case i.status != 0:
		w.WriteHeader(i.status)
	case q.Get("collapse") != "":
		body = i.daily
	case q.Get("from") != "":
		body = i.recent
	}
	fmt.Fprint(w, body)
}

func TestArchiveRequests(t *testing.T) {
	t.Parallel()
	const blocked = "org.archive.util.io.RuntimeIOException: " +
		"org.archive.wayback.exception.AdministrativeAccessControlException: Blocked Site Error"
	many := withStatus(slices.Repeat([]string{instant.Add(-700*day).Format("20060102150405") + " 200 A"}, capturesMax)...)
	for _, c := range []struct {
		name       string
		index      index
		want, code string
		asked      int
	}{
		{"a site with redirects", index{first: `[["timestamp"],["20160310000000"]]`, recent: withStatus(monthly(12, "301 A", "200 B")...)},
			"web_presence_years 10, homepage_change_rate_365d 0.1667", "", 2},
		{"a site with more captures than are read", index{first: `[["timestamp"],["20160310000000"]]`, recent: many,
			daily: withStatus(monthly(12, "200 A", "200 B", "200 C")...)}, "web_presence_years 10, homepage_change_rate_365d 0.25", "", 3},
		{"a site that was never archived", index{first: "[]"}, "web_presence_years absent, homepage_change_rate_365d absent", "", 1},
		{"a blocked site", index{first: blocked, status: 403},
			"web_presence_years not_found, homepage_change_rate_365d not_found", "", 1},
		{"a refusal of the client", index{first: "Forbidden", status: 403}, "", "http_error", 1},
		{"a blocked site with another status", index{first: blocked, status: 500}, "", "http_error", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			network := fakenet.New(t)
			network.Endpoint("wayback", &c.index)
			got, err := NewWayback(network.Client()).Fetch(t.Context(), requestFor("brindleworks.com"))
			if code := WarningCode(err); err != nil && code != c.code || err == nil && c.code != "" {
				t.Fatalf("%q (%v), want %q", code, err, c.code)
			}
			if len(c.index.asked) != c.asked || !strings.HasPrefix(c.index.asked[0], "statuscode:[23]..|-") {
				t.Errorf("asked %q", c.index.asked)
			}
			if c.want != "" {
				wantSpoken(t, got, c.want)
			}
		})
	}
}

func TestCapturesThatAreNone(t *testing.T) {
	t.Parallel()
	good := cdx("20260101000000 A")
	for _, body := range []string{"", "{}", good[:len(good)-3], "org.archive.util.io.RuntimeIOException: Blocked Site Error",
		`[["digest"],["A"]]`, `[["timestamp"],["soon"]]`} {
		if got, err := parseCaptures(strings.NewReader(body)); err == nil {
			t.Errorf("%q: got %v, want an error", body, got)
		}
	}
}

func FuzzCaptures(f *testing.F) {
	f.Add(cdx("20260101000000 A", "20250101000000 B"))
	f.Add(withStatus("20260101000000 - B", "20250101000000 301 A"))
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, body string) {
		if got, err := parseCaptures(strings.NewReader(body)); err == nil {
			wantValid(t, archive{first: got, recent: got}.observe(instant))
		}
	})
}
