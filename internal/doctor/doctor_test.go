package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/spelling"
	"companyscore/internal/test/program"
)

// service is a running `up`.
var service *program.System

func TestMain(m *testing.M) { os.Exit(serve(m)) }

func serve(m *testing.M) int {
	dir, err := os.MkdirTemp("", "cs-doctor-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	built, err := program.Build(dir)
	if err != nil {
		panic(err)
	}
	service = program.New(built, dir)
	if err := service.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = service.Stop() }()
	return m.Run()
}

// diagnose runs the command with variables and flags and returns its checks by name.
func diagnose(t *testing.T, variables []string, flags ...string) (code int, checks map[string]Check) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), service.Program, append([]string{"doctor", "--output", "json"}, flags...)...)
	cmd.Env = append(os.Environ(), variables...)
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var list []Check
	if err := json.Unmarshal(out, &list); err != nil {
		t.Fatalf("read %q: %v", out, err)
	}
	checks = make(map[string]Check)
	for _, c := range list {
		checks[c.Name] = c
		if (c.Status == Failed || c.Status == Warning) != (c.Advice != "") {
			t.Errorf("advice does not fit the status: %+v", c)
		}
	}
	return cmd.ProcessState.ExitCode(), checks
}

// freeAddress returns an address that nothing listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	return ln.Addr().String()
}

func TestRunningUpIsWell(t *testing.T) {
	listen := strings.TrimPrefix(service.Runtime.BaseURL, "http://")
	code, checks := diagnose(t, nil, "--data", service.Data, "--listen", listen)
	for _, name := range []string{"version", "system", "engine library", "redis-server", "running up", "port " + listen, "data directory",
		"Redis", "clock of Redis", "ClickHouse", "clock of ClickHouse", "variables"} {
		if c := checks[name]; c.Status != OK {
			t.Errorf("%s: %+v", name, c)
		}
	}
	if code != 0 {
		t.Errorf("exit %d: %+v", code, checks)
	}
	if !strings.Contains(checks["ClickHouse"].Found, "26.") || !strings.Contains(checks["Redis"].Found, ".") {
		t.Errorf("versions: %+v, %+v", checks["ClickHouse"], checks["Redis"])
	}
	if c := checks["readiness"]; c.Status == Skipped {
		t.Errorf("%+v", c)
	}
}

// TestFrozenStoreIsNamed stops the stores of the `up` for a moment, so it is not parallel.
func TestFrozenStoreIsNamed(t *testing.T) {
	for child, name := range map[string]string{"redis-server": "Redis", "clickhouse": "ClickHouse"} {
		pid := service.Runtime.Processes[child]
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		code, checks := diagnose(t, nil, "--data", service.Data)
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if c := checks[name]; code != 1 || c.Status != Failed || !strings.Contains(c.Advice, "log of `up`") {
			t.Errorf("frozen %s: exit %d, %+v", child, code, c)
		}
	}
}

func TestBrokenMachineIsDescribed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := freeAddress(t)
	for name, c := range map[string]struct {
		variables, flags    []string
		check, says, advice string
	}{
		"taken port": {nil, []string{"--listen", taken.Addr().String()}, "port " + taken.Addr().String(), "address already in use",
			"ss -ltnp"},
		"foreign address":   {nil, []string{"--listen", "192.0.2.1:80"}, "port 192.0.2.1:80", "cannot assign", "--listen"},
		"file as directory": {nil, []string{"--data", file}, "data directory", "not a directory", "--data"},
		"no engine":         {[]string{"COMPANYSCORE_LIBCHDB=" + dir + "/none.so"}, nil, "engine library", "none.so", "make deps"},
		"no redis-server":   {[]string{"PATH=" + dir}, nil, "redis-server", "not in the PATH", "REDIS_URL"},
		"Redis away":        {[]string{"REDIS_URL=redis://:secret@" + nowhere}, nil, "Redis", "refused", "REDIS_URL"},
		"ClickHouse away":   {[]string{"CLICKHOUSE_URL=http://u:secret@" + nowhere + "/d"}, nil, "ClickHouse", "refused", "CLICKHOUSE_URL"},
		"misspelt variable": {[]string{"COMPANYSCORE_LISTN=127.0.0.1:1"}, nil, "variables", "COMPANYSCORE_LISTN",
			"rename COMPANYSCORE_LISTN to COMPANYSCORE_LISTEN"},
		"unknown variable": {[]string{"COMPANYSCORE_FLUX_CAPACITOR=on"}, nil, "variables", "FLUX_CAPACITOR",
			"unset COMPANYSCORE_FLUX_CAPACITOR"},
	} {
		flags := c.flags
		if !strings.Contains(strings.Join(flags, " "), "--data") {
			flags = append(flags, "--data", filepath.Join(dir, "new"))
		}
		if !strings.Contains(strings.Join(flags, " "), "--listen") {
			flags = append(flags, "--listen", nowhere)
		}
		code, checks := diagnose(t, c.variables, flags...)
		if got := checks[c.check]; code != 1 || got.Status != Failed || !strings.Contains(got.Found, c.says) ||
			!strings.Contains(got.Advice, c.advice) {
			t.Errorf("%s: exit %d, %+v", name, code, got)
		}
		for _, got := range checks {
			if strings.Contains(got.Found+got.Advice, "secret") {
				t.Errorf("%s shows a password: %+v", name, got)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data directory was made: %v", err)
	}
}

func TestSkewedClocksAreNamed(t *testing.T) {
	checks := Run(t.Context(), Config{
		Stores: config.Stores{Data: service.Data}, Listen: freeAddress(t), FindEngine: func() (string, error) { return "", nil },
		Now: func() time.Time { return time.Now().Add(-time.Minute) },
	})
	found := 0
	for _, c := range checks {
		if strings.HasPrefix(c.Name, "clock") {
			found++
			if c.Status != Failed || !strings.Contains(c.Found, "ahead of") || !strings.Contains(c.Advice, "chrony") {
				t.Errorf("%+v", c)
			}
		}
	}
	if found != 2 {
		t.Errorf("%d clocks: %+v", found, checks)
	}
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for value, want := range map[int64]Status{9: Failed, 10: Warning, 19: Warning, 20: OK} {
		if c := level("x", value, 10, 20, "", "act"); c.Status != want || (c.Advice == "") != (want == OK) {
			t.Errorf("%d: %+v", value, c)
		}
	}
	if n := meminfo([]byte("MemTotal:  10 kB\nMemAvailable:    2048 kB\n"), "MemAvailable"); n != 2<<20 {
		t.Errorf("meminfo: %d", n)
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "abc", 3}, {"listn", "listen", 1}, {"kitten", "sitting", 3}} {
		if got := spelling.Distance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q: %d", c.a, c.b, got)
		}
	}
}

func TestCancelledContextEndsChecks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range Run(ctx, Config{Stores: config.Stores{Data: service.Data}, Listen: freeAddress(t),
		FindEngine: func() (string, error) { return "", nil }}) {
		if c.Name == "Redis" && c.Status != Failed {
			t.Errorf("%+v", c)
		}
	}
}
