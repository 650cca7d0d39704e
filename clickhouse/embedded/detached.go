package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// detachedMax is the maximum number of lines that logDetached logs.
const detachedMax = 100

// logDetached logs the damaged parts that the engine detached at this start or an earlier one, newest first. Their rows are missing from
// the tables unless the source parts of a merge still exist. It does not log parts that a statement detached.
func (s *Server) logDetached() error {
	query := fmt.Sprintf("SELECT concat(database, '.', table) AS table, name, reason, path, toString(modification_time) AS at FROM "+
		"system.detached_parts "+
		"WHERE reason != '' ORDER BY modification_time DESC, name LIMIT %d", detachedMax)
	out, _, err := s.engine.control.query(query, "JSONEachRow", nil)
	if err != nil {
		return fmt.Errorf("list detached parts: %w", err)
	}
	for rows := json.NewDecoder(bytes.NewReader(out)); ; {
		var part struct{ Table, Name, Reason, Path, At string }
		switch err := rows.Decode(&part); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("list detached parts: %w", err)
		}
		s.cfg.Logger.Error("a damaged part was set aside, its rows may be missing from the table", "table", part.Table, "part", part.Name,
			"reason", part.Reason, "since", part.At, "path", part.Path,
			"remedy", "restore the missing rows from a backup, then move the directory in path away; see docs/operations.md")
	}
}
