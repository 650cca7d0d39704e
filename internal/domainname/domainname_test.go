package domainname

import (
	"errors"
	"strings"
	"testing"
)

func TestParseAccepts(t *testing.T) {
	t.Parallel()
	f := func(raw, want string) {
		t.Helper()
		got, err := Parse(raw)
		if err != nil || got != want {
			t.Errorf("Parse(%q) = %q, %v; want %q", raw, got, err, want)
		}
	}
	f("example.com", "example.com")
	f("  Example.COM ", "example.com")
	f("https://www.example.com/about?x=1#top", "example.com")
	f("HTTP://example.com:8080/", "example.com")
	f("ftp+tls://example.com", "example.com")
	f("//example.com/x", "example.com")
	f("example.com.", "example.com")
	f("example.com:443", "example.com")
	f("example.com?q", "example.com")
	f("shop.example.co.uk", "shop.example.co.uk")
	f("www.www.example.com", "example.com")
	f("www.com", "www.com")
	f("www.co.uk", "www.co.uk")
	f("www2.example.com", "www2.example.com")
	f("bücher.de", "xn--bcher-kva.de")
	f("BÜCHER.de", "xn--bcher-kva.de")
	f("xn--bcher-kva.de", "xn--bcher-kva.de")
	f("例え。jp", "xn--r8jz45g.jp")
	f("user.github.io", "user.github.io")
	f("1-800.com", "1-800.com")
	f(strings.Repeat("a", 63)+".com", strings.Repeat("a", 63)+".com")
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	f := func(raw, reason string) {
		t.Helper()
		got, err := Parse(raw)
		if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), reason) {
			t.Errorf("Parse(%q) = %q, %v; want ErrInvalid saying %q", raw, got, err, reason)
		}
	}
	f("", "empty")
	f("https://", "empty")
	f("/path", "empty")
	f("localhost", "needs a dot")
	f("com", "needs a dot")
	f("127.0.0.1", "IP addresses")
	f("2130706433", "needs a dot")
	f("0x7f.0.0.0x1", "IP addresses")
	f("0177.0.0.01", "IP addresses")
	f("http://[::1]/", "IP addresses")
	f("::1", "IP addresses")
	f("example.com:http", "port")
	f("user@example.com", "e-mail")
	f("https://user:pass@example.com", "e-mail")
	f("exa mple.com", "not a host name")
	f("exa_mple.com", "not a host name")
	f("example..com", "1 to 63")
	f(".example.com", "1 to 63")
	f("example.com..", "1 to 63")
	f("-example.com", "not a host name")
	f(strings.Repeat("a", 64)+".com", "1 to 63")
	f(strings.Repeat("a.", 127)+"com", "longer than 253")
	f(strings.Repeat("a", 3000), "longer than 2048")
	f("co.uk", "public suffix")
	f("github.io", "public suffix")
	f("example.notatld", "not a known top-level domain")
	f("printer.local", "reserved")
	f("acme.test", "reserved")
	f("1.0.0.127.in-addr.arpa", "reserved")
	f("example.com\\evil", "not a host name")
	f("example.com\x00", "not a host name")
	f("\xff\xfe.com", "UTF-8")
}

func TestCleanKeepsTestDomains(t *testing.T) {
	t.Parallel()
	host, err := Clean("https://WWW.Acme.test/")
	if err != nil || host != "acme.test" || !IsTest(host) {
		t.Errorf("Clean = %q, %v, IsTest %v; want acme.test, nil, true", host, err, IsTest(host))
	}
	if IsTest("acme.com") || IsTest("test") || IsTest("test.com") {
		t.Error("IsTest accepts names outside the reserved suffix")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"example.com", "https://www.example.co.uk:80/x", "bücher.de", "127.0.0.1", "a..b", "www.www.com", "例え。jp",
		"ß.de", "www。example.com."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		host, err := Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("Parse(%q): error %v does not wrap ErrInvalid", raw, err)
			}
			return
		}
		if len(host) > nameMaxBytes || !strings.Contains(host, ".") || strings.ToLower(host) != host {
			t.Fatalf("Parse(%q) = %q is not canonical", raw, host)
		}
		for _, c := range []byte(host) {
			if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '.') {
				t.Fatalf("Parse(%q) = %q holds %q", raw, host, c)
			}
		}
		again, err := Parse(host)
		if err != nil || again != host {
			t.Fatalf("Parse(%q) = %q, but Parse of that = %q, %v", raw, host, again, err)
		}
		if with, err := Parse("https://www." + host + ":443/x"); err != nil || with != host && with != "www."+host {
			t.Fatalf("decorated %q = %q, %v", host, with, err)
		}
	})
}
