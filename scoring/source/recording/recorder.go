package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// Recorder is a fetch.Wire that keeps every exchange. Bodies are in files until Save. It is safe
// for concurrent use.
type Recorder struct {
	began   time.Time // by the clock of the client
	started time.Time // by the clock of this machine
	dir     string    // of the bodies; "" keeps no bodies

	mu        sync.Mutex
	companies []Company
	kept      []*keptExchange
	own       []netip.Addr // addresses that servers said are ours
	bytes     int64
	fault     error
	ended     bool
}

// keptExchange is an exchange with its body.
type keptExchange struct {
	Exchange
	body  *os.File // nil when it was read
	file  string   // of the body, "" without one
	chain []byte
}

var _ fetch.Wire = (*Recorder)(nil)

// NewRecorder returns a recorder that keeps exchanges but no bodies, for a look at what was answered.
// now is the clock of the client.
func NewRecorder(now time.Time) *Recorder {
	return &Recorder{began: now.UTC().Round(0), started: time.Now()}
}

// NewRecorderTo returns a recorder whose Save writes the directory to, which must not exist. now is
// the clock of the client. Close must be called.
func NewRecorderTo(to string, now time.Time) (*Recorder, error) {
	if _, err := os.Lstat(to); err == nil {
		return nil, fmt.Errorf("%s exists: choose a directory that does not", to)
	}
	r := NewRecorder(now)
	var err error
	if r.dir, err = os.MkdirTemp(filepath.Dir(filepath.Clean(to)), ".recording-*"); err != nil {
		return nil, fmt.Errorf("make a directory for the recording: %w", err)
	}
	return r, os.Mkdir(filepath.Join(r.dir, bodiesDir), 0o755)
}

// Close ends the recording, and removes it unless it was saved. The exchanges can still be read.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for _, e := range r.kept {
		_ = e.closeBody() // it is removed
	}
	if r.dir == "" {
		return nil
	}
	return os.RemoveAll(r.dir)
}

// Exchanges returns the exchanges until now.
func (r *Recorder) Exchanges() []Exchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Exchange, len(r.kept))
	for i, e := range r.kept {
		list[i] = e.Exchange
	}
	return list
}

// Fault returns why the recording is not complete, nil if it is.
func (r *Recorder) Fault() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fault
}

// Begin begins the run of a company at an instant, after the run before it has ended.
func (r *Recorder) Begin(domain string, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.companies = append(r.companies, Company{Domain: domain, At: at})
}

// begin returns a new exchange, which add keeps.
func (r *Recorder) begin(x fetch.Exchange) *keptExchange {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := Exchange{Source: x.Source, Request: x.Request, At: time.Since(r.started).Milliseconds()}
	if n := len(r.companies); n > 0 {
		e.Company = r.companies[n-1].Domain
	}
	return &keptExchange{Exchange: e}
}

// add keeps an exchange that has ended, or whose body begins.
func (r *Recorder) add(e *keptExchange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Took = time.Since(r.started).Milliseconds() - e.At
	switch {
	case r.ended:
	case len(r.kept) >= exchangesMax:
		r.failLocked(fmt.Errorf("more than %d exchanges: record fewer companies", exchangesMax))
	default:
		r.kept = append(r.kept, e)
	}
}

func (r *Recorder) failLocked(err error) {
	if r.fault == nil {
		r.fault = err
	}
}

// addFailure keeps a failed exchange.
func (r *Recorder) addFailure(e *keptExchange, x fetch.Exchange, err error, unsent bool) {
	e.Failure = failureOf(err)
	e.Failure.Unsent, e.Failure.Deadline = unsent, x.Run.Err() != nil
	r.add(e)
}

// Turn keeps requests that the client's own limits do not admit.
func (r *Recorder) Turn(x fetch.Exchange, next func() (func(), error)) (func(), error) {
	e := r.begin(x)
	release, err := next()
	if err != nil {
		r.addFailure(e, x, err, true)
	}
	return release, err
}

// Pause waits.
func (r *Recorder) Pause(ctx context.Context, d time.Duration) bool { return fetch.Pause(ctx, d) }

// HTTP keeps an answer, and its body as the client reads it.
func (r *Recorder) HTTP(x fetch.Exchange, _ *http.Request, next func() (*http.Response, error)) (*http.Response, error) {
	e := r.begin(x)
	res, err := next()
	if err != nil {
		r.addFailure(e, x, err, false)
		return nil, err
	}
	e.HTTP = &HTTP{Status: res.StatusCode, Header: kept(res.Header), End: endLeft}
	if r.dir != "" {
		if e.body, err = os.CreateTemp(r.dir, "body-*"); err != nil {
			res.Body.Close()
			r.mu.Lock()
			defer r.mu.Unlock()
			r.failLocked(fmt.Errorf("keep an answer: %w", err))
			return nil, &fetch.Error{Code: fetch.CodeHTTP, Err: r.fault}
		}
		e.file = e.body.Name()
	}
	r.mu.Lock()
	for _, addr := range echoed(res.Header) {
		if !slices.Contains(r.own, addr) {
			r.own = append(r.own, addr)
		}
	}
	r.mu.Unlock()
	r.add(e)
	res.Body = &keptBody{ReadCloser: res.Body, recorder: r, of: e, run: x.Run}
	return res, nil
}

// keptBody keeps what is read of a body.
type keptBody struct {
	io.ReadCloser
	recorder *Recorder
	of       *keptExchange
	run      context.Context
}

func (b *keptBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if full := b.recorder.keep(b, p[:n], err); full != nil {
		return 0, full
	}
	return n, err
}

// Close closes the body and its copy.
func (b *keptBody) Close() error {
	b.recorder.mu.Lock()
	defer b.recorder.mu.Unlock()
	if err := b.of.closeBody(); err != nil {
		b.recorder.failLocked(fmt.Errorf("keep an answer: %w", err))
	}
	return b.ReadCloser.Close()
}

// closeBody closes the copy of the body, if it is open.
func (e *keptExchange) closeBody() error {
	if e.body == nil {
		return nil
	}
	body := e.body
	e.body = nil
	return body.Close()
}

// keep keeps a piece of a body, and how the body ended. It returns an error if the recording is full.
func (r *Recorder) keep(b *keptBody, piece []byte, end error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := b.of
	if r.ended {
		return nil
	}
	e.Took = time.Since(r.started).Milliseconds() - e.At
	switch {
	case end == nil:
	case end == io.EOF:
		e.HTTP.End = endComplete
	case errors.Is(end, io.ErrUnexpectedEOF):
		e.HTTP.End = endCut
	default:
		e.HTTP.End, e.HTTP.Failure = endFailed, failureOf(end)
		e.HTTP.Failure.Deadline = b.run.Err() != nil
	}
	if e.body == nil || len(piece) == 0 {
		return nil
	}
	if r.bytes += int64(len(piece)); r.bytes > BytesMax {
		r.failLocked(fmt.Errorf("the answers are larger than %d MiB, the last one is of %s: record fewer companies, or fewer sources "+
			"with --sources", BytesMax>>20, e.Source))
		return r.fault
	}
	if _, err := e.body.Write(piece); err != nil {
		r.failLocked(fmt.Errorf("keep an answer: %w", err))
		return r.fault
	}
	return nil
}

// DNS keeps an answer of a resolver.
func (r *Recorder) DNS(x fetch.Exchange, query *dns.Msg, next func() (*dns.Msg, error)) (*dns.Msg, error) {
	e := r.begin(x)
	reply, err := next()
	if err == nil && (len(reply.Question) != 1 || !strings.EqualFold(reply.Question[0].Name, query.Question[0].Name) ||
		reply.Question[0].Qtype != query.Question[0].Qtype) {
		r.addFailure(e, x, &fetch.Error{Code: fetch.CodeDNS, Err: errors.New("the answer does not match the question")}, false)
		return reply, nil
	}
	if err != nil {
		r.addFailure(e, x, err, false)
		return nil, err
	}
	e.DNS = &DNS{Rcode: dns.RcodeToString[reply.Rcode], Authenticated: reply.AuthenticatedData, Truncated: reply.Truncated,
		Answer: records(reply.Answer), Authority: records(reply.Ns)}
	r.add(e)
	return reply, nil
}

// records returns records in the format of zone files, in a form that reads back as the same record.
func records(list []dns.RR) (texts []string) {
	for _, rr := range list {
		text := strings.ReplaceAll(rr.String(), "\t", " ")
		if again, err := dns.NewRR(text); err != nil || again == nil || !dns.IsDuplicate(rr, again) {
			generic := new(dns.RFC3597)
			if generic.ToRFC3597(rr) != nil {
				continue // it could not be sent either
			}
			text = strings.ReplaceAll(generic.String(), "\t", " ")
		}
		texts = append(texts, text)
	}
	return texts
}

// TLS keeps a handshake.
func (r *Recorder) TLS(x fetch.Exchange, next func() (fetch.Handshake, error)) (fetch.Handshake, error) {
	e := r.begin(x)
	shown, err := next()
	if err != nil {
		r.addFailure(e, x, err, false)
		return shown, err
	}
	e.TLS = &TLS{Version: shown.Version, Fault: shown.Fault}
	for _, cert := range shown.Chain {
		e.chain = append(e.chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})...)
	}
	r.add(e)
	return shown, nil
}

// Save writes the recording and what was found to the directory, completely or not at all. It takes
// out what is private. Save sets all of manifest but the program, the sources and the
// tokens.
func (r *Recorder) Save(to string, manifest Manifest, found []Found, private Private) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true // what a late source does is not part of the recording
	if r.fault != nil {
		return r.fault
	}
	var domains []string
	for _, c := range r.companies {
		domains = append(domains, c.Domain)
	}
	w := &writer{dir: r.dir, redactor: newRedactor(private, append(ownAddresses(), r.own...), domains)}
	// Concurrent exchanges have no order of their own.
	slices.SortStableFunc(r.kept, func(a, b *keptExchange) int {
		return strings.Compare(a.Source+" "+a.Request, b.Source+" "+b.Request)
	})
	var lines bytes.Buffer
	for i, e := range r.kept {
		if err := w.exchange(i+1, e); err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
		line, err := encode(e.Exchange, "")
		if err != nil {
			return fmt.Errorf("write the recording: %w", err)
		}
		lines.Write(w.redactor.bytes(line))
		lines.WriteByte('\n')
	}
	observations, err := encode(found, " ")
	if err != nil {
		return fmt.Errorf("write the observations: %w", err)
	}
	manifest.Format, manifest.Began, manifest.Companies, manifest.Resolvers = Format, r.began, r.companies, r.resolvers()
	err = errors.Join(w.file(exchangesFile, lines.Bytes()),
		w.file(observationsFile, append(w.redactor.bytes(observations), '\n')), w.manifest(manifest))
	if err == nil {
		err = os.Chmod(r.dir, 0o755)
	}
	if err == nil {
		err = os.Rename(r.dir, to)
	}
	if err != nil {
		return fmt.Errorf("write the recording: %w", err)
	}
	r.dir = ""
	return nil
}

// resolvers returns the number of DNS servers that were asked, at least 1.
func (r *Recorder) resolvers() int {
	most := 1
	for _, e := range r.kept {
		if strings.HasPrefix(e.Request, "GET ") || strings.HasPrefix(e.Request, "TLS ") {
			continue
		}
		if number, err := strconv.Atoi(e.Request[strings.LastIndexByte(e.Request, ' ')+1:]); err == nil {
			most = max(most, number)
		}
	}
	return most
}

// writer writes the files of a recording.
type writer struct {
	dir      string
	redactor *redactor
	files    []File
}

func (w *writer) file(path string, text []byte) error {
	w.files = append(w.files, File{Path: path, Bytes: int64(len(text)), Sum: sumOf(text)})
	return os.WriteFile(filepath.Join(w.dir, path), text, 0o644)
}

// exchange writes the body or the chain of an exchange.
func (w *writer) exchange(number int, e *keptExchange) error {
	name := func(extension string) string {
		return fmt.Sprintf("%s/%03d-%s.%s", bodiesDir, number, e.Source, extension)
	}
	if e.TLS != nil {
		e.TLS.Chain = name("pem")
		return w.file(e.TLS.Chain, e.chain)
	}
	if e.file == "" {
		return nil
	}
	err := e.closeBody() // a source that did not end in time may still read it
	raw, readErr := os.ReadFile(e.file)
	if err = errors.Join(err, readErr, os.Remove(e.file)); err != nil {
		return err
	}
	body := w.redactor.bytes(decoded(raw, e.HTTP))
	if len(body) == 0 {
		return nil
	}
	e.HTTP.Body = name(extension(e.HTTP.Header.Get("Content-Type")))
	return w.file(e.HTTP.Body, body)
}

func (w *writer) manifest(m Manifest) (err error) {
	m.Files = w.files
	if m.Sum, err = m.sum(); err != nil {
		return err
	}
	text, err := encode(m, "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(w.dir, manifestFile), append(text, '\n'), 0o644)
}

// decoded returns the body of an answer without its content encoding, and removes the headers that
// then no longer hold. A body that cannot be decoded stays as it is.
func decoded(raw []byte, answer *HTTP) []byte {
	coding := strings.ToLower(answer.Header.Get("Content-Encoding"))
	if coding != "gzip" && coding != "x-gzip" {
		if answer.End == endComplete {
			answer.Header.Del("Content-Length")
		}
		return raw
	}
	unpacked, err := gzip.NewReader(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return raw
	}
	body, err := io.ReadAll(io.LimitReader(unpacked, bodyMaxBytes))
	switch {
	case err == nil && len(body) == bodyMaxBytes:
		answer.End = endLeft
	case err == nil:
	case !errors.Is(err, io.ErrUnexpectedEOF):
		return raw
	case answer.End == endComplete:
		answer.End = endCut
	}
	answer.Header.Del("Content-Encoding")
	answer.Header.Del("Content-Length")
	return body
}

// extension returns the extension of a file with a body of a media type.
func extension(contentType string) string {
	media, _, _ := mime.ParseMediaType(contentType)
	for _, known := range []struct{ part, extension string }{
		{"json", "json"}, {"html", "html"}, {"xml", "xml"}, {"rss", "xml"}, {"zip", "zip"}, {"text/", "txt"},
	} {
		if strings.Contains(media, known.part) {
			return known.extension
		}
	}
	return "bin"
}
