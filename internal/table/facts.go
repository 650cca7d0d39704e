package table

import (
	"time"

	"github.com/google/uuid"

	"companyscore/scoring"
)

// ImportKind is what an import did.
type ImportKind string

// The kinds of imports.
const (
	ImportFile   ImportKind = "import" // layers of files
	RemoveOrigin ImportKind = "remove" // all layers of an origin were removed
)

// ImportState is how far an import is.
type ImportState string

// The states of an import. A committed one may be partly visible until it is done.
const (
	ImportCommitted ImportState = "committed"
	ImportDone      ImportState = "done"
	ImportFailed    ImportState = "failed" // nothing was changed
)

// FactsImport is one import of facts, or the removal of an origin.
type FactsImport struct {
	ID    string
	Kind  ImportKind
	State ImportState
	// Origins are those of the layers, sorted.
	Origins []string
	// Recipe is empty for files with the columns of an import.
	Recipe string
	// File has the names of the files, separated by spaces. Digest has the SHA-256 of each file in
	// hexadecimal, sorted and separated by spaces; it is empty if the import did not come from an inbox.
	File, Digest string
	StartedAt    time.Time
	// CommittedAt is when the layers were accepted, zero for a failed import. Records made before do not
	// use them.
	CommittedAt, FinishedAt time.Time
	// Rows is the number of rows read, Matched that of rows with a known company, Rejected that of the
	// others by reason.
	Rows, Matched uint64
	Rejected      map[string]uint64
	// Changed is the number of layers that were written or removed.
	Changed uint64
	Error   string
}

// NewImport returns an import that starts now.
func NewImport(kind ImportKind) FactsImport {
	return FactsImport{ID: uuid.Must(uuid.NewV7()).String(), Kind: kind, StartedAt: time.Now().UTC()}
}

// FactsChange is the layers of a company before and after an import.
type FactsChange struct {
	Domain        string
	Before, After []scoring.CompanyFacts
}

// Received is what a run of the inbox job did.
type Received struct {
	// Imports is the number of imports, Failed that of files with a new message.
	Imports, Failed uint64
	// Started is the number of runs started, Waiting that of companies whose runs the next run of the job starts.
	Started, Waiting uint64
}

// FactsOrigin is the extent of one origin of facts.
type FactsOrigin struct {
	Origin    string
	Companies uint64
	// Oldest and Newest are the first and last day for which its facts are valid.
	Oldest, Newest time.Time
	// ChangedAt is the time of the last import that changed it.
	ChangedAt time.Time
}
