package embedded

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// analyst is the name of the read-only user.
const analyst = "analyst"

// Connections of the analyst have readonly = 1. The engine then rejects every change of data, schema and settings, and table functions
// that access files or hosts. The library is a client too, so some ways remain: a scalar function that reads files, DESCRIBE of files
// and addresses, INTO OUTFILE, KILL, and SETTINGS name = DEFAULT. analystGuard rejects these. It checks the engine's formatted version
// of the statement, not the analyst's text, because two parsers could disagree on where a string ends. The formatted version is executed.

// analystAdvice explains the analyst's limit and what to do, by name of the exception.
var analystAdvice = map[string]string{
	"MEMORY_LIMIT_EXCEEDED": "This is the analyst's limit of 2 GiB of memory for a statement, or what max_memory_usage asked for: select fewer columns, " +
		"narrow it by domain or time, or join the smaller side last",
	"TIMEOUT_EXCEEDED": "This is the analyst's limit of time, 300 s or what max_execution_time asked for: narrow the statement by domain or time, or aggregate first",
	"TOO_MANY_ROWS_OR_BYTES": "This is the analyst's limit for a result, 20 million rows or 8 GiB, or what max_result_rows or max_result_bytes asked for: add a LIMIT, " +
		"aggregate, or export in parts, such as one range of domains after the other",
	"TOO_MANY_SIMULTANEOUS_QUERIES": "This is the analyst's limit of statements at a time: wait for those under way, and run one after the other",
}

// advised returns e with advice added if it is about a limit of the analyst.
func advised(e *exception) *exception {
	if advice, ok := analystAdvice[e.name]; ok {
		return &exception{e.code, e.name, e.message + ". " + advice}
	}
	return e
}

// outsideFunctions lists functions that access files, hosts or programs and that readonly = 1 does not reject.
var outsideFunctions = []string{"file", "hasColumnInTable", "catboostEvaluate", "showCertificate", "aiClassify", "aiExtract", "aiGenerate", "aiTranslate"}

// analystGuard decides which statements of the analyst may run.
type analystGuard struct {
	functions      map[string]bool // names rejected at any position, lower case
	tableFunctions map[string]bool // names rejected before a parenthesis, lower case
}

// newAnalystGuard reads the engine's table functions. The guard rejects all that ClickHouse does not allow for read-only users.
func newAnalystGuard(c *conn) (*analystGuard, error) {
	g := &analystGuard{functions: map[string]bool{}, tableFunctions: map[string]bool{}}
	for _, name := range outsideFunctions {
		g.functions[strings.ToLower(name)] = true
	}
	out, _, err := c.query("SELECT lower(name) FROM system.table_functions WHERE NOT allow_readonly AND name != 'format'", "TSV", nil)
	if err != nil {
		return nil, fmt.Errorf("list table functions: %w", err)
	}
	for name := range strings.Lines(string(out)) {
		g.tableFunctions[strings.TrimSpace(name)] = true
	}
	for _, name := range []string{"cluster", "clusterallreplicas"} { // they connect to other hosts
		g.tableFunctions[name] = true
	}
	return g, nil
}

// admit returns the statement to run in place of text, or the exception that rejects it.
func (g *analystGuard) admit(ctx context.Context, c *conn, text string) (statement, error) {
	rendered, _, err := c.queryContext(ctx, "SELECT formatQuerySingleLine({text:String})", "RawBLOB", []param{{"text", escapeParam(text)}})
	if err != nil {
		return statement{}, err
	}
	st, err := parseStatement(string(rendered))
	if err != nil {
		return statement{}, err
	}
	return st, g.check(st)
}

var analystVerbs = []string{"SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"}

// beforeTable lists the tokens that may precede a table name. The engine reads a table name with a slash as a file.
var beforeTable = []string{"FROM", "JOIN", "TABLE", "EXISTS", "DESCRIBE", "IN", ",", ".", "("}

// check returns an exception if the analyst may not run st. The engine has formatted the text of st.
func (g *analystGuard) check(st statement) error {
	if !slices.Contains(analystVerbs, st.verb) {
		return newException(codeReadonly, "%s: Cannot execute query in readonly mode", analyst)
	}
	lex := &lexer{src: st.text}
	prev := token{}
	for tok := lex.next(); tok.kind != tokenEnd; prev, tok = tok, lex.next() {
		if tok.isMark('{') { // {name:Type}
			for tok.kind != tokenEnd && !tok.isMark('}') {
				if tok.is("Identifier") {
					return newException(codeAccessDenied, "%s: Not enough privileges: parameters of type Identifier are not open to this user", analyst)
				}
				tok = lex.next()
			}
			continue
		}
		name, ok := tok.identifier()
		if !ok {
			continue
		}
		folded := strings.ToLower(name)
		if setting, ok := lex.settingAfter(tok); ok {
			return newException(codeReadonly, "Cannot modify '%s' setting in readonly mode: give settings in the URL, or with plain values at the end of the statement", setting)
		}
		if g.functions[folded] || g.tableFunctions[folded] && lex.peek().isMark('(') {
			return newException(codeAccessDenied, "%s: Not enough privileges: %s reaches outside the database", analyst, name)
		}
		if strings.Contains(name, "/") && slices.Contains(beforeTable, strings.ToUpper(prev.text)) {
			return newException(codeAccessDenied, "%s: Not enough privileges: %s reads as a file", analyst, quoteName(name))
		}
	}
	if lex.comments {
		return newException(codeAccessDenied, "%s: Not enough privileges: the statement cannot be read with certainty", analyst)
	}
	return nil
}
