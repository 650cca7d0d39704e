package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"

	"companyscore/bench/report"
	"companyscore/internal/release"
)

// Environment returns the machine and the software of a bench run, as far as known. It takes a
// second to measure interruptions of the processors.
func Environment(command string, versions map[string]string) report.Environment {
	e := report.Environment{
		Command: command, Cores: runtime.NumCPU(), Go: runtime.Version(), Commit: release.Commit(), CPU: runtime.GOARCH,
		Versions: make(map[string]string), LoadBefore: LoadAverage(), Stops: watchStops(stopsFor),
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		e.Virtual = bytes.Contains(text, []byte(" hypervisor"))
		if _, rest, found := strings.Cut(string(text), "model name"); found {
			line, _, _ := strings.Cut(rest, "\n")
			e.CPU = strings.TrimSpace(strings.TrimLeft(line, "\t :"))
		}
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			if kb, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				e.Memory = kb << 10
			}
		}
	}
	if text, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		e.Kernel = strings.TrimSpace(string(text))
	}
	for name, version := range versions {
		e.Versions[name] = version
	}
	return e
}

// ProcessVersion returns what a running companyscore prints as its version, "" if it cannot be run.
func ProcessVersion(pid int) string {
	return strings.TrimPrefix(ToolVersion(fmt.Sprintf("/proc/%d/exe", pid), "--version"), "companyscore ")
}

// ToolVersion returns the first line of the output of a program, "" if it is not installed.
func ToolVersion(name string, args ...string) string {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// LoadAverage returns the load averages of 1, 5 and 15 minutes.
func LoadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(3, len(fields))], " ")
}
