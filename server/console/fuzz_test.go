package console

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzSearchText(f *testing.F) {
	f.Add("Apple Inc")
	f.Add("https://www.apple.com/mac")
	f.Add(strings.Repeat("é", 60))
	f.Add("\xff\x00 İ")
	f.Fuzz(func(t *testing.T, raw string) {
		text := searchText(raw)
		if len(text) > textMax || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			t.Errorf("searchText(%q) = %q", raw, text)
		}
		if strings.TrimSpace(text) != text {
			t.Errorf("searchText(%q) = %q has space at an end", raw, text)
		}
	})
}

func FuzzClientAndCookie(f *testing.F) {
	f.Add("192.0.2.1:9", "10.0.0.1, 198.51.100.1", cookieName+"="+strings.Repeat("A", 26))
	f.Add("[::1]:9", ",", cookieName+"=;;")
	c := &Console{proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	f.Fuzz(func(t *testing.T, peer, forwarded, cookie string) {
		r := httptest.NewRequest(http.MethodGet, "/console", nil)
		r.RemoteAddr = peer
		r.Header["X-Forwarded-For"] = []string{forwarded}
		r.Header["Cookie"] = []string{cookie}
		_ = rangeOf(first(c.client(r)))
		if got, err := r.Cookie(cookieName); err == nil && tokenIsSane(got.Value) &&
			strings.Trim(got.Value, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			t.Errorf("the cookie %q counts as an id", got.Value)
		}
	})
}

func first(address netip.Addr, _ bool) netip.Addr { return address }
