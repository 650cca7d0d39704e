package cmd

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"

	"companyscore/internal/process"
)

// readyLine reads the ready line of a server.
type readyLine struct {
	mu   sync.Mutex
	text strings.Builder
}

// readyMaxBytes bounds the output that readyLine stores.
const readyMaxBytes = 4 << 10

func (r *readyLine) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.text.Len() < readyMaxBytes {
		r.text.Write(b[:min(len(b), readyMaxBytes-r.text.Len())])
	}
	return len(b), nil
}

// address returns host:port, empty before the ready line.
func (r *readyLine) address() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, rest, found := strings.Cut(r.text.String(), "ready http://")
	line, _, ended := strings.Cut(rest, "\n")
	if !found || !ended {
		return ""
	}
	address, _, _ := strings.Cut(line, " ")
	return address
}

// startNull starts a null server and returns its pid and address.
func startNull(ctx context.Context, c *benchCommands) (*process.Process, int, string, error) {
	return startChild(ctx, c, "bench", "null-server")
}

// startChild starts this program with other arguments and returns after its ready line.
func startChild(ctx context.Context, c *benchCommands, args ...string) (*process.Process, int, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, "", err
	}
	said := &readyLine{}
	child, err := process.Start(ctx, process.Config{
		Name: args[len(args)-1],
		Command: func() *exec.Cmd {
			cmd := exec.Command(self, args...)
			cmd.Stdout, cmd.Stderr = said, os.Stderr
			return cmd
		},
		Ready: func(context.Context) error {
			if said.address() == "" {
				return errors.New("it has not printed its address")
			}
			return nil
		},
		Logger: c.logger,
	})
	if err != nil {
		return nil, 0, "", err
	}
	return child, child.PID(), said.address(), nil
}

func stopChild(ctx context.Context, child *process.Process) {
	ctx, cancel := process.ShutdownContext(ctx)
	defer cancel()
	_ = child.Stop(ctx) // it has no data
}
