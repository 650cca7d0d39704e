package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"companyscore/facts/recipe"
	"companyscore/internal/table"
)

// file is a file in the inbox at one look.
type file struct {
	path, name string
	size       int64
	modified   time.Time
	settled    bool   // size and time are those of the last look
	digest     string // SHA-256 in hexadecimal, empty until it is read
}

// folder is a directory of the inbox and the files in it that have no message, by name.
type folder struct {
	name  string
	files []file
}

// messageSuffix ends the name of the message beside a file.
const messageSuffix = ".error"

// Flag adds --inbox.
func Flag(flags *pflag.FlagSet, dir *string) {
	flags.StringVar(dir, "inbox", "", "directory whose new files the inbox job imports: DIR/RECIPE/FILE and DIR/import/FILE (default none)")
}

// Check returns an error unless dir is a directory.
func Check(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", dir)
	}
	if err != nil {
		return fmt.Errorf("--inbox: %w", err)
	}
	return nil
}

// look reads the directory. strays are entries that are neither a directory of a recipe nor import. The directory
// import comes first: its companies are those that recipes know.
func (in *Inbox) look(asIs bool) (folders []folder, strays []file, err error) {
	looks := map[string]file{}
	top, err := in.list(in.cfg.Dir, true, asIs, looks)
	if err != nil {
		return nil, nil, err
	}
	shipped := recipeNames()
	for _, entry := range top {
		info, err := os.Stat(entry.path)
		switch {
		case errors.Is(err, os.ErrNotExist): // removed since
		case err != nil:
			return nil, nil, err
		case info.IsDir() && (entry.name == plainDir || slices.Contains(shipped, entry.name)):
			files, err := in.list(entry.path, false, asIs, looks)
			if err != nil {
				return nil, nil, err
			}
			folders = append(folders, folder{entry.name, files})
		case entry.settled && !entry.refused():
			strays = append(strays, entry)
		}
	}
	slices.SortStableFunc(folders, func(a, b folder) int {
		switch plainDir {
		case a.name:
			return -1
		case b.name:
			return 1
		}
		return 0
	})
	in.looks = looks
	return folders, strays, nil
}

// list returns the entries of a directory that count, by name: regular files without a message, or with all
// everything. It adds them to looks.
func (in *Inbox) list(dir string, all, asIs bool, looks map[string]file) (files []file, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || slices.Contains([]string{".part", messageSuffix}, filepath.Ext(e.Name())) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read the inbox: %w", err)
		}
		if !all && !info.Mode().IsRegular() {
			continue
		}
		f := file{path: path, name: e.Name(), size: info.Size(), modified: info.ModTime(), settled: asIs}
		if last, ok := in.looks[path]; ok && f.same(last) {
			f.settled, f.digest = true, last.digest
		}
		looks[path] = f
		if all || !f.refused() {
			files = append(files, f)
		}
	}
	return files, nil
}

func (f file) same(other file) bool { return f.size == other.size && f.modified.Equal(other.modified) }

func recipeNames() (all []string) {
	for _, r := range recipe.Shipped() {
		all = append(all, r.Name)
	}
	return all
}

func byName(a, b file) int { return strings.Compare(a.name, b.name) }

func names(files []file) (all []string) {
	for _, f := range files {
		all = append(all, f.name)
	}
	return all
}

func paths(files []file) (all []string) {
	for _, f := range files {
		all = append(all, f.path)
	}
	return all
}

// digest returns the digest of a file. It is read once as long as size and time of the file stay. A file that cannot be read
// is refused.
func (in *Inbox) digest(ctx context.Context, f file, done *table.Received) (string, error) {
	if f.digest != "" {
		return f.digest, nil
	}
	digest, err := digestOf(ctx, f.path)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, os.ErrNotExist) {
			err = in.refuse(done, f, err)
		}
		return "", err
	}
	f.digest = digest
	in.looks[f.path] = f
	return digest, nil
}

func digestOf(ctx context.Context, path string) (string, error) {
	from, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer from.Close()
	sum, buffer := sha256.New(), make([]byte, 1<<20)
	for {
		n, err := from.Read(buffer)
		sum.Write(buffer[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err = errors.Join(err, context.Cause(ctx)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// refused reports whether the file has a message that is about it as it is. A message has the time of its file,
// so a file or a message that has changed since is none.
func (f file) refused() bool {
	info, err := os.Stat(f.path + messageSuffix)
	return err == nil && info.ModTime().Equal(f.modified)
}

// refuse writes a message beside a file and returns the fault with the path of the file.
func (in *Inbox) refuse(done *table.Received, f file, fault error) error {
	done.Failed++
	text := fault.Error()
	if !strings.HasPrefix(text, f.path) {
		text = f.path + ": " + text
	}
	if refused, ok := errors.AsType[*recipe.Refused](fault); ok {
		text += "\n" + strings.Join(refused.Faults, "\n")
	}
	text = strings.ReplaceAll(text, f.path, f.name)
	message := f.path + messageSuffix
	text += "\n\nCorrect or replace the file, or delete this message to have the file tried again.\n"
	err := os.WriteFile(message, []byte(text), 0o644)
	if err == nil {
		err = os.Chtimes(message, f.modified, f.modified)
	}
	if err != nil {
		err = fmt.Errorf("write a message in the inbox: %w", err)
	}
	if !strings.HasPrefix(fault.Error(), f.path) {
		fault = fmt.Errorf("%s: %w", f.path, fault)
	}
	return errors.Join(fault, err)
}

// accept removes the message of an earlier attempt.
func (f file) accept() error {
	if err := os.Remove(f.path + messageSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove a message in the inbox: %w", err)
	}
	return nil
}
