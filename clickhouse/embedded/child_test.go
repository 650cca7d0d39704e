package embedded_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"companyscore/clickhouse/embedded"
)

// childVariable has the childConfig of a test binary that serves an engine instead of running tests.
const childVariable = "COMPANYSCORE_TEST_ENGINE"

type childConfig struct {
	Path, Address string
	Allow         string // further lines of what analysts may name
	Memory        uint64
	Slots         int
}

// serveChild runs the engine of a childConfig until standard input ends.
func serveChild(text string) int {
	var c childConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	ln, err := net.Listen("tcp", c.Address)
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	cfg := embedded.Config{Path: c.Path, Password: "p", AnalystPassword: "a", Memory: c.Memory, AnalystSlots: c.Slots, Listener: ln,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Ready: func() { fmt.Println(ln.Addr()) }}
	if err := embedded.Run(ctx, embedded.Allowing(cfg, c.Allow)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child is an engine in a process of its own, which a test may end.
type child struct {
	config childConfig
	cmd    *exec.Cmd
	stdin  io.Closer
	log    strings.Builder
	ended  chan struct{} // closed when the process has ended
}

// startChild starts an engine. It ends with the test.
func startChild(t testing.TB, c childConfig) *child {
	t.Helper()
	s, err := runChild(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// runChild starts an engine. It ends with this process, or when the caller calls stop.
func runChild(c childConfig) (*child, error) {
	cmd, err := childCommand(c)
	if err != nil {
		return nil, err
	}
	s := &child{config: c, cmd: cmd, ended: make(chan struct{})}
	s.cmd.Stderr = &s.log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	go func() { // ends with the process
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	if err != nil {
		<-s.ended
		return nil, fmt.Errorf("the engine does not start: %s", s.log.String())
	}
	s.config.Address = strings.TrimSpace(line)
	return s, nil
}

// childCommand returns the command of an engine.
func childCommand(c childConfig) (*exec.Cmd, error) {
	if c.Address == "" {
		c.Address = "127.0.0.1:0"
	}
	config, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(config))
	return cmd, nil
}

// startFailing starts an engine that cannot start, and returns what it logs.
func startFailing(t testing.TB, c childConfig) string {
	t.Helper()
	cmd, err := childCommand(c)
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput() // standard input is empty, so that an engine that starts ends at once
	if err == nil {
		t.Errorf("the engine starts: %s", out)
	}
	return string(out)
}

// stop ends the engine as its parent would, and waits.
func (s *child) stop() {
	_ = s.stdin.Close()
	<-s.ended
}

// answerMax is the number of bytes of an answer that ask reads. It breaks off longer answers: reading gigabytes takes longer than writing
// them.
const answerMax = 16 << 20

// ask sends a statement and returns status and body. The status is 0 if the engine ends before it answers.
func (s *child) ask(ctx context.Context, user, query string, params url.Values) (int, string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.config.Address+"/?"+params.Encode(), strings.NewReader(query))
	if err != nil {
		return 0, err.Error()
	}
	req.SetBasicAuth(user, map[string]string{"companyscore": "p", "analyst": "a"}[user])
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, answerMax))
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, strings.TrimSpace(string(body))
}
