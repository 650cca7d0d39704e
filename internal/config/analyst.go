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
)

// Analysts configures how many statements of analysts the embedded ClickHouse runs.
type Analysts struct {
	Slots int           // at once, of all analysts; 0 means 2 per CPU
	Wait  time.Duration // of a statement for a slot
}

// Flags adds the flags of a with their defaults.
func (a *Analysts) Flags(flags *pflag.FlagSet) {
	flags.IntVar(&a.Slots, "analyst-slots", 0, "statements of analysts that the embedded ClickHouse runs at once; 0 means 2 per CPU")
	flags.DurationVar(&a.Wait, "analyst-wait", time.Minute, "how long a statement of an analyst waits for a slot")
}

// Validate returns an error that names every flag that is wrong.
func (a *Analysts) Validate() error {
	var faults []error
	if a.Slots < 0 {
		faults = append(faults, fmt.Errorf("--analyst-slots %d: give 0 or more", a.Slots))
	}
	if a.Wait <= 0 {
		faults = append(faults, fmt.Errorf("--analyst-wait %s: give more than 0", a.Wait))
	}
	return errors.Join(faults...)
}

// Args returns the arguments that give a child process the same configuration.
func (a *Analysts) Args() []string {
	return []string{"--analyst-slots", strconv.Itoa(a.Slots), "--analyst-wait", a.Wait.String()}
}

// AnalystPasswordPath returns the file with the password of the user analyst in a data directory.
func AnalystPasswordPath(data string) string { return filepath.Join(data, "analyst-password") }

// AnalystPassword returns the password of the user analyst of a data directory. It creates the file, which only its owner may read, if it is missing or
// empty; remove it to get a new password at the next start.
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
