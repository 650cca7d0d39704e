package selection_test

import (
	"strings"
	"testing"

	"companyscore/scoring/source/selection"
)

// A start fails if the configuration does not keep what a selected provider asks of callers.
func TestTermsAreCheckedAtStart(t *testing.T) {
	f := func(sources, contact, want string) {
		t.Helper()
		c := selection.Config{Chosen: sources, Contact: contact}
		err := c.Validate()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s with contact %q: got %v, want %q", sources, contact, err, want)
		}
	}
	f("facts", "", "")
	f("all", "", "need --contact")
	f("all", "ops@example.com", "")
	f("all", "https://example.com/bot", "source sec: EDGAR refuses clients without an e-mail address")
	f("all", "https://example.com/bot;ops@example.com", "")
	f("all", "https://example.com/bot; ops@example.com", "")
	f("sec", "https://example.com/@ops.x", "source sec")
	f("facts,dns,wikidata", "https://example.com/bot", "")
	f("wikidata", "somebody", "source wikidata: contact")
	t.Setenv("COMPANYSCORE_GITHUB_TOKEN", "abc\n")
	f("github", "ops@example.com", "COMPANYSCORE_GITHUB_TOKEN has a character")
	f("dns", "ops@example.com", "")

	c := selection.Config{Chosen: "all", Contact: "https://example.com/bot"}
	for name, want := range map[string]string{"sec": "no: source sec", "dns": "yes", "facts": "yes"} {
		if got := c.Status(name, []string{"sec", "dns", "facts"}); !strings.HasPrefix(got, want) {
			t.Errorf("the status of %s is %q, want %q", name, got, want)
		}
	}
}
