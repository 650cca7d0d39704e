package bench

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"companyscore/bench/report"
)

// Environment returns the machine and the software of a bench run, as far as known. It takes a
// second to measure interruptions of the processors.
func Environment(command string, versions map[string]string) report.Environment {
	e := report.Environment{
		Command: command, Cores: runtime.NumCPU(), Go: runtime.Version(), CPU: runtime.GOARCH, Versions: make(map[string]string), LoadBefore: LoadAverage(), Stops: watchStops(stopsFor),
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
	if info, ok := debug.ReadBuildInfo(); ok {
		e.Commit = commitOf(info)
	}
	for name, version := range versions {
		e.Versions[name] = version
	}
	return e
}

// commitOf returns the commit from which a program was built.
func commitOf(info *debug.BuildInfo) string {
	commit, changed := "unknown", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = " and changes"
		}
	}
	return commit + changed
}

// ProcessVersion returns the version of a running process, "" if it is not readable.
func ProcessVersion(pid int) string {
	info, err := buildinfo.ReadFile(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return info.GoVersion + ", commit " + commitOf(info)
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
