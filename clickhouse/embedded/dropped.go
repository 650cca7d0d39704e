package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// droppedTable is the name of the file in which ClickHouse notes that a table was
// dropped and its files are to be removed: database, table and the table's UUID.
var droppedTable = regexp.MustCompile(`\.([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.sql$`)

// removeDropped removes the files of dropped tables, which a server does in the
// background and the library never. The directory must be locked and not open:
// a table is noted as dropped only after it can no longer be used.
func removeDropped(path string) error {
	notes := filepath.Join(path, "metadata_dropped")
	entries, err := os.ReadDir(notes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for dropped tables: %w", err)
	}
	var faults []error
	for _, entry := range entries {
		m := droppedTable.FindStringSubmatch(entry.Name())
		if m == nil {
			continue
		}
		err := os.RemoveAll(filepath.Join(path, "store", m[1][:3], m[1]))
		if err == nil { // the note last, so that a crash in between loses nothing
			err = os.Remove(filepath.Join(notes, entry.Name()))
		}
		faults = append(faults, err)
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("remove dropped tables: %w", err)
	}
	return nil
}
