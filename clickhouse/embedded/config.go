package embedded

import (
	"errors"
	"log/slog"
	"net"
	"path/filepath"
	"runtime"
	"time"

	"companyscore/internal/config"
	"companyscore/internal/process"
	"companyscore/sql"
)

// Config configures the engine, its users and its limits.
type Config struct {
	Library         string        // path of libchdb; "" means Find()
	Path            string        // data directory, created if missing; one process at a time may have it open
	Database        string        // public database, the only one that analysts may read; "" means sql.Public
	User            string        // name of the service's user; "" means "companyscore"
	Password        string        // password of User, required
	AnalystPassword string        // password of the read-only user "analyst"; "" disables that user, not those of the roster
	Connections     int           // maximum concurrent statements of User; 0 means 2 per CPU, at least 4
	QueueWait       time.Duration // maximum wait of a statement for a connection; 0 means 10 s
	AnalystSlots    int           // maximum concurrent statements of all analysts; 0 means 2 per CPU
	AnalystWait     time.Duration // maximum wait of an analyst's statement for a slot; 0 means 1 min
	MaxInsert       int64         // maximum bytes of data of one INSERT; 0 means 4 GiB
	Memory          uint64        // bytes of memory of the process, at least 512 MiB, on Linux only; 0 means half of the machine's
	Idle            time.Duration // timeout of one read from or write to a client; 0 means 5 min
	Logger          *slog.Logger  // nil means slog.Default()
	Listener        net.Listener  // listener that Run serves and closes
	Ready           func()        // called by Run after it began to serve; may be nil

	// End ends the process, because the engine does not: reason says why. Run sets it; with nil nothing watches the engine.
	End func(reason string)

	allowed string // what analysts may name; "" means allowed.txt
}

// Validate returns an error that names every invalid field of c.
func (c Config) Validate() error {
	var faults []error
	fault := func(wrong bool, text string) {
		if wrong {
			faults = append(faults, errors.New(text))
		}
	}
	fault(c.Path == "", "Path is empty: name the data directory")
	fault(c.Password == "", "Password is empty")
	fault(c.User == analyst, `User is "analyst", which is the name of the read-only user`)
	fault(c.Connections < 0, "Connections is negative")
	fault(c.QueueWait < 0, "QueueWait is negative")
	fault(c.AnalystSlots < 0, "AnalystSlots is negative")
	fault(c.AnalystWait < 0, "AnalystWait is negative")
	fault(c.MaxInsert < 0, "MaxInsert is negative")
	fault(c.Idle < 0, "Idle is negative")
	return errors.Join(append(faults, config.CheckClickHouseMemory(c.Memory))...)
}

func (c *Config) setDefaults() (err error) {
	if c.Library == "" {
		if c.Library, err = Find(); err != nil {
			return err
		}
	}
	if c.Database == "" {
		c.Database = sql.Public
	}
	if c.User == "" {
		c.User = "companyscore"
	}
	if c.Connections == 0 {
		c.Connections = max(4, 2*runtime.NumCPU())
	}
	if c.QueueWait == 0 {
		c.QueueWait = 10 * time.Second
	}
	if c.AnalystSlots == 0 {
		c.AnalystSlots = 2 * runtime.NumCPU()
	}
	if c.AnalystWait == 0 {
		c.AnalystWait = time.Minute
	}
	if c.MaxInsert == 0 {
		c.MaxInsert = 4 << 30
	}
	if c.Memory == 0 {
		if machine := process.MachineMemory(); machine > 0 {
			c.Memory = max(config.ClickHouseMemoryMin, machine/2)
		}
	}
	if c.Idle == 0 {
		c.Idle = 5 * time.Minute
	}
	if c.allowed == "" {
		c.allowed = allowedText
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Path, err = filepath.Abs(c.Path)
	return err
}
