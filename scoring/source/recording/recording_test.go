package recording_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
	"companyscore/internal/test/fakesources"
	"companyscore/internal/test/golden"
	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/recording"
	"companyscore/scoring/worker"
)

// instant is the clock of the recorded fakes.
var instant = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

const (
	contact = "Caller.Name@operator-mail.net"
	token   = "ghp_secretSECRETsecret0123"
)

func clock() time.Time { return instant }

// private is what must not be in a recording.
var private = recording.Private{Contact: contact, Tokens: []string{token}, Resolvers: []string{"198.51.100.77:53"}}

// domainsOf returns the domains of the companies, and one that does not exist.
func domainsOf(fakes *fakesources.Fakes) []string {
	var domains []string
	for _, c := range fakes.Companies {
		domains = append(domains, c.Domain)
	}
	return append(domains, "zz-nobody.com")
}

// record records what all sources answer about domains, and returns what was found.
func record(t *testing.T, to string, overrides fetch.Overrides, domains ...string) []recording.Found {
	t.Helper()
	recorder, err := recording.NewRecorderTo(to, instant)
	if err != nil {
		t.Fatal(err)
	}
	defer recorder.Close()
	client, err := fetch.New(fetch.Config{Contact: contact, Overrides: &overrides, Now: clock, Wire: recorder,
		Tokens: map[string]string{"COMPANYSCORE_GITHUB_TOKEN": token}})
	if err != nil {
		t.Fatal(err)
	}
	sources := source.Live(client, "", slog.New(slog.DiscardHandler))
	manifest := recording.Manifest{Program: "test", Sources: source.Names(sources), Tokens: []string{"COMPANYSCORE_GITHUB_TOKEN"}}
	found := check(t, sources, domains, func(i int) time.Time {
		at := instant.Add(time.Duration(i) * time.Second)
		recorder.Begin(domains[i], at)
		return at
	})
	if err := recorder.Save(to, manifest, found, private); err != nil {
		t.Fatal(err)
	}
	return found
}

func check(t *testing.T, sources []source.Source, domains []string, begin func(int) time.Time) []recording.Found {
	t.Helper()
	checked, err := worker.Check(t.Context(), sources, domains, begin, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var found []recording.Found
	for i, c := range checked {
		found = append(found, recording.FoundOf(domains[i], c.Trace, c.Err))
	}
	return found
}

// replay replays a recording and checks that it finds what was recorded.
func replay(t *testing.T, dir string) []recording.Found {
	t.Helper()
	r, err := recording.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := r.Replay()
	sources, err := p.Sources(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var domains []string
	for _, c := range r.Manifest.Companies {
		domains = append(domains, c.Domain)
	}
	found := check(t, sources, domains, p.Begin)
	for _, request := range p.Missing() {
		t.Errorf("no answer to %s", request)
	}
	wantSame(t, r.Found, found)
	return found
}

func wantSame(t *testing.T, before, after []recording.Found) {
	t.Helper()
	lines, err := recording.Differences(before, after)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		t.Error(line)
	}
}

func startFakes(t *testing.T, cfg fakesources.Config) *fakesources.Fakes {
	t.Helper()
	cfg.Now, cfg.Dir, cfg.Scale, cfg.Ranked, cfg.Seed = instant, t.TempDir(), 10_000, 2000, 1
	fakes, err := fakesources.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return fakes
}

// A recording gives the same observations as the servers did, also of servers that fail.
func TestReplayFindsWhatWasRecorded(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]fakesources.Config{
		"no faults":                         {Companies: 4},
		"one in four fails":                 {Companies: 8, Faults: 0.25},
		"one in ten fails, some by silence": {Companies: 3, Faults: 0.3, Hangs: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fakes := startFakes(t, cfg)
			dir := filepath.Join(t.TempDir(), "recording")
			found := record(t, dir, fakes.Overrides(), domainsOf(fakes)...)
			if err := fakes.Close(); err != nil {
				t.Fatal(err)
			}
			observations := 0
			for range 3 {
				observations = 0
				for _, f := range found {
					observations += len(f.Observations)
				}
				wantSame(t, found, replay(t, dir))
			}
			if observations < 60*len(fakes.Companies) {
				t.Errorf("%d observations of %d companies", observations, len(fakes.Companies))
			}
			wantNothingPrivate(t, dir)
		})
	}
}

func wantNothingPrivate(t *testing.T, dir string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for _, secret := range []string{contact, strings.ToLower(contact), token, "Bearer ghp", "127.0.0.1", "operator-mail",
			"198.51.100.77"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s contains %q", path, secret)
			}
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files were read: %v", files, err)
	}
}

// testdata/fakes is a recording of all fakes, with the observations that come of it. With -update the
// test writes it again. The test is not parallel, so it ends before the parallel tests read the files.
func TestRecordedFakes(t *testing.T) {
	const dir = "testdata/fakes"
	if golden.Updating() {
		fakes := startFakes(t, fakesources.Config{Companies: 3})
		defer fakes.Close()
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		record(t, dir, fakes.Overrides(), domainsOf(fakes)...)
	}
	sources := make(map[string]bool)
	for _, f := range replay(t, dir) {
		for _, s := range f.Sources {
			if s.Outcome == "answered" {
				sources[s.Source] = true
			}
		}
	}
	if len(sources) != len(fetch.Policies) {
		t.Errorf("the recording has answers of %d of %d sources: %v", len(sources), len(fetch.Policies), sources)
	}
	wantNothingPrivate(t, dir)
}

// echoing tells callers what it knows of them, compressed and not.
func echoing(w http.ResponseWriter, r *http.Request) {
	text := fmt.Sprintf(`{"hits":[],"ua":%q,"auth":%q,"ip":"198.51.100.9","port":"198.51.100.9:80","other":"1198.51.100.99","mail":%q}`,
		r.UserAgent(), r.Header.Get("Authorization"), strings.ReplaceAll(contact, "@", "%40"))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Client-Ip", "198.51.100.9")
	w.Header().Set("Set-Cookie", "session=oven")
	w.Header().Set("X-Ratelimit-Remaining", "58")
	if r.URL.Path == "/orgs/zz-echo" {
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		defer packed.Close()
		fmt.Fprint(packed, text)
		return
	}
	fmt.Fprint(w, text)
}

// What servers tell a caller about itself is not in a recording, and the observations stay.
func TestRecordingHasNothingPrivate(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	for _, name := range []string{"hn", "github"} {
		network.Endpoint(name, http.HandlerFunc(echoing))
	}
	network.Site("zz-echo.com", "", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<title>Echo</title><p>You are %s from 198.51.100.9.</p><a href="https://github.com/zz-echo">code</a>`,
			html.EscapeString(r.UserAgent()))
	}))
	dir := filepath.Join(t.TempDir(), "recording")
	found := record(t, dir, *network.Overrides(), "zz-echo.com")
	wantSame(t, found, replay(t, dir))
	wantNothingPrivate(t, dir)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{`"198.51.100.9"`, "198.51.100.9:80", "session=oven", "Caller.Name", "Authorization"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("%s contains %q", path, secret)
			}
		}
		if strings.HasSuffix(path, "github.json") && !strings.Contains(string(text), "1198.51.100.99") {
			t.Errorf("%s was not decompressed, or lost more than an address: %s", path, text)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A request that a recording does not have is named with its source.
func TestReplayNamesMissingRequests(t *testing.T) {
	t.Parallel()
	r, err := recording.Open("testdata/fakes")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.Exchanges = slices.DeleteFunc(slices.Clone(r.Exchanges), func(e recording.Exchange) bool { return e.Source == "hn" })
	p := r.Replay()
	sources, err := p.Sources(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	found := check(t, sources, []string{r.Manifest.Companies[0].Domain}, p.Begin)
	missing := p.Missing()
	if len(missing) != 1 || !strings.HasPrefix(missing[0], "hn: GET https://hn.algolia.com/") {
		t.Errorf("missing requests: %q", missing)
	}
	lines, err := recording.Differences(r.Found[:1], found)
	if err != nil || !slices.ContainsFunc(lines, func(line string) bool {
		return strings.Contains(line, `now {"source":"hn","outcome":"http_error"}`)
	}) {
		t.Errorf("differences: %q, %v", lines, err)
	}
}

// A recording that cannot be completed leaves nothing behind.
func TestRecordingIsCompleteOrAbsent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	recorder, err := recording.NewRecorderTo(filepath.Join(dir, "new"), instant)
	if err != nil {
		t.Fatal(err)
	}
	if err := recorder.Save(filepath.Join(dir, "no", "such", "place"), recording.Manifest{}, nil, private); err == nil {
		t.Error("saved in a directory that does not exist")
	}
	if err := recorder.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := recording.NewRecorderTo(dir, instant); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("a recording into an existing directory: %v", err)
	}
}
