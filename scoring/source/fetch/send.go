package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	redirectsMax       = 5
	headerMaxBytes     = 64 << 10
	headerTimeout      = 5 * time.Second  // for response headers of untrusted hosts
	knownHeaderTimeout = 30 * time.Second // the policy's limit applies first
	drainMaxBytes      = 64 << 10
	refusalMaxBytes    = 1 << 10
	retryAfterDefault  = 10 * time.Second // pause after a 429 without Retry-After
)

// call is one request with its policy.
type call struct {
	policy Policy
	url    *url.URL
	// endpoint is nil for a server that is not in Endpoints.
	endpoint *Endpoint
	quota    string
	header   http.Header
}

// server returns the key of the circuit breaker.
func (c *call) server() string {
	if c.endpoint != nil {
		return c.endpoint.Name
	}
	return c.policy.Source + " " + c.url.Host
}

// transport returns a transport whose connections dial makes. Its time limits are multiplied by
// slowness.
func transport(dial func(ctx context.Context, network, address string) (net.Conn, error), roots *x509.CertPool, known bool,
	slowness time.Duration,
) *http.Transport {
	t := &http.Transport{
		Proxy:                  nil, // ignore proxy variables of the environment
		DialContext:            dial,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots},
		TLSHandshakeTimeout:    5 * time.Second * slowness,
		DisableKeepAlives:      !known,
		DisableCompression:     true, // openBody decompresses, with a bound
		MaxIdleConns:           connectionsMax,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        30 * time.Second,
		ResponseHeaderTimeout:  headerTimeout * slowness,
		MaxResponseHeaderBytes: headerMaxBytes,
		ForceAttemptHTTP2:      true,
	}
	if known {
		t.ResponseHeaderTimeout = knownHeaderTimeout * slowness
	}
	return t
}

// send makes one call, follows its redirects, and calls handle with the answer. The body is
// closed when handle returns. Statuses other than 2xx and 304 are errors.
func (c *Client) send(ctx context.Context, call *call, handle func(*http.Response) error) (err error) {
	b := c.breakers.getOr(call.server(), func() *breaker { return &breaker{failuresMax: c.failures} })
	done, err := c.wire.Turn(getExchange(ctx, call.url, call.header), func() (func(), error) {
		if call.endpoint != nil && c.bases[call.endpoint.Name] == nil {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("the overrides name no server for %s", call.endpoint.Name)}
		}
		if err := b.allow(call.server(), time.Now()); err != nil {
			return nil, err
		}
		done, err := c.limits.acquire(ctx, call.quota, call.url.Host, call.policy.need())
		if err != nil {
			c.metrics.requestEnded(call.policy.Source, err)
		}
		return done, err
	})
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(withConnect(ctx, call.policy.Connect), call.policy.Total)
	defer cancel()
	defer func() {
		c.metrics.requestEnded(call.policy.Source, err)
		b.record(breakerCode(err), call.policy, time.Now())
	}()
	res, err := c.follow(ctx, call)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if err := c.checkStatus(ctx, call, res); err != nil {
		err.readRefusal(res)
		_, _ = io.CopyN(io.Discard, res.Body, drainMaxBytes) // lets the connection be reused
		return err
	}
	if err := timeoutIfLate(ctx, call.url.Host, handle(res)); err != nil {
		return err
	}
	_, _ = io.CopyN(io.Discard, res.Body, drainMaxBytes)
	return nil
}

// readRefusal sets Refusal from an answer.
func (e *Error) readRefusal(res *http.Response) {
	if !IsRefused(e) {
		return
	}
	if body, err := openBody(res, drainMaxBytes); err == nil {
		text, _ := io.ReadAll(io.LimitReader(body, refusalMaxBytes)) // what can be read is enough
		e.Refusal = strings.ToValidUTF8(string(text), "")
	}
}

// timeoutIfLate returns err, or CodeTimeout if ctx ended before the answer was read: a cancelled
// body can look complete or malformed. CodeTooLarge stays, since it cannot be caused by that.
func timeoutIfLate(ctx context.Context, host string, err error) error {
	var e *Error
	if ctx.Err() == nil || errors.As(err, &e) && e.Code == CodeTooLarge {
		return err
	}
	return &Error{Code: CodeTimeout, Err: fmt.Errorf("the answer of %s is late: %w", host, errors.Join(ctx.Err(), err))}
}

// breakerCode returns the code that counts as a failure for the circuit breaker, "" if the server
// answered. A 4xx status is an answer.
func breakerCode(err error) string {
	var e *Error
	if !errors.As(err, &e) || errors.Is(err, context.Canceled) {
		return ""
	}
	switch {
	case e.Code == CodeHTTP && e.Status/100 == 4, e.Code == CodeAddress, e.Code == CodeTooLarge:
		return ""
	}
	return e.Code
}

// follow makes the request and follows its redirects.
func (c *Client) follow(ctx context.Context, call *call) (*http.Response, error) {
	at, known := call.url, call.endpoint != nil
	seen := []string{at.String()}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return nil, &Error{Code: CodeHTTP, Err: err}
		}
		for name, values := range call.header {
			req.Header[name] = values
		}
		req.Header.Set("User-Agent", c.userAgent)
		req.Header.Set("Accept-Encoding", "gzip")
		if known && at.Host == call.url.Host {
			if token := c.cfg.Tokens[call.endpoint.Token]; token != "" {
				req.Header.Set("Authorization", "Bearer "+token)
			}
		}
		res, err := c.roundTrip(req, known)
		if err != nil {
			return nil, classify(err)
		}
		to := redirect(res)
		if to == "" {
			return res, nil
		}
		res.Body.Close()
		if at, known, err = c.checkRedirect(call, at, to); err != nil {
			return nil, err
		}
		if slices.Contains(seen, at.String()) || len(seen) > redirectsMax {
			return nil, &Error{Code: CodeHTTP, Err: fmt.Errorf("redirects form a loop or exceed %d hops", redirectsMax)}
		}
		seen = append(seen, at.String())
	}
}

// redirect returns the target of a redirect, "" if the answer is not one.
func redirect(res *http.Response) string {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return res.Header.Get("Location")
	}
	return ""
}

// checkRedirect returns the target of a redirect if the call may follow it.
func (c *Client) checkRedirect(call *call, from *url.URL, location string) (to *url.URL, known bool, err error) {
	if to, err = from.Parse(location); err != nil {
		return nil, false, &Error{Code: CodeHTTP, Err: fmt.Errorf("read the redirect: %w", err)}
	}
	if call.endpoint != nil {
		for _, e := range Endpoints {
			if base := c.bases[e.Name]; e.Source == call.policy.Source && base != nil && to.Scheme == base.Scheme && to.Host == base.Host &&
				to.User == nil {
				return to, true, nil
			}
		}
		if !call.policy.RedirectAnywhere {
			return nil, false, &Error{Code: CodeAddress,
				Err: fmt.Errorf("the redirect from %s leads to %s, which is not a server of this source", from.Host, to.Host)}
		}
	}
	if to, err = c.dialer.guard.url(to); err != nil {
		return nil, false, &Error{Code: CodeAddress, Err: fmt.Errorf("the redirect is not allowed: %w", err)}
	}
	if to.Scheme != "https" {
		return nil, false, &Error{Code: CodeAddress, Err: errors.New("the redirect leads away from https")}
	}
	return to, false, nil
}

// checkStatus returns an error for an unusable status. It pauses the quota as the headers of the
// provider ask.
func (c *Client) checkStatus(ctx context.Context, call *call, res *http.Response) *Error {
	pause, stated := retryAfter(res.Header, c.cfg.Now())
	code := CodeHTTP
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		code = CodeRateLimited
	case call.endpoint != nil && res.Header.Get("X-RateLimit-Remaining") == "0":
		if reset, err := strconv.ParseInt(res.Header.Get("X-RateLimit-Reset"), 10, 64); err == nil {
			pause, stated = max(0, time.Unix(reset, 0).Sub(c.cfg.Now())), true
		}
		if res.StatusCode == http.StatusForbidden {
			code = CodeRateLimited
			break
		}
		c.limits.pauseQuota(ctx, call.quota, call.url.Host, pause)
	}
	if res.StatusCode/100 == 2 || res.StatusCode == http.StatusNotModified && call.header.Get("If-None-Match")+
		call.header.Get("If-Modified-Since") != "" {
		return nil
	}
	fault := &Error{Code: code, Status: res.StatusCode, RetryAfter: pause, Err: fmt.Errorf("%s answered %s", call.url.Host, res.Status)}
	switch {
	case code == CodeRateLimited && call.policy.BreakOnRefusal:
		c.limits.pauseQuota(ctx, call.quota, call.url.Host, max(pause, call.policy.BreakFor))
	case code == CodeRateLimited && !stated:
		c.limits.pauseQuota(ctx, call.quota, call.url.Host, retryAfterDefault)
	case stated:
		c.limits.pauseQuota(ctx, call.quota, call.url.Host, pause)
	}
	return fault
}
