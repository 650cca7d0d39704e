// Package hostile tests sources against servers that fail or attack.
package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"companyscore/internal/test/fakenet"
	"companyscore/internal/test/wait"
	"companyscore/scoring"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

// Fault is how a server fails.
type Fault struct {
	Name string
	// Codes are the allowed warning codes.
	Codes []string
	// Serve answers instead of good.
	Serve func(w http.ResponseWriter, r *http.Request, good http.Handler)
}

// endless is more than any source reads, in bytes.
const endless = 100 << 20

// Faults are all faults. A Case can set other codes.
var Faults = []Fault{
	{"empty body", []string{fetch.CodeParse}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
	}},
	{"malformed", []string{fetch.CodeParse}, body("application/json", `{"oops": [`)},
	{"plain refusal with status 200", []string{fetch.CodeParse}, body("text/html", "<html><title>Attention required</title></html>")},
	{"wrong content type", []string{fetch.CodeParse}, body("image/png", "\x89PNG")},
	{"deep nesting", []string{fetch.CodeParse}, body("application/json", strings.Repeat("[", 100_000))},
	{"truncated", []string{fetch.CodeParse, fetch.CodeHTTP}, truncated},
	{"429 with Retry-After", []string{fetch.CodeRateLimited}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "7200") // later than any limit, so that nothing waits for it
		http.Error(w, "slow down", http.StatusTooManyRequests)
	}},
	{"500", []string{fetch.CodeHTTP}, status(http.StatusInternalServerError)},
	{"503", []string{fetch.CodeHTTP}, status(http.StatusServiceUnavailable)},
	{"403", []string{fetch.CodeHTTP}, status(http.StatusForbidden)},
	{"closed connection", []string{fetch.CodeHTTP}, func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }},
	{"redirect to a private address", []string{fetch.CodeAddress}, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	}},
	{"redirect to a file", []string{fetch.CodeAddress}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	}},
	{"redirect in a circle", []string{fetch.CodeHTTP}, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		http.Redirect(w, r, r.URL.String(), http.StatusFound)
	}},
	{"gzip bomb", []string{fetch.CodeTooLarge}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	}},
	{"100 MB body", []string{fetch.CodeTooLarge}, func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`["`))
		for chunk, n := bytes.Repeat([]byte("a"), 64<<10), 0; n < endless && r.Context().Err() == nil; n += len(chunk) {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}},
	{"other compression", []string{fetch.CodeParse}, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write([]byte("???"))
	}},
	{"slow", []string{fetch.CodeTimeout}, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) { <-r.Context().Done() }},
}

// bomb is a gzipped JSON string of endless bytes.
var bomb = func() []byte {
	var packed bytes.Buffer
	w, _ := gzip.NewWriterLevel(&packed, gzip.BestSpeed)
	_, _ = w.Write([]byte(`["`))
	for chunk, n := bytes.Repeat([]byte("a"), 1<<20), 0; n < endless; n += len(chunk) {
		_, _ = w.Write(chunk)
	}
	_ = w.Close()
	return packed.Bytes()
}()

func body(contentType, text string) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(text))
	}
}

func status(code int) func(http.ResponseWriter, *http.Request, http.Handler) {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		http.Error(w, http.StatusText(code), code)
	}
}

// truncated sends half of the good answer and closes the connection.
func truncated(w http.ResponseWriter, r *http.Request, good http.Handler) {
	whole := httptest.NewRecorder()
	good.ServeHTTP(whole, r)
	for name, values := range whole.Header() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Length", fmt.Sprint(whole.Body.Len()))
	w.WriteHeader(whole.Code)
	_, _ = w.Write(whole.Body.Bytes()[:whole.Body.Len()/2])
	panic(http.ErrAbortHandler)
}

// Case is a source with the servers that it uses.
type Case struct {
	// Endpoints and Sites are the good answers. Run replaces each of them by every fault in turn.
	Endpoints map[string]http.Handler
	// Sites are by host.
	Sites map[string]http.Handler
	// New returns the source.
	New func(c *fetch.Client) source.Source
	// Request has a complete result if no server fails.
	Request source.Request
	// Spare are endpoints and hosts whose failure need not fail the source.
	Spare []string
	// Codes replace the allowed codes of a fault, by its name; an empty string allows success.
	Codes map[string][]string
	// Prepare adds what else the source needs to the network; it may be nil.
	Prepare func(network *fakenet.Network)
}

// Run tests a source with every fault of each of its servers.
func Run(t *testing.T, c Case) {
	t.Helper()
	t.Run("good", func(t *testing.T) {
		result, err := c.fetch(t, "", Fault{}, new(atomic.Int64))
		if err != nil {
			t.Fatal(err)
		}
		check(t, result)
		if !slices.ContainsFunc(result.Observations, func(o scoring.Observation) bool { return o.State == scoring.StateOK }) &&
			len(result.Parts) == 0 {
			t.Errorf("nothing is observed: %+v", result)
		}
	})
	servers := slices.Concat(slices.Collect(maps.Keys(c.Endpoints)), slices.Collect(maps.Keys(c.Sites)))
	// They mostly wait, so more of them than processors run concurrently.
	var running errgroup.Group
	running.SetLimit(12)
	for _, server := range servers {
		for _, fault := range Faults {
			running.Go(func() error {
				t.Run(server+" "+fault.Name, func(t *testing.T) { c.hold(t, server, fault, len(servers) == 1) })
				return nil
			})
		}
	}
	_ = running.Wait()
}

// hold fetches while one server fails. alone means that it is the only one.
func (c Case) hold(t *testing.T, failing string, fault Fault, alone bool) {
	var sent atomic.Int64
	result, err := c.fetch(t, failing, fault, &sent)
	check(t, result)
	codes := fault.Codes
	if own, ok := c.Codes[fault.Name]; ok {
		codes = own
	}
	spared := slices.Contains(c.Spare, failing) && err == nil
	if code := codeOf(err); !spared && !slices.Contains(codes, code) {
		t.Errorf("got %q (%v), want one of %v", code, err, codes)
	}
	if alone && err != nil && len(result.Observations)+len(result.Parts) > 0 {
		t.Errorf("a source that failed says %+v", result)
	}
	if sent.Load() > 60<<20 {
		t.Errorf("the server got rid of %d MB", sent.Load()>>20)
	}
}

func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return source.WarningCode(err)
}

// fetch runs the source while one server fails.
func (c Case) fetch(t *testing.T, failing string, fault Fault, sent *atomic.Int64) (source.Result, error) {
	t.Helper()
	network := fakenet.New(t)
	if c.Prepare != nil {
		c.Prepare(network)
	}
	serve := func(server string, good http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if server != failing {
				good.ServeHTTP(w, r)
				return
			}
			fault.Serve(&counter{ResponseWriter: w, sent: sent}, r, good)
		})
	}
	for endpoint, good := range c.Endpoints {
		network.Endpoint(endpoint, serve(endpoint, good))
	}
	for host, good := range c.Sites {
		network.Site(host, "", serve(host, good))
	}
	src := c.New(network.Client())
	// Only a server that never answers must end at the deadline. Other faults end by themselves,
	// at the speed of the machine.
	limit := wait.Max
	if slices.Contains(fault.Codes, fetch.CodeTimeout) {
		limit = fetch.PolicyOf(src.Name()).Total/4 + 2*time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	began := time.Now()
	result, err := src.Fetch(ctx, c.Request)
	if took := time.Since(began); took > limit+wait.Max {
		t.Errorf("it took %s, with a deadline of %s", took, limit)
	}
	if errors.Is(err, source.ErrUnavailable) {
		t.Errorf("the failure of a provider is told as one of our own: %v", err)
	}
	return result, err
}

// counter counts the bytes that a server sent.
type counter struct {
	http.ResponseWriter
	sent *atomic.Int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.sent.Add(int64(n))
	return n, err
}

// check tests what is true of every result.
func check(t *testing.T, result source.Result) {
	t.Helper()
	if _, err := scoring.Score(scoring.Input{Domain: "example.com", Observations: result.Observations}); err != nil {
		t.Error(err)
	}
	for _, o := range result.Observations {
		if o.State == scoring.StateMissing && o.Reason == "" || o.Source == "" {
			t.Errorf("an observation without reason or source: %+v", o)
		}
	}
}
