package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// spooledResult is the result of an analyst's statement on its way to the client, in a file of the spool. The engine writes the file at its
// own speed, and the statement gives its slot back when it has ended, however slowly the client reads. While the answers in the spool
// together exceed the spool's limit, a statement waits for its client, and one whose answer is held until its end fails.
type spooledResult struct {
	spool *spool
	file  *os.File
	out   io.Writer // the client
	kill  context.CancelCauseFunc
	stop  func() bool // of the watch over the statement's context

	mu        sync.Mutex
	changed   *sync.Cond // of the fields below
	written   int64      // bytes in the file
	sent      int64      // of these, bytes that the client has
	ended     bool       // nothing more is written
	failed    error      // of a write to the client
	cancelled error      // of the statement
	sending   chan struct{}
}

// errClientGone is the error of an answer that cannot be sent.
var errClientGone = errors.New("the client is gone")

// newResult returns an empty answer of the statement that ctx belongs to. If a write to out fails, kill gets the error. The caller calls
// close.
func (s *spool) newResult(ctx context.Context, out io.Writer, kill context.CancelCauseFunc) (*spooledResult, error) {
	file, err := os.CreateTemp(s.dir, "answer-")
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	// The name is not needed, and without it the file goes with the process.
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return nil, fmt.Errorf("spool: %w", err)
	}
	a := &spooledResult{spool: s, file: file, out: out, kill: kill}
	a.changed = sync.NewCond(&a.mu)
	a.stop = context.AfterFunc(ctx, func() { // a statement that is to end must not wait for its client
		a.mu.Lock()
		defer a.mu.Unlock()
		a.cancelled = context.Cause(ctx)
		a.changed.Broadcast()
	})
	return a, nil
}

// Write appends to the answer.
func (a *spooledResult) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.failed == nil && a.cancelled == nil && a.sent < a.written && a.spool.answers.Load() > a.spool.answersMax {
		if a.sending == nil {
			return 0, newException(codeTooManyBytes,
				"The answers that are held back have more than %d bytes, which is the most that wait_end_of_query can hold back: "+
					"send the statement without it", a.spool.answersMax)
		}
		a.changed.Wait()
	}
	if err := errors.Join(a.failed, a.cancelled); err != nil {
		return 0, err
	}
	n, err := a.file.WriteAt(p, a.written)
	a.written += int64(n)
	a.spool.answers.Add(int64(n))
	a.changed.Broadcast()
	if err != nil {
		return n, fmt.Errorf("spool: %w", err)
	}
	return n, nil
}

// send begins to send the answer, also what is written later. It does not wait.
func (a *spooledResult) send() {
	a.sending = make(chan struct{})
	go func() { // ends with end or an error of the client
		defer close(a.sending)
		part := make([]byte, 256<<10)
		for {
			a.mu.Lock()
			for a.sent == a.written && !a.ended {
				a.changed.Wait()
			}
			n := min(int64(len(part)), a.written-a.sent)
			a.mu.Unlock()
			if n == 0 {
				return
			}
			read, err := a.file.ReadAt(part[:n], a.sent)
			if int64(read) == n {
				_, err = a.out.Write(part[:n])
			}
			a.mu.Lock()
			a.sent += n
			if err != nil {
				a.failed = fmt.Errorf("%w: %w", errClientGone, err)
			}
			a.changed.Broadcast()
			a.mu.Unlock()
			if err != nil {
				a.kill(a.failed)
				return
			}
		}
	}()
}

// end waits until all of the answer is sent and returns the error of the client.
func (a *spooledResult) end() error {
	if a.sending == nil {
		a.send()
	}
	a.mu.Lock()
	a.ended = true
	a.changed.Broadcast()
	a.mu.Unlock()
	<-a.sending
	return a.failed
}

// close removes the answer. Nothing may use it any more.
func (a *spooledResult) close() {
	a.stop()
	a.spool.answers.Add(-a.written)
	_ = a.file.Close()
}
