package config

import (
	"runtime/debug"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestLimitsAreCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	var h HTTP
	var m Memory
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	h.Flags(flags)
	m.Flags(flags, 1024)
	if err := flags.Parse(nil); err != nil {
		t.Fatal(err)
	}
	if h != DefaultHTTP() || h.Validate() != nil || m.Validate() != nil {
		t.Errorf("the defaults are %+v (%v) and %+v (%v)", h, h.Validate(), m, m.Validate())
	}
	err := HTTP{ReadTimeout: -1, HeaderMax: 100, PerAddress: -1}.Validate()
	for _, name := range []string{"read-timeout", "write-timeout", "idle-timeout", "header-max", "http-connections 0", "per-address"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	if err := (Memory{}).Validate(); err == nil || !strings.Contains(err.Error(), "gc-percent") ||
		!strings.Contains(err.Error(), "memory-limit-mb") {
		t.Errorf("memory: %v", err)
	}
}

// Not parallel: the settings apply to the process.
func TestMemoryLimitYieldsToEnvironment(t *testing.T) {
	before := debug.SetGCPercent(100)
	limit := debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(before); debug.SetMemoryLimit(limit) }()
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "100MiB")
	Memory{GCPercent: 321, LimitMB: 777}.Apply()
	if percent, now := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != 321 || now != limit {
		t.Errorf("the percentage is %d and the limit %d, want 321 and %d as before", percent, now, limit)
	}
	t.Setenv("GOGC", "50")
	t.Setenv("GOMEMLIMIT", "")
	Memory{GCPercent: 321, LimitMB: 777}.Apply()
	if percent, now := debug.SetGCPercent(100), debug.SetMemoryLimit(-1); percent != 100 || now != 777<<20 {
		t.Errorf("the percentage is %d and the limit %d, want 100 as before and 777 MB", percent, now)
	}
}
