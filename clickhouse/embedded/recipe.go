package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/clickhouse/embedded/roster"
	"companyscore/sql"
)

// Recipe is one SELECT over files of this machine. Recipe.Run runs it in an engine of its own.
//
// The guard of analysts checks the statement. Beyond what analysts may do it may call the table function file with a parameter of Files as
// first argument. It may read no table, and call no function whose value changes from run to run.
type Recipe struct {
	Statement string
	Files     map[string]string // path, or glob of paths, of each file that the statement may read, by the name of its String parameter
	Values    map[string]string // values of other String parameters
	Dir       string            // directory of the engine's data, created if missing; the caller removes it
	Result    string            // path of the result, a CSV file whose first line has the names of the columns; NULL is an empty value
	Limit     time.Duration     // of the statement, rounded up to seconds
}

const (
	// recipeMemory limits the memory of the process of a recipe, in bytes. The engine's own limit is engineShare of it.
	recipeMemory = 2 << 30
	// recipeThreads limits the threads of a statement, so that an API server on the same machine keeps its latency.
	recipeThreads = 2
	// recipeResult limits the result of a recipe, in bytes of the engine's memory.
	recipeResult = 8 << 30
	recipeRows   = 50_000_000
	recipeUser   = "recipe"
	// recipeNames has what recipes may name beyond allowed.txt, in its form.
	recipeNames = "[table functions]\nfile\n"
)

// recipeFormats lists the formats that a recipe may read, in lower case. None refers to a file with a schema or to another host.
var recipeFormats = strings.Fields("csv csvwithnames tsv tsvwithnames tabseparated tabseparatedwithnames tsvraw tsvrawwithnames " +
	"tabseparatedraw tabseparatedrawwithnames jsoneachrow jsonlines ndjson jsonasstring json jsoncompacteachrow " +
	"jsoncompacteachrowwithnames lineasstring rawblob parquet")

// recipeFree lists settings about the form of files that a recipe may change, besides those that an analyst may.
var recipeFree = []string{"input_format_csv_skip_first_lines", "input_format_tsv_skip_first_lines",
	"input_format_csv_allow_variable_number_of_columns", "input_format_tsv_crlf_end_of_line"}

// Run runs the recipe and returns the number of rows read from files. The process must have no other data directory open. Its memory is
// not limited here; see ServeRecipe.
func (r Recipe) Run(ctx context.Context) (read uint64, err error) {
	library, err := Find()
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return 0, fmt.Errorf("make data directory: %w", err)
	}
	e, err := openEngine(library, r.Dir, sql.Public, recipeMemory/100*engineShare)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	spill, err := temporary(e.path)
	if err != nil {
		return 0, err
	}
	guard, err := newRecipeGuard(e.control, slices.Sorted(maps.Keys(r.Files)), r.limits(), uint64(max(1, spill)))
	if err != nil {
		return 0, err
	}
	return r.run(ctx, e, guard)
}

// run runs the recipe in an engine without tables.
func (r Recipe) run(ctx context.Context, e *engine, guard *analystGuard) (read uint64, err error) {
	c, err := e.open(session{rights: rights{role: roleRecipes, limits: initial(r.limits(), guard.spill)},
		settings: assignments(map[string]string{"max_threads": strconv.Itoa(recipeThreads), "format_csv_null_representation": "",
			"storage_file_read_method": "pread"})}) // mapped files would count as memory of the process
	if err != nil {
		return 0, err
	}
	defer c.close()
	var params []param
	for _, values := range []map[string]string{r.Files, r.Values} {
		for name, value := range values {
			params = append(params, param{name, escapeParam(value)})
		}
	}
	st, err := guard.admit(ctx, e.control, r.Statement, "CSVWithNames", params)
	if err != nil {
		return 0, err
	}
	if err := os.WriteFile(r.Result, nil, 0o600); err != nil {
		return 0, fmt.Errorf("write the result: %w", err)
	}
	_, sum, err := c.queryContext(ctx, st.withOutput(r.Result, "CSVWithNames"), "CSVWithNames", params)
	return sum.readRows, err
}

func (r Recipe) limits() roster.Limits {
	return roster.Limits{MemoryBytes: recipeMemory / 100 * engineShare, Seconds: uint64((r.Limit + time.Second - 1) / time.Second),
		Rows: recipeRows, Bytes: recipeResult}
}

// newRecipeGuard returns the guard of a recipe that may read files, the names of parameters.
func newRecipeGuard(c *libraryConn, files []string, l roster.Limits, spill uint64) (*analystGuard, error) {
	all, err := newAnalystGuard(c, sql.Public, allowedText+"\n"+recipeNames, spill)
	if err != nil {
		return nil, err
	}
	g := all.of(recipeUser, l)
	g.recipe, g.files = true, files
	g.rules["max_threads"] = rule{kind: limit, ceiling: recipeThreads}
	for _, name := range recipeFree {
		g.rules[name] = rule{kind: number}
	}
	out, _, err := c.query("SELECT name FROM system.functions WHERE NOT deterministic", "TSV", nil)
	if err != nil {
		return nil, fmt.Errorf("list functions: %w", err)
	}
	for _, name := range strings.Fields(string(out)) {
		name = strings.ToLower(name)
		delete(g.allowed.functions, name)
		g.allowed.otherFunctions[name] = true
	}
	return g, nil
}

// checkRecipe returns an exception if st is not the statement of a recipe.
func (g *analystGuard) checkRecipe(st statement) error {
	switch {
	case st.verb != "SELECT" && st.verb != "WITH":
		return newException(codeReadonly, "A recipe is one SELECT statement, not %s", st.verb)
	case st.format != "":
		return newException(codeUnknownFormat, "A recipe has no FORMAT clause")
	}
	return nil
}

// file checks the call of the table function file, whose name was read.
func (in *inspection) file() error {
	if !in.prev.isBare("FROM") && !in.prev.isBare("JOIN") {
		return in.denied("file() stands after FROM or JOIN")
	}
	ahead := in.rest
	ahead.next() // the bracket
	open, name, colon, kind, end := ahead.next(), ahead.next(), ahead.next(), ahead.next(), ahead.next()
	if !open.isMark('{') || !colon.isMark(':') || !kind.isBare("String") || !end.isMark('}') {
		return in.denied("file() takes a file that the head declares as first argument, such as {name:String}")
	}
	if !slices.Contains(in.files, name.text) {
		return in.denied("file() reads {%s:String}, which the head does not declare as a file", name.text)
	}
	for i := 0; ; i++ {
		mark := ahead.next()
		if mark.isMark(')') {
			return nil
		}
		tok := ahead.next()
		text, literal := tok.literal()
		if !mark.isMark(',') || !literal || i > 2 {
			return in.denied("file() takes plain texts after its first argument: a format, columns and a compression")
		}
		switch i {
		case 0:
			if !slices.Contains(recipeFormats, strings.ToLower(text)) {
				return in.denied("Format %s is not open to recipes; the documentation has a list of those that are", quoteName(text))
			}
		case 1:
			if err := in.checkColumns(text); err != nil {
				return err
			}
		}
	}
}

// checkColumns checks the columns of a file: names and types, separated by commas. A default of a column would be an expression that
// nothing checks.
func (g *analystGuard) checkColumns(text string) error {
	columns := lex(text)
	if columns.comments || columns.unclosed > 0 {
		return g.uncertain()
	}
	for rest := columns.tokens; ; {
		name := rest.next()
		_, isName := name.identifier()
		kind := rest // the type and what is behind it
		_, isType := rest.next().identifier()
		if !isName || !isType {
			return g.denied("The columns of file() are names and types, separated by commas: %s", quoteString(text))
		}
		if rest.peek().isMark('(') {
			rest.next()
			for depth := 1; depth > 0; {
				switch tok := rest.next(); {
				case tok.isMark('('):
					depth++
				case tok.isMark(')'):
					depth--
				case tok.kind == tokenEnd:
					return g.uncertain()
				}
			}
		}
		of, end := kind[:len(kind)-len(rest)], rest.next()
		if !end.isMark(',') && end.kind != tokenEnd {
			return g.denied("A column of file() has a name and a type, and no %s", end.text)
		}
		if err := g.checkType(lexed{text: text[of[0].pos:end.pos], tokens: of}); err != nil {
			return err
		}
		if end.kind == tokenEnd {
			return nil
		}
	}
}
