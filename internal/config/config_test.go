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

	"github.com/spf13/cobra"
)

func TestEnvironmentSetsSettingsOnly(t *testing.T) {
	t.Parallel()
	env := map[string]string{
		"COMPANYSCORE_LISTEN": "127.0.0.1:1", "COMPANYSCORE_LIMIT": "many", "COMPANYSCORE_WAIT": "2 hours",
		"REDIS_URL": "redis://127.0.0.1", "COMPANYSCORE_DATA": "from-env", "COMPANYSCORE_ONCE": "true", "COMPANYSCORE_KEY": "secret",
		"COMPANYSCORE_NAME": "from-env", "COMPANYSCORE_LOG_LEVEL": "debug", "COMPANYSCORE_HELP": "true",
	}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	root, role, tool := &cobra.Command{Use: "root"}, &cobra.Command{Use: "role"}, &cobra.Command{Use: "tool"}
	root.AddCommand(role, tool)
	level := root.PersistentFlags().String("log-level", "info", "")
	listen := role.Flags().String("listen", "127.0.0.1:8080", "")
	redis := role.Flags().String("redis-url", "", "")
	once := role.Flags().Bool("once", false, "")
	data := role.Flags().String("data", "./data", "")
	role.Flags().Int("limit", 1, "")
	role.Flags().Duration("wait", time.Second, "")
	toolData := tool.Flags().String("data", "./data", "directory")
	key := tool.Flags().String("key", "", "")
	name := tool.Flags().String("name", "", "name")
	tool.MarkFlagsMutuallyExclusive("key", "name")
	BindEnv(root, role)
	if err := role.Flags().Parse([]string{"--data", "from-flag"}); err != nil {
		t.Fatal(err)
	}
	err := ApplyEnv(role.Flags(), lookup)
	if err == nil || !strings.Contains(err.Error(), "COMPANYSCORE_LIMIT") || !strings.Contains(err.Error(), "COMPANYSCORE_WAIT") {
		t.Errorf("ApplyEnv = %v, want both bad values named", err)
	}
	if *listen != "127.0.0.1:1" || *redis != "redis://127.0.0.1" || *data != "from-flag" || *once {
		t.Errorf("listen %q, redis %q, data %q, once %v", *listen, *redis, *data, *once)
	}
	if err := errors.Join(ApplyEnv(tool.Flags(), lookup), ApplyEnv(root.PersistentFlags(), lookup)); err != nil {
		t.Error(err)
	}
	if *toolData != "from-env" || *key != "secret" || *name != "" || *level != "debug" {
		t.Errorf("data %q, key %q, name %q, log level %q", *toolData, *key, *name, *level)
	}
	if got := tool.Flags().Lookup("data").Usage + tool.Flags().Lookup("name").Usage; got != "directory [$COMPANYSCORE_DATA]name" {
		t.Errorf("the help says %q", got)
	}
	variables := Variables(root)
	if !slices.Contains(variables, "REDIS_URL") || !slices.Contains(variables, "COMPANYSCORE_WAIT") ||
		slices.Contains(variables, "COMPANYSCORE_NAME") || slices.Contains(variables, "COMPANYSCORE_ONCE") {
		t.Errorf("variables: %v", variables)
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
