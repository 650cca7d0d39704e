// Package stores starts real ClickHouse and Redis servers for tests, and stops or kills them on
// command.
//
// A package that uses it calls Main from its TestMain. The servers are child processes that end
// with the test binary. The embedded ClickHouse is the test binary itself, run a second time, so
// that killing it is a real crash.
package stores

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/test/wait"
	"companyscore/sql"
)

// childVariable has the childConfig of a test binary that serves ClickHouse instead of running
// tests.
const childVariable = "COMPANYSCORE_TEST_CLICKHOUSE"

type childConfig struct{ Path, Listen, Password, AnalystPassword string }

// startLimit bounds the start of a server.
const startLimit = wait.Max

// shared is the server of this test binary, started by the first call of ClickHouse.
var shared struct {
	sync.Mutex
	server *ClickHouseServer
	keep   bool // a test failed: keep the data
}

// Main runs the tests of a package and exits. It is the whole body of TestMain.
// The functions after run when the tests have ended.
func Main(m *testing.M, after ...func()) {
	if config := os.Getenv(childVariable); config != "" {
		if err := serveClickHouse(config); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	code := m.Run()
	for _, f := range after {
		f()
	}
	stopBoth()
	if s := shared.server; s != nil {
		s.Kill()
		if shared.keep {
			fmt.Fprintln(os.Stderr, "stores: ClickHouse data of the failed tests is in", s.config.Path)
		} else {
			os.RemoveAll(s.config.Path)
		}
	}
	os.Exit(code)
}

// PrivateOf returns the URL of the private database that belongs to that of ClickHouse.
func PrivateOf(url string) string { return sql.Private(url) }

// ClickHouse returns the URL of a database of its own on this test binary's server: http://user:password@host:port/database.
// Neither it nor the private database that belongs to it has tables. Both are dropped when the test passes and kept when it fails.
func ClickHouse(t testing.TB) string {
	t.Helper()
	requireLibrary(t)
	shared.Lock()
	defer shared.Unlock()
	database := "test_" + strings.ToLower(rand.Text()[:12])
	address, err := newDatabase(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			shared.Lock()
			defer shared.Unlock()
			shared.keep = true
			t.Logf("kept ClickHouse database %s", database)
			return
		}
		for _, name := range []string{database, sql.Private(database)} {
			// Not SYNC: the library blocks forever while a connection refers to a table.
			if err := shared.server.exec("DROP DATABASE " + name); err != nil {
				t.Error(err)
			}
		}
	})
	return address
}

// newDatabase creates a public and a private database on the server of this binary, which it
// starts if needed, and returns their URL. shared must be locked.
func newDatabase(name string) (url string, err error) {
	if shared.server == nil {
		dir, err := os.MkdirTemp("", "companyscore-clickhouse-*")
		if err != nil {
			return "", err
		}
		server, err := startClickHouse(dir)
		if err != nil {
			os.RemoveAll(dir)
			return "", err
		}
		shared.server = server
	}
	for _, name := range []string{name, sql.Private(name)} {
		if err := shared.server.exec("CREATE DATABASE IF NOT EXISTS " + name); err != nil {
			return "", err
		}
	}
	return shared.server.URL(name), nil
}

// ClickHouseServer is a server of one test, which may crash it. Its methods must not be called concurrently.
type ClickHouseServer struct {
	config childConfig
	cmd    *exec.Cmd
	stdin  io.Closer
}

// StartClickHouse starts a server of the test's own, stopped and removed at its end.
func StartClickHouse(t testing.TB) *ClickHouseServer {
	t.Helper()
	requireLibrary(t)
	s, err := startClickHouse(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// URL returns the address of a database on the server, for the service's own user.
func (s *ClickHouseServer) URL(database string) string {
	return s.url("companyscore", s.config.Password, database)
}

// AnalystURL is URL for the read-only user.
func (s *ClickHouseServer) AnalystURL(database string) string {
	return s.url("analyst", s.config.AnalystPassword, database)
}

func (s *ClickHouseServer) url(user, password, database string) string {
	u := url.URL{Scheme: "http", User: url.UserPassword(user, password), Host: s.config.Listen, Path: "/" + database}
	return u.String()
}

// PID returns the process id of the server, 0 after Kill.
func (s *ClickHouseServer) PID() int {
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Dir returns the server's directory: data/ is its data directory, server.log what it logs.
func (s *ClickHouseServer) Dir() string { return s.config.Path }

// Kill ends the server with SIGKILL, as a crash would. Killing a dead server does nothing.
func (s *ClickHouseServer) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.stdin.Close()
	s.cmd = nil
}

// Restart starts a killed server again on the same address and data, and returns when it answers.
func (s *ClickHouseServer) Restart(t testing.TB) {
	t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
}

func startClickHouse(dir string) (*ClickHouseServer, error) {
	s := &ClickHouseServer{config: childConfig{Path: dir, Listen: "127.0.0.1:0", Password: rand.Text(), AnalystPassword: rand.Text()}}
	return s, s.start()
}

// start runs this binary as a server and waits for the line with its address.
func (s *ClickHouseServer) start() error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	config, err := json.Marshal(s.config)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(s.config.Path, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childVariable+"="+string(config))
	cmd.Stderr = log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stdin, err := cmd.StdinPipe() // closed when this process ends, which ends the child
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.stdin = cmd, stdin
	watchdog := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.Kill()
		tail, _ := os.ReadFile(log.Name())
		return fmt.Errorf("start ClickHouse child: %w\n%s", err, tail)
	}
	s.config.Listen = strings.TrimSpace(line)
	return nil
}

// serveClickHouse is the child: it serves until its parent closes stdin or dies.
func serveClickHouse(config string) error {
	var c childConfig
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	ln, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	server, err := embedded.New(context.Background(), embedded.Config{
		Path:            filepath.Join(c.Path, "data"),
		Password:        c.Password,
		AnalystPassword: c.AnalystPassword,
		QueueWait:       wait.Max, // the machine may be busy
		AnalystWait:     wait.Max,
	})
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Println(ln.Addr())
	return server.Serve(ln)
}

// exec runs a statement as the service's own user.
func (s *ClickHouseServer) exec(query string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL(""), strings.NewReader(query))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s", strings.TrimSpace(string(body)))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	return nil
}

// requireLibrary skips a test without the engine's library. In CI it fails the test.
func requireLibrary(t testing.TB) {
	t.Helper()
	_, err := embedded.Find()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatal(err)
	default:
		t.Skip(err)
	}
}
