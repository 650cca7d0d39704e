// Package documents renders the Markdown files of docs/ as HTML, and searches them.
package documents

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Root is the address of the first page. All others are below it.
const Root = "/docs/"

// The files that New writes from others.
const (
	queriesFile   = "sql/queries.md"
	decisionsFile = "adr.md"
)

// navigation has the files that are listed on each page. The others are reached from these.
var navigation = []struct {
	name  string
	files []string
}{
	{"Start", []string{"README.md", "quickstart.md", "concepts.md", "screen-suppliers.md", "moving-in.md", "troubleshooting.md",
		"comparison.md"}},
	{"Use", []string{"console.md", "clients.md", "client.md", "versioning.md"}},
	{"Query", []string{"data-teams.md", "sql/README.md", queriesFile, "sql/connect/README.md"}},
	{"Scores and data", []string{"score.md", "backtest.md", "facts.md", "recipes.md", "sources.md"}},
	{"Run", []string{"operations.md", "sizing.md", "security.md", "consistency.md"}},
	{"Measure", []string{"load-testers.md", "bench.md"}},
	{"Change", []string{"architecture.md", "glossary.md", decisionsFile}},
}

// Library has all pages. It does not change.
type Library struct {
	// Groups is the navigation.
	Groups []Group
	// Pages has all pages by address.
	Pages map[string]*Page
	// ordered are the pages in the order of the navigation, then the others by address.
	ordered []*Page
}

// Group is a titled part of the navigation.
type Group struct {
	Name  string
	Pages []*Page
}

// Page is a document.
type Page struct {
	Path     string // address
	Title    string
	Body     template.HTML
	sections []section
}

// section is the text from one heading to the next.
type section struct {
	title, anchor string
	text          string
	// Title and text in lower case, as they are searched.
	lowerTitle, lowerText string
}

// Addresses returns the addresses of the pages that New makes of files, and of the pictures by file.
func Addresses(files fs.FS) (pages []string, pictures map[string]string, err error) {
	sources, err := read(files)
	if err != nil {
		return nil, nil, err
	}
	for file := range sources {
		pages = append(pages, address(file))
	}
	slices.Sort(pages)
	names, err := fs.Glob(files, "images/*")
	if err != nil {
		return nil, nil, err
	}
	pictures = make(map[string]string)
	for _, name := range names {
		pictures[name] = Root + name
	}
	return pages, pictures, nil
}

// address returns the address of the page of a file. That of versioning.md is the plain text.
func address(file string) string {
	switch dir := path.Dir(file); {
	case file == "README.md":
		return Root
	case file == "versioning.md":
		return Root + "versions"
	case path.Base(file) == "README.md":
		return Root + dir
	}
	return Root + strings.TrimSuffix(file, ".md")
}

// read returns the Markdown of all pages by file, those that are written here too.
func read(files fs.FS) (map[string][]byte, error) {
	sources := make(map[string][]byte)
	var queries, decisions strings.Builder
	queries.WriteString("# Worked queries\n\n[The views](README.md) explains them. They are for ClickHouse, as the analyst.\n")
	decisions.WriteString("# Decisions\n\n")
	err := fs.WalkDir(files, ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		switch path.Ext(file) {
		case ".md", ".sql":
		default:
			return nil
		}
		source, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		first, _, _ := strings.Cut(string(source), "\n")
		if path.Ext(file) == ".sql" {
			fmt.Fprintf(&queries, "\n## %s\n\n`%s`\n\n```sql\n%s\n```\n", strings.TrimPrefix(first, "-- "), path.Base(file),
				bytes.TrimSpace(source))
			return nil
		}
		if path.Dir(file) == "adr" {
			fmt.Fprintf(&decisions, "- [%s](%s)\n", strings.TrimPrefix(first, "# "), file)
		}
		sources[file] = source
		return nil
	})
	sources[queriesFile], sources[decisionsFile] = []byte(queries.String()), []byte(decisions.String())
	return sources, err
}

// New renders all documents. files has the tree of docs/.
func New(files fs.FS) (*Library, error) {
	sources, err := read(files)
	if err != nil {
		return nil, err
	}
	l := &Library{Pages: make(map[string]*Page)}
	byFile := make(map[string]*Page)
	for file, source := range sources {
		p, err := render(file, source, func(link string) string { return resolve(files, sources, file, link) })
		if err != nil {
			return nil, err
		}
		l.Pages[p.Path], byFile[file] = p, p
	}
	for _, n := range navigation {
		group := Group{Name: n.name}
		for _, file := range n.files {
			if byFile[file] == nil {
				return nil, fmt.Errorf("there is no document %s", file)
			}
			group.Pages = append(group.Pages, byFile[file])
		}
		l.Groups = append(l.Groups, group)
		l.ordered = append(l.ordered, group.Pages...)
	}
	var others []*Page
	for _, p := range l.Pages {
		if !slices.Contains(l.ordered, p) {
			others = append(others, p)
		}
	}
	slices.SortFunc(others, func(a, b *Page) int { return cmp.Compare(a.Path, b.Path) })
	l.ordered = append(l.ordered, others...)
	return l, nil
}

// markdown escapes text and leaves out raw HTML and links that run code.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table))

// focusable lets the keyboard scroll what can be wider than the page. Text of documents is escaped, so the tags are those of markdown.
var focusable = strings.NewReplacer("<pre>", `<pre tabindex="0">`, "<table>", `<table tabindex="0">`)

// render returns the page of a file. resolved returns the address of a relative link, or "" for none.
func render(file string, source []byte, resolved func(link string) string) (*Page, error) {
	document := markdown.Parser().Parse(text.NewReader(source))
	rewrite(document, source, resolved)
	var body bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, document); err != nil {
		return nil, fmt.Errorf("render %s: %w", file, err)
	}
	parts := sections(document, source)
	return &Page{Path: address(file), Title: parts[0].title, Body: template.HTML(focusable.Replace(body.String())), sections: parts}, nil
}

// resolve returns the address of a relative link in a file, or "" if it leads to nothing that is served.
func resolve(files fs.FS, sources map[string][]byte, file, link string) string {
	target, anchor, found := strings.Cut(link, "#")
	if found {
		anchor = "#" + anchor
	}
	if target == "" {
		return anchor
	}
	target = path.Join(path.Dir(file), target)
	for _, candidate := range []string{target, target + "/README.md", target + ".md"} {
		if _, ok := sources[candidate]; ok {
			return address(candidate) + anchor
		}
	}
	if strings.HasPrefix(target, "images/") {
		if _, err := fs.Stat(files, target); err == nil {
			return Root + target
		}
	}
	return ""
}

// rewrite gives headings their anchors, resolves links and removes HTML. A link that leads nowhere becomes its text.
func rewrite(document ast.Node, source []byte, resolved func(link string) string) {
	anchors := make(map[string]int)
	var gone []ast.Node
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.Heading:
			id := anchorOf(plain(n, source))
			if again := anchors[id]; again > 0 {
				anchors[id]++
				id = fmt.Sprintf("%s-%d", id, again)
			}
			anchors[id]++
			n.SetAttributeString("id", []byte(id))
		case *ast.HTMLBlock, *ast.RawHTML:
			gone = append(gone, n)
		case *ast.Image:
			n.Destination = []byte(resolved(string(n.Destination)))
		case *ast.Link:
			if strings.Contains(string(n.Destination), "://") {
				break
			}
			if n.Destination = []byte(resolved(string(n.Destination))); len(n.Destination) == 0 {
				gone = append(gone, n)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, n := range gone {
		parent := n.Parent()
		if n.Kind() == ast.KindLink {
			for child := n.FirstChild(); child != nil; child = n.FirstChild() {
				parent.InsertBefore(parent, n, child)
			}
		}
		parent.RemoveChild(parent, n)
	}
}

// notInAnchors are characters of a heading that its anchor does not have.
var notInAnchors = regexp.MustCompile(`[^\p{L}\p{N} _-]`)

// anchorOf returns the anchor of a heading, as hosts of repositories make it.
func anchorOf(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimSpace(notInAnchors.ReplaceAllString(heading, ""))), " ", "-")
}

// sections returns the text of a document by heading. The first section has the title of the document.
func sections(document ast.Node, source []byte) []section {
	all := []section{{}}
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		heading, ok := node.(*ast.Heading)
		if !ok {
			all[len(all)-1].text += " " + plain(node, source)
			continue
		}
		if heading.Level > 1 {
			id, _ := heading.AttributeString("id")
			all = append(all, section{anchor: "#" + string(id.([]byte))})
		}
		all[len(all)-1].title = plain(heading, source)
	}
	for i := range all {
		s := &all[i]
		s.text = strings.Join(strings.Fields(s.text), " ")
		s.lowerTitle, s.lowerText = strings.ToLower(s.title), strings.ToLower(s.text)
	}
	return all
}

// plain returns the text of a node without markup.
func plain(node ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(node, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := node.(type) {
		case *ast.Text:
			if entering {
				out.Write(n.Segment.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					out.WriteByte(' ')
				}
			}
		case *ast.AutoLink:
			if entering {
				out.Write(n.Label(source))
			}
		case *ast.FencedCodeBlock:
			if entering {
				out.Write(n.Lines().Value(source))
			}
		case *extast.TableCell, *ast.ListItem, *ast.Paragraph:
			out.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}
