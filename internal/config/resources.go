package config

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
)

// HTTP limits the resources of a server that clients may use.
type HTTP struct {
	ReadTimeout  time.Duration // for a request to arrive completely
	WriteTimeout time.Duration // for the client to read an answer
	IdleTimeout  time.Duration // between two requests of a connection
	// HeaderMax is the maximum size of a request line with its headers, in bytes. The default has
	// room for a thousand ids of jobs. Each connection that was used within the last second has a
	// buffer of up to 16 KiB, and one of this size after a larger head.
	HeaderMax int
	// Connections is the maximum number of open connections; further ones get 503.
	// A busy connection uses about 28 kB, an idle one 6 kB.
	Connections int
	// PerAddress is the maximum number per client address; further ones get 429. Zero
	// means no limit. It is the default, since behind a proxy all connections have one
	// address.
	PerAddress int
}

// DefaultHTTP returns the default limits.
func DefaultHTTP() HTTP {
	return HTTP{ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, HeaderMax: 40 << 10,
		Connections: 10_000}
}

// Flags adds the flags of h with their defaults.
func (h *HTTP) Flags(flags *pflag.FlagSet) {
	d := DefaultHTTP()
	flags.DurationVar(&h.ReadTimeout, "http-read-timeout", d.ReadTimeout, "timeout for receiving a request")
	flags.DurationVar(&h.WriteTimeout, "http-write-timeout", d.WriteTimeout, "timeout for sending an answer")
	flags.DurationVar(&h.IdleTimeout, "http-idle-timeout", d.IdleTimeout,
		"maximum idle time of a connection; use more than a proxy in front does")
	flags.IntVar(&h.HeaderMax, "http-header-max", d.HeaderMax, "maximum size of request headers in bytes")
	flags.IntVar(&h.Connections, "http-connections", d.Connections, "maximum number of connections")
	flags.IntVar(&h.PerAddress, "http-connections-per-address", d.PerAddress,
		"maximum number of connections per address; 0 for no limit, as behind a proxy")
}

// Validate returns an error that names each limit that is out of range.
func (h HTTP) Validate() error {
	var faults []error
	for name, d := range map[string]time.Duration{"read": h.ReadTimeout, "write": h.WriteTimeout, "idle": h.IdleTimeout} {
		if d <= 0 {
			faults = append(faults, fmt.Errorf("--http-%s-timeout %s: must be positive", name, d))
		}
	}
	if h.HeaderMax < 4<<10 || h.HeaderMax > 1<<20 {
		faults = append(faults, fmt.Errorf("--http-header-max %d: use 4096 to 1048576 bytes", h.HeaderMax))
	}
	if h.Connections < 1 {
		faults = append(faults, fmt.Errorf("--http-connections %d: must be at least 1", h.Connections))
	}
	if h.PerAddress < 0 {
		faults = append(faults, fmt.Errorf("--http-connections-per-address %d: use 0 for no limit", h.PerAddress))
	}
	return errors.Join(faults...)
}

// Memory sets the garbage collector of a role. The variables GOGC and GOMEMLIMIT take
// precedence.
type Memory struct {
	// GCPercent is the growth of the heap between two collections, in percent. The
	// live heap of a role is some ten megabytes, so Go's default of 100 collects often
	// and frees little.
	GCPercent int
	// LimitMB is the soft memory limit. Near it, the runtime collects more often than
	// GCPercent requires. It does not include the cached scores, which are outside
	// the heap.
	LimitMB int
}

// Flags adds the flags of m. limitMB is the default of LimitMB for the role.
func (m *Memory) Flags(flags *pflag.FlagSet, limitMB int) {
	flags.IntVar(&m.GCPercent, "gc-percent", 400, "heap growth in percent between garbage collections; GOGC takes precedence")
	flags.IntVar(&m.LimitMB, "memory-limit-mb", limitMB, "soft memory limit of the heap in MB; GOMEMLIMIT takes precedence")
}

// Validate returns an error that names each value that is out of range.
func (m Memory) Validate() error {
	var faults []error
	if m.GCPercent < 10 {
		faults = append(faults, fmt.Errorf("--gc-percent %d: use 10 or more", m.GCPercent))
	}
	if m.LimitMB < 64 {
		faults = append(faults, fmt.Errorf("--memory-limit-mb %d: use 64 or more", m.LimitMB))
	}
	return errors.Join(faults...)
}

// Apply sets the values in the runtime of this process.
func (m Memory) Apply() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(m.GCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(m.LimitMB) << 20)
	}
}
