// Package process supervises a child process: it starts the child, waits until it is
// ready, restarts it with backoff when it dies, and ends it. On Linux the kernel signals
// the child when its parent dies. On every system the child's standard input is empty
// and ends when the parent dies.
package process

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"companyscore/internal/retry"
)

// Config describes a child process.
type Config struct {
	// Name is the name of the child in errors and logs.
	Name string
	// Command returns a new command that is not started. It is called for each start.
	Command func() *exec.Cmd
	// Stderr receives what the child writes to its standard error; the last line is
	// part of the error of a start that fails. The child writes to a pipe, which
	// breaks when this process dies. Nil leaves the Stderr of Command.
	Stderr io.Writer
	// OrphanSignal is the signal that the kernel sends to the child when this process
	// dies, on Linux. Zero means SIGTERM. SIGKILL also ends a stopped (SIGSTOP) child.
	OrphanSignal syscall.Signal
	// Ready returns nil once the child answers. It is polled during a start and
	// must return soon after its context ends.
	Ready func(ctx context.Context) error
	// StartTimeout bounds one start; zero means 5 min: stores read much data after a crash.
	StartTimeout time.Duration
	Logger       *slog.Logger
}

const (
	pauseMin   = 100 * time.Millisecond
	pauseMax   = 5 * time.Second
	steady     = 30 * time.Second // after this uptime the backoff starts again
	readyEvery = 10 * time.Millisecond
)

// Process is a supervised child. It is safe for concurrent use.
type Process struct {
	cfg  Config
	stop context.CancelFunc // makes supervise end the child
	kill context.CancelFunc // makes supervise kill the child
	done chan struct{}      // closed when supervise and the child have ended
	pid  atomic.Int64
}

// Start starts the child and returns when it is ready. The child is then restarted when
// it dies, until Stop is called. After an error no child is running.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	if cfg.StartTimeout == 0 {
		cfg.StartTimeout = 5 * time.Minute
	}
	if cfg.OrphanSignal == 0 {
		cfg.OrphanSignal = syscall.SIGTERM
	}
	running, stop := context.WithCancel(context.Background())
	patient, kill := context.WithCancel(context.Background())
	p := &Process{cfg: cfg, stop: stop, kill: kill, done: make(chan struct{})}
	first := make(chan error, 1)
	go p.supervise(running, patient, first)
	var err error
	select {
	case err = <-first:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		stop()
		kill()
		<-p.done
		return nil, fmt.Errorf("start %s: %w", cfg.Name, err)
	}
	return p, nil
}

// PID returns the process id of the child, 0 during a restart.
func (p *Process) PID() int { return int(p.pid.Load()) }

// Stop ends the child and waits for it. If ctx ends first, Stop kills the child and
// returns an error. A second Stop is allowed.
func (p *Process) Stop(ctx context.Context) error {
	defer p.kill()
	p.stop()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		<-p.done
		return fmt.Errorf("stop %s: killed after the timeout", p.cfg.Name)
	}
}

// supervise starts the child again and again until running ends. It sends the result of
// the first start to first and returns if that start fails. The kernel ties a child to
// the thread that started it, so this goroutine is locked to its thread.
func (p *Process) supervise(running, patient context.Context, first chan<- error) {
	runtime.LockOSThread()
	defer close(p.done)
	pauses := retry.Backoff(pauseMin, pauseMax)
	for life := 1; ; life++ {
		born := time.Now()
		exited, err := p.start(running)
		switch {
		case life == 1:
			first <- err
			if err != nil {
				return
			}
		case err == nil:
			p.cfg.Logger.Info("child restarted", "child", p.cfg.Name, "took", time.Since(born).Round(time.Millisecond))
		}
		if err == nil {
			err = p.wait(running, patient, exited)
		}
		if running.Err() != nil {
			return
		}
		if time.Since(born) > steady {
			pauses.Reset()
		}
		pause := pauses.NextBackOff()
		p.cfg.Logger.Error("child died; restarting", "child", p.cfg.Name, "pause", pause, "err", err)
		select {
		case <-running.Done():
			return
		case <-time.After(pause):
		}
	}
}

// start starts the child once and returns when it is ready. The channel receives the
// result of the child's exit. After an error the child has ended.
func (p *Process) start(ctx context.Context) (<-chan error, error) {
	cmd := p.cfg.Command()
	endWithParent(cmd, p.cfg.OrphanSignal)
	said := &lastLine{w: p.cfg.Stderr}
	if p.cfg.Stderr != nil {
		cmd.Stderr = said
	}
	if _, err := cmd.StdinPipe(); err != nil { // stays open until the child has exited
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid.Store(int64(cmd.Process.Pid))
	p.cfg.Logger.Debug("child started", "child", p.cfg.Name, "pid", cmd.Process.Pid)
	ctx, cancel := context.WithTimeout(ctx, p.cfg.StartTimeout)
	defer cancel()
	probing, stopProbing := context.WithCancel(ctx)
	exited := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		p.pid.Store(0)
		exited <- err
		stopProbing() // a probe may wait for an answer of the ended child
	}()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	var notReady error
	for {
		if notReady = p.cfg.Ready(probing); notReady == nil {
			p.cfg.Logger.Debug("child is ready", "child", p.cfg.Name)
			return exited, nil
		}
		select {
		case err := <-exited:
			return nil, fmt.Errorf("exited before it was ready: %s%s", exitText(err), said.text())
		case <-ctx.Done():
			_ = cmd.Process.Kill() // it may have exited this instant
			<-exited
			return nil, fmt.Errorf("not ready in time: %w", notReady)
		case <-tick.C:
		}
	}
}

// wait returns when the child has exited, by itself or because running ended.
func (p *Process) wait(running, patient context.Context, exited <-chan error) error {
	select {
	case err := <-exited:
		return fmt.Errorf("exited: %s", exitText(err))
	case <-running.Done():
	}
	p.signal(syscall.SIGTERM)
	select {
	case <-exited:
	case <-patient.Done():
		p.signal(syscall.SIGKILL)
		<-exited
	}
	return nil
}

func (p *Process) signal(sig syscall.Signal) {
	if pid := p.PID(); pid != 0 {
		_ = syscall.Kill(pid, sig) // it may have exited this instant
	}
}

// lastLine passes on written bytes and stores the last ones. Call text only after the
// last write.
type lastLine struct {
	w    io.Writer
	kept []byte
}

// lineMaxBytes bounds the stored part of a line.
const lineMaxBytes = 2 << 10

func (l *lastLine) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[max(0, len(p)-lineMaxBytes):]...)
	l.kept = l.kept[max(0, len(l.kept)-lineMaxBytes):]
	return l.w.Write(p)
}

// text returns the last line after a colon, or nothing.
func (l *lastLine) text() string {
	text := strings.TrimSpace(string(l.kept))
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}

func exitText(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
