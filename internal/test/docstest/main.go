// Command docstest runs the commands and code of the documents, and compares the output that they
// show. Each page has a directory with the tracked files of the repository, a shell and an `up` of
// its own on free ports of loopback, with facts as the only source. Its blocks run in their order.
//
//	sh, bash      a script; every command must succeed
//	console       lines that begin with "$ " are commands; the lines below are their output
//	go            a program, or a part of one: all parts of a page are one main function
//	sql           a statement of the analyst
//	python        a program
//	json, yaml    data, which must be valid
//	text, mermaid not code
//
// In the blocks 127.0.0.1:8080 is the API and 127.0.0.1:8123 ClickHouse, `svc_live_...` and
// `svc_test_...` are the keys of the demo account. A block that starts an `up` replaces the one of
// the page.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gopkg.in/yaml.v3"
)

// blockTimeout bounds a block, and the start of an `up`.
const blockTimeout = 2 * time.Minute

// The addresses that documents name.
const (
	shownAPI        = "127.0.0.1:8080"
	shownClickHouse = "127.0.0.1:8123"
)

func main() {
	// Children end with the thread that started them.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "docs-test:", err)
		os.Exit(1)
	}
}

// count has the number of blocks by what became of them.
type count struct{ blocks, ran, data, text, failed, skipped int }

func run(ctx context.Context, pages []string) error {
	if len(pages) == 0 {
		var err error
		if pages, err = documents(); err != nil {
			return err
		}
	}
	tracked, err := exec.CommandContext(ctx, "git", "ls-files", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	dir, err := os.MkdirTemp("", "docs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var all count
	var reasons []string
	for i, name := range pages {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		blocks, err := parse(string(text))
		if err != nil {
			return fmt.Errorf("%s:%w", name, err)
		}
		p := &page{name: name, dir: filepath.Join(dir, fmt.Sprint(i)), files: strings.Fields(string(tracked))}
		c := p.run(ctx, blocks)
		p.close()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		all = count{all.blocks + c.blocks, all.ran + c.ran, all.data + c.data, all.text + c.text, all.failed + c.failed,
			all.skipped + c.skipped}
		reasons = append(reasons, p.reasons...)
		if c.blocks > 0 {
			fmt.Printf("%-32s %2d blocks, %2d ran\n", name, c.blocks, c.ran)
		}
	}
	fmt.Printf("\n%d blocks in %d pages: %d ran, %d are data and valid, %d are text or diagrams, %d cannot run here\n",
		all.blocks, len(pages), all.ran, all.data, all.text, len(reasons))
	for _, reason := range reasons {
		fmt.Println("  " + reason)
	}
	if all.failed+all.skipped > 0 {
		return fmt.Errorf("blocks that failed: %d; not tried after them: %d", all.failed, all.skipped)
	}
	return nil
}

// documents returns the paths of the pages: README.md and all below docs.
func documents() ([]string, error) {
	pages := []string{"README.md"}
	err := filepath.WalkDir("docs", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".md" {
			pages = append(pages, path)
		}
		return err
	})
	return pages, err
}

// page runs the blocks of a page.
type page struct {
	name  string
	dir   string   // of its files
	files []string // of the repository
	// reasons has a line for each block that cannot run here.
	reasons []string

	api, clickhouse string // addresses
	keys            struct {
		Live string `json:"live_key"`
		Test string `json:"test_key"`
	}
	shell   *shell
	service *service
}

func (p *page) work() string { return filepath.Join(p.dir, "r") }

// run runs the blocks up to the first that fails.
func (p *page) run(ctx context.Context, blocks []block) (c count) {
	for i, b := range blocks {
		if b.setup {
			if err := p.try(ctx, b, blocks[:i]); err != nil {
				p.report(&c, b, err)
				break
			}
			continue
		}
		c.blocks++
		reason := b.reason
		if b.lang == "python" && reason == "" {
			if _, err := os.Stat(python); err != nil {
				reason = "no " + python
			}
		}
		switch {
		case c.failed > 0:
			c.skipped++
		case b.lang == "text", b.lang == "mermaid":
			c.text++
		case reason != "":
			p.reasons = append(p.reasons, fmt.Sprintf("%s:%d: %s", p.name, b.line, reason))
		case b.lang == "json", b.lang == "yaml":
			if err := valid(b); err != nil {
				p.report(&c, b, err)
				continue
			}
			c.data++
		case b.lang == "go" && !isProgram(b) && slices.ContainsFunc(blocks[i+1:], isPart):
			c.ran++ // with the last part
		default:
			if err := p.try(ctx, b, blocks[:i]); err != nil {
				p.report(&c, b, err)
				continue
			}
			c.ran++
		}
	}
	return c
}

func (p *page) report(c *count, b block, err error) {
	c.failed++
	var at *lineError
	if errors.As(err, &at) {
		b.line = at.line
	}
	fmt.Printf("%s:%d: %v\n", p.name, b.line, err)
}

// lineError is a failure of one line of a block.
type lineError struct {
	line int
	text string
}

func (e *lineError) Error() string { return e.text }

// python is that of the distribution. Documents use its standard library only.
const python = "/usr/bin/python3"

// startsUp matches the commands that start an `up` in the foreground.
var startsUp = regexp.MustCompile(`^(make run|(bin/)?companyscore up)\b`)

// dataFlag is the flag of `up` for the data directory.
var dataFlag = regexp.MustCompile(`--data (\S+)`)

// try runs a block, after those before it.
func (p *page) try(ctx context.Context, b block, before []block) error {
	ctx, cancel := context.WithTimeout(ctx, blockTimeout)
	defer cancel()
	if p.shell == nil {
		if err := p.open(); err != nil {
			return err
		}
	}
	if script := strings.TrimPrefix(b.text, "$ "); startsUp.MatchString(script) {
		return p.startShown(ctx, b, script)
	}
	if p.service == nil {
		if err := p.start(ctx, "companyscore up"); err != nil {
			return err
		}
	}
	switch b.lang {
	case "console":
		all, err := commands(b)
		if err != nil {
			return err
		}
		for i, c := range all {
			output, status, err := p.shell.run(ctx, p.actual(c.text))
			if err != nil {
				return &lineError{c.line, fmt.Sprintf("%v\n%s", err, output)}
			}
			output = p.shown(output)
			if last := i == len(all)-1; (status != 0) != (b.fails && last) && !(b.mayFail && last) {
				return &lineError{c.line, fmt.Sprintf("exit status %d\n%s", status, output)}
			}
			if difference := compare(c.want, output); difference != "" {
				return &lineError{c.line, difference}
			}
		}
		return nil
	case "sh", "bash":
		return p.script(ctx, b, "trap 'status=$?; trap - ERR; echo \"line $LINENO\"; return $status' ERR\n"+p.actual(b.text)+"\ntrap - ERR")
	case "sql":
		return p.script(ctx, b, "companyscore sql - <<'end of statement'\n"+p.actual(b.text)+"\nend of statement")
	case "python":
		return p.script(ctx, b, python+" - <<'end of program'\n"+p.actual(b.text)+"\nend of program")
	case "go":
		path := filepath.Join(p.dir, "main.go")
		if err := os.WriteFile(path, []byte(p.actual(program(p.name, b, before))), 0o600); err != nil {
			return err
		}
		return p.script(ctx, b, "CGO_ENABLED=0 go run "+path)
	}
	return fmt.Errorf("blocks of %q are not known; see internal/test/docstest", b.lang)
}

// script runs a script in the shell of the page.
func (p *page) script(ctx context.Context, b block, text string) error {
	output, status, err := p.shell.run(ctx, text)
	if err == nil && (status != 0) != b.fails && !b.mayFail {
		err = fmt.Errorf("exit status %d", status)
	}
	if err == nil {
		return nil
	}
	// The first line of the script is not of the page.
	if at := failedLine.FindStringSubmatch(output); at != nil {
		n, _ := strconv.Atoi(at[1])
		return &lineError{b.line + n - 2, fmt.Sprintf("%v\n%s", err, strings.TrimSuffix(p.shown(output), at[0]))}
	}
	return fmt.Errorf("%w\n%s", err, p.shown(output))
}

// failedLine is the last output of a script of which a command failed.
var failedLine = regexp.MustCompile(`line (\d+)\n$`)

// open makes the directory of the page with the files of the repository, and starts the shell.
func (p *page) open() error {
	// The program is copied too, since `make run` replaces it.
	for _, name := range append([]string{"bin/companyscore"}, p.files...) {
		to := filepath.Join(p.work(), name)
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed and not committed yet
		}
		if err != nil {
			return err
		}
		info, err := os.Stat(name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(to, text, info.Mode().Perm()); err != nil {
			return err
		}
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join(root, ".deps"), filepath.Join(p.work(), ".deps")); err != nil {
		return err
	}
	if p.api, err = freeAddress(); err != nil {
		return err
	}
	if p.clickhouse, err = freeAddress(); err != nil {
		return err
	}
	p.shell, err = newShell(p.work(), p.dir, p.env())
	return err
}

// env returns the environment of the blocks.
func (p *page) env(more ...string) []string {
	// The stores of the caller, and the settings of the `make` that runs this program, are not those of the page.
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return slices.ContainsFunc([]string{"COMPANYSCORE_", "CLICKHOUSE_URL=", "REDIS_URL=", "MAKE", "MFLAGS=", "PATH="},
			func(own string) bool { return strings.HasPrefix(v, own) })
	})
	return append(append(env, "PATH="+filepath.Join(p.work(), "bin")+":"+os.Getenv("PATH")), more...)
}

// start starts an `up` in place of the one of the page.
func (p *page) start(ctx context.Context, script string) error {
	if p.service != nil {
		p.service.stop()
		p.service = nil
	}
	var err error
	p.service, err = startService(ctx, p.work(), filepath.Join(p.dir, "up"), script,
		p.env("COMPANYSCORE_LISTEN="+p.api, "LISTEN="+p.api, "COMPANYSCORE_CLICKHOUSE_LISTEN="+p.clickhouse,
			"COMPANYSCORE_SOURCES=facts", "COMPANYSCORE_LOG_LEVEL=warn", "EXAMPLES="+strconv.FormatBool(p.name == "README.md")))
	if err != nil {
		return err
	}
	data := "data"
	if named := dataFlag.FindStringSubmatch(script); named != nil {
		data = named[1]
	}
	text, err := os.ReadFile(filepath.Join(p.work(), data, "demo.json"))
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &p.keys)
}

// startShown starts the `up` of a block and compares what it prints.
func (p *page) startShown(ctx context.Context, b block, script string) error {
	script, want, _ := strings.Cut(script, "\n")
	if b.lang != "console" && want != "" {
		return errors.New("a block that starts an `up` has no other command")
	}
	if err := p.start(ctx, p.actual(script)); err != nil {
		return err
	}
	if b.lang != "console" {
		return nil
	}
	if difference := compare(want, p.shown(p.service.output())); difference != "" {
		return errors.New(difference)
	}
	return nil
}

// actual puts the addresses and keys of the page in the place of those that it shows.
func (p *page) actual(text string) string {
	return strings.NewReplacer(shownAPI, p.api, shownClickHouse, p.clickhouse, "svc_live_...", p.keys.Live, "svc_test_...",
		p.keys.Test).Replace(text)
}

// shown puts the addresses that the page shows in the place of the actual ones.
func (p *page) shown(text string) string {
	return strings.NewReplacer(p.api, shownAPI, p.clickhouse, shownClickHouse, p.work()+"/", "").Replace(text)
}

// close ends what the page started and removes its files.
func (p *page) close() {
	if p.shell != nil {
		p.shell.stop()
	}
	if p.service != nil {
		p.service.stop()
	}
	_ = os.RemoveAll(p.dir)
}

// valid returns an error if a block of data is not valid.
func valid(b block) error {
	var v any
	if b.lang == "json" {
		return json.Unmarshal([]byte(b.text), &v)
	}
	return yaml.Unmarshal([]byte(b.text), &v)
}

// freeAddress returns an address of loopback on which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func isProgram(b block) bool { return strings.HasPrefix(b.text, "package ") }

// isPart reports whether a block is a part of the program of its page.
func isPart(b block) bool { return b.lang == "go" && b.reason == "" && !isProgram(b) }

// importable are the packages that the parts of a program may use without an import.
var importable = []string{"companyscore/client", "context", "errors", "fmt", "log", "net/http", "os", "time"}

// program returns the text of a program: that of the block, or a main function of all parts up to
// it, with the lines of the page.
func program(page string, b block, before []block) string {
	if isProgram(b) {
		return b.text
	}
	var body strings.Builder
	for _, part := range append(slices.Clone(before), b) {
		if isPart(part) {
			fmt.Fprintf(&body, "//line %s:%d\n%s\n", page, part.line, part.text)
		}
	}
	var imports strings.Builder
	for _, path := range importable {
		if regexp.MustCompile(`\b` + filepath.Base(path) + `\.`).MatchString(body.String()) {
			fmt.Fprintf(&imports, "import %q\n", path)
		}
	}
	if !strings.Contains(imports.String(), `"context"`) {
		imports.WriteString("import \"context\"\n")
	}
	return "package main\n" + imports.String() + "func main() {\nctx := context.Background()\n_ = ctx\n" + body.String() + "}\n"
}
