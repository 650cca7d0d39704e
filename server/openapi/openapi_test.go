package openapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

func TestDocumentIsJSONInItsOrder(t *testing.T) {
	t.Parallel()
	if !json.Valid(Document()) || !strings.HasPrefix(string(Document()), `{"openapi":"3.1.0","info":{"title":`) {
		t.Fatalf("the document begins with %.80s", Document())
	}
	if strings.Contains(string(Document()), "&cacheable") || !strings.Contains(string(Document()), `"period":"2026-04"`) {
		t.Error("aliases or dates did not survive")
	}
}

// outside is an address that a page would load from another server.
var outside = regexp.MustCompile(`(src|href)="(https?:)?//`)

func TestPageLoadsNothingFromElsewhere(t *testing.T) {
	t.Parallel()
	page := string(Page[""].Body)
	if found := outside.FindString(page); found != "" {
		t.Errorf("the page loads %s...", found)
	}
	for _, m := range regexp.MustCompile(`(?:src|href)="/docs/([^"]*)"`).FindAllStringSubmatch(page, -1) {
		if _, ok := Page[m[1]]; !ok {
			t.Errorf("the page needs %s, which is not there", m[1])
		}
	}
	if strings.Contains(ContentSecurityPolicy, "http") {
		t.Error("the policy allows another server")
	}
}
