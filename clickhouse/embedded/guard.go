package embedded

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"companyscore/clickhouse/embedded/roster"
	"companyscore/sql"
)

// analyst is the name of the first read-only user.
const analyst = "analyst"

// Connections of analysts have the role that may read the public database, and readonly = 2. The engine then rejects all reads of private
// tables, hides them in system.tables and similar tables, and rejects every change of data and schema, and table functions that access
// files or hosts. Some ways remain, because the library is a client too and because all analysts are one user to it: functions that read
// files or ask for any table, SETTINGS name = DEFAULT, plans and definitions of views, and system tables about all users. Other functions
// take memory or time that the engine does not limit, or end its process. analystGuard rejects these, or rewrites them (rewrite.go): a
// statement may name only the functions, types, formats and time zones of allowed.txt. It checks the engine's formatted version of the
// statement, not the analyst's text, because two parsers could disagree on where a string ends. The formatted version is executed.

// analystGuard decides which statements of an analyst may run.
type analystGuard struct {
	user            string
	limits          roster.Limits
	spill           uint64 // bytes of temporary files of one statement
	rules           rules
	allowed         *allowed
	public          string         // database of the views
	privateDatabase string         // lower case
	private         *regexp.Regexp // name of a private table in a text of the engine

	recipe bool     // the statement is that of a recipe, not of an analyst
	files  []string // parameters that a recipe may read as files
}

// newAnalystGuard returns the guard of no analyst; see of. list is the text of what analysts may name, and spill limits the bytes of
// temporary files of one statement.
func newAnalystGuard(c *libraryConn, public, list string, spill uint64) (*analystGuard, error) {
	private := sql.Private(public)
	g := &analystGuard{public: public, privateDatabase: strings.ToLower(private), spill: spill,
		private: regexp.MustCompile(privatePattern(private))}
	var err error
	if g.allowed, err = readAllowed(c, list); err != nil {
		return nil, err
	}
	if g.rules, err = readRules(c, g.allowed.zones); err != nil {
		return nil, err
	}
	return g, nil
}

// privatePattern returns a pattern, of Go and of ClickHouse, of the names of the tables in a private database.
func privatePattern(database string) string {
	return "`?" + regexp.QuoteMeta(database) + "`?(\\.`?[A-Za-z0-9_.]+`?)?"
}

// of returns the guard of an analyst with limits.
func (g *analystGuard) of(name string, l roster.Limits) *analystGuard {
	own := *g
	own.user, own.limits, own.rules = name, l, g.rules.of(l, g.spill)
	return &own
}

// admit returns the statement to run in place of text, or the exception that rejects it. format is that of the result if the statement
// names none, and params are those of the statement.
func (g *analystGuard) admit(ctx context.Context, c *libraryConn, text, format string, params []param) (statement, error) {
	if !g.allowed.formats[strings.ToLower(format)] {
		return statement{}, g.denied("Format %s is not open to analysts", format)
	}
	rendered, _, err := c.queryContext(ctx, "SELECT formatQuerySingleLine({text:String})", "RawBLOB", []param{{"text", escapeParam(text)}})
	if err != nil {
		return statement{}, inText(err, text)
	}
	bound, err := bindIdentifiers(lex(string(rendered)), params)
	if err != nil {
		return statement{}, err
	}
	st, err := outlineFormatted(bound)
	if err != nil {
		return statement{}, err
	}
	return g.check(st)
}

var analystVerbs = []string{"SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"}

// denied returns the exception of a statement that the analyst may not run.
func (g *analystGuard) denied(format string, args ...any) error {
	return newException(codeAccessDenied, "%s: Not enough privileges. %s", g.user, fmt.Sprintf(format, args...))
}

// readonly returns the exception of a statement that does not only read.
func (g *analystGuard) readonly() error {
	return newException(codeReadonly, "%s: Cannot execute query in readonly mode", g.user)
}

// uncertain returns the exception of a statement that the engine may read in another way than the guard.
func (g *analystGuard) uncertain() error {
	return g.denied("The statement cannot be read with certainty")
}

// check returns the statement to run in place of st, or an exception if the analyst may not run st. The engine has formatted the text of
// st.
func (g *analystGuard) check(st statement) (statement, error) {
	if !slices.Contains(analystVerbs, st.verb) {
		return statement{}, g.readonly()
	}
	if g.recipe {
		if err := g.checkRecipe(st); err != nil {
			return statement{}, err
		}
	}
	edits, err := g.inspect(st)
	if err != nil {
		return statement{}, err
	}
	switch st.verb {
	case "SHOW":
		edits, err = g.show(st, edits)
	case "EXPLAIN":
		edits, err = g.explain(st, edits)
	}
	if err != nil || len(edits) == 0 {
		return st, err
	}
	return outlineFormatted(st.with(edits))
}

// inspection is one pass of the guard over the tokens of a statement.
type inspection struct {
	*analystGuard
	st     statement
	rest   tokens    // behind the current token
	prev   token     // before the current token
	open   []bracket // innermost last, outside all first
	called bracket   // of the function whose bracket comes next
	edits  []edit    // tables and functions to replace
}

// inspect checks each token of a statement and returns the tables and functions in it that are replaced.
func (g *analystGuard) inspect(st statement) ([]edit, error) {
	if st.comments || st.unclosed > 0 {
		return nil, g.uncertain()
	}
	in := &inspection{analystGuard: g, st: st, rest: st.tokens, open: []bracket{{}}}
	for tok := in.rest.next(); tok.kind != tokenEnd; tok = in.rest.next() {
		if err := in.argument(tok); err != nil {
			return nil, err
		}
		last, err := in.token(tok)
		if err != nil {
			return nil, err
		}
		in.prev = last
	}
	if len(in.open) != 1 {
		return nil, g.uncertain()
	}
	return in.edits, nil
}

// token checks a token and reads what belongs to it. It returns the token before the next one, which may be none.
func (in *inspection) token(tok token) (last token, err error) {
	if tok.isMark('(') || tok.isMark('[') || tok.isMark('{') {
		in.open = append(in.open, in.called)
		in.called = bracket{}
	}
	if tok.isMark('{') {
		return tok, in.parameter()
	}
	name, ok := tok.identifier()
	if !ok {
		return tok, nil
	}
	if setting, ok := in.rest.settingAfter(tok); ok {
		return token{}, in.settings(setting)
	}
	return in.name(tok, name)
}

// parameter checks the type of a parameter such as {name:Type}, whose bracket was read. Other brackets of this kind are maps.
func (in *inspection) parameter() error {
	ahead := in.rest
	if _, ok := ahead.next().identifier(); !ok || !ahead.next().isMark(':') {
		return nil
	}
	kind, n := ahead, 0 // the tokens from the type on, and their number in it
	for ; !kind[n].isMark('}'); n++ {
		if kind[n].kind == tokenEnd {
			return in.uncertain()
		}
	}
	if err := in.checkType(lexed{text: in.st.text[kind[0].pos:kind[n].pos], tokens: kind[:n]}); err != nil {
		return err
	}
	in.rest, in.open = kind[n+1:], in.open[:len(in.open)-1]
	return nil
}

// settings checks the SETTINGS clause that follows. name is that of its first setting.
func (in *inspection) settings(name string) error {
	settings, plain := in.rest.settings()
	if !plain {
		return newException(codeSettingConstraint, "Setting %s should not be changed: this user gives settings as plain values", name)
	}
	for _, s := range settings {
		if r, err := in.rules.check(s.name, s.value); err != nil {
			return err
		} else if r.kind == dropped || r.kind == ignored {
			return newException(codeSettingConstraint,
				"Setting %s should not be changed here: give it at the end of the statement, or in the URL", s.name)
		}
	}
	return nil
}

// beforeTable lists the tokens that may precede a table name. The engine reads a table name with a slash as a file.
var beforeTable = []string{"FROM", "JOIN", "TABLE", "EXISTS", "DESCRIBE", "IN", ",", ".", "("}

// name checks a keyword or name. Its result is that of token.
func (in *inspection) name(tok token, name string) (last token, err error) {
	folded, prev, next := strings.ToLower(name), in.prev, in.rest.peek()
	switch {
	case folded == in.privateDatabase:
		return tok, in.denied("The tables of the service are private: read the views of %s", in.public)
	case strings.Contains(name, "/") && slices.Contains(beforeTable, strings.ToUpper(prev.text)):
		return tok, in.denied("%s reads as a file", quoteName(name))
	case tok.isBare("FORMAT") && !next.isMark('('):
		if format, ok := next.identifier(); ok && in.allowed.otherFormats[strings.ToLower(format)] {
			return tok, in.denied("Format %s is not open to analysts", quoteName(format))
		}
		return tok, nil
	case tok.isBare("APPLY"):
		return tok, in.apply()
	case (folded == "system" || folded == "information_schema") && next.isMark('.') && !prev.isMark('.'):
		return in.systemTable(tok, folded)
	case slices.Contains(userFunctions, folded) && !prev.isMark('.') && (!next.isMark('(') || in.rest.callsWithout()):
		in.userFunction(tok)
		return tok, nil
	case next.isMark('(') && in.rest.isColumnList(prev):
		for !in.rest.peek().isMark(')') {
			in.rest.next()
		}
		return in.rest.next(), nil
	case takesFunction(in.open) && in.isFunction(folded) && (prev.isMark('(') || prev.isMark(',')) &&
		(next.isMark(')') || next.isMark(',') || next.is("AS")):
		return tok,
			in.denied("%s is the name of a function, and would be called: write a lambda such as x -> %[1]s(x), or qualify the column",
				quoteName(name))
	case next.isMark('(') && in.recipe && folded == "file":
		return tok, in.file()
	case next.isMark('(') && !(tok.kind == tokenWord && slices.Contains(beforeBracket, name)):
		signature, err := in.call(name)
		in.called = bracket{function: name, signature: signature}
		return tok, err
	}
	return tok, nil
}
