package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// MachineMemory returns the memory of the machine or of the container in bytes, 0 if it is unknown, as on other systems than Linux.
func MachineMemory() uint64 {
	memory := uint64(0)
	if info, err := os.ReadFile("/proc/meminfo"); err == nil {
		memory, _ = kilobytes(info, "MemTotal:")
	}
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && memory > 0 { // else "max"
			memory = min(memory, limit)
		}
	}
	return memory
}

// Resident returns the bytes that this process has in memory, without those of files. Systems other than Linux do not tell them.
func Resident() (uint64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	anonymous, err := kilobytes(status, "RssAnon:")
	if err != nil {
		return 0, err
	}
	shared, err := kilobytes(status, "RssShmem:")
	return anonymous + shared, err
}

// kilobytes returns the value of a line such as "MemTotal: 1 kB", in bytes.
func kilobytes(text []byte, name string) (uint64, error) {
	_, rest, found := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(rest)
	if !found || len(fields) == 0 {
		return 0, fmt.Errorf("no line %s", name)
	}
	n, err := strconv.ParseUint(string(fields[0]), 10, 64)
	return n << 10, err
}
