package cmd

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"companyscore/internal/test/fakenet"
	"companyscore/internal/test/fakesources"
	"companyscore/scoring/source/fetch"
)

// overridesFile writes overrides to a file.
func overridesFile(t *testing.T, overrides fetch.Overrides) string {
	t.Helper()
	text, err := yaml.Marshal(overrides)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sources.yaml")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func startSources(t *testing.T) (*fakesources.Fakes, string) {
	t.Helper()
	fakes, err := fakesources.Start(fakesources.Config{Companies: 2, Seed: 1, Ranked: 2000, Dir: t.TempDir(), Scale: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fakes.Close() })
	return fakes, overridesFile(t, fakes.Overrides())
}

func rowsOf(t *testing.T, text string) (rows []checkedSource) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
	return rows
}

func TestSourceRecordAndReplay(t *testing.T) {
	t.Parallel()
	fakes, at := startSources(t)
	to := filepath.Join(t.TempDir(), "recording")
	first, second := fakes.Companies[0].Domain, fakes.Companies[1].Domain
	code, recorded, stderr := command(t, "", "source", "record", first, "www."+first, second, "--to", to, "--sources-at", at, "--contact",
		"caller@operator-mail.net", "-o", "json")
	if code != exitDone || !strings.Contains(stderr, "exchanges are in "+to) {
		t.Fatalf("record: exit %d: %s", code, stderr)
	}
	if err := fakes.Close(); err != nil {
		t.Fatal(err)
	}
	code, replayed, stderr := command(t, "", "source", "replay", to, "-o", "json")
	if code != exitDone || recorded != replayed {
		t.Errorf("replay: exit %d, %s: recorded\n%.500s\nreplayed\n%.500s", code, stderr, recorded, replayed)
	}
	rows := rowsOf(t, replayed)
	if len(rows) != 2*len(fetch.Policies) || rows[0].Domain != first || rows[len(rows)-1].Domain != second {
		t.Errorf("%d rows: %.500s", len(rows), replayed)
	}
	observations := 0
	for _, row := range rows {
		observations += len(row.Observations)
	}
	if observations < 2*60 {
		t.Errorf("%d observations", observations)
	}
	code, table, _ := command(t, "", "source", "replay", to)
	if code != exitDone || !strings.Contains(table, "NOT UNDERSTOOD") || !strings.Contains(table, second) {
		t.Errorf("replay as a table: exit %d: %s", code, table)
	}
	_, text, _ := command(t, "", "source", "replay", to, "-o", "csv")
	list, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || !slices.Contains(list[0], "signals_known") {
		t.Errorf("replay as CSV: %v, %v", list, err)
	}

	bodies, err := filepath.Glob(filepath.Join(to, "bodies", "*-hn.json"))
	if err != nil || len(bodies) == 0 {
		t.Fatal(bodies, err)
	}
	if err := os.Truncate(bodies[0], 3); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Base(bodies[0]) + ": cut"
	if code, _, stderr := command(t, "", "source", "replay", to); code != exitFailed || !strings.Contains(stderr, cut) {
		t.Errorf("replay of a cut recording: exit %d: %s", code, stderr)
	}
	if code, _, stderr := command(t, "", "source", "record", first, "--to", to, "--contact", "a@b.net"); code != exitFailed ||
		!strings.Contains(stderr, "exists") {
		t.Errorf("record into a directory that exists: exit %d: %s", code, stderr)
	}
}

func TestSourceRecordNeedsItsArguments(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "recording")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"at least 1", []string{"--to", to}},
		{"--to is required", []string{"stripe.com", "--contact", "a@b.net"}},
		{"--contact", []string{"stripe.com", "--to", to}},
		{"needs a dot", []string{"stripe", "--to", to, "--contact", "a@b.net"}},
		{"no live source", []string{"stripe.com", "--to", to, "--sources", "facts"}},
		{"crystal-ball", []string{"stripe.com", "--to", to, "--sources", "crystal-ball"}},
	} {
		code, _, stderr := command(t, "", append([]string{"source", "record"}, c.args...)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%v: exit %d, want %q in %q", c.args, code, c.says, stderr)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%v: a directory was made", c.args)
		}
	}
}

// A check of sources that answer as documented succeeds.
func TestSourceCheckOfFakes(t *testing.T) {
	t.Parallel()
	fakes, at := startSources(t)
	code, stdout, stderr := command(t, "", "source", "check", "--domain", fakes.Companies[0].Domain, "--sources-at", at, "--contact",
		"a@b.net", "-o", "json")
	rows := rowsOf(t, stdout)
	if code != exitDone || len(rows) != len(fetch.Policies) {
		t.Errorf("exit %d, %d rows: %s", code, len(rows), stderr)
	}
	for _, row := range rows {
		if !row.good() || row.Reached != (row.Requests > 0) {
			t.Errorf("%+v", row)
		}
	}
}

// A check says what kind of failure a source had, and exits 1.
func TestSourceCheckVerdicts(t *testing.T) {
	t.Parallel()
	answer := func(status int, contentType, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("X-Ratelimit-Limit", "60")
			w.Header().Set("Retry-After", "120")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) // the client may have left
		})
	}
	for verdict, handler := range map[string]http.Handler{
		verdictUnderstood: answer(200, "application/json", `{"hits":[],"nbHits":0}`),
		verdictChanged:    answer(200, "text/html", `<p>We moved</p>`),
		"changed ":        answer(200, "application/json", `{"hits":"none"}`),
		verdictLimited:    answer(429, "application/json", `{}`),
		verdictRefused:    answer(403, "application/json", `{}`),
		verdictNotReached: nil,
	} {
		t.Run(verdict, func(t *testing.T) {
			t.Parallel()
			network := fakenet.New(t)
			if handler != nil {
				network.Endpoint("hn", handler)
			} else {
				network.Overrides().Endpoints["hn"] = "http://127.0.0.1:1"
			}
			code, stdout, stderr := command(t, "", "source", "check", "hn", "--domain", "zz-check.com", "--sources-at",
				overridesFile(t, *network.Overrides()), "--contact", "a@b.net", "-o", "json")
			rows := rowsOf(t, stdout)
			want := strings.TrimSpace(verdict)
			if len(rows) != 1 || rows[0].Verdict != want {
				t.Fatalf("got %+v, want %q: %s", rows, want, stderr)
			}
			if good := verdict == verdictUnderstood; good != (code == exitDone) || !good && code != exitFailed {
				t.Errorf("exit %d: %s", code, stderr)
			}
			if row := rows[0]; handler != nil && (!row.Reached || !slices.Contains(row.Limits, "hn.algolia.com x-ratelimit-limit: 60") ||
				!slices.Contains(row.Limits, "hn.algolia.com retry-after: 120")) {
				t.Errorf("%+v", row)
			}
		})
	}
}
