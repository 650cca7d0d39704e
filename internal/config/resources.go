package config

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/spf13/pflag"
)

// HTTP bounds what clients may take of a server.
type HTTP struct {
	ReadTimeout  time.Duration // for a request to arrive whole, so that nobody holds a connection with half of one
	WriteTimeout time.Duration // for an answer to be taken
	IdleTimeout  time.Duration // between two requests of a connection
	// HeaderMax is the most bytes of a request line with its headers. Each connection
	// that was used within the last second has a buffer of this size.
	HeaderMax int
	// Connections is how many may be open at once; further ones are answered 503.
	// A busy one takes some 28 kB, another 6 kB.
	Connections int
	// PerAddress is the same for one address, answered 429; zero means no bound.
	// Behind a proxy all connections come from one address, so there is none at first.
	PerAddress int
}

// DefaultHTTP are the limits without flags.
func DefaultHTTP() HTTP {
	return HTTP{ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, HeaderMax: 16 << 10, Connections: 10_000}
}

// Flags adds the flags of h with their defaults.
func (h *HTTP) Flags(flags *pflag.FlagSet) {
	d := DefaultHTTP()
	flags.DurationVar(&h.ReadTimeout, "http-read-timeout", d.ReadTimeout, "time for a request to arrive")
	flags.DurationVar(&h.WriteTimeout, "http-write-timeout", d.WriteTimeout, "time for an answer to be taken")
	flags.DurationVar(&h.IdleTimeout, "http-idle-timeout", d.IdleTimeout, "time a connection may rest between requests; longer than that of a proxy in front")
	flags.IntVar(&h.HeaderMax, "http-header-max", d.HeaderMax, "most bytes of a request's headers")
	flags.IntVar(&h.Connections, "http-connections", d.Connections, "most connections at once")
	flags.IntVar(&h.PerAddress, "http-connections-per-address", d.PerAddress, "most connections of one address; 0 for no bound, as behind a proxy")
}

// Validate returns an error that names every limit that cannot be.
func (h HTTP) Validate() error {
	var faults []error
	for name, d := range map[string]time.Duration{"read": h.ReadTimeout, "write": h.WriteTimeout, "idle": h.IdleTimeout} {
		if d <= 0 {
			faults = append(faults, fmt.Errorf("--http-%s-timeout %s: it must be more than nothing", name, d))
		}
	}
	if h.HeaderMax < 4<<10 || h.HeaderMax > 1<<20 {
		faults = append(faults, fmt.Errorf("--http-header-max %d: use 4096 to 1048576 bytes", h.HeaderMax))
	}
	if h.Connections < 1 {
		faults = append(faults, fmt.Errorf("--http-connections %d: at least one is needed", h.Connections))
	}
	if h.PerAddress < 0 {
		faults = append(faults, fmt.Errorf("--http-connections-per-address %d: use 0 for no bound", h.PerAddress))
	}
	return errors.Join(faults...)
}

// Memory says how the Go runtime of a role treats memory. Go's own variables GOGC
// and GOMEMLIMIT win over both.
type Memory struct {
	// GCPercent is by how much the heap may grow between two collections. What a
	// role keeps is some ten megabytes, so that the usual 100 collects often for
	// little.
	GCPercent int
	// LimitMB is near which the runtime collects more often, whatever GCPercent
	// says. It is no bound, and does not count the scores of the cache, which are not
	// of the heap.
	LimitMB int
}

// Flags adds the flags of m with their defaults, of which that of LimitMB is the
// role's own.
func (m *Memory) Flags(flags *pflag.FlagSet, limitMB int) {
	flags.IntVar(&m.GCPercent, "gc-percent", 400, "growth of the heap between two garbage collections, unless GOGC says it")
	flags.IntVar(&m.LimitMB, "memory-limit-mb", limitMB, "size of the heap near which garbage is collected more often, unless GOMEMLIMIT says it")
}

// Validate returns an error that names every value that cannot be.
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

// Apply tells the runtime of this process.
func (m Memory) Apply() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(m.GCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(m.LimitMB) << 20)
	}
}
