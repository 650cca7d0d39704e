package source

import (
	"fmt"
	"strings"
	"testing"
	"time"
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
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, body string) {
		if got, err := parseCaptures(strings.NewReader(body)); err == nil {
			wantValid(t, archive{first: got, recent: got}.observe(instant))
		}
	})
}
