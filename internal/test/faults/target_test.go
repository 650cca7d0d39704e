package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"sync"
	"syscall"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/test/openapicheck"
	"companyscore/internal/test/program"
)

// target is the system under test with its faults. It is safe for concurrent use.
type target struct {
	system *program.System
	ledger *ledger

	mu      sync.Mutex
	serving chan struct{} // closed while up serves
	starts  int
	runtime config.Runtime
	done    []*doneFault
}

// doneFault is a fault that was done.
type doneFault struct {
	fault
	at, end time.Time     // end is zero while it lasts
	ready   time.Duration // from the kill of `up` to its being ready again; zero unless that worked
	failed  int           // starts of `up` that failed
}

func newTarget(system *program.System, ledger *ledger) *target {
	t := &target{system: system, ledger: ledger, serving: make(chan struct{})}
	t.serve()
	return t
}

// serve admits calls.
func (t *target) serve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.runtime = *t.system.Runtime
	t.starts++
	close(t.serving)
}

// shut blocks new calls until `up` serves again. Calls in flight continue.
func (t *target) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.serving = make(chan struct{})
}

// wait returns the addresses of `up` once it serves, and the number of its start. It is
// false when ctx ends first.
func (t *target) wait(ctx context.Context) (config.Runtime, int, bool) {
	t.mu.Lock()
	serving := t.serving
	t.mu.Unlock()
	select {
	case <-serving:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.runtime, t.starts, ctx.Err() == nil
	case <-ctx.Done():
		return config.Runtime{}, 0, false
	}
}

// lived reports whether the `up` of a start serves still.
func (t *target) lived(start int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.serving:
		return t.starts == start
	default:
		return false
	}
}

// recovery is how long after a fault errors may be its consequence: a call to a store
// may take 5 s, and a store that dies often is started again after up to 5 s.
const recovery = 20 * time.Second

// troubled reports whether a fault may have touched a call.
func (t *target) troubled(began, ended time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range t.done {
		if f.at.Before(ended) && (f.end.IsZero() || began.Before(f.end.Add(recovery))) {
			return true
		}
	}
	return false
}

// phase names the fault that lasts, or was over less than a second ago.
func (t *target) phase(at time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.done) == 0 {
		return "no fault"
	}
	f := t.done[len(t.done)-1]
	if f.end.IsZero() || at.Before(f.end.Add(time.Second)) {
		return f.kind + " " + f.victim
	}
	return "no fault"
}

// latest returns the last fault before a time, empty if there is none.
func (t *target) latest(at time.Time) (text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, f := range t.done {
		if f.at.Before(at) {
			text = fmt.Sprintf(", %.1f s after the end of %s, the fault %d", at.Sub(f.end).Seconds(), f.fault, i+1)
		}
	}
	return text
}

// errNotBack reports that `up` does not start again.
var errNotBack = errors.New("up does not start again")

// run does the faults of a plan until ctx ends.
func (t *target) run(ctx context.Context, plan []fault, report func(*doneFault)) error {
	for _, f := range plan {
		if !rest(ctx, f.pause) {
			return nil
		}
		done := &doneFault{fault: f, at: time.Now()}
		t.mu.Lock()
		t.done = append(t.done, done)
		t.mu.Unlock()
		var err error
		switch {
		case f.victim == "up":
			err = t.killUp(ctx, done)
		case f.kind == kill:
			t.signal(ctx, f.victim, syscall.SIGKILL)
		default:
			if pid := t.signal(ctx, f.victim, syscall.SIGSTOP); pid != 0 {
				rest(ctx, f.length)
				_ = syscall.Kill(pid, syscall.SIGCONT) // a stopped process goes nowhere
			}
		}
		t.mu.Lock()
		done.end = time.Now()
		t.mu.Unlock()
		report(done)
		if err != nil {
			return err
		}
	}
	return nil
}

const (
	childTimeout   = 40 * time.Second
	restartTimeout = 2 * time.Minute
)

// signal sends a signal to a child and returns its process id. A child that is being
// started again is waited for; the id is 0 when it does not come.
func (t *target) signal(ctx context.Context, child string, sig syscall.Signal) int {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	for {
		if pid := t.system.Children()[child]; pid != 0 && syscall.Kill(pid, sig) == nil {
			return pid
		}
		if !rest(ctx, 20*time.Millisecond) {
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.ledger.differ(childMissing, "%s does not run %s after it was to be sent signal %d", child, childTimeout, sig)
			}
			return 0
		}
	}
}

// killUp kills `up` and starts it again at once. Only the first try counts; the others
// are made so that the rest of the plan can be done.
func (t *target) killUp(ctx context.Context, done *doneFault) error {
	t.shut()
	if err := t.system.Kill(); err != nil {
		return err
	}
	for {
		err := t.system.Start()
		if err == nil {
			break
		}
		done.failed++
		if done.failed == 1 {
			t.ledger.differ(restartFailed, "up was killed at %s and did not start: %v", done.at.UTC().Format(clockFormat), err)
		}
		if time.Since(done.at) > restartTimeout || !rest(ctx, time.Second) {
			return fmt.Errorf("%w: %d tries in %s, the last: %v", errNotBack, done.failed, time.Since(done.at), err)
		}
	}
	done.ready = time.Since(done.at)
	client.CloseIdleConnections()
	t.serve()
	return nil
}

// rest waits for d and reports whether ctx is still valid.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// pace waits for about d.
func pace(ctx context.Context, random *rand.Rand, d time.Duration) bool {
	return rest(ctx, time.Duration(float64(d)*(0.5+random.Float64())))
}

// callTimeout is how long a caller waits for an answer. A handler has 10 s for its
// stores, and one exchange with Redis is tried for 5 s.
const callTimeout = 30 * time.Second

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100, DisableCompression: true}}

// answer is the result of a call.
type answer struct {
	request string // X-Request-Id
	status  int    // 0 without an answer
	body    []byte
	err     error
	// executed is set if the call may have been executed without an answer.
	executed     bool
	began, ended time.Time
}

// outcome returns the status, or the reason if there is none.
func (a answer) outcome() string {
	switch {
	case a.err == nil:
		return fmt.Sprint(a.status)
	case !a.executed:
		return "refused"
	}
	return "none"
}

// failed reports whether there is no answer or the answer is a failure of the service.
func (a answer) failed() bool { return a.err != nil || a.status >= 500 }

// call sends a request once `up` serves, compares the answer with the document, and
// counts it. It is false when ctx ended before the request was sent. A request that was
// sent is not cut short, so that its outcome is known.
func (l *load) call(ctx context.Context, method, path, key, body string, headers ...string) (answer, bool) {
	runtime, start, ok := l.target.wait(ctx)
	if !ok {
		return answer{}, false
	}
	a := answer{request: fmt.Sprintf("call-%d", l.requests.Add(1)), began: time.Now()}
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	callCtx = httptrace.WithClientTrace(callCtx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { a.executed = true }})
	req, err := http.NewRequestWithContext(callCtx, method, runtime.BaseURL+path, bytes.NewReader([]byte(body)))
	if err != nil {
		panic(err) // the load makes no such address
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("X-Request-Id", a.request)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := client.Do(req)
	if err == nil {
		a.status = res.StatusCode
		a.body, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	a.err, a.ended = err, time.Now()
	var operation string
	if a.err == nil {
		var fault error
		operation, fault = l.document.Check(req, openapicheck.Answer{Status: res.StatusCode, Header: res.Header, Body: a.body})
		if fault != nil {
			l.ledger.differ(undocumented, "%s %s, request %s: %d is not as documented: %v\n%.2000s", method, path, a.request, a.status,
				fault, a.body)
		}
		if a.status >= 500 && !l.target.troubled(a.began, a.ended) {
			l.ledger.differ(errorInPeace, "%s %s, request %s: %d %.500s", method, path, a.request, a.status, a.body)
		}
	} else {
		operation = l.document.Operation(req)
		if l.target.lived(start) {
			l.ledger.differ(noAnswer, "%s %s, request %s, after %s: %v", method, path, a.request, a.ended.Sub(a.began), a.err)
		}
	}
	l.ledger.called(operation, a.outcome())
	return a, true
}
