package config

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"companyscore/internal/process"
)

// ClickHouse configures the embedded ClickHouse.
type ClickHouse struct {
	AnalystSlots int           // statements of all analysts at once; 0 means 2 per CPU
	AnalystWait  time.Duration // of a statement of an analyst for a slot
	MemoryMB     int           // of its process; 0 means half of the machine's
}

// Flags adds the flags of c with their defaults.
func (c *ClickHouse) Flags(flags *pflag.FlagSet) {
	flags.IntVar(&c.AnalystSlots, "analyst-slots", 0, "statements of analysts that the embedded ClickHouse runs at once; 0 means 2 per CPU")
	flags.DurationVar(&c.AnalystWait, "analyst-wait", time.Minute, "how long a statement of an analyst waits for a slot")
	flags.IntVar(&c.MemoryMB, "clickhouse-memory", 0,
		"MB of memory above which the process of the embedded ClickHouse is ended and starts again; 0 means half of the machine's")
}

// Validate returns an error that names every flag that is wrong.
func (c *ClickHouse) Validate() error {
	var faults []error
	if c.AnalystSlots < 0 {
		faults = append(faults, fmt.Errorf("--analyst-slots %d: give 0 or more", c.AnalystSlots))
	}
	if c.AnalystWait <= 0 {
		faults = append(faults, fmt.Errorf("--analyst-wait %s: give more than 0", c.AnalystWait))
	}
	if c.MemoryMB < 0 {
		faults = append(faults, fmt.Errorf("--clickhouse-memory %d: give 0 or more", c.MemoryMB))
	} else if err := CheckClickHouseMemory(uint64(c.MemoryMB) << 20); err != nil {
		faults = append(faults, fmt.Errorf("--clickhouse-memory %d: %w", c.MemoryMB, err))
	}
	return errors.Join(faults...)
}

// Args returns the arguments that give a child process the same configuration.
func (c *ClickHouse) Args() []string {
	return []string{"--analyst-slots", strconv.Itoa(c.AnalystSlots), "--analyst-wait", c.AnalystWait.String(), "--clickhouse-memory",
		strconv.Itoa(c.MemoryMB)}
}

// ClickHouseMemoryMin is the least memory that the process of the embedded ClickHouse may be limited to, in bytes.
const ClickHouseMemoryMin = 512 << 20

// CheckClickHouseMemory returns an error if the process of the embedded ClickHouse cannot be limited to bytes. 0 means the default.
func CheckClickHouseMemory(bytes uint64) error {
	machine := process.MachineMemory()
	switch {
	case bytes == 0:
	case bytes < ClickHouseMemoryMin:
		return fmt.Errorf("the embedded ClickHouse needs more memory: give at least %d MB, or 0 for half of the machine's",
			ClickHouseMemoryMin>>20)
	case machine > 0 && bytes > machine:
		return fmt.Errorf("the machine has only %d MB of memory", machine>>20)
	}
	return nil
}

// AnalystPasswordPath returns the file with the password of the user analyst in a data directory.
func AnalystPasswordPath(data string) string { return filepath.Join(data, "analyst-password") }

// AnalystPassword returns the password of the user analyst of a data directory. It creates the file, which only its owner may read, if it
// is missing or empty; remove it to get a new password at the next start.
func AnalystPassword(data string) (string, error) {
	path := AnalystPasswordPath(data)
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the analyst's password: %w", err)
	}
	if password := strings.TrimSpace(string(text)); password != "" {
		return password, nil
	}
	password := rand.Text()
	if err := ReplaceFile(path, []byte(password+"\n")); err != nil {
		return "", fmt.Errorf("write the analyst's password: %w", err)
	}
	return password, nil
}
