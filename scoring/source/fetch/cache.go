package fetch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	notFoundTTL = 6 * time.Hour
	failureTTL  = 10 * time.Minute
	// entryBytes is the overhead of one cached answer, in bytes.
	entryBytes = 512
)

// cachedAnswer is the result of an earlier request. It is immutable.
type cachedAnswer struct {
	value   []byte // JSON of what the parser returned
	fault   *Error // instead of a value
	expires time.Time
	// etag and modified are the validators for a conditional request.
	etag, modified string
}

func (a *cachedAnswer) size(key string) int64 {
	return int64(len(key)+len(a.value)+len(a.etag)+len(a.modified)) + entryBytes
}

// get implements Get. It decodes a cached answer for each caller, so that callers do not share
// memory.
func get[T any](ctx context.Context, c *Client, req Request, parse func(*Response) (T, error)) (T, error) {
	var none T
	ctx = withSource(ctx, req.Source)
	call, err := c.call(req)
	if err != nil {
		return none, err
	}
	if call.policy.TTL <= 0 {
		return fetchAndParse(ctx, c, call, req.Types, parse, nil)
	}
	key := fmt.Sprintf("%T %s %s %s", none, req.Source, call.header.Get("Accept"), call.url)
	for {
		cached, ok := c.answers.get(key)
		if ok && c.cfg.Now().Before(cached.expires) {
			c.metrics.cacheHits.WithLabelValues(req.Source).Inc()
			return decodeCached[T](cached)
		}
		ended, first := c.inFlight.join(key)
		if first {
			defer c.inFlight.done(key)
			return fetchAndCache(ctx, c, call, req.Types, parse, key, cached)
		}
		select {
		case <-ended: // use the cached answer; if there is none, send the request
		case <-ctx.Done():
			return none, classify(context.Cause(ctx))
		}
	}
}

func decodeCached[T any](cached *cachedAnswer) (v T, err error) {
	if cached.fault != nil {
		return v, cached.fault
	}
	if err := json.Unmarshal(cached.value, &v); err != nil {
		return v, &Error{Code: CodeParse, Err: fmt.Errorf("read a kept answer: %w", err)}
	}
	return v, nil
}

// fetchAndCache sends a request and caches the answer or the failure. stale is the expired
// answer, nil if there is none.
func fetchAndCache[T any](ctx context.Context, c *Client, call *call, types []string, parse func(*Response) (T, error), key string,
	stale *cachedAnswer) (T, error) {
	if stale != nil && stale.fault != nil {
		stale = nil
	}
	if stale != nil && stale.etag != "" {
		call.header.Set("If-None-Match", stale.etag)
	} else if stale != nil && stale.modified != "" {
		call.header.Set("If-Modified-Since", stale.modified)
	}
	next := new(cachedAnswer)
	v, err := fetchAndParse(ctx, c, call, types, parse, func(header http.Header, notModified bool) {
		next.etag, next.modified = header.Get("ETag"), header.Get("Last-Modified")
		if notModified {
			next.value, next.etag, next.modified = stale.value, stale.etag, stale.modified
		}
	})
	ttl := call.policy.TTL
	switch {
	case err == nil && next.value != nil:
		v, err = decodeCached[T](next)
	case err == nil:
		if next.value, err = json.Marshal(v); err != nil {
			return v, &Error{Code: CodeParse, Err: fmt.Errorf("keep an answer: %w", err)}
		}
	case !isCacheable(ctx, err):
		return v, err
	case IsNotFound(err):
		ttl = notFoundTTL
	default:
		ttl = failureTTL
	}
	if err != nil {
		var fault *Error
		errors.As(err, &fault)
		next = &cachedAnswer{fault: fault}
	}
	next.expires = c.cfg.Now().Add(ttl)
	c.answers.put(key, next, next.size(key))
	return v, err
}

// isCacheable reports whether a failure is one of the provider, and not of this run or of the
// client's own limits.
func isCacheable(ctx context.Context, err error) bool {
	var e *Error
	return ctx.Err() == nil && errors.As(err, &e) && e.Code != CodeRateLimited && e.Code != CodeDNS && e.RetryAfter == 0
}

// fetchAndParse sends a request and parses the answer. It calls seen, if not nil, with the
// header; with notModified it does not call parse.
func fetchAndParse[T any](ctx context.Context, c *Client, call *call, types []string, parse func(*Response) (T, error),
	seen func(header http.Header, notModified bool)) (v T, err error) {
	err = c.exchange(ctx, call, func(res *http.Response) error {
		if res.StatusCode == http.StatusNotModified {
			seen(res.Header, true)
			return nil
		}
		if err := checkType(res.Header, types); err != nil {
			return err
		}
		body, err := openBody(res, call.policy.BodyMax)
		if err != nil {
			return err
		}
		if v, err = parse(&Response{Status: res.StatusCode, Header: res.Header, URL: res.Request.URL, Body: body}); err != nil {
			return asError(err)
		}
		if seen != nil {
			seen(res.Header, false)
		}
		return nil
	})
	return v, err
}

// asError converts an error of a parser to an *Error.
func asError(err error) error {
	var e *Error
	err = asParse(err)
	if errors.As(err, &e) {
		return &Error{Code: e.Code, Status: e.Status, RetryAfter: e.RetryAfter, Err: err}
	}
	return err // another type that has a code
}

// inFlight are the requests in flight by key, so that equal requests are sent once. It is
// not a singleflight.Group: a waiter must be able to leave at its own deadline, which Do
// does not allow, and a panic of a parser must fail one run only, but DoChan lets it end
// the process.
type inFlight struct {
	mu    sync.Mutex
	ended map[string]chan struct{}
}

// join makes the caller the first one of a key, who must call done, or returns a channel that is
// closed when the first one is done.
func (f *inFlight) join(key string) (ended <-chan struct{}, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ended, ok := f.ended[key]; ok {
		return ended, false
	}
	f.ended[key] = make(chan struct{})
	return nil, true
}

func (f *inFlight) done(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.ended[key])
	delete(f.ended, key)
}
