package cmd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/test/extent"
	testprogram "companyscore/internal/test/program"
	"companyscore/internal/test/stores"
	"companyscore/internal/test/wait"
	"companyscore/sql"
)

// built is the directory of the built program, empty before the first use.
var built string

// binary returns the path of the program, which it builds once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cs-binary-")
	if err != nil {
		return "", err
	}
	built = dir
	return testprogram.Build(dir)
})

// TestMain runs the tests in the root of the repository.
func TestMain(m *testing.M) {
	if _, err := os.Stat("go.mod"); err != nil {
		if err := os.Chdir(".."); err != nil {
			panic(err)
		}
	}
	stores.Main(m, func() {
		if built != "" {
			os.RemoveAll(built)
		}
	})
}

// launched is a started program with its output.
type launched struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has exited

	mu      sync.Mutex
	output  bytes.Buffer
	changed chan struct{} // closed by the next write
}

func (p *launched) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.changed)
	p.changed = make(chan struct{})
	return p.output.Write(text)
}

func (p *launched) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

// launch starts the program. It is killed at the end of the test if it still runs.
func launch(t *testing.T, args ...string) *launched {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	p := &launched{cmd: exec.Command(path, args...), exited: make(chan struct{}), changed: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.WaitDelay = liveLimit // orphans can keep its output open
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		if t.Failed() {
			t.Logf("output of %s:\n%s", strings.Join(args, " "), p.text())
		}
	})
	return p
}

// launchUp starts an `up` on a data directory.
func launchUp(t *testing.T, data string, args ...string) *launched {
	t.Helper()
	return launch(t, append([]string{"up", "--data", data, "--listen", "127.0.0.1:0", "--sources", "facts", "--log-level", "debug"},
		args...)...)
}

// await waits until a text is in the output.
func (p *launched) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(liveLimit)
	for {
		p.mu.Lock()
		found, changed := bytes.Contains(p.output.Bytes(), []byte(text)), p.changed
		p.mu.Unlock()
		if found {
			return
		}
		select {
		case <-changed:
		case <-p.exited:
			if !strings.Contains(p.text(), text) {
				t.Fatalf("exited before it wrote %q", text)
			}
		case <-limit:
			t.Fatalf("did not write %q", text)
		}
	}
}

// exit waits for the end of the program and returns its exit code, -1 for a signal.
func (p *launched) exit(t *testing.T) int {
	t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(liveLimit):
		t.Fatal("it did not end")
		return 0
	}
}

func (p *launched) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	wait.Until(t, what, holds)
}

// dataDir returns a data directory whose path suits unix sockets.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cs-up-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "data")
}

// processes returns the command lines by process id of all processes that have a path in their
// arguments or environment.
func processes(t *testing.T, path string) map[int]string {
	t.Helper()
	if runtime.GOOS != "linux" {
		return nil
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[int]string)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline")) // it may have ended
		env, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
		if bytes.Contains(line, []byte(path)) || bytes.Contains(env, []byte(path)) {
			found[pid] = string(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))
		}
	}
	return found
}

// tables returns the names of the tables in a data directory.
func tables(t *testing.T, data string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "clickhouse", "metadata", "companyscore"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".sql"); ok {
			names = append(names, name)
		}
	}
	return names
}

// query sends a statement to the database in the path of an address.
func query(t *testing.T, address, statement string) (status int, body string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), liveLimit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(statement))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	req.Header.Set("X-ClickHouse-Database", strings.Trim(req.URL.Path, "/"))
	req.URL.Path = "/"
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error()
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

// Statements of an analyst that run longer than any test: one that the engine can cancel, and
// one that it cannot.
const (
	longStatement     = "SELECT count() FROM numbers(1000000000000) WHERE cityHash64(number) = 1"
	stubbornStatement = "SELECT arrayFold((acc, x) -> acc + arraySum(arrayMap(y -> y * x, range(20000))), range(2000000), toUInt64(0))"
)

// occupy starts statements and returns when all of them run. The test fails if one of them gets its result.
func occupy(t *testing.T, own, address string, statements ...string) {
	t.Helper()
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, statement := range statements {
		running.Go(func() {
			if status, body := query(t, address, statement); status == http.StatusOK {
				t.Errorf("%s: %s; want no result", statement, body)
			}
		})
	}
	eventually(t, "all statements run", func() bool {
		_, n := query(t, own, "SELECT count() FROM system.processes WHERE query NOT LIKE '%system.processes%' AND (query LIKE "+
			"'%cityHash64%' OR query LIKE '%arrayFold%')")
		return n == strconv.Itoa(len(statements))
	})
}

// TestFirstStartMayBeInterrupted kills first starts at later and later moments. Each start
// continues on the data of the previous one.
func TestFirstStartMayBeInterrupted(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	logged := func(text string) func(*testing.T, *launched, string) {
		return func(t *testing.T, p *launched, _ string) { p.await(t, text) }
	}
	// One table more than before: during the migrations.
	migrating := func(t *testing.T, p *launched, data string) {
		before := len(tables(t, data))
		p.await(t, `msg="child is ready" child=clickhouse`)
		eventually(t, "there are more tables", func() bool {
			return len(tables(t, data)) > before || strings.Contains(p.text(), "schema is current")
		})
	}
	moments := []struct {
		name string
		wait func(t *testing.T, p *launched, data string)
	}{
		{"data directory locked", func(t *testing.T, _ *launched, data string) {
			eventually(t, "there is a lock", func() bool { _, err := os.Stat(filepath.Join(data, "lock")); return err == nil })
		}},
		{"child started", logged("child started")},
		{"ClickHouse ready", logged(`msg="child is ready" child=clickhouse`)},
		{"migrating", migrating},
		{"migrating again", migrating},
		{"schema current", logged("schema is current")},
		{"batch started", logged(`msg="child started" child=batch`)},
		{"worker started", logged(`msg="child started" child=work`)},
		{"ready", logged("ready http://")},
	}
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: exitDone, syscall.SIGKILL: -1} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			data := dataDir(t)
			for _, moment := range moments {
				p := launchUp(t, data)
				moment.wait(t, p, data)
				sent := time.Now()
				p.signal(t, sig)
				if got := p.exit(t); got != code {
					t.Fatalf("%s at %s: exit code %d, want %d", sig, moment.name, got, code)
				}
				t.Logf("%s: ended after %s, %d tables", moment.name, time.Since(sent).Round(time.Millisecond), len(tables(t, data)))
				if sig == syscall.SIGTERM {
					if left := processes(t, data); len(left) > 0 {
						t.Fatalf("%s at %s left processes: %v", sig, moment.name, left)
					}
				}
				for _, name := range tables(t, data) {
					if strings.HasPrefix(name, "schema_lock") {
						t.Fatalf("%s at %s left a lock that the next start waits for", sig, moment.name)
					}
				}
			}
		})
	}
}

// TestUpStartsAtOnceAfterKill kills an `up` with SIGKILL while analysts' statements run and
// while the engine is frozen. The next start has all data and does not wait.
func TestUpStartsAtOnceAfterKill(t *testing.T) {
	extent.Crash(t)
	t.Parallel()
	for name, freeze := range map[string][]string{"busy": nil, "frozen": {"clickhouse", "redis-server"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := dataDir(t)
			p := launchUp(t, data)
			p.await(t, "Ctrl-C")
			rt := runtimeOf(t, data)
			if status, body := query(t, rt.ClickHouseURL,
				"INSERT INTO companyscore_private.account (id, name) VALUES ('kept', 'kept')"); status != http.StatusOK {
				t.Fatal(body)
			}
			occupy(t, rt.ClickHouseURL, rt.AnalystURL, longStatement, stubbornStatement)
			for _, child := range freeze {
				if err := syscall.Kill(rt.Processes[child], syscall.SIGSTOP); err != nil {
					t.Fatal(err)
				}
			}
			p.signal(t, syscall.SIGKILL)
			p.exit(t)
			killed := time.Now()
			p = launchUp(t, data)
			p.await(t, "Ctrl-C")
			t.Logf("ready %s after the kill", time.Since(killed).Round(time.Millisecond))
			if _, n := query(t, runtimeOf(t, data).ClickHouseURL,
				"SELECT count() FROM companyscore_private.account WHERE name = 'kept'"); n != "1" {
				t.Errorf("acknowledged rows after the kill: %s", n)
			}
			p.signal(t, syscall.SIGTERM)
			p.ends(t)
			eventually(t, "nothing is left", func() bool { return len(processes(t, data)) == 0 })
		})
	}
}

// TestUpWaitsForEarlierEngine checks that a start waits for the lock of the engine,
// logs the holder, and continues when the lock is free.
func TestUpWaitsForEarlierEngine(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	holder := launch(t, "clickhouse", "--path", filepath.Join(data, "clickhouse"), "--listen", "127.0.0.1:0", "--password", "p")
	holder.await(t, "ready ")
	p := launchUp(t, data)
	p.await(t, "waiting for the ClickHouse of an earlier process to end")
	p.await(t, fmt.Sprintf("pid=%d", holder.cmd.Process.Pid))
	holder.signal(t, syscall.SIGTERM)
	holder.exit(t)
	p.await(t, "ready http://")
}

// TestStopDoesNotWaitForAnalysts stops an `up` while statements of an analyst run. The engine
// cannot cancel one of them.
func TestStopDoesNotWaitForAnalysts(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	p := launchUp(t, data)
	p.await(t, "Ctrl-C")
	rt := runtimeOf(t, data)
	occupy(t, rt.ClickHouseURL, rt.AnalystURL, longStatement, stubbornStatement)
	sent := time.Now()
	p.signal(t, syscall.SIGTERM)
	if code := p.exit(t); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	t.Logf("ended after %s", time.Since(sent).Round(time.Millisecond))
	if left := processes(t, data); len(left) > 0 {
		t.Errorf("left processes: %v", left)
	}
}

// TestEngineStopsInOrder ends the engine while an insert of the service runs, which
// is acknowledged and kept, and while an analyst's statement runs, which is cancelled.
func TestEngineStopsInOrder(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	start := func() (p *launched, own, analyst string) {
		p = launch(t, "clickhouse", "--path", data, "--listen", "127.0.0.1:0", "--password", "p", "--analyst-password", "a")
		p.await(t, "ready ")
		_, address, _ := strings.Cut(p.text(), "ready http://")
		address = strings.TrimSpace(address)
		return p, "http://companyscore:p@" + address, "http://analyst:a@" + address
	}
	p, own, analyst := start()
	if status, body := query(t, own, "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a"); status != http.StatusOK {
		t.Fatal(body)
	}
	type outcome struct {
		status int
		body   string
	}
	ask := func(address, statement string) <-chan outcome {
		done := make(chan outcome, 1)
		go func() {
			status, body := query(t, address, statement)
			done <- outcome{status, body}
		}()
		return done
	}
	runs := func(part string) func() bool {
		return func() bool {
			_, n := query(t, own, "SELECT count() FROM system.processes WHERE query NOT LIKE '%system.processes%' AND query LIKE '%"+part+
				"%'")
			return n == "1"
		}
	}
	reading := ask(analyst, longStatement)
	eventually(t, "the analyst's statement runs", runs("cityHash64"))
	writing := ask(own, "INSERT INTO t SELECT number FROM numbers(10) WHERE sleepEachRow(0.07) = 0")
	eventually(t, "the insert runs", runs("sleepEachRow"))
	p.signal(t, syscall.SIGTERM)
	if got := <-reading; got.status == http.StatusOK || !strings.Contains(got.body, "shutting down") {
		t.Errorf("the analyst's statement: %d %s", got.status, got.body)
	}
	if got := <-writing; got.status != http.StatusOK {
		t.Errorf("the insert: %d %s", got.status, got.body)
	}
	p.ends(t)
	_, own, _ = start()
	if _, n := query(t, own, "SELECT count() FROM t"); n != "10" {
		t.Errorf("rows after the restart: %s", n)
	}
}

// TestEngineEndsWithItsParent closes the standard input that a parent would keep open.
func TestEngineEndsWithItsParent(t *testing.T) {
	t.Parallel()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "clickhouse", "--path", dataDir(t), "--listen", "127.0.0.1:0", "--password", "p", "--exit-with-stdin")
	held, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	watchdog := time.AfterFunc(liveLimit, func() {
		t.Error("the engine outlived its parent")
		_ = cmd.Process.Kill()
	})
	defer watchdog.Stop()
	held.Close()
	_ = cmd.Wait() // killed
}

// TestFailedStartNamesTheReason checks that the last line of an `up` that cannot start its
// engine has the reason.
func TestFailedStartNamesTheReason(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	if err := os.MkdirAll(filepath.Join(data, "clickhouse"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "clickhouse", "metadata_dropped"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launchUp(t, data)
	if code := p.exit(t); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	text := strings.TrimSpace(p.text())
	last := text[strings.LastIndexByte(text, '\n')+1:]
	for _, want := range []string{"start clickhouse: exited before it was ready: exit status 1: ", "metadata_dropped: not a directory"} {
		if !strings.Contains(last, want) {
			t.Errorf("the last line does not contain %q: %s", want, last)
		}
	}
}

// TestDemoAccount tests when a demo account is created, stored and printed.
func TestDemoAccount(t *testing.T) {
	t.Parallel()
	data := dataDir(t)
	file := filepath.Join(data, "demo.json")
	run := func(args ...string) string {
		t.Helper()
		p := launchUp(t, data, args...)
		p.await(t, "Ctrl-C")
		return p.stop(t)
	}
	if text := run("--demo=false"); strings.Contains(text, "demo") || strings.Contains(text, "svc_") {
		t.Errorf("a demo account is printed:\n%s", text)
	}
	if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("demo.json without a demo account: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := launchUp(t, data)
	p.await(t, "Ctrl-C")
	first, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(first, []byte("svc_live_")) {
		t.Fatalf("demo.json after an empty one = %q, %v", first, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("demo.json: %v, %v", info.Mode(), err)
	}
	// `serve` on the same stores creates none without --demo, and uses the same one with it.
	for _, c := range []struct {
		args    []string
		printed bool
	}{{nil, false}, {[]string{"--demo"}, true}} {
		s := launch(t, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, c.args...)...)
		s.await(t, "ready ")
		if text := s.stop(t); strings.Contains(text, "svc_live_") != c.printed {
			t.Errorf("serve %v: %s", c.args, text)
		}
	}
	_, accounts := query(t, runtimeOf(t, data).ClickHouseURL, "SELECT count() FROM companyscore_private.account FINAL")
	if accounts != "1" {
		t.Errorf("%s accounts, want the demo account alone", accounts)
	}
	p.stop(t)
	if text := run(); !strings.Contains(text, "/console/link/") {
		t.Errorf("no link is printed:\n%s", text)
	}
	if text := run("--demo=false"); strings.Contains(text, "/console/link/") || strings.Contains(text, "svc_") ||
		!strings.Contains(text, "companyscore console link --operator") {
		t.Errorf("a secret is printed, or no command for a link:\n%s", text)
	}
	if again, err := os.ReadFile(file); err != nil || !bytes.Equal(first, again) {
		t.Errorf("demo.json changed with a restart: %v", err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	p = launchUp(t, data)
	if code := p.exit(t); code != exitFailed || !strings.Contains(p.text(), "remove the file") {
		t.Errorf("start on a broken demo.json: exit code %d", code)
	}
}

// ends waits for the end of a program that was told to stop, and fails the test unless it ends as it should.
func (p *launched) ends(t *testing.T) {
	t.Helper()
	if code := p.exit(t); code != exitDone && !testprogram.Late(p.text()) {
		t.Errorf("exit code %d", code)
	}
}

// stop ends the program with SIGTERM and returns its output.
func (p *launched) stop(t *testing.T) string {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.ends(t)
	return p.text()
}

func runtimeOf(t *testing.T, data string) *config.Runtime {
	t.Helper()
	rt, err := config.ReadRuntime(data)
	if err != nil {
		t.Fatal(err)
	}
	return rt
}

// TestAnalystsFindTheSameAddressAgain starts an `up` twice with a fixed port for SQL tools.
func TestAnalystsFindTheSameAddressAgain(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	ln.Close()
	data := t.TempDir()
	var passwords []string
	for range 2 {
		p := launchUp(t, data, "--clickhouse-listen", address)
		p.await(t, "Ctrl-C")
		password, err := os.ReadFile(filepath.Join(data, "analyst-password"))
		if err != nil {
			t.Fatal(err)
		}
		passwords = append(passwords, strings.TrimSpace(string(password)))
		login := "http://analyst:" + passwords[0] + "@" + address
		if status, body := query(t, login, "SELECT currentUser(), currentDatabase()"); status != http.StatusOK ||
			body != "analyst\tcompanyscore" {
			t.Errorf("%d %s", status, body)
		}
		if got := runtimeOf(t, data).AnalystURL; got != login+"/companyscore" {
			t.Errorf("the address is %s, want %s", got, login)
		}
		if strings.Contains(p.text(), passwords[0]) || !strings.Contains(p.text(), filepath.Join(data, "analyst-password")) {
			t.Errorf("the output has the password, or not its file: %s", p.text())
		}
		code, out, _ := command(t, "", "sql", "--data", data, "--connection")
		if code != exitDone || !strings.Contains(out, "port       "+address[strings.LastIndex(address, ":")+1:]) ||
			strings.Contains(out, passwords[0]) {
			t.Errorf("--connection: %d %s", code, out)
		}
		code, out, _ = command(t, "", "analyst", "list", "--data", data)
		if code != exitDone || !strings.Contains(out, "analyst") {
			t.Errorf("analyst list: %d %s", code, out)
		}
		code, out, _ = command(t, "", "analyst", "create", "eve", "--statements", "2", "--print-sql")
		statements := sql.Split(out)
		if code != exitDone || len(statements) != 2 {
			t.Errorf("analyst create --print-sql: %d %s", code, out)
		}
		for _, statement := range statements { // of a server, so the engine only reads them
			service := strings.TrimSuffix(runtimeOf(t, data).ClickHouseURL, "/companyscore")
			if status, body := query(t, service, "SELECT formatQuerySingleLine($sql$"+statement+"$sql$)"); status != http.StatusOK {
				t.Errorf("%s: %s", statement, body)
			}
		}
		p.stop(t)
	}
	if passwords[0] != passwords[1] {
		t.Error("the password changed")
	}
}
