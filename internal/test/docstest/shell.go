package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopTimeout bounds the end of a process that was asked to end.
const stopTimeout = 30 * time.Second

// shell is a bash that runs the blocks of one page, so that later ones see the variables of
// earlier ones.
type shell struct {
	dir     string // of its scripts and their output
	scripts int
	cmd     *exec.Cmd
	in      io.WriteCloser
	status  *bufio.Reader
}

// loop runs the scripts whose paths it reads, and writes the status of each to descriptor 3. In them
// a request of curl that is refused is a failure.
const loop = `curl() { case " $* " in *" --fail "*) command curl "$@" ;; *) command curl --fail-with-body "$@" ;; esac; }
while read -r script; do . "$script" >"$script.out" 2>&1 </dev/null; echo $? >&3; done`

// newShell starts a shell in the directory work. Its files are in dir.
func newShell(work, dir string, env []string) (*shell, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer writer.Close()
	cmd := exec.Command("bash", "--noprofile", "--norc", "-c", loop)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = work, env, []*os.File{writer}
	cmd.SysProcAttr = ownGroup()
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &shell{dir: dir, cmd: cmd, in: in, status: bufio.NewReader(reader)}, cmd.Start()
}

// run runs a script and returns its output and status. It fails if the shell ends, or if the
// context does.
func (s *shell) run(ctx context.Context, script string) (output string, status int, err error) {
	s.scripts++
	path := filepath.Join(s.dir, strconv.Itoa(s.scripts))
	if err := os.WriteFile(path, []byte(script+"\n"), 0o600); err != nil {
		return "", 0, err
	}
	answered := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintln(s.in, path)
		if err == nil {
			var line string
			line, err = s.status.ReadString('\n')
			status, _ = strconv.Atoi(strings.TrimSpace(line))
		}
		answered <- err
	}()
	select {
	case err = <-answered:
	case <-ctx.Done():
		s.kill()
		<-answered
		err = ctx.Err()
	}
	text, _ := os.ReadFile(path + ".out")
	return string(text), status, err
}

// kill ends the shell and all processes that it started.
func (s *shell) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// stop ends the shell.
func (s *shell) stop() {
	s.kill()
	_ = s.cmd.Wait()
}

// ownGroup starts a process in a group of its own, so that the group can be ended as a whole.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// service is an `up`.
type service struct {
	cmd    *exec.Cmd
	log    string // path
	exited chan struct{}
}

// startService runs a command that starts an `up` in the foreground, and returns when it is ready.
func startService(ctx context.Context, work, log, script string, env []string) (*service, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s := &service{cmd: exec.Command("bash", "--noprofile", "--norc", "-c", "exec "+script), log: log, exited: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr, s.cmd.SysProcAttr = work, env, file, file, ownGroup()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait()
		close(s.exited)
	}()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if strings.Contains(s.output(), "\nCtrl-C stops everything") {
				return s, nil
			}
		case <-s.exited:
			return nil, fmt.Errorf("up ended before it was ready:\n%s", s.output())
		case <-ctx.Done():
			s.stop()
			return nil, fmt.Errorf("up is not ready: %w\n%s", ctx.Err(), s.output())
		}
	}
}

// output returns what the service has printed.
func (s *service) output() string {
	text, _ := os.ReadFile(s.log)
	return string(text)
}

// stop ends the service and what it left running.
func (s *service) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(stopTimeout):
	}
	_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	<-s.exited
}
