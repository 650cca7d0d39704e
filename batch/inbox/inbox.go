// Package inbox imports the files in a directory, each content once, and starts runs for the companies whose facts that
// count it changed.
//
//   - inbox.go goes through the directory and imports what is new.
//   - files.go says which files count, and writes the message about a bad file.
//   - changes.go compares the facts that count, and starts the runs.
package inbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"companyscore/facts"
	"companyscore/facts/recipe"
	"companyscore/internal/queue"
	"companyscore/internal/table"
	"companyscore/scoring"
)

// Store stores facts and imports.
type Store interface {
	facts.Store
	recipe.Identifiers
	// NewestImports returns the newest complete import of each recipe, and of each file and content that no
	// recipe read, of those with a digest, the oldest first.
	NewestImports(ctx context.Context) ([]table.FactsImport, error)
	// ImportDone reports whether an import is complete.
	ImportDone(ctx context.Context, importID string) (bool, error)
	// StagedChanges calls page with the companies whose layers a staged import will change, by domain.
	StagedChanges(ctx context.Context, importID string, page func([]table.FactsChange) error) error
}

// Config configures an inbox. All fields but Trust are required.
type Config struct {
	// Dir is the directory. It has a directory for each recipe, with its name, and the directory import for files
	// with the columns of an import. The process writes messages into it.
	Dir    string
	Store  Store
	Queue  *queue.Queue
	Redis  goredis.UniversalClient
	Engine recipe.Engine
	Logger *slog.Logger
	// Trust is that of scoring.Preference.
	Trust []string
}

// Inbox is a directory of new files.
type Inbox struct {
	cfg   Config
	mu    sync.Mutex // one Run at a time
	looks map[string]file
}

// New returns the inbox of a directory.
func New(cfg Config) *Inbox { return &Inbox{cfg: cfg} }

// plainDir is the directory of files with the columns of an import.
const plainDir = "import"

// Run completes imports that were interrupted, imports what is new and starts runs for the companies whose facts that
// count have changed. A file counts if its size and time are those of the last Run, or with asIs. A file that
// cannot be imported gets a message in its directory, and the others go on; the error names all of them. Two
// processes must not call Run at the same time.
func (in *Inbox) Run(ctx context.Context, asIs bool) (done table.Received, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.cfg.Store.Recover(ctx); err != nil {
		return done, err
	}
	if err := in.startRuns(ctx, &done); err != nil {
		return done, err
	}
	known, err := in.cfg.Store.NewestImports(ctx)
	if err != nil {
		return done, err
	}
	folders, strays, err := in.look(asIs)
	if err != nil {
		return done, err
	}
	var faults []error
	for _, s := range strays {
		faults = append(faults, in.refuse(&done, s, fmt.Errorf("put files into %s or a directory with the name of a recipe: %s",
			filepath.Join(in.cfg.Dir, plainDir), strings.Join(recipeNames(), ", "))))
	}
	for _, f := range folders {
		if f.name == plainDir {
			err = in.receivePlain(ctx, f, known, &done)
		} else {
			err = in.receiveRecipe(ctx, f, known, &done)
		}
		if faults = append(faults, err); ctx.Err() != nil {
			break
		}
	}
	return done, errors.Join(faults...)
}

// receivePlain imports the new files with the columns of an import, each on its own.
func (in *Inbox) receivePlain(ctx context.Context, from folder, known []table.FactsImport, done *table.Received) error {
	var faults []error
	for _, f := range from.files {
		if !f.settled {
			continue
		}
		digest, err := in.digest(ctx, f, done)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if plainKnown(known, f.name, digest) {
			continue
		}
		var report facts.Report
		fault, err := in.attempt(ctx, []file{f}, "", digest, func(store *watched, opt facts.Options) (err error) {
			report, err = facts.Import(ctx, store, f.path, opt)
			if err == nil && report.Imported == 0 {
				err = fmt.Errorf("none of %d rows can be imported%s", report.Rows, listed(report))
			}
			return err
		})
		switch {
		case err != nil:
			faults = append(faults, err)
		case fault != nil:
			faults = append(faults, in.refuse(done, f, fault))
		case len(report.Faults) > 0:
			faults = append(faults, in.refuse(done, f, fmt.Errorf("imported are %d of %d rows%s", report.Imported, report.Rows,
				listed(report))))
		default:
			faults = append(faults, f.accept())
		}
		if ctx.Err() != nil {
			break
		}
		if err == nil && fault == nil {
			known = append(known, table.FactsImport{File: f.name, Digest: digest})
			in.imported(done, plainDir, []file{f}, report.Imported, report.Changed)
			faults = append(faults, in.startRuns(ctx, done))
		}
	}
	return errors.Join(faults...)
}

// plainKnown reports whether the newest import of a name had this content, or any import if the name was never
// imported.
func plainKnown(known []table.FactsImport, name, digest string) bool {
	same := false
	for _, i := range slices.Backward(known) {
		if i.Recipe == "" && i.File == name {
			return i.Digest == digest
		}
		same = same || i.Recipe == "" && i.Digest == digest
	}
	return same
}

// listed returns the invalid rows as lines.
func listed(report facts.Report) string {
	text := ""
	for _, f := range report.Faults {
		text += "\n" + f.Error()
	}
	if report.FaultsOmitted > 0 {
		text += fmt.Sprintf("\nand %d more", report.FaultsOmitted)
	}
	return text
}

// receiveRecipe runs a recipe over all files of its directory if one has content that the last import of the recipe did
// not have. It waits until all files have settled, since a recipe makes growth from several of them. Files
// that are at fault are left out, and the others are imported without them.
func (in *Inbox) receiveRecipe(ctx context.Context, from folder, known []table.FactsImport, done *table.Received) error {
	if slices.ContainsFunc(from.files, func(f file) bool { return !f.settled }) {
		return nil
	}
	r, err := recipe.Load(from.name)
	if err != nil {
		return err
	}
	var before []string
	for _, i := range known {
		if i.Recipe == from.name {
			before = strings.Fields(i.Digest)
		}
	}
	digests := map[string]file{} // one file of each content
	var faults []error
	for _, f := range from.files {
		digest, err := in.digest(ctx, f, done)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		if _, twice := digests[digest]; !twice {
			digests[digest] = f
		}
	}
	for ctx.Err() == nil {
		var all, fresh []file
		var content []string
		for digest, f := range digests {
			content, all = append(content, digest), append(all, f)
			if !slices.Contains(before, digest) {
				fresh = append(fresh, f)
			}
		}
		if len(fresh) == 0 {
			break
		}
		slices.SortFunc(all, byName)
		slices.Sort(content)
		var report recipe.Report
		fault, err := in.attempt(ctx, all, from.name, strings.Join(content, " "), func(store *watched, opt facts.Options) (err error) {
			cfg := recipe.Config{Recipe: r, Files: paths(all), Identifiers: store, Engine: in.cfg.Engine}
			report, err = recipe.Import(ctx, store, cfg, opt)
			if err == nil && report.Matched == 0 {
				err = fmt.Errorf("no row is about a company that the service knows: import companies first\n%s", report)
			}
			return err
		})
		if err != nil {
			return errors.Join(append(faults, err)...)
		}
		if fault == nil {
			for _, f := range all {
				faults = append(faults, f.accept())
			}
			in.imported(done, from.name, all, report.Matched, report.Changed)
			faults = append(faults, in.startRuns(ctx, done))
			break
		}
		for _, f := range atFault(fault, all, fresh) {
			faults = append(faults, in.refuse(done, f, fault))
			for digest, other := range digests {
				if other.path == f.path {
					delete(digests, digest)
				}
			}
		}
	}
	return errors.Join(faults...)
}

// atFault returns the only file that an error names, or all new ones if it names none or several.
func atFault(fault error, all, fresh []file) []file {
	var named []file
	for _, f := range all {
		if strings.Contains(fault.Error(), f.path) {
			named = append(named, f)
		}
	}
	// The path of a.csv is in that of a.csv.gz.
	named = slices.DeleteFunc(slices.Clone(named), func(f file) bool {
		return slices.ContainsFunc(named, func(other file) bool { return other.path != f.path && strings.HasPrefix(other.path, f.path) })
	})
	if len(named) == 1 {
		return named
	}
	return fresh
}

// attempt runs one import of files. fault is what is wrong with them; err is anything else, after which the next
// run tries again.
func (in *Inbox) attempt(ctx context.Context, files []file, recipeName, digest string,
	run func(store *watched, opt facts.Options) error) (fault, err error) {
	store := &watched{Store: in.cfg.Store}
	opt := facts.Options{Recipe: recipeName, Digest: digest, Staged: func(ctx context.Context, importID string) error {
		return store.note(in.noteChanges(ctx, importID))
	}}
	failed := table.NewImport(table.ImportFile)
	fault = run(store, opt)
	switch {
	case fault == nil:
		return nil, nil
	case store.failed || ctx.Err() != nil:
		return nil, fault
	case !store.discarded:
		failed.File, failed.Recipe, failed.Digest = strings.Join(names(files), " "), recipeName, digest
		err = in.cfg.Store.Discard(ctx, failed, fault)
	}
	return fault, err
}

// imported counts and logs an import.
func (in *Inbox) imported(done *table.Received, folder string, files []file, companies, changed int) {
	done.Imports++
	in.cfg.Logger.Info("imported from the inbox", "directory", folder, "files", names(files), "companies", companies, "changed", changed)
}

// watched is a store that notes whether one of its calls failed: then the files of an import are not at fault.
type watched struct {
	Store
	failed    bool
	discarded bool // an import with its cause is stored
}

func (w *watched) note(err error) error {
	w.failed = w.failed || err != nil
	return err
}

func (w *watched) Stage(ctx context.Context, importID string, layers []scoring.CompanyFacts) error {
	return w.note(w.Store.Stage(ctx, importID, layers))
}

func (w *watched) Commit(ctx context.Context, i table.FactsImport) (table.FactsImport, error) {
	i, err := w.Store.Commit(ctx, i)
	return i, w.note(err)
}

func (w *watched) Discard(ctx context.Context, i table.FactsImport, cause error) error {
	w.discarded = true
	return w.note(w.Store.Discard(ctx, i, cause))
}

func (w *watched) Recover(ctx context.Context) error { return w.note(w.Store.Recover(ctx)) }

func (w *watched) Identifiers(ctx context.Context, each func(domain, kind, value string) error) error {
	return w.note(w.Store.Identifiers(ctx, each))
}
