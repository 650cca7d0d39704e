package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// droppedTable matches the name of the file that ClickHouse writes for a dropped table:
// database, table and UUID of the table.
var droppedTable = regexp.MustCompile(`\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.sql$`)

// removeDropped removes the files of dropped tables. A ClickHouse server does this in the
// background, the library never does. The caller holds the lock of the directory, and the
// engine must not be open.
func removeDropped(path string) error {
	notes := filepath.Join(path, "metadata_dropped")
	entries, err := os.ReadDir(notes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list dropped tables: %w", err)
	}
	var faults []error
	for _, entry := range entries {
		m := droppedTable.FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		err := os.RemoveAll(filepath.Join(path, "store", m[1][:3], m[1]))
		if err == nil { // the note last, so that the next start continues after a crash
			err = os.Remove(filepath.Join(notes, entry.Name()))
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("remove dropped tables: %w", err)
	}
	return nil
}
