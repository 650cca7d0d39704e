package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
	"companyscore/internal/test/wait"
	"companyscore/scoring/source/fetch"
)

// ask sends the request of a source.
func ask(t *testing.T, c *fetch.Client, source, endpoint string) (thing, error) {
	t.Helper()
	return fetch.Get(t.Context(), c, fetch.Request{Source: source, Endpoint: endpoint, Path: "/thing"}, decodeThing)
}

// turns answers each request with the next handler, and later ones with the last handler.
func turns(n *atomic.Int64, handlers ...http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handlers[min(int(n.Add(1)), len(handlers))-1](w, r)
	})
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
	}
}

func good(w http.ResponseWriter, _ *http.Request) { answerJSON(w, `{"N": 1}`) }

// TestAnswersThatAreNone checks the codes of bad answers, and the number of requests.
func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	typed := func(contentType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, body)
		}
	}
	for name, c := range map[string]struct {
		answers []http.HandlerFunc
		code    string
		asked   int64
	}{
		"good":                       {[]http.HandlerFunc{good}, "", 1},
		"good after a 503":           {[]http.HandlerFunc{status(503), good}, "", 2},
		"good after a pause":         {[]http.HandlerFunc{status(429, "Retry-After", "1"), good}, "", 2},
		"a pause that is too long":   {[]http.HandlerFunc{status(429, "Retry-After", "86400"), good}, fetch.CodeRateLimited, 1},
		"down for long":              {[]http.HandlerFunc{status(502)}, fetch.CodeHTTP, 2},
		"broken":                     {[]http.HandlerFunc{status(500), good}, fetch.CodeHTTP, 1},
		"not found":                  {[]http.HandlerFunc{status(404), good}, fetch.CodeHTTP, 1},
		"forbidden":                  {[]http.HandlerFunc{status(403), good}, fetch.CodeHTTP, 1},
		"redirect that says nothing": {[]http.HandlerFunc{status(302)}, fetch.CodeHTTP, 1},
		"not modified, unasked":      {[]http.HandlerFunc{status(304)}, fetch.CodeHTTP, 1},
		"refusal with status 200":    {[]http.HandlerFunc{typed("text/html", "Please wait"), good}, fetch.CodeParse, 1},
		"no JSON":                    {[]http.HandlerFunc{typed("application/json", "Please wait"), good}, fetch.CodeParse, 1},
		"empty":                      {[]http.HandlerFunc{typed("application/json", ""), good}, fetch.CodeParse, 1},
		"cut off":                    {[]http.HandlerFunc{typed("application/json", `{"N": 1`), good}, fetch.CodeParse, 1},
		"two answers in one":         {[]http.HandlerFunc{typed("application/json", `{"N": 1}{"N": 2}`), good}, fetch.CodeParse, 1},
		"another type of JSON":       {[]http.HandlerFunc{typed("application/vnd.api+json; charset=utf-8", `{"N": 1}`)}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			network := fakenet.New(t)
			var n atomic.Int64
			network.Endpoint("hn", turns(&n, c.answers...))
			client := network.Client()
			ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
			defer cancel()
			got, err := fetch.Get(ctx, client, fetch.Request{Source: "hn", Endpoint: "hn", Path: "/thing"}, decodeThing)
			if code(err) != c.code || n.Load() != c.asked || c.code == "" && got.N != 1 {
				t.Errorf("%+v, %v after %d requests; want %q after %d", got, err, n.Load(), c.code, c.asked)
			}
		})
	}
}

func TestAnswerIsKept(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var n, ahead atomic.Int64
	network.Endpoint("hn", hits(&n, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", `"v1"`)
		answerJSON(w, fmt.Sprintf(`{"N": %d}`, n.Load()))
	}))
	c := network.ClientWith(fetch.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	for i, step := range []struct {
		after time.Duration
		asked int64
	}{{0, 1}, {5 * time.Hour, 1}, {2 * time.Hour, 2}, {time.Hour, 2}, {7 * time.Hour, 3}} {
		ahead.Add(int64(step.after))
		got, err := ask(t, c, "hn", "hn")
		if err != nil || got.N != 1 || n.Load() != step.asked {
			t.Errorf("step %d: %+v, %v after %d requests; want the first answer after %d", i, got, err, n.Load(), step.asked)
		}
	}
}

func TestFailureIsKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		until  time.Duration
	}{"not found": {status(404), 6 * time.Hour}, "broken": {status(500), 10 * time.Minute}} {
		network := fakenet.New(t)
		var n, ahead atomic.Int64
		network.Endpoint("hn", turns(&n, c.answer))
		client := network.ClientWith(fetch.Config{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
		for _, step := range []struct {
			at    time.Duration
			asked int64
		}{{0, 1}, {c.until - time.Minute, 1}, {c.until + time.Minute, 2}} {
			ahead.Store(int64(step.at))
			_, err := ask(t, client, "hn", "hn")
			if code(err) != fetch.CodeHTTP || n.Load() != step.asked || fetch.IsNotFound(err) != (name == "not found") {
				t.Errorf("%s at %s: %v after %d requests, want %d", name, step.at, err, n.Load(), step.asked)
			}
		}
	}
}

func TestEqualRequestsAreCoalesced(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var n atomic.Int64
	release := make(chan struct{})
	network.Endpoint("hn", hits(&n, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
		good(w, r)
	}))
	c := network.Client()
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			if i == 19 {
				close(release) // all others wait or will find the answer
			}
			if got, err := ask(t, c, "hn", "hn"); err != nil || got.N != 1 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	all.Wait()
	if n.Load() != 1 {
		t.Errorf("asked %d times, want once", n.Load())
	}
}

func TestRefusingProviderIsPaused(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var n, m atomic.Int64
	network.Endpoint("wayback", turns(&n, status(429)))
	network.Endpoint("github", turns(&m, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-RateLimit-Remaining", "0")
		w.Header().Set("X-RateLimit-Reset", fmt.Sprint(time.Now().Add(time.Hour).Unix()))
		good(w, r)
	}))
	c := network.Client()
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max) // shorter than both pauses
	defer cancel()
	for i := range 3 {
		_, err := fetch.Get(ctx, c, fetch.Request{Source: "wayback", Endpoint: "wayback", Path: fmt.Sprint("/", i)}, decodeThing)
		if code(err) != fetch.CodeRateLimited || n.Load() != 1 {
			t.Errorf("request %d: %v after %d requests; want one alone", i, err, n.Load())
		}
	}
	for i := range 2 {
		got, err := fetch.Get(ctx, c, fetch.Request{Source: "github", Endpoint: "github", Path: fmt.Sprint("/", i)}, decodeThing)
		if i == 0 && (err != nil || got.N != 1) || i == 1 && code(err) != fetch.CodeRateLimited || m.Load() != 1 {
			t.Errorf("request %d: %+v, %v after %d requests; want the last that was left, then none", i, got, err, m.Load())
		}
	}
	if ctx.Err() != nil {
		t.Error("what cannot be had in time was waited for")
	}
}

func TestTokenStaysWithItsServer(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	got := make(map[string]string)
	see := func(name string, next http.HandlerFunc) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got[name] = r.Header.Get("Authorization")
			for _, header := range []string{"Cookie", "Referer", "X-Forwarded-For"} {
				if v := r.Header.Get(header); v != "" {
					t.Errorf("%s is told %s: %s", name, header, v)
				}
			}
			next(w, r)
		})
	}
	network.Endpoint("ct.certspotter", see("certspotter", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1"})
		http.Redirect(w, r, network.Overrides().Endpoints["ct.crtsh"]+"/thing", http.StatusFound)
	}))
	network.Endpoint("ct.crtsh", see("crt.sh", good))
	c := network.ClientWith(fetch.Config{Tokens: map[string]string{"COMPANYSCORE_CERTSPOTTER_TOKEN": "secret"}})
	if answer, err := ask(t, c, "ct", "ct.certspotter"); err != nil || answer.N != 1 {
		t.Fatalf("%+v, %v", answer, err)
	}
	if got["certspotter"] != "Bearer secret" || got["crt.sh"] != "" {
		t.Errorf("tokens told: %v", got)
	}
	if !c.HasToken("ct.certspotter") || c.HasToken("github") {
		t.Error("HasToken is wrong")
	}
}

func TestParserMayStopEarly(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	network.Endpoint("hn", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	c := network.Client()
	req := fetch.Request{Source: "hn", Endpoint: "hn", Path: "/thing"}
	first, err := fetch.Get(t.Context(), c, req, func(res *fetch.Response) (int, error) {
		n, err := io.ReadFull(res.Body, make([]byte, 1000))
		return n, err
	})
	if err != nil || first != 1000 {
		t.Errorf("%d, %v", first, err)
	}
	req.Path, req.BodyMax = "/other", 10_000
	if _, err := fetch.Get(t.Context(), c, req, func(res *fetch.Response) (int64, error) {
		return io.Copy(io.Discard, res.Body)
	}); code(err) != fetch.CodeTooLarge {
		t.Errorf("an answer without end: %v", err)
	}
	boom := errors.New("boom")
	req.Path = "/third"
	if _, err := fetch.Get(t.Context(), c, req, func(*fetch.Response) (int, error) { return 0, boom }); code(err) != fetch.CodeParse ||
		!errors.Is(err, boom) {
		t.Errorf("error of a parser: %v", err)
	}
}

func TestPathCannotLeaveTheServer(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	var n atomic.Int64
	network.Endpoint("hn", turns(&n, good))
	c := network.Client()
	for _, path := range []string{"@evil.com/", ":99/", ".evil.com/", "//\x00"} {
		if _, err := fetch.Get(t.Context(), c, fetch.Request{Source: "hn", Endpoint: "hn", Path: path, Query: url.Values{"a": {"b"}}},
			decodeThing); err == nil {
			t.Errorf("path %q was asked", path)
		}
	}
	if n.Load() != 0 {
		t.Errorf("%d requests", n.Load())
	}
	if _, err := ask(t, c, "gdelt", "gdelt"); err == nil || !strings.Contains(err.Error(), "overrides") {
		t.Errorf("an endpoint without an override: %v", err)
	}
}

func TestContact(t *testing.T) {
	t.Parallel()
	for contact, ok := range map[string]bool{
		"ops@example.com": true, "https://example.com/bot": true, "https://example.com/bot; ops@example.com": true,
		"": false, "me": false, "ops@example": false, "javascript:alert(1)": false, "ops@example.com\r\nX: y": false,
		"a@b.c) Mozilla/5.0 (": false,
	} {
		if err := fetch.CheckContact(contact); (err == nil) != ok {
			t.Errorf("CheckContact(%q) = %v", contact, err)
		}
	}
	_, err := fetch.New(fetch.Config{Resolvers: []string{"resolver.example:53"}, Never: []string{"not a host"},
		Overrides: &fetch.Overrides{HTTP: "10.0.0.1:80", Endpoints: map[string]string{"hn": "http://93.184.215.14:80"}}})
	for _, fault := range []string{"--contact", "not a host", "10.0.0.1:80", "93.184.215.14:80"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("New does not complain of %q: %v", fault, err)
		}
	}
}

// TestRefusalIsRead checks that the text of a refusal, and of nothing else, is in the error.
func TestRefusalIsRead(t *testing.T) {
	t.Parallel()
	says := func(code int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, text)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"forbidden":        {says(403, "Blocked Site Error\n"), "Blocked Site Error\n"},
		"unauthorized":     {says(401, "who\xff?"), "who?"},
		"long":             {says(403, strings.Repeat("x", 1<<20)), strings.Repeat("x", 1<<10)},
		"empty":            {says(403, ""), ""},
		"another failure":  {says(500, "Blocked Site Error"), ""},
		"not found":        {says(404, "Blocked Site Error"), ""},
		"unknown encoding": {status(403, "Content-Encoding", "br"), ""},
	} {
		network := fakenet.New(t)
		network.Endpoint("hn", c.answer)
		client := network.Client()
		for range 2 { // the second failure is a cached one
			_, err := ask(t, client, "hn", "hn")
			var e *fetch.Error
			if !errors.As(err, &e) || e.Refusal != c.want {
				t.Errorf("%s: got %.50v, want the refusal %.50q", name, err, c.want)
			}
		}
	}
}
