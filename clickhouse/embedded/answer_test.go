package embedded

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// stuck is a client that reads nothing until it is released.
type stuck chan struct{}

func (s stuck) Write(p []byte) (int, error) {
	<-s
	return len(p), nil
}

// TestAnswersHaveAQuota fills the spool with an answer that is held back, which fails, and with one whose client does not read, which waits
// until its statement is cancelled.
func TestAnswersHaveAQuota(t *testing.T) {
	t.Parallel()
	s, err := newSpool(filepath.Join(t.TempDir(), "spool"), 1000, 1000)
	if err != nil {
		t.Fatal(err)
	}
	part := make([]byte, 600)
	fill := func(a *spooledResult) error {
		for range 3 {
			if _, err := a.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	held, err := s.newResult(ctx, stuck(nil), cancel)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := errors.AsType[*exception](fill(held)); !ok || e.code != codeTooManyBytes {
		t.Errorf("an answer that is held back: %v", e)
	}
	held.close()
	if n := s.answers.Load(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}

	client := make(stuck)
	slow, err := s.newResult(ctx, client, cancel)
	if err != nil {
		t.Fatal(err)
	}
	slow.send()
	written := make(chan error, 1)
	go func() { written <- fill(slow) }()
	over := errors.New("the statement is over its limit")
	cancel(over)
	if err := <-written; !errors.Is(err, over) {
		t.Errorf("a statement that waits for its client ends with %v", err)
	}
	close(client)
	if err := slow.end(); err != nil {
		t.Error(err)
	}
	slow.close()
}
