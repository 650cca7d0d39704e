package fetch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring/source/fetch"
)

// hits counts the requests that reach a handler.
func hits(n *atomic.Int64, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.Add(1); h(w, r) })
}

func answerJSON(w http.ResponseWriter, body string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, body)
}

type thing struct{ N int }

// decodeThing is a parser for Get. It fails on data after the JSON value.
func decodeThing(res *fetch.Response) (v thing, err error) {
	d := json.NewDecoder(res.Body)
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	if _, err := d.Token(); err != io.EOF {
		return v, fmt.Errorf("data after the JSON value: %w", err)
	}
	return v, nil
}

func code(err error) string {
	var e *fetch.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return "no code: " + err.Error()
	}
	return ""
}

func TestGet(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var n atomic.Int64
	network.Endpoint("hn", hits(&n, func(w http.ResponseWriter, r *http.Request) {
		if got := r.UserAgent(); !strings.HasPrefix(got, "companyscore/") || !strings.Contains(got, "operator@example.com") {
			t.Errorf("User-Agent %q does not say who asks", got)
		}
		if r.URL.Path != "/api/v1/search" || r.URL.Query().Get("q") != "a b" {
			t.Errorf("asked %s", r.URL)
		}
		answerJSON(w, `{"N": 7, "more": [1,2,3]}`)
	}))
	c := network.Client()
	for range 2 {
		got, err := fetch.Get(t.Context(), c, fetch.Request{Source: "hn", Endpoint: "hn", Path: "/api/v1/search",
			Query: url.Values{"q": {"a b"}}}, decodeThing)
		if err != nil || got.N != 7 {
			t.Fatalf("Get = %+v, %v", got, err)
		}
	}
	if n.Load() != 1 {
		t.Errorf("asked %d times, want once", n.Load())
	}
}

func TestSite(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	mux := http.NewServeMux()
	mux.HandleFunc("/robots.txt", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "User-agent: *\nDisallow: /secret\nSitemap: https://example.com/map.xml\n")
	})
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		w.Write([]byte("<p>caf\xe9"))
	})
	mux.Handle("/moved", http.RedirectHandler("https://www.example.com/", http.StatusFound))
	network.Site("example.com", "Example Inc", mux)
	network.Site("www.example.com", "", mux)
	c := network.Client()
	site, err := c.Visit(t.Context(), "example.com")
	if err != nil {
		t.Fatal(err)
	}
	page, err := site.Get(t.Context(), "/", fetch.HTML)
	if err != nil || string(page.Body) != "<p>café" || page.Status != 200 {
		t.Errorf("home = %+v, %v", page, err)
	}
	if page, err := site.Get(t.Context(), "/moved", fetch.HTML); err != nil || page.URL.Host != "www.example.com" {
		t.Errorf("redirect = %+v, %v", page, err)
	}
	if _, err := site.Get(t.Context(), "/secret/x", fetch.HTML); code(err) != fetch.CodeRobots {
		t.Errorf("forbidden page: %v", err)
	}
	if page, err := site.Get(t.Context(), "/none", fetch.HTML); err != nil || page.Status != 404 {
		t.Errorf("no page: %+v, %v", page, err)
	}
	if got := site.Sitemaps(); len(got) != 1 || got[0] != "https://example.com/map.xml" {
		t.Errorf("sitemaps = %q", got)
	}
	cert, err := c.Handshake(t.Context(), "example.com")
	if err != nil || cert.Organization != "Example Inc" || cert.Fault != "" || cert.NotAfter.Before(time.Now()) {
		t.Errorf("certificate = %+v, %v", cert, err)
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Records("example.com", `example.com. 60 IN TXT "v=spf1 -all"`, `example.com. 60 IN MX 10 mx.example.com.`)
	c := network.Client()
	for range 2 {
		msg, err := c.Lookup(t.Context(), "Example.com", dns.TypeTXT)
		if err != nil || len(msg.Answer) != 1 {
			t.Fatalf("TXT = %v, %v", msg, err)
		}
	}
	if n := len(network.Asked()); n != 1 {
		t.Errorf("asked %d times, want once", n)
	}
	if msg, err := c.Lookup(t.Context(), "none.example", dns.TypeA); err != nil || msg.Rcode != dns.RcodeNameError {
		t.Errorf("no such name = %v, %v", msg, err)
	}
	network.Answer("broken.example.com", func(_ dns.Question, reply *dns.Msg) { reply.Rcode = dns.RcodeServerFailure })
	if _, err := c.Lookup(t.Context(), "broken.example.com", dns.TypeA); code(err) != fetch.CodeDNS {
		t.Errorf("server failure: %v", err)
	}
}
