package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/test/wait"
)

const (
	// parentVariable makes the test binary a parent that starts a child with the script
	// in it, prints the child's process id and waits to be killed.
	parentVariable = "COMPANYSCORE_PROCESS_TEST_PARENT"
	// markVariable is the file that the script makes when it has set its signals.
	markVariable = "COMPANYSCORE_PROCESS_TEST_MARK"
	// orphanVariable makes that parent have an orphaned child killed.
	orphanVariable = "COMPANYSCORE_PROCESS_TEST_KILL"
)

func TestMain(m *testing.M) {
	if script := os.Getenv(parentVariable); script != "" {
		cfg := config(script, exists(os.Getenv(markVariable)))
		if os.Getenv(orphanVariable) != "" {
			cfg.OrphanSignal = syscall.SIGKILL
		}
		p, err := Start(context.Background(), cfg)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(p.PID())
		select {}
	}
	os.Exit(m.Run())
}

func config(script string, ready func(context.Context) error) Config {
	return Config{
		Name:    "child",
		Command: func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) },
		Ready:   ready,
		Logger:  slog.New(slog.DiscardHandler),
	}
}

// exists is a probe that succeeds if a file exists.
func exists(path string) func(context.Context) error {
	return func(context.Context) error {
		_, err := os.Stat(path)
		return err
	}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, what, holds)
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func stop(t *testing.T, p *Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), wait.Max)
	defer cancel()
	if err := p.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestKilledChildIsStartedAgain(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	p, err := Start(t.Context(), config("echo up >> "+mark+"; exec sleep 600", exists(mark)))
	if err != nil {
		t.Fatal(err)
	}
	first := p.PID()
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "another child runs", func() bool { pid := p.PID(); return pid != 0 && pid != first })
	last := p.PID()
	stop(t, p)
	if !gone(first) || !gone(last) {
		t.Error("a child outlived Stop")
	}
	stop(t, p)
}

func TestStartReportsAChildThatDies(t *testing.T) {
	t.Parallel()
	_, err := Start(t.Context(), config("exit 7", exists("/nonexistent")))
	if err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("Start = %v, want one that says exit status 7", err)
	}
	cfg := config("", nil)
	cfg.Command = func() *exec.Cmd { return exec.Command("/nonexistent") }
	if _, err := Start(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start of a program that is not there = %v", err)
	}
}

// If the parent holds the listening socket, a probe of a dead child gets neither an answer nor
// a refusal.
func TestStartReturnsWhenChildDies(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	cfg := config("echo one >&2; echo 'no such library' >&2; exit 7", func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	cfg.StartTimeout = time.Hour
	cfg.Stderr = &log
	failed := make(chan error, 1)
	go func() {
		_, err := Start(context.Background(), cfg)
		failed <- err
	}()
	select {
	case err := <-failed:
		if err == nil || !strings.HasSuffix(err.Error(), "exit status 7: no such library") {
			t.Errorf("Start = %v, want the exit status and the last line of the child", err)
		}
	case <-time.After(wait.Max):
		t.Fatal("Start still waits for a child that is dead")
	}
	if log.String() != "one\nno such library\n" {
		t.Errorf("standard error of the child = %q", &log)
	}
}

func TestStartGivesUpOnUnreadyChild(t *testing.T) {
	t.Parallel()
	cfg := config("exec sleep 600", exists("/nonexistent"))
	cfg.StartTimeout = 200 * time.Millisecond
	if _, err := Start(t.Context(), cfg); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want why it was not ready", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready := func(context.Context) error { cancel(); return os.ErrNotExist }
	if _, err := Start(ctx, config("exec sleep 600", ready)); !errors.Is(err, context.Canceled) {
		t.Errorf("Start under a context that ended = %v", err)
	}
}

func TestStubbornChildIsKilled(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "mark")
	p, err := Start(t.Context(), config("trap '' TERM; touch "+mark+"; while :; do sleep 0.1; done", exists(mark)))
	if err != nil {
		t.Fatal(err)
	}
	pid := p.PID()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := p.Stop(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Stop = %v, want one that says it was killed", err)
	}
	if !gone(pid) {
		t.Error("the child outlived Stop")
	}
}

func TestChildEndsWithItsParent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		env    string
	}{
		"by SIGTERM":            {script: "touch $" + markVariable + "; exec sleep 600"},
		"by SIGKILL":            {script: "trap '' TERM; touch $" + markVariable + "; exec sleep 600", env: orphanVariable + "=1"},
		"by its standard input": {script: "trap '' TERM; touch $" + markVariable + "; cat"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if runtime.GOOS != "linux" && name != "by its standard input" {
				t.Skip("only the kernel of Linux ends a child with its parent")
			}
			testOrphan(t, parentVariable+"="+c.script, markVariable+"="+filepath.Join(t.TempDir(), "mark"), c.env)
		})
	}
}

// testOrphan kills the parent of a child and waits for the child's end.
func testOrphan(t *testing.T, env ...string) {
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), env...)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !gone(child) && t.Failed() {
			_ = syscall.Kill(child, syscall.SIGKILL)
		}
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	eventually(t, "the child has ended", func() bool { return gone(child) || zombie(child) })
}

// zombie reports whether a process has ended and has not been waited for.
func zombie(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}
