package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestApplyEnv(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"COMPANYSCORE_LISTEN": "127.0.0.1:1", "COMPANYSCORE_LIMIT": "many", "COMPANYSCORE_WAIT": "2 hours",
		"REDIS_URL": "redis://127.0.0.1", "COMPANYSCORE_DATA": "from-env",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:8080", "")
	redis := flags.String("redis-url", "", "")
	data := flags.String("data", "./data", "")
	flags.Int("limit", 1, "")
	flags.Duration("wait", time.Second, "")
	if err := flags.Parse([]string{"--data", "from-flag"}); err != nil {
		t.Fatal(err)
	}
	err := ApplyEnv(flags, lookup)
	if err == nil || !strings.Contains(err.Error(), "COMPANYSCORE_LIMIT") || !strings.Contains(err.Error(), "COMPANYSCORE_WAIT") {
		t.Errorf("ApplyEnv = %v, want both bad values named", err)
	}
	if *listen != "127.0.0.1:1" || *redis != "redis://127.0.0.1" || *data != "from-flag" {
		t.Errorf("listen %q, redis %q, data %q", *listen, *redis, *data)
	}
}

func TestParseSources(t *testing.T) {
	t.Parallel()
	known := []string{"facts", "dns"}
	f := func(value string, want []string, fault string) {
		t.Helper()
		got, err := ParseSources(value, known)
		if fault == "" && (err != nil || !slices.Equal(got, want)) {
			t.Errorf("ParseSources(%q) = %v, %v; want %v", value, got, err, want)
		}
		if fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("ParseSources(%q) = %v, want an error saying %q", value, err, fault)
		}
	}
	f("all", known, "")
	f("", known, "")
	f("facts", []string{"facts"}, "")
	f("dns, facts,dns", []string{"dns", "facts"}, "")
	f("facts,horoscope,tarot", nil, "tarot")
}

func TestLoggerNamesAllFaults(t *testing.T) {
	t.Parallel()
	_, err := Log{Level: "loud", Format: "xml"}.Logger(nil)
	if err == nil || !strings.Contains(err.Error(), "loud") || !strings.Contains(err.Error(), "xml") {
		t.Errorf("Logger = %v, want both faults", err)
	}
	var out strings.Builder
	logger, err := Log{Level: "warn", Format: "json"}.Logger(&out)
	if err != nil {
		t.Fatal(err)
	}
	logger.Info("quiet")
	logger.Warn("loud", slog.Int("n", 1))
	if !strings.HasPrefix(out.String(), "{") || strings.Contains(out.String(), "quiet") {
		t.Errorf("log = %s", out.String())
	}
}

func TestRuntimeFileGoesStale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := Stores{Data: dir}
	if _, err := s.Resolve(); err == nil || !strings.Contains(err.Error(), "companyscore up") {
		t.Errorf("Resolve without an up = %v, want advice", err)
	}
	rt := Runtime{PID: os.Getpid(), ClickHouseURL: "http://c", RedisURL: "unix:///r"}
	if err := WriteRuntime(dir, rt); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(dir, "runtime.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("runtime file: %v, %v; want mode 600, as it holds passwords", info.Mode(), err)
	}
	s.RedisURL = "redis://mine"
	if _, err := s.Resolve(); err != nil || s.ClickHouseURL != "http://c" || s.RedisURL != "redis://mine" {
		t.Errorf("Resolve = %+v, %v", s, err)
	}
	rt.PID = 1 << 30
	if err := WriteRuntime(dir, rt); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRuntime(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ReadRuntime of an up that died = %v, want ErrNotExist", err)
	}
}

func TestLockDataAllowsOneOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	lock, err := LockData(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockData(dir); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Errorf("second LockData = %v", err)
	}
	lock.Close()
	again, err := LockData(dir)
	if err != nil {
		t.Fatalf("LockData after the owner left: %v", err)
	}
	again.Close()
}
