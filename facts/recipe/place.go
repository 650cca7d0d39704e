package recipe

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode"
)

// placed is a file in the scratch directory.
type placed struct {
	path string // in the scratch directory
	name string // for people: the given path, and the member if that is an archive
	file File   // that it is
}

// Limits of the archives of one import.
const (
	unpackedMax = 64 << 30 // bytes
	// ratioMax limits the bytes of an archive's members over the bytes of the archive, above ratioFree. Texts reach 30.
	ratioMax   = 200
	ratioFree  = 64 << 20
	membersMax = 10_000
	nameMax    = 255 // bytes of a base name
)

// place puts the given files where the statement finds them: in the directory KEY/NNNN of the scratch directory, and the members of an
// archive in KEY/NNNN/ARCHIVE. NNNN is the position of the given file. Given files are linked, members are unpacked. A file that the
// recipe does not read, one that is missing and a wrong archive are errors.
func (s *scratch) place(ctx context.Context, r *Recipe, given []string) (all []placed, err error) {
	var infos []fs.FileInfo
	left := int64(unpackedMax)
	for i, name := range given {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", name)
		}
		if twice := slices.IndexFunc(infos, func(other fs.FileInfo) bool { return os.SameFile(info, other) }); twice >= 0 {
			return nil, fmt.Errorf("%s is given twice", name)
		}
		infos = append(infos, info)
		position := fmt.Sprintf("%04d", i)
		kind, err := kindOf(name)
		if err != nil {
			return nil, err
		}
		var more []placed
		if kind == "zip" {
			more, err = s.unpack(ctx, r, name, position, &left)
		} else {
			more, err = s.link(r, name, position)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	for _, f := range r.Files {
		if !slices.ContainsFunc(all, func(p placed) bool { return p.file.Key == f.Key }) {
			return nil, fmt.Errorf("no file %s is given: recipe %s reads it (%s)", f.Pattern, r.Name, r.Patterns())
		}
	}
	return all, nil
}

// link links a given file.
func (s *scratch) link(r *Recipe, name, position string) (all []placed, err error) {
	target, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	base := filepath.Base(target)
	if err := checkBase(base); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, f := range r.Files {
		if !f.matches(base) {
			continue
		}
		dir := filepath.Join(s.path, f.Key, position)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		p := placed{filepath.Join(dir, base), name, f}
		if err := os.Symlink(target, p.path); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if all == nil {
		return nil, fmt.Errorf("%s is no file of recipe %s, which reads %s", name, r.Name, r.Patterns())
	}
	return all, nil
}

// unpack unpacks the members of a zip archive that the recipe reads. left has the bytes that may still be unpacked.
func (s *scratch) unpack(ctx context.Context, r *Recipe, name, position string, left *int64) (all []placed, err error) {
	archive, err := zip.OpenReader(name)
	if err != nil {
		return nil, fmt.Errorf("%s: the archive is damaged or cut off: %w", name, err)
	}
	defer archive.Close()
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if len(archive.File) > membersMax {
		return nil, fmt.Errorf("%s has more than %d members", name, membersMax)
	}
	*left = min(*left, free(s.path))
	most := ratioFree + ratioMax*info.Size() // of this archive
	for _, member := range archive.File {
		if strings.HasSuffix(member.Name, "/") && member.UncompressedSize64 == 0 {
			continue
		}
		if err := checkMember(member); err != nil {
			return nil, fmt.Errorf("%s: member %q: %w", name, member.Name, err)
		}
		base := path.Base(member.Name)
		var first string // where the member is unpacked
		for _, f := range r.Files {
			if !f.matches(base) {
				continue
			}
			dir := filepath.Join(s.path, f.Key, position, filepath.Base(name))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, err
			}
			p := placed{filepath.Join(dir, base), name + "/" + member.Name, f}
			if _, err := os.Lstat(p.path); err == nil {
				return nil, fmt.Errorf("%s has two members %s", name, base)
			}
			if first != "" {
				err = os.Link(first, p.path)
			} else if size := member.UncompressedSize64; size > uint64(*left) {
				return nil, fmt.Errorf("%s: member %q has %d bytes, and %d may be unpacked in %s: set TMPDIR", name,
					member.Name, size, *left,
					s.path)
			} else if size > uint64(most) {
				return nil, fmt.Errorf("%s: its members are more than %d times as large as the archive", name, ratioMax)
			} else {
				first, err = p.path, unpackMember(ctx, member, p.path)
				*left, most = *left-int64(size), most-int64(size)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: member %q: %w", name, member.Name, err)
			}
			all = append(all, p)
		}
	}
	if all == nil {
		return nil, fmt.Errorf("%s has no file of recipe %s, which reads %s", name, r.Name, r.Patterns())
	}
	return all, nil
}

// free returns the bytes that may be unpacked in a directory: nine tenths of what is free.
func free(dir string) int64 {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return unpackedMax
	}
	return int64(disk.Bavail) * int64(disk.Bsize) / 10 * 9
}

// checkMember returns an error unless a member is a regular file with a plain name that is no archive.
func checkMember(member *zip.File) error {
	switch {
	case !filepath.IsLocal(member.Name) || strings.ContainsAny(member.Name, "\\:"):
		return errors.New("its name leads out of the archive")
	case !member.Mode().IsRegular():
		return errors.New("it is no regular file")
	case member.Flags&1 != 0:
		return errors.New("it is encrypted")
	case slices.Contains(archiveSuffixes, strings.ToLower(path.Ext(member.Name))):
		return errors.New("an archive in an archive is refused: unpack it first")
	}
	return checkBase(path.Base(member.Name))
}

func checkBase(base string) error {
	unreadable := func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }
	if len(base) > nameMax || strings.ContainsFunc(base, unreadable) {
		return errors.New("its name is too long or has control characters")
	}
	return nil
}

var errLies = errors.New("it has another size than the directory of the archive says")

// unpackMember writes a member to a new file.
func unpackMember(ctx context.Context, member *zip.File, to string) (err error) {
	from, err := member.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	in := bufio.NewReaderSize(from, 64<<10)
	if head, _ := in.Peek(magicMax); kindOfBytes(head) != "" {
		return errors.New("an archive in an archive is refused: unpack it first")
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	size := int64(member.UncompressedSize64)
	n, err := io.Copy(out, io.LimitReader(contextReader{ctx, in}, size+1))
	switch {
	case n > size, err == nil && n < size, errors.Is(err, zip.ErrFormat), errors.Is(err, io.ErrUnexpectedEOF):
		return errLies
	case errors.Is(err, zip.ErrChecksum):
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	return err
}

// contextReader is a reader that fails when its context has ended.
type contextReader struct {
	ctx context.Context
	io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if err := context.Cause(r.ctx); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// archiveSuffixes lists the suffixes of archives and compressed files.
var archiveSuffixes = []string{".zip", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".tar", ".lz4", ".br"}

// magics has the first bytes of archives and compressed files.
var magics = map[string]string{"PK\x03\x04": "zip", "PK\x05\x06": "zip", "\x1f\x8b": "gzip", "BZh": "bzip2", "\xfd7zXZ\x00": "xz",
	"\x28\xb5\x2f\xfd": "zstd", "7z\xbc\xaf\x27\x1c": "7z", "Rar!\x1a\x07": "rar"}

const magicMax = 8

// kindOf returns the kind of archive or compression of a file, "" for none.
func kindOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, magicMax)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", err
	}
	kind := kindOfBytes(head[:n])
	if suffix := map[string]string{"gzip": ".gz", "bzip2": ".bz2"}[kind]; kind != "" && kind != "zip" &&
		(suffix == "" || !strings.HasSuffix(name, suffix)) {
		return "", fmt.Errorf("%s is compressed (%s): a recipe reads .zip, .gz and .bz2", name, kind)
	}
	return kind, nil
}

func kindOfBytes(head []byte) string {
	for magic, kind := range magics {
		if bytes.HasPrefix(head, []byte(magic)) {
			return kind
		}
	}
	return ""
}
