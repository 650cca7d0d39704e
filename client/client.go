// Package client calls the HTTP API of companyscore. It imports the standard library only.
//
// A [Client] calls one service with one API key and is safe for concurrent use:
//
//	c, err := client.New(client.Config{URL: "http://127.0.0.1:8080", Key: os.Getenv("COMPANYSCORE_KEY")})
//
// # Two ways to a score
//
// [Client.Score] reads the newest stored score of a company, of any age. It counts as a cached call and never starts a run.
// [Client.ScoreAndWait] returns a score that is fresh enough for the tier of the account. If none is stored, it starts a run, which
// counts as a cold call, waits for it and reads its score. [Client.Start], [Client.Job] and [Client.Wait] are its parts.
//
// # Errors
//
// A refusal by the service is an [*Error]. It matches one of the sentinels, such as [ErrNotScored], with errors.Is. A run that failed is
// a [*RunError], one that is not done yet a [*PendingError] with the job to wait for again. Other errors are of the network, of ctx, or
// of an answer that is too large or not readable.
//
// # Retries
//
// A call is repeated after a broken connection, a timeout, and answers that may pass: 408, 429, 500, 502, 503 and 504. The pause is at
// least the Retry-After of the answer; without one it doubles from about 200 ms to 5 s, with jitter. A call is not repeated if the month's
// budget is used up ([ErrMonthlyCap]), if the Retry-After exceeds [Config.MaxRetryAfter], or if ctx ends before it. Every call is safe to
// repeat: [Client.Start] sends the same Idempotency-Key each time, so that a run is charged at most once even if the outcome of an attempt
// is not known. A read whose answer was lost counts as another cached call when it is repeated.
//
// # Free reads
//
// The client keeps answers with their tags in a [TagStore]. It sends the tag with the next read. If nothing changed, the service
// answers 304, which is free, and the client returns the kept answer: its Response.NotModified is true.
//
// New fields of answers are ignored. Response.Body has the whole answer.
//
// # Use in another module
//
// Copy this directory into your module, without its tests: it needs nothing else of companyscore.
package client

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// requestTimeout bounds one attempt of a call.
	requestTimeout = 30 * time.Second
	// answerMax bounds the bytes of an answer. A batch of 1,000 scores with evidence takes about 1 MB.
	answerMax = 16 << 20
	// defaultTagsMax is the size in bytes of the tag store of a client that is given none.
	defaultTagsMax = 16 << 20
	// defaultRetries and defaultMaxRetryAfter are the defaults of Config.
	defaultRetries       = 4
	defaultMaxRetryAfter = 30 * time.Second
	// idleTimeout is how long an unused connection stays open. It is below the two minutes after which the service closes it.
	idleTimeout = 90 * time.Second
	// idlePerHost is the number of unused connections that stay open, for as many concurrent calls.
	idlePerHost = 64
)

// Config is the configuration of a [Client]. URL and Key are required.
type Config struct {
	// URL is the base address of the service, such as https://scores.example.com.
	URL string
	// Key is the API key. Keys that begin with svc_test_ read the sandbox.
	Key string
	// HTTPClient sends the requests. Redirects are not followed, since they would get the key. Nil means a client of its own that keeps up
	// to 64 unused connections open.
	HTTPClient *http.Client
	// Tags keeps answers for conditional reads. Nil means 16 MB in memory.
	Tags TagStore
	// Retries is the number of times a call is repeated. Zero means 4, a negative number none.
	Retries int
	// MaxRetryAfter is the longest Retry-After that is waited for. Zero means 30 seconds.
	MaxRetryAfter time.Duration
	// OnPoll is called before each pause of a wait for a job, with the time since the wait began. It may be nil. Concurrent waits call
	// it concurrently.
	OnPoll func(job Job, waited time.Duration)
}

// Client calls one service with one API key. It is safe for concurrent use.
type Client struct {
	cfg   Config
	base  string
	http  *http.Client
	scope string // of keys in the tag store: identifies service and API key
	sleep func(ctx context.Context, d time.Duration) error
}

// New returns a client. It sends no request. The error names everything that is wrong with cfg.
func New(cfg Config) (*Client, error) {
	var faults []error
	base, err := url.Parse(cfg.URL)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		faults = append(faults, fmt.Errorf("client: URL %q: use the address of the service, such as https://scores.example.com", cfg.URL))
	}
	if cfg.Key == "" || strings.ContainsFunc(cfg.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		faults = append(faults, errors.New("client: the API key is empty or has characters that no key has"))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	if cfg.Retries == 0 {
		cfg.Retries = defaultRetries
	}
	if cfg.MaxRetryAfter == 0 {
		cfg.MaxRetryAfter = defaultMaxRetryAfter
	}
	if cfg.Tags == nil {
		cfg.Tags = NewMemoryTags(defaultTagsMax)
	}
	doer := &http.Client{Transport: newTransport()}
	if cfg.HTTPClient != nil {
		copied := *cfg.HTTPClient
		doer = &copied
	}
	doer.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Client{cfg: cfg, base: strings.TrimRight(cfg.URL, "/"), http: doer, sleep: sleep}
	sum := sha256.Sum256([]byte(c.base + "\n" + cfg.Key))
	c.scope = hex.EncodeToString(sum[:8]) + " "
	return c, nil
}

func newTransport() http.RoundTripper {
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok { // the program replaced it
		return http.DefaultTransport
	}
	transport = transport.Clone()
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 0, idlePerHost, idleTimeout
	return transport
}

// CloseIdleConnections closes the connections that no call uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Response is what every answer has besides its body.
type Response struct {
	// RequestID identifies the request in the logs of the service. Give it to support.
	RequestID string
	// NotModified is set if the service answered 304: the body was kept and the read was free.
	NotModified bool
	// Quotas are the limits that the answer reports, by name, such as "cold". It is nil if the answer reports none.
	Quotas map[string]Quota
	// Body is the whole JSON body. It must not be changed.
	Body json.RawMessage
}

// request is one call of the API.
type request struct {
	method string
	path   string // with query
	body   any    // nil for none
	tagged bool   // the answer has a tag
	key    string // Idempotency-Key, empty for none
}

// reply is an answer with status 200 or 202.
type reply struct {
	status    int
	pollAfter time.Duration // Retry-After of a pending job, zero if there is none
	Response
}

// get reads a path with a tag into v. response points into v.
func (c *Client) get(ctx context.Context, path string, v any, response *Response) error {
	return c.read(ctx, request{method: http.MethodGet, path: path, tagged: true}, v, response)
}

// read makes a call and decodes its answer into v. response points into v.
func (c *Client) read(ctx context.Context, r request, v any, response *Response) error {
	a, err := c.call(ctx, r)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(a.Body, v); err != nil {
		return fmt.Errorf("read answer of %s %s: %w", r.method, r.path, err)
	}
	*response = a.Response
	return nil
}

// call makes a call with retries.
func (c *Client) call(ctx context.Context, r request) (reply, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return reply{}, err
		}
	}
	for retry := 0; ; retry++ {
		a, err := c.attempt(ctx, r, body)
		if err == nil || retry >= c.cfg.Retries || !mayPass(ctx, err) {
			return a, err
		}
		pause, ok := c.pause(err, retry)
		if deadline, limited := ctx.Deadline(); !ok || limited && time.Until(deadline) <= pause {
			return reply{}, err
		}
		if c.sleep(ctx, pause) != nil {
			return reply{}, fmt.Errorf("%w, after: %w", ctx.Err(), err)
		}
	}
}

// attempt sends a request once. An answer with a status other than 200, 202 and 304 is an *Error.
func (c *Client) attempt(ctx context.Context, r request, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, r.method, c.base+r.path, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("X-API-Key", c.cfg.Key)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "companyscore-go")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	var kept Tagged
	if r.tagged {
		var found bool
		if kept, found = c.cfg.Tags.Get(ctx, c.scope+r.path); found {
			req.Header.Set("If-None-Match", kept.Tag)
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{}, &networkError{fmt.Errorf("reach the service: %w", err)}
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, answerMax+1))
	if err != nil {
		return reply{}, &networkError{fmt.Errorf("read answer: %w", err)}
	}
	if len(text) > answerMax {
		return reply{}, fmt.Errorf("the answer of %s %s exceeds %d bytes", r.method, r.path, answerMax)
	}
	a := reply{res.StatusCode, retryAfter(res.Header), Response{RequestID: res.Header.Get("X-Request-Id"), Quotas: parseQuotas(res.Header),
		Body: text}}
	switch res.StatusCode {
	case http.StatusOK, http.StatusAccepted:
		if tag := res.Header.Get("ETag"); r.tagged && tag != "" {
			c.cfg.Tags.Put(ctx, c.scope+r.path, Tagged{Tag: tag, Body: text})
		}
		return a, nil
	case http.StatusNotModified:
		if kept.Tag != "" {
			a.NotModified, a.Body = true, kept.Body
			return a, nil
		}
	}
	return reply{}, newError(res, a)
}

// pause returns the time until the next attempt, and false if the service asks for more than the
// client waits.
func (c *Client) pause(err error, retry int) (time.Duration, bool) {
	var refused *Error
	if errors.As(err, &refused) && refused.RetryAfter > 0 {
		// The service sends the same time to many clients. Up to a tenth is added, so that they do not return together.
		jitter := time.Duration(rand.Int64N(int64(refused.RetryAfter/10) + 1))
		return refused.RetryAfter + jitter, refused.RetryAfter <= c.cfg.MaxRetryAfter
	}
	longest := min(200*time.Millisecond<<min(retry, 10), 5*time.Second)
	return longest/2 + time.Duration(rand.Int64N(int64(longest/2)+1)), true
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
