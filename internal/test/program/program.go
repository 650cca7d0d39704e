// Package program runs the built program in tests: `up` in its own directory, and other commands.
package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/test/wait"
)

// Timeout bounds a start, a stop and a command.
const Timeout = wait.Max

// Build builds the program in a directory, with further flags, and returns its path. Tests and `make build` share the compiled packages.
func Build(dir string, flags ...string) (string, error) {
	path := filepath.Join(dir, "companyscore")
	cmd := exec.Command("go", slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{"companyscore"})...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
}

// System is an `up` that can be started, killed and started again on its data. It listens on free
// ports, which change with each start. One goroutine may start and stop it; the other methods are
// safe for concurrent use while it runs.
type System struct {
	// Program is the path of the binary.
	Program string
	// Data is the data directory.
	Data string
	// Log is the file to which the standard error of each start is appended.
	Log string
	// Runtime is the runtime file of the running `up`.
	Runtime *config.Runtime

	args   []string
	cmd    *exec.Cmd
	exited chan struct{} // closed once cmd has ended
	err    error         // of cmd, once exited is closed
}

// New returns a system that is not started. Its data and log are in dir. The path of dir must be
// short, since it contains a unix socket. args are added to `up`.
func New(program, dir string, args ...string) *System {
	return &System{Program: program, Data: filepath.Join(dir, "data"), Log: filepath.Join(dir, "log"), args: args}
}

// Start starts `up` and returns when it is ready. If `up` exits, the error contains the end of
// its log.
func (s *System) Start() error {
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	before, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	cmd := exec.Command(s.Program, append([]string{
		"up", "--data", s.Data, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--sources", "facts",
	}, s.args...)...)
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.exited = cmd, make(chan struct{})
	ready := make(chan struct{})
	go func() {
		defer close(s.exited)
		lines := bufio.NewScanner(stdout)
		for found := false; lines.Scan(); {
			if !found && strings.HasPrefix(lines.Text(), "ready ") {
				found = true
				close(ready)
			}
		}
		s.err = cmd.Wait()
	}()
	select {
	case <-ready:
	case <-s.exited:
		err = fmt.Errorf("up ended before it was ready: %v", s.err)
	case <-time.After(Timeout):
		err = errors.Join(fmt.Errorf("up is not ready after %s", Timeout), s.Kill())
	}
	if err == nil {
		s.Runtime, err = config.ReadRuntime(s.Data)
	}
	if err != nil {
		text, _ := os.ReadFile(s.Log)
		return fmt.Errorf("%w\n%s", err, Tail(text[min(int(before), len(text)):], 2000))
	}
	return nil
}

// Tail returns the end of a text, at most n bytes.
func Tail(text []byte, n int) []byte { return text[max(0, len(text)-n):] }

// Late reports whether the output of an `up` says that a child did not end in the nine seconds of a
// stop. Where other programs take the processor, that is no fault of the child.
func Late(output string) bool { return strings.Contains(output, "killed after the timeout") }

// Stop ends `up` with SIGTERM and returns an error unless it exits with status 0 or is [Late].
// After [Timeout] it is killed.
func (s *System) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.exited:
		if text, err := os.ReadFile(s.Log); s.err != nil && err == nil && Late(string(text)) {
			return nil
		}
		return s.err
	case <-time.After(Timeout):
		return errors.Join(fmt.Errorf("up does not end within %s of SIGTERM", Timeout), s.Kill())
	}
}

// Kill ends `up` with SIGKILL and returns when the process has ended. Its children can live a
// moment longer.
func (s *System) Kill() error {
	if err := s.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-s.exited
	return nil
}

// Command runs another command of the program on the data of the system and returns its output.
func (s *System) Command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.Program, append(args, "--data", s.Data)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("companyscore %s: %w\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out), nil
}

// Children returns the process ids of the live children, by the names in [config.Runtime]. Linux
// only.
func (s *System) Children() map[string]int {
	found := make(map[string]int)
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.Runtime.PID))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // the thread may have ended
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if name := childName(pid); name != "" {
				found[name] = pid
			}
		}
	}
	return found
}

// childName returns the name of a child process, "" if it has ended or has not yet called exec.
func childName(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	arguments := strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 || r == ' ' })
	switch {
	case len(arguments) == 0:
		return ""
	case filepath.Base(arguments[0]) == "redis-server":
		return "redis-server"
	case len(arguments) == 1:
		return ""
	}
	return map[string]string{"clickhouse": "clickhouse", "work": "worker", "batch": "batch"}[arguments[1]]
}

// Processes returns the process ids of all processes on the data of the system: the children of
// this `up`, and those of an earlier one. Linux only.
func (s *System) Processes() (pids []int) {
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		arguments, _ := os.ReadFile(path) // the process may have ended
		environment, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "environ"))
		if !bytes.Contains(arguments, []byte(s.Data)) && !bytes.Contains(environment, []byte(s.Data)) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
