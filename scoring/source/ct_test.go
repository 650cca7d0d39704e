package source

import (
	"fmt"
	"strings"
	"testing"
)

// logged is an entry of the first log search.
func logged(common, names, notAfter string) string {
	return fmt.Sprintf(`{"issuer_name":"C=ZZ, O=Quill Authority","common_name":%q,"name_value":%q,"id":21975830168,"not_before":"2026-01-24T17:08:54","not_after":%q}`, common, names, notAfter)
}

func TestNames(t *testing.T) {
	t.Parallel()
	many := make([]string, 6000)
	for i := range many {
		many[i] = logged(fmt.Sprintf("h%d.brindleworks.com", i), "", "2026-12-01T00:00:00")
	}
	tests := []struct {
		name, body string
		want       int
	}{
		{"none", "[]", 0},
		{
			"good", "[" + logged("brindleworks.com", "*.brindleworks.com\nbrindleworks.com\nwww.brindleworks.com", "2026-12-01T00:00:00") +
				"," +
				logged("API.Brindleworks.com", "api.brindleworks.com.\n www.brindleworks.com ", "2026-12-01T00:00:00.123") + "]", 3,
		},
		{"ended", "[" + logged("old.brindleworks.com", "old.brindleworks.com", "2026-03-01T00:00:00") + "]", 0},
		{"others and addresses", "[" + logged("notbrindleworks.com", "brindleworks.com.evil.example\nada@brindleworks.com",
			"2026-12-01T00:00:00") + "]", 0},
		{"too many stop at 5000", "[" + strings.Join(many, ","), 5000}, // the list does not end, and need not
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := parseNames(strings.NewReader(test.body), "brindleworks.com", instant)
			if err != nil || got != test.want {
				t.Errorf("got %d %v, want %d", got, err, test.want)
			}
		})
	}
	good := tests[1].body
	for _, body := range []string{"", "<html><body>502</body>", "{}", "7", good[:len(good)-1], good[:40], `[{"name_value":7}]`, "[[[["} {
		if got, err := parseNames(strings.NewReader(body), "brindleworks.com", instant); err == nil {
			t.Errorf("%q: got %d, want an error", body, got)
		}
	}
}

func TestIssuances(t *testing.T) {
	t.Parallel()
	const good = `[{"id":"648494876","dns_names":["brindleworks.com","*.brindleworks.com","www.brindleworks.com"],"not_after":"2026-12-01T00:00:00Z"},
		{"id":"648494877","dns_names":["old.brindleworks.com"],"not_after":"2026-01-01T00:00:00Z"}]`
	got, err := parseIssuances(strings.NewReader(good), "brindleworks.com", instant)
	if err != nil || len(got.Names) != 2 || got.Last != "648494877" {
		t.Errorf("got %+v %v, want 2 names and the last id", got, err)
	}
	got, err = parseIssuances(strings.NewReader("[]"), "brindleworks.com", instant)
	if err != nil || len(got.Names) != 0 || got.Last != "" {
		t.Errorf("an empty page: got %+v %v", got, err)
	}
	for _, body := range []string{"", `{"code":"rate_limited"}`, good[:len(good)-1], `[{"id":7}]`} {
		if got, err := parseIssuances(strings.NewReader(body), "brindleworks.com", instant); err == nil {
			t.Errorf("%q: got %+v, want an error", body, got)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("[" + logged("brindleworks.com", "*.brindleworks.com\nbrindleworks.com", "2026-12-01T00:00:00") + "]")
	f.Fuzz(func(t *testing.T, body string) {
		if got, err := parseNames(strings.NewReader(body), "brindleworks.com", instant); err == nil && (got < 0 || got > namesMax) {
			t.Errorf("got %d names", got)
		}
	})
}

func FuzzIssuances(f *testing.F) {
	f.Add(`[{"id":"1","dns_names":["brindleworks.com"],"not_after":"2026-12-01T00:00:00Z"}]`)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := parseIssuances(strings.NewReader(body), "brindleworks.com", instant)
		for _, name := range got.Names {
			if err == nil && !below(name, "brindleworks.com") {
				t.Errorf("%q is counted", name)
			}
		}
	})
}
