package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"
)

// removeDropped deletes the files of dropped tables. ClickHouse does that with a task in the background, which the library never starts.
// The engine must not be open.
func removeDropped(path string) error {
	notes, err := filepath.Glob(filepath.Join(path, "metadata_dropped", "*.sql")) // database.table.uuid.sql
	if err != nil {
		return err
	}
	for _, note := range notes {
		fields := strings.Split(strings.TrimSuffix(filepath.Base(note), ".sql"), ".")
		id, err := uuid.Parse(fields[len(fields)-1])
		if err != nil {
			continue // not written by this version: leave it alone
		}
		data := filepath.Join(path, "store", id.String()[:3], id.String())
		// The note goes last, so that a crash in between only repeats this.
		if err := errors.Join(makeWritable(data), os.RemoveAll(data)); err != nil {
			return fmt.Errorf("remove dropped table %s: %w", filepath.Base(note), err)
		}
		if err := os.Remove(note); err != nil {
			return fmt.Errorf("remove dropped table: %w", err)
		}
	}
	return nil
}

// makeWritable undoes the read-only mode the engine gives to the top directory of a dropped table.
func makeWritable(dir string) error {
	err := os.Chmod(dir, 0o700)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
