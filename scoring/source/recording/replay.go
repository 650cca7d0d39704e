package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/miekg/dns"

	"companyscore/scoring/source"
	"companyscore/scoring/source/fetch"
)

// Replay is a fetch.Wire that answers from a recording. It makes no connection. Equal requests of a
// source get its recorded answers in their order, and then the last one again. It is safe for
// concurrent use.
type Replay struct {
	of *Recording

	mu      sync.Mutex
	now     time.Time
	ended   bool // the recorded run of the company ended before its sources did
	queues  map[question][]*Exchange
	next    map[question]int
	missing []string
}

// question is a request of a source. The source is empty for a DNS question of any.
type question struct{ source, request string }

var _ fetch.Wire = (*Replay)(nil)

// Replay returns a replay from the start of the recording.
func (r *Recording) Replay() *Replay {
	p := &Replay{of: r, now: r.Manifest.Began, queues: make(map[question][]*Exchange), next: make(map[question]int)}
	for i := range r.Exchanges {
		e := &r.Exchanges[i]
		q := question{e.Source, e.Request}
		p.queues[q] = append(p.queues[q], e)
		if e.DNS != nil {
			q.source = ""
			p.queues[q] = append(p.queues[q], e)
		}
	}
	return p
}

// Sources returns the recorded sources. They read from the recording.
func (p *Replay) Sources(logger *slog.Logger) ([]source.Source, error) {
	tokens := make(map[string]string)
	for _, name := range p.of.Manifest.Tokens {
		tokens[name] = redactedToken
	}
	var resolvers []string
	for i := range p.of.Manifest.Resolvers {
		resolvers = append(resolvers, fmt.Sprintf("192.0.2.%d:53", i+1))
	}
	client, err := fetch.New(fetch.Config{Contact: redactedMail, Tokens: tokens, Resolvers: resolvers, Now: p.Now, Wire: p, Logger: logger})
	if err != nil {
		return nil, err
	}
	var chosen []source.Source
	for _, s := range source.Live(client, "", logger) {
		if slices.Contains(p.of.Manifest.Sources, s.Name()) {
			chosen = append(chosen, replayed(s))
		}
	}
	return chosen, nil
}

// Now returns the recorded clock.
func (p *Replay) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

// Begin sets the clock to the recorded start of the run of a company, and returns it.
func (p *Replay) Begin(company int) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now, p.ended = p.of.Manifest.Companies[company].At, p.of.Found[company].Failure != ""
	return p.now
}

// Missing returns the requests, with their source, that the recording has no answer to. It has none
// of a company that is not registered: a run then ends as soon as that is known, whatever its sources
// were about to ask.
func (p *Replay) Missing() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.missing)
}

// peek returns the next exchange of a request, nil if there is none.
func (p *Replay) peek(x fetch.Exchange) (question, *Exchange) {
	q := question{x.Source, x.Request}
	if len(p.queues[q]) == 0 {
		q.source = "" // another source asked the same, and the answer was kept
	}
	list := p.queues[q]
	if len(list) == 0 {
		return q, nil
	}
	return q, list[min(p.next[q], len(list)-1)]
}

// take returns the exchange that answers a request, or the error of its failure.
func (p *Replay) take(x fetch.Exchange) (*Exchange, error) {
	p.mu.Lock()
	q, e := p.peek(x)
	p.next[q]++
	if e == nil && !p.ended {
		text := fmt.Sprintf("%s: %s", x.Source, x.Request)
		if !slices.Contains(p.missing, text) {
			p.missing = append(p.missing, text)
		}
	}
	p.mu.Unlock()
	switch {
	case e == nil:
		return nil, &fetch.Error{Code: fetch.CodeHTTP, Err: fmt.Errorf("the recording has no answer for %s to %s", x.Source, x.Request)}
	case e.Failure != nil:
		return nil, fail(x.Run, e.Failure)
	}
	return e, nil
}

// fail returns the error of a recorded failure. If the deadline of the source had passed, it ends run.
func fail(run context.Context, f *Failure) error {
	if f.Deadline {
		if d, ok := run.Value(deadlineKey{}).(*deadline); ok {
			d.end(context.DeadlineExceeded)
			if done := run.Done(); done != nil {
				<-done // it passes on the end of d
			}
		}
	}
	return f.err()
}

// Turn fails if the recorded client did not send the request.
func (p *Replay) Turn(x fetch.Exchange, _ func() (func(), error)) (func(), error) {
	p.mu.Lock()
	q, e := p.peek(x)
	unsent := e != nil && e.Failure != nil && e.Failure.Unsent
	if unsent {
		p.next[q]++
	}
	p.mu.Unlock()
	if unsent {
		return nil, fail(x.Run, e.Failure)
	}
	return func() {}, nil
}

// Pause does not wait.
func (p *Replay) Pause(ctx context.Context, _ time.Duration) bool { return ctx.Err() == nil }

// HTTP returns a recorded answer.
func (p *Replay) HTTP(x fetch.Exchange, req *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
	e, err := p.take(x)
	if err != nil {
		return nil, err
	}
	if e.HTTP == nil {
		return nil, &fetch.Error{Code: fetch.CodeHTTP, Err: errors.New("the recorded answer is not one to an HTTP request")}
	}
	res := &http.Response{
		Status: strconv.Itoa(e.HTTP.Status) + " " + http.StatusText(e.HTTP.Status), StatusCode: e.HTTP.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: e.HTTP.Header.Clone(), ContentLength: -1, Request: req,
	}
	if res.Header == nil {
		res.Header = make(http.Header)
	}
	if n, err := strconv.ParseInt(res.Header.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		res.ContentLength = n
	}
	var body io.ReadCloser = io.NopCloser(bytes.NewReader(nil))
	if e.HTTP.Body != "" {
		if body, err = p.of.root.Open(e.HTTP.Body); err != nil {
			return nil, &fetch.Error{Code: fetch.CodeHTTP, Err: fmt.Errorf("%s: %w", e.HTTP.Body, err)}
		}
	}
	res.Body = &replayedBody{Reader: io.LimitReader(body, bodyMaxBytes), Closer: body, of: e.HTTP, run: x.Run}
	return res, nil
}

// replayedBody is a body that ends as the recorded one did.
type replayedBody struct {
	io.Reader
	io.Closer
	of  *HTTP
	run context.Context
}

func (b *replayedBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	switch b.of.End {
	case endCut:
		err = io.ErrUnexpectedEOF
	case endLeft:
		err = &fetch.Error{Code: fetch.CodeHTTP, Err: errors.New("the recorded client read no further")}
	case endFailed:
		err = fail(b.run, b.of.Failure)
	}
	return n, err
}

// DNS returns a recorded answer.
func (p *Replay) DNS(x fetch.Exchange, query *dns.Msg, _ func() (*dns.Msg, error)) (*dns.Msg, error) {
	e, err := p.take(x)
	if err != nil {
		return nil, err
	}
	if e.DNS == nil {
		return nil, &fetch.Error{Code: fetch.CodeDNS, Err: errors.New("the recorded answer is not one to a DNS question")}
	}
	reply, err := e.DNS.message()
	if err != nil {
		return nil, err
	}
	reply.Id, reply.Question = query.Id, query.Question
	return reply, nil
}

// TLS returns a recorded handshake.
func (p *Replay) TLS(x fetch.Exchange, _ func() (fetch.Handshake, error)) (fetch.Handshake, error) {
	e, err := p.take(x)
	if err != nil {
		return fetch.Handshake{}, err
	}
	if e.TLS == nil {
		return fetch.Handshake{}, &fetch.Error{Code: fetch.CodeHTTP, Err: errors.New("the recorded answer is not a handshake")}
	}
	return p.of.handshake(e.TLS)
}

// replayed returns a source whose deadline passes where it passed when it was recorded.
func replayed(s source.Source) source.Source {
	if b, ok := s.(source.Background); ok {
		return replayedBackground{b}
	}
	return replayedSource{s}
}

type replayedSource struct{ source.Source }

// Fetch runs the source under a deadline that a recorded failure can end.
func (s replayedSource) Fetch(ctx context.Context, req source.Request) (source.Result, error) {
	return s.Source.Fetch(newDeadline(ctx), req)
}

type replayedBackground struct{ source.Background }

// Fetch is replayedSource.Fetch.
func (s replayedBackground) Fetch(ctx context.Context, req source.Request) (source.Result, error) {
	return s.Background.Fetch(newDeadline(ctx), req)
}

type deadlineKey struct{}

// deadline is a context that can be ended as if its deadline had passed.
type deadline struct {
	context.Context
	done chan struct{}

	mu  sync.Mutex
	err error
}

func newDeadline(parent context.Context) *deadline {
	d := &deadline{Context: parent, done: make(chan struct{})}
	context.AfterFunc(parent, func() { d.end(parent.Err()) })
	return d
}

// Done is closed when the context ends.
func (d *deadline) Done() <-chan struct{} { return d.done }

// Err returns why the context ended, nil if it has not.
func (d *deadline) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// Value returns the context itself for deadlineKey.
func (d *deadline) Value(key any) any {
	if key == (deadlineKey{}) {
		return d
	}
	return d.Context.Value(key)
}

func (d *deadline) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err == nil {
		d.err = err
		close(d.done)
	}
}
