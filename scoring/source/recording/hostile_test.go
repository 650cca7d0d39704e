package recording

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/worker"
)

const recordedFakes = "testdata/fakes"

// copyOf returns a copy of the recording of all fakes.
func copyOf(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "recording")
	if err := os.CopyFS(dir, os.DirFS(recordedFakes)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func read(t testing.TB, dir, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func write(t testing.TB, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// seal changes a manifest and gives it the sizes and sums of the files as they are.
func seal(t testing.TB, dir string, change func(m *Manifest)) {
	t.Helper()
	var m Manifest
	if err := json.Unmarshal(read(t, dir, manifestFile), &m); err != nil {
		t.Fatal(err)
	}
	for i, f := range m.Files {
		if text, err := os.ReadFile(filepath.Join(dir, f.Path)); err == nil {
			m.Files[i] = File{f.Path, int64(len(text)), sumOf(text)}
		}
	}
	if change != nil {
		change(&m)
	}
	w := writer{dir: dir, files: m.Files}
	if err := w.manifest(m); err != nil {
		t.Fatal(err)
	}
}

// firstBody returns the name of a body.
func firstBody(t testing.TB, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, bodiesDir, "*-hn.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return bodiesDir + "/" + filepath.Base(files[0])
}

// editExchange replaces the first exchange that pick accepts, and seals the recording.
func editExchange(t testing.TB, dir string, pick func(e *Exchange) bool) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace(read(t, dir, exchangesFile)), []byte("\n"))
	for i, line := range lines {
		var e Exchange
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		if !pick(&e) {
			continue
		}
		text, err := encode(e, "")
		if err != nil {
			t.Fatal(err)
		}
		lines[i] = text
		write(t, dir, exchangesFile, append(bytes.Join(lines, []byte("\n")), '\n'))
		seal(t, dir, nil)
		return
	}
	t.Fatal("no exchange was changed")
}

// Open names what is wrong with a recording, and reads nothing outside of it.
func TestOpenNamesFaults(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "secret")
	write(t, filepath.Dir(outside), "secret", []byte("an answer from outside"))
	path := func(dir, name string) string { return filepath.Join(dir, name) }
	must := func(t testing.TB, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	type change = func(t testing.TB, dir, body string)
	// Without a name these change the body.
	remove := func(name string) change {
		return func(t testing.TB, dir, body string) { must(t, os.Remove(path(dir, cmp.Or(name, body)))) }
	}
	cut := func(name string, to int64) change {
		return func(t testing.TB, dir, body string) { must(t, os.Truncate(path(dir, cmp.Or(name, body)), to)) }
	}
	sealed := func(edit func(m *Manifest)) change {
		return func(t testing.TB, dir, _ string) { seal(t, dir, edit) }
	}
	for name, c := range map[string]struct {
		change change
		says   string // BODY is the name of the body
	}{
		"missing body":         {remove(""), "BODY: missing"},
		"cut body":             {cut("", 10), "BODY: cut: it has 10 of"},
		"missing exchanges":    {remove(exchangesFile), "exchanges.jsonl: missing"},
		"cut exchanges":        {cut(exchangesFile, 999), "exchanges.jsonl: cut: it has 999 of"},
		"missing observations": {remove(observationsFile), "observations.json: missing"},
		"missing manifest":     {remove(manifestFile), "recording.json: missing"},
		"cut manifest":         {cut(manifestFile, 500), "recording.json: cut or not valid"},
		"changed body": {func(t testing.TB, dir, body string) {
			text := read(t, dir, body)
			text[len(text)/2] ^= 1
			write(t, dir, body, text)
		}, "BODY: changed"},
		"longer body": {func(t testing.TB, dir, body string) {
			write(t, dir, body, append(read(t, dir, body), ' '))
		}, "BODY: changed: it has"},
		"changed clock": {func(t testing.TB, dir, _ string) {
			write(t, dir, manifestFile, bytes.Replace(read(t, dir, manifestFile), []byte("2026-11-20T12"), []byte("2026-11-21T12"), 1))
		}, "recording.json: changed"},
		"unknown file": {func(t testing.TB, dir, _ string) { write(t, dir, "notes.txt", nil) }, `"notes.txt": unknown`},
		"unknown body": {func(t testing.TB, dir, _ string) { write(t, dir, "bodies/999-hn.json", nil) }, `"bodies/999-hn.json": unknown`},
		"a link in place of a body": {func(t testing.TB, dir, body string) {
			must(t, errors.Join(os.Remove(path(dir, body)), os.Symlink(outside, path(dir, body))))
			seal(t, dir, nil)
		}, "BODY: not a regular file"},
		"a link in place of the manifest": {func(t testing.TB, dir, _ string) {
			must(t, errors.Join(os.Remove(path(dir, manifestFile)), os.Symlink(outside, path(dir, manifestFile))))
		}, "recording.json: not a regular file"},
		"a directory in place of a body": {func(t testing.TB, dir, body string) {
			must(t, errors.Join(os.Remove(path(dir, body)), os.Mkdir(path(dir, body), 0o755)))
		}, "BODY: not a regular file"},
		"a path that leaves": {sealed(func(m *Manifest) {
			m.Files = append(m.Files, File{Path: "bodies/../../secret"})
		}), `bodies/../../secret" is not the name`},
		"an absolute path": {sealed(func(m *Manifest) {
			m.Files = append(m.Files, File{Path: outside})
		}), "is not the name of a file"},
		"a file named twice":       {sealed(func(m *Manifest) { m.Files = append(m.Files, m.Files[0]) }), "is named twice"},
		"a size beyond the bounds": {sealed(func(m *Manifest) { m.Files[0].Bytes = 1 << 40 }), "at most"},
		"another format":           {sealed(func(m *Manifest) { m.Format = 2 }), "the format is 2"},
		"an unknown source":        {sealed(func(m *Manifest) { m.Sources = []string{"oracle"} }), "oracle"},
		"no company":               {sealed(func(m *Manifest) { m.Companies = nil }), "0 companies"},
		"other companies":          {sealed(func(m *Manifest) { m.Companies = m.Companies[1:] }), "its companies are not those"},
		"a domain that is none":    {sealed(func(m *Manifest) { m.Companies[0].Domain = "10.0.0.1" }), "is not a domain"},
		"a body of no exchange": {func(t testing.TB, dir, _ string) {
			write(t, dir, "bodies/999-hn.json", []byte("x"))
			seal(t, dir, func(m *Manifest) { m.Files = append(m.Files, File{"bodies/999-hn.json", 1, sumOf([]byte("x"))}) })
		}, "bodies/999-hn.json: no exchange has it"},
		"an exchange with a body of another": {func(t testing.TB, dir, body string) {
			editExchange(t, dir, func(e *Exchange) bool {
				ok := e.HTTP != nil && e.HTTP.Body != "" && e.HTTP.Body != body
				if ok {
					e.HTTP.Body = body
				}
				return ok
			})
		}, "two exchanges have it"},
		"a record that reads a file": {func(t testing.TB, dir, _ string) {
			editExchange(t, dir, func(e *Exchange) bool {
				ok := e.DNS != nil
				if ok {
					e.DNS.Answer = []string{"$INCLUDE " + outside}
				}
				return ok
			})
		}, "is no record of DNS"},
		"a handshake without a chain": {func(t testing.TB, dir, _ string) {
			editExchange(t, dir, func(e *Exchange) bool {
				ok := e.TLS != nil
				if ok {
					e.TLS.Chain = ""
				}
				return ok
			})
		}, "does not name its file"},
		"two answers": {func(t testing.TB, dir, _ string) {
			editExchange(t, dir, func(e *Exchange) bool { e.Failure = &Failure{Code: "timeout"}; return e.HTTP != nil })
		}, "one answer or failure"},
		"a status that is none": {func(t testing.TB, dir, _ string) {
			editExchange(t, dir, func(e *Exchange) bool {
				if e.HTTP != nil {
					e.HTTP.Status = -1
				}
				return e.HTTP != nil
			})
		}, "the status -1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t)
			body := firstBody(t, dir)
			c.change(t, dir, body)
			r, err := Open(dir)
			if err == nil {
				r.Close()
				t.Fatal("it was opened")
			}
			if want := strings.ReplaceAll(c.says, "BODY", body); !strings.Contains(err.Error(), want) {
				t.Errorf("got %q, want %q", err, want)
			}
			if strings.Contains(err.Error(), "an answer from outside") {
				t.Error("a file outside was read")
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "nowhere")); err == nil {
		t.Error("a directory that does not exist was opened")
	}
}

// Faults of several files are named together.
func TestOpenNamesAllFaults(t *testing.T) {
	t.Parallel()
	dir := copyOf(t)
	body := firstBody(t, dir)
	write(t, dir, "notes.txt", nil)
	write(t, dir, observationsFile, nil)
	if err := os.Remove(filepath.Join(dir, body)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir)
	for _, name := range []string{body, "notes.txt", observationsFile} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
}

// replayEverything asks the sources of a recording about its companies and every exchange once more.
func replayEverything(t testing.TB, r *Recording) {
	t.Helper()
	p := r.Replay()
	sources, err := p.Sources(slog.New(slog.DiscardHandler))
	if err != nil {
		return // the manifest has a setting that the client refuses
	}
	var domains []string
	for _, c := range r.Manifest.Companies {
		domains = append(domains, c.Domain)
	}
	if _, err := worker.Check(t.Context(), sources, domains, p.Begin, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, e := range r.Exchanges {
		x := fetch.Exchange{Source: e.Source, Request: e.Request, Run: ctx}
		if res, err := p.HTTP(x, nil, nil); err == nil {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		if reply, err := p.DNS(x, new(dns.Msg), nil); err == nil {
			_ = reply.String()
		}
		if shown, err := p.TLS(x, nil); err == nil && len(shown.Chain) == 0 {
			t.Error("a handshake without certificates")
		}
		_, _ = p.Turn(x, nil)
	}
}

// FuzzRecording reads recordings whose sums are right and whose contents are not.
func FuzzRecording(f *testing.F) {
	fakes, err := Open(recordedFakes)
	if err != nil {
		f.Fatal(err)
	}
	defer fakes.Close()
	for _, source := range slices.Sorted(maps.Keys(sourcesOf(fakes))) {
		var lines []string
		for _, e := range fakes.Exchanges {
			if e.Source == source {
				line, err := encode(e, "")
				if err != nil {
					f.Fatal(err)
				}
				lines = append(lines, string(line))
			}
		}
		f.Add(strings.Join(lines, "\n"), "bodies/001-ct.json", []byte(`[]`))
	}
	f.Add(`{"source":"hn","request":"GET https://hn.algolia.com/","at_ms":0,"took_ms":0,"http":{"status":200,"body":"bodies/001-hn.json","end":"cut"}}`,
		"bodies/001-hn.json", []byte(`{"hits":[`))
	f.Add(`{"source":"tls","request":"TLS zz.com","at_ms":0,"took_ms":0,"tls":{"version":772,"chain":"bodies/001-tls.pem"}}`,
		"bodies/001-tls.pem", []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, exchanges, name string, body []byte) {
		dir := t.TempDir()
		w := writer{dir: dir}
		if err := os.Mkdir(filepath.Join(dir, bodiesDir), 0o755); err != nil {
			t.Fatal(err)
		}
		err := errors.Join(w.file(exchangesFile, []byte(exchanges)), w.file(observationsFile, []byte(`[{"domain":"zz.com"}]`)))
		if bodyName.MatchString(name) {
			err = errors.Join(err, w.file(name, body))
		} else {
			w.files = append(w.files, File{Path: name})
		}
		err = errors.Join(err, w.manifest(Manifest{Format: Format, Began: time.Unix(1_800_000_000, 0).UTC(),
			Companies: []Company{{"zz.com", time.Unix(1_800_000_000, 0).UTC()}}, Sources: source.Names(allSources(t)), Resolvers: 1}))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil {
			return
		}
		defer r.Close()
		replayEverything(t, r)
	})
}

func sourcesOf(r *Recording) map[string]bool {
	found := make(map[string]bool)
	for _, e := range r.Exchanges {
		found[e.Source] = true
	}
	return found
}

func allSources(t testing.TB) []source.Source {
	t.Helper()
	client, err := fetch.New(fetch.Config{Contact: redactedMail})
	if err != nil {
		t.Fatal(err)
	}
	return source.Live(client, "", slog.New(slog.DiscardHandler))
}

// A failure is classified again as it was.
func TestFailuresKeepTheirClass(t *testing.T) {
	t.Parallel()
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IP{10, 1, 2, 3}}, Err: err}
	}
	for name, err := range map[string]error{
		"refused":     fmt.Errorf("connect: %w", dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))),
		"unreachable": dial(os.NewSyscallError("connect", syscall.EHOSTUNREACH)),
		"late":        context.DeadlineExceeded,
		"late dial":   dial(context.DeadlineExceeded),
		"reset":       &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)},
		"dns":         &fetch.Error{Code: fetch.CodeDNS, Err: errors.New("no address")},
		"limited":     &fetch.Error{Code: fetch.CodeRateLimited, RetryAfter: 3 * time.Second, Err: errors.New("wait")},
		"blocked":     &fetch.Error{Code: fetch.CodeAddress, Err: errors.New("10.1.2.3 is private")},
	} {
		before := failureOf(err)
		after := failureOf(before.err())
		if before.Text = after.Text; *before != *after {
			t.Errorf("%s: %+v became %+v", name, before, after)
		}
		if errors.Is(err, syscall.ECONNREFUSED) != errors.Is(before.err(), syscall.ECONNREFUSED) {
			t.Errorf("%s: the refusal was lost", name)
		}
		if strings.Contains(failureOf(err).Text, "10.1.2.3") {
			t.Errorf("%s: %s", name, failureOf(err).Text)
		}
	}
}

// A recording has a bound, and says which source passed it.
func TestRecordingIsBounded(t *testing.T) {
	t.Parallel()
	to := filepath.Join(t.TempDir(), "recording")
	r, err := NewRecorderTo(to, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	r.bytes = BytesMax - 5
	x := fetch.Exchange{Source: "tranco", Request: "GET https://tranco-list.eu/", Run: t.Context()}
	res, err := r.HTTP(x, nil, func() (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("more than five"))}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, readErr := io.ReadAll(res.Body)
	saveErr := r.Save(to, Manifest{}, nil, Private{})
	for _, err := range []error{readErr, saveErr} {
		if err == nil || !strings.Contains(err.Error(), "tranco") || !strings.Contains(err.Error(), "--sources") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("it was written")
	}
}
