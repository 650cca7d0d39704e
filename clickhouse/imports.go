package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"

	"companyscore/internal/table"
	"companyscore/scoring"
	"companyscore/sql"
)

var (
	factsStage        = sql.Query("facts_stage")
	factsCommit       = sql.Query("facts_commit")
	factsRemove       = sql.Query("facts_remove")
	factsWritten      = sql.Query("facts_written")
	factsUnstage      = sql.Query("facts_unstage")
	factsOrigins      = sql.Query("facts_origins")
	factsImportInsert = sql.Query("facts_import_insert")
	factsImportOpen   = sql.Query("facts_import_open")
	factsImportList   = sql.Query("facts_import_list")
	factsImportNewest = sql.Query("facts_import_newest")
	factsImportDone   = sql.Query("facts_import_done")
)

// importMax is the time limit of the statement that makes an import visible: of millions of layers it
// takes some seconds.
const importMax = 10 * time.Minute

// importRow is a row of facts_import.
type importRow struct {
	ID          string            `ch:"import_id"`
	Kind        string            `ch:"kind"`
	State       string            `ch:"state"`
	Origins     []string          `ch:"origins"`
	Recipe      string            `ch:"recipe"`
	File        string            `ch:"file"`
	Digest      string            `ch:"digest"`
	StartedAt   time.Time         `ch:"started_at"`
	CommittedAt time.Time         `ch:"committed_at"`
	FinishedAt  time.Time         `ch:"finished_at"`
	Rows        uint64            `ch:"rows_read"`
	Matched     uint64            `ch:"rows_matched"`
	Rejected    map[string]uint64 `ch:"rejected"`
	Changed     uint64            `ch:"layers_changed"`
	Error       string            `ch:"error"`
}

func importRowOf(i table.FactsImport) *importRow {
	return &importRow{
		ID: i.ID, Kind: string(i.Kind), State: string(i.State), Origins: i.Origins, Recipe: i.Recipe, File: i.File, Digest: i.Digest,
		StartedAt: i.StartedAt, CommittedAt: toColumn(i.CommittedAt), FinishedAt: toColumn(i.FinishedAt), Rows: i.Rows, Matched: i.Matched,
		Rejected: i.Rejected, Changed: i.Changed, Error: i.Error,
	}
}

func (r *importRow) entry() table.FactsImport {
	return table.FactsImport{
		ID: r.ID, Kind: table.ImportKind(r.Kind), State: table.ImportState(r.State), Origins: r.Origins, Recipe: r.Recipe, File: r.File,
		Digest: r.Digest, StartedAt: r.StartedAt.UTC(), CommittedAt: fromColumn(r.CommittedAt), FinishedAt: fromColumn(r.FinishedAt),
		Rows: r.Rows, Matched: r.Matched, Rejected: r.Rejected, Changed: r.Changed, Error: r.Error,
	}
}

// Stage keeps layers of an import aside and returns when they are durable. Nothing reads them before
// Commit.
func (f *Facts) Stage(ctx context.Context, importID string, layers []scoring.CompanyFacts) error {
	rows := make([]*factsRow, len(layers))
	for i := range layers {
		rows[i] = factsRowOf(&layers[i], importID)
	}
	return insert(ctx, f.db, factsStage, rows)
}

// Commit makes the staged layers of an import visible, or removes the only origin of a removal. It
// returns the import with its state. From the moment on at which the commit is stored the change is
// made in any case: if the process or the engine ends before it is complete, Recover completes it.
func (f *Facts) Commit(ctx context.Context, i table.FactsImport) (table.FactsImport, error) {
	i, err := f.noteCommitted(ctx, i)
	if err != nil {
		return i, err
	}
	return f.finish(ctx, i)
}

// noteCommitted stores that an import is committed. A record made before this instant did not use its
// facts, so the refresh job starts a run. A record made between this instant and the end of finish may
// have used them.
func (f *Facts) noteCommitted(ctx context.Context, i table.FactsImport) (table.FactsImport, error) {
	i.State, i.CommittedAt = table.ImportCommitted, time.Now().UTC().Truncate(time.Millisecond)
	return i, f.writeImport(ctx, i)
}

// finish copies the layers of a committed import.
func (f *Facts) finish(ctx context.Context, i table.FactsImport) (table.FactsImport, error) {
	ctx, cancel := context.WithTimeout(ctx, importMax)
	defer cancel()
	query, args := factsCommit, []any{ch.Named("import", i.ID), ch.Named("at_ms", i.CommittedAt.UnixMilli())}
	if i.Kind == table.RemoveOrigin {
		query, args = factsRemove, append(args, ch.Named("origin", i.Origins[0]))
	}
	if err := f.db.exec(ctx, query, args...); err != nil {
		return i, fmt.Errorf("finish import %s: %w", i.ID, err)
	}
	var written struct {
		Layers uint64 `ch:"layers"`
	}
	if _, err := f.db.first(ctx, &written, factsWritten, ch.Named("import", i.ID)); err != nil {
		return i, fmt.Errorf("count layers of import %s: %w", i.ID, err)
	}
	i.State, i.Changed, i.FinishedAt = table.ImportDone, written.Layers, time.Now().UTC()
	if err := f.writeImport(ctx, i); err != nil {
		return i, err
	}
	if i.Kind == table.RemoveOrigin {
		return i, nil
	}
	return i, f.unstage(ctx, i.ID)
}

// Discard drops the staged layers of an import that failed, and stores its cause.
func (f *Facts) Discard(ctx context.Context, i table.FactsImport, cause error) error {
	i.State, i.FinishedAt, i.Error = table.ImportFailed, time.Now().UTC(), cause.Error()
	if err := f.writeImport(ctx, i); err != nil {
		return err
	}
	return f.unstage(ctx, i.ID)
}

// Recover completes imports that were committed when a process ended.
func (f *Facts) Recover(ctx context.Context) error {
	var open []importRow
	if err := f.db.list(ctx, &open, factsImportOpen); err != nil {
		return fmt.Errorf("list open imports: %w", err)
	}
	for i := range open {
		if _, err := f.finish(ctx, open[i].entry()); err != nil {
			return err
		}
	}
	return nil
}

func (f *Facts) writeImport(ctx context.Context, i table.FactsImport) error {
	if err := insert(ctx, f.db, factsImportInsert, []*importRow{importRowOf(i)}); err != nil {
		return fmt.Errorf("write import %s: %w", i.ID, err)
	}
	return nil
}

func (f *Facts) unstage(ctx context.Context, importID string) error {
	if err := f.db.exec(ctx, factsUnstage, ch.Named("import", importID)); err != nil {
		return fmt.Errorf("drop staged rows of import %s: %w", importID, err)
	}
	return nil
}

// Imports returns the newest imports and removals, at most limit, the newest first.
func (f *Facts) Imports(ctx context.Context, limit int) ([]table.FactsImport, error) {
	var rows []importRow
	if err := f.db.list(ctx, &rows, factsImportList, ch.Named("limit", limit)); err != nil {
		return nil, fmt.Errorf("list imports: %w", err)
	}
	all := make([]table.FactsImport, len(rows))
	for i := range rows {
		all[i] = rows[i].entry()
	}
	return all, nil
}

// NewestImports returns the newest complete import of each recipe, and of each file and content that no recipe
// read, of those with a digest, the oldest first. Only Recipe, File (without a recipe) and Digest are set.
func (f *Facts) NewestImports(ctx context.Context) ([]table.FactsImport, error) {
	var rows []struct {
		Recipe string `ch:"recipe"`
		File   string `ch:"file"`
		Digest string `ch:"digest"`
	}
	if err := f.db.list(ctx, &rows, factsImportNewest); err != nil {
		return nil, fmt.Errorf("list the newest imports: %w", err)
	}
	all := make([]table.FactsImport, len(rows))
	for i, r := range rows {
		all[i] = table.FactsImport{Recipe: r.Recipe, File: r.File, Digest: r.Digest}
	}
	return all, nil
}

// ImportDone reports whether an import is complete. One that failed or never was is not.
func (f *Facts) ImportDone(ctx context.Context, importID string) (bool, error) {
	var row struct {
		Done uint64 `ch:"done"`
	}
	if _, err := f.db.first(ctx, &row, factsImportDone, ch.Named("import", importID)); err != nil {
		return false, fmt.Errorf("read import %s: %w", importID, err)
	}
	return row.Done > 0, nil
}

// Origins returns all origins of facts, the largest first.
func (f *Facts) Origins(ctx context.Context) ([]table.FactsOrigin, error) {
	var rows []struct {
		Origin    string    `ch:"origin"`
		Companies uint64    `ch:"companies"`
		Oldest    time.Time `ch:"oldest"`
		Newest    time.Time `ch:"newest"`
		ChangedAt time.Time `ch:"imported_at"`
	}
	if err := f.db.list(ctx, &rows, factsOrigins); err != nil {
		return nil, fmt.Errorf("list origins of facts: %w", err)
	}
	origins := make([]table.FactsOrigin, len(rows))
	for i, r := range rows {
		origins[i] = table.FactsOrigin{Origin: r.Origin, Companies: r.Companies, Oldest: r.Oldest.UTC(), Newest: r.Newest.UTC(),
			ChangedAt: r.ChangedAt.UTC()}
	}
	return origins, nil
}

// RemoveOrigin removes all layers of an origin. The error wraps scoring.ErrNotFound if there are none.
func (f *Facts) RemoveOrigin(ctx context.Context, origin string) (table.FactsImport, error) {
	origins, err := f.Origins(ctx)
	if err != nil {
		return table.FactsImport{}, err
	}
	if !slices.ContainsFunc(origins, func(o table.FactsOrigin) bool { return o.Origin == origin }) {
		return table.FactsImport{}, fmt.Errorf("origin %q: %w", origin, scoring.ErrNotFound)
	}
	removal := table.NewImport(table.RemoveOrigin)
	removal.Origins = []string{origin}
	return f.Commit(ctx, removal)
}
