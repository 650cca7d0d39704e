package recording

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"companyscore/internal/domainname"
	"companyscore/scoring/source/fetch"
)

// Recording is a recording that was read and checked. It is immutable.
type Recording struct {
	Manifest  Manifest
	Exchanges []Exchange
	// Found is what was found when it was recorded.
	Found []Found

	root *os.Root
}

// Close closes the directory of the recording.
func (r *Recording) Close() error { return r.root.Close() }

// bodyName matches the names of bodies.
var bodyName = regexp.MustCompile(`^` + bodiesDir + `/[0-9]{3,6}-[a-z]+\.[a-z]{3,4}$`)

// faultsMax bounds the faults that Open names.
const faultsMax = 20

// Open reads a recording. The error names every file that is missing, cut, changed, unknown or not
// valid. A recording can come from anyone: nothing outside of its directory is read.
func Open(dir string) (*Recording, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the recording: %w", err)
	}
	r := &Recording{root: root}
	if err := r.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("the recording %s cannot be used:\n%w", dir, err), root.Close())
	}
	return r, nil
}

func (r *Recording) read() error {
	text, err := r.readFile(manifestFile, textMaxBytes)
	if err != nil {
		return err
	}
	if err := decode(text, &r.Manifest); err != nil {
		return fmt.Errorf("%s: cut or not valid: %w", manifestFile, err)
	}
	if r.Manifest.Format != Format {
		return fmt.Errorf("%s: the format is %d, this program reads %d", manifestFile, r.Manifest.Format, Format)
	}
	if sum, err := r.Manifest.sum(); err != nil || sum != r.Manifest.Sum {
		return errors.Join(fmt.Errorf("%s: changed: it does not have its SHA-256", manifestFile), err)
	}
	if err := r.Manifest.check(); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if err := errors.Join(r.checkFiles()...); err != nil {
		return err
	}
	if text, err = r.readFile(observationsFile, textMaxBytes); err != nil {
		return err
	}
	if err := decode(text, &r.Found); err != nil {
		return fmt.Errorf("%s: %w", observationsFile, err)
	}
	if !slices.EqualFunc(r.Found, r.Manifest.Companies, func(f Found, c Company) bool { return f.Domain == c.Domain }) {
		return fmt.Errorf("%s: its companies are not those of %s", observationsFile, manifestFile)
	}
	if text, err = r.readFile(exchangesFile, textMaxBytes); err != nil {
		return err
	}
	return r.readExchanges(text)
}

// check checks what a manifest says.
func (m *Manifest) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if len(m.Companies) == 0 || len(m.Companies) > companiesMax {
		fault("%d companies, want 1 to %d", len(m.Companies), companiesMax)
	}
	for _, c := range m.Companies[:min(len(m.Companies), companiesMax)] {
		if clean, err := domainname.Parse(c.Domain); err != nil || clean != c.Domain {
			fault("%.100q is not a domain", c.Domain)
		}
	}
	for _, at := range append([]Company{{At: m.Began}}, m.Companies...) {
		if at.At.Year() < 2000 || at.At.Year() > 9000 {
			fault("the clock %s is not valid", at.At)
			break
		}
	}
	if len(m.Sources) == 0 || slices.ContainsFunc(m.Sources, func(s string) bool { return !isSource(s) }) {
		fault("unknown sources: %.200q", m.Sources)
	}
	if m.Resolvers < 1 || m.Resolvers > 100 {
		fault("%d resolvers", m.Resolvers)
	}
	var total int64
	seen := make(map[string]bool)
	for i, f := range m.Files {
		fixed := f.Path == exchangesFile || f.Path == observationsFile
		most := int64(bodyMaxBytes)
		if fixed {
			most = textMaxBytes
		}
		if !fixed && !bodyName.MatchString(f.Path) || seen[f.Path] {
			fault("%.100q is not the name of a file, or is named twice", f.Path)
		}
		seen[f.Path] = true
		if f.Bytes < 0 || f.Bytes > most {
			fault("%.100s: %d bytes, at most %d are read", f.Path, f.Bytes, most)
		}
		if total += f.Bytes; total > BytesMax+2*textMaxBytes || i >= exchangesMax+2 {
			fault("the files are larger or more than a recording can have")
		}
		if len(faults) > faultsMax {
			break
		}
	}
	return errors.Join(faults...)
}

func isSource(name string) bool {
	return slices.ContainsFunc(fetch.Policies, func(p fetch.Policy) bool { return p.Source == name })
}

// checkFiles compares the directory with the manifest.
func (r *Recording) checkFiles() (faults []error) {
	fault := func(format string, args ...any) bool {
		faults = append(faults, fmt.Errorf(format, args...))
		return len(faults) < faultsMax
	}
	known := map[string]bool{manifestFile: true, bodiesDir: true}
	for _, f := range append([]File{{Path: exchangesFile}, {Path: observationsFile}}, r.Manifest.Files...) {
		known[f.Path] = true
	}
	for _, name := range []string{exchangesFile, observationsFile} {
		if !slices.ContainsFunc(r.Manifest.Files, func(f File) bool { return f.Path == name }) {
			fault("%s: %s does not name it", name, manifestFile)
		}
	}
	stop := errors.New("enough")
	err := fs.WalkDir(r.root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == ".":
			return nil
		case !known[path]:
			if !fault("%.200q: unknown: the recording has no such file", path) {
				return stop
			}
			if entry.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil && err != stop {
		faults = append(faults, err)
	}
	for _, f := range r.Manifest.Files {
		if err := r.checkFile(f); err != nil && !fault("%w", err) {
			break
		}
	}
	return faults
}

// checkFile compares a file with the manifest.
func (r *Recording) checkFile(f File) error {
	info, err := r.root.Lstat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: missing", f.Path)
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: not a regular file", f.Path)
	case info.Size() < f.Bytes:
		return fmt.Errorf("%s: cut: it has %d of %d bytes", f.Path, info.Size(), f.Bytes)
	case info.Size() > f.Bytes:
		return fmt.Errorf("%s: changed: it has %d bytes, not %d", f.Path, info.Size(), f.Bytes)
	}
	file, err := r.root.Open(f.Path)
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.CopyN(sum, file, f.Bytes); err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	if hex.EncodeToString(sum.Sum(nil)) != f.Sum {
		return fmt.Errorf("%s: changed: it does not have its SHA-256", f.Path)
	}
	return nil
}

// readFile reads a regular file of the recording.
func (r *Recording) readFile(name string, most int64) ([]byte, error) {
	info, err := r.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: missing", name)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: not a regular file", name)
	case info.Size() > most:
		return nil, fmt.Errorf("%s: %d bytes, at most %d are read", name, info.Size(), most)
	}
	file, err := r.root.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, most))
}

// decode reads one JSON value without unknown members.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is more after the value")
	}
	return nil
}

// readExchanges reads and checks all exchanges.
func (r *Recording) readExchanges(text []byte) error {
	var faults []error
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, lineMaxBytes)
	left := make(map[string]bool) // bodies that no exchange has yet
	for _, f := range r.Manifest.Files {
		if strings.HasPrefix(f.Path, bodiesDir) {
			left[f.Path] = true
		}
	}
	for n := 1; lines.Scan(); n++ {
		var e Exchange
		err := decode(lines.Bytes(), &e)
		if err == nil {
			err = r.checkExchange(e, left)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: line %d: %w", exchangesFile, n, err))
		}
		if r.Exchanges = append(r.Exchanges, e); len(faults) >= faultsMax || n > exchangesMax {
			break
		}
	}
	if err := lines.Err(); err != nil {
		faults = append(faults, fmt.Errorf("%s: %w", exchangesFile, err))
	}
	for _, path := range slices.Sorted(maps.Keys(left)) {
		if left[path] && len(faults) < faultsMax {
			faults = append(faults, fmt.Errorf("%s: no exchange has it", path))
		}
	}
	return errors.Join(faults...)
}

// checkExchange checks that an exchange can be replayed. files has the bodies, true for those that
// no exchange has yet.
func (r *Recording) checkExchange(e Exchange, files map[string]bool) error {
	answers := 0
	for _, has := range []bool{e.HTTP != nil, e.DNS != nil, e.TLS != nil, e.Failure != nil} {
		if has {
			answers++
		}
	}
	kind := "DNS"
	if method, _, _ := strings.Cut(e.Request, " "); method == "GET" || method == "TLS" {
		kind = method
	}
	switch {
	case !slices.Contains(r.Manifest.Sources, e.Source):
		return fmt.Errorf("%s does not name the source %.50q", manifestFile, e.Source)
	case answers != 1:
		return errors.New("an exchange has one answer or failure")
	case e.Company != "" && !slices.ContainsFunc(r.Manifest.Companies, func(c Company) bool { return c.Domain == e.Company }):
		return fmt.Errorf("%s does not name the company %.100q", manifestFile, e.Company)
	case e.At < 0 || e.Took < 0:
		return errors.New("the times are not valid")
	case e.HTTP != nil && kind != "GET", e.DNS != nil && kind != "DNS", e.TLS != nil && kind != "TLS":
		return fmt.Errorf("the answer is not one to %.200q", e.Request)
	}
	file := ""
	switch {
	case e.DNS != nil:
		_, err := e.DNS.message()
		return err
	case e.TLS != nil:
		file = e.TLS.Chain
	case e.HTTP != nil:
		if err := e.HTTP.check(); err != nil || e.HTTP.Body == "" {
			return err
		}
		file = e.HTTP.Body
	case e.Failure != nil:
		return nil
	}
	if left, known := files[file]; !known || !left {
		return fmt.Errorf("%s does not name its file %.100q, or two exchanges have it", manifestFile, file)
	}
	files[file] = false
	if e.TLS != nil {
		_, err := r.handshake(e.TLS)
		return err
	}
	return nil
}

// check checks that an answer can be replayed.
func (h *HTTP) check() error {
	ends := []bodyEnd{endComplete, endCut, endLeft, endFailed}
	switch {
	case h.Status < 100 || h.Status > 999:
		return fmt.Errorf("the status %d is not valid", h.Status)
	case len(h.Header) > headerMaxValues:
		return fmt.Errorf("%d headers", len(h.Header))
	case !slices.Contains(ends, h.End), (h.End == endFailed) != (h.Failure != nil):
		return fmt.Errorf("the end %.50q of the body is not valid", h.End)
	}
	return nil
}

// message returns a DNS answer without its question.
func (d *DNS) message() (*dns.Msg, error) {
	m := new(dns.Msg)
	m.Response, m.RecursionAvailable, m.AuthenticatedData, m.Truncated = true, true, d.Authenticated, d.Truncated
	code, known := dns.StringToRcode[d.Rcode]
	if !known {
		return nil, fmt.Errorf("%.50q is no code of DNS", d.Rcode)
	}
	m.Rcode = code
	for _, section := range []struct {
		texts []string
		into  *[]dns.RR
	}{{d.Answer, &m.Answer}, {d.Authority, &m.Ns}} {
		for _, text := range section.texts {
			if strings.HasPrefix(strings.TrimSpace(text), "$") {
				return nil, fmt.Errorf("%.100q is no record of DNS", text)
			}
			rr, err := dns.NewRR(text)
			if err != nil || rr == nil {
				return nil, errors.Join(fmt.Errorf("%.100q is no record of DNS", text), err)
			}
			*section.into = append(*section.into, rr)
		}
	}
	return m, nil
}

// chainMaxBytes bounds a chain of certificates.
const chainMaxBytes = 1 << 20

// handshake returns a recorded handshake.
func (r *Recording) handshake(t *TLS) (fetch.Handshake, error) {
	shown := fetch.Handshake{Version: t.Version, Fault: t.Fault}
	text, err := r.readFile(t.Chain, chainMaxBytes)
	if err != nil {
		return shown, err
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return shown, fmt.Errorf("%s: %w", t.Chain, err)
		}
		shown.Chain = append(shown.Chain, cert)
	}
	if len(shown.Chain) == 0 {
		return shown, fmt.Errorf("%s: it has no certificate", t.Chain)
	}
	return shown, nil
}
