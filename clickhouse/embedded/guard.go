package embedded

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"companyscore/internal/analyst/roster"
	"companyscore/sql"
)

// analyst is the name of the first read-only user.
const analyst = "analyst"

// Connections of analysts have the role that may read the public database, and readonly = 2. The engine then rejects all reads of private tables,
// hides them in system.tables and similar tables, and rejects every change of data and schema, and table functions that access files or hosts.
// Some ways remain, because the library is a client too and because all analysts are one user to it: functions that read files or ask for any
// table, SETTINGS name = DEFAULT, plans and definitions of views, and system tables about all users. Other functions take memory or time that the engine
// does not limit, or end its process. analystGuard rejects or rewrites these: a statement may name only the functions, types, formats and time zones of
// allowed.txt. It checks the engine's formatted version of the statement, not the analyst's text, because two parsers could disagree on where a string
// ends. The formatted version is executed.

// advice returns what an analyst can do about an exception of a limit, or "".
func advice(exception string, l roster.Limits) string {
	switch exception {
	case "MEMORY_LIMIT_EXCEEDED":
		return fmt.Sprintf("This is the analyst's limit of %s of memory for a statement, or what max_memory_usage asked for: select fewer columns, "+
			"narrow it by domain or time, or join the smaller side last", size(l.MemoryBytes))
	case "TIMEOUT_EXCEEDED":
		return fmt.Sprintf("This is the analyst's limit of time, %d s or what max_execution_time asked for: narrow the statement by domain or time, or aggregate first", l.Seconds)
	case "TOO_MANY_ROWS_OR_BYTES":
		return fmt.Sprintf("This is the analyst's limit for a result, %d rows or %s, or what max_result_rows or max_result_bytes asked for: add a LIMIT, "+
			"aggregate, or export in parts, such as one range of domains after the other", l.Rows, size(l.Bytes))
	case "TOO_MANY_SIMULTANEOUS_QUERIES":
		return "This is the analyst's limit of statements at a time: wait for those under way, and run one after the other"
	}
	return ""
}

// size returns a number of bytes in GiB if they are whole, else in MiB.
func size(bytes uint64) string {
	if bytes%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", bytes>>30)
	}
	return fmt.Sprintf("%d MiB", bytes>>20)
}

// forAnalyst returns e without the names of private tables, the paths of the machine and the name of the engine's own user. It adds advice if e is
// about a limit of the analyst.
func (s *Server) forAnalyst(e *exception, u *user) *exception {
	message := u.guard.private.ReplaceAllString(e.message, "a private table")
	message = strings.ReplaceAll(message, s.cfg.Path, "DATA")
	if rest, ok := strings.CutPrefix(message, "default: "); ok {
		message = u.name + ": " + rest
	}
	if text := advice(e.name, u.guard.limits); text != "" {
		message += ". " + text
	}
	return &exception{e.code, e.name, message}
}

// catalogue lists the system tables that analysts may read. They have constants, the current session, or only rows that the analyst may see, as
// those that ClickHouse opens to all users of a server. The value, if there is one, takes the place of the table: it hides columns.
var catalogue = map[string]string{
	"system.aggregate_function_combinators": "", "system.build_options": "", "system.collations": "", "system.columns": "", "system.contributors": "",
	"system.current_roles": "", "system.data_type_families": "", "system.database_engines": "", "system.dictionaries": "", "system.enabled_roles": "",
	"system.formats": "", "system.functions": "", "system.keywords": "", "system.licenses": "", "system.merge_tree_settings": "", "system.numbers": "",
	"system.numbers_mt": "", "system.one": "", "system.privileges": "", "system.settings": "", "system.settings_changes": "", "system.table_engines": "",
	"system.table_functions": "", "system.time_zones": "", "system.zeros": "", "system.zeros_mt": "",
	"system.databases": "(SELECT * REPLACE ('' AS data_path, '' AS metadata_path) FROM system.databases)",
	"system.tables": "(SELECT * REPLACE ('' AS create_table_query, '' AS as_select, '' AS engine_full, '' AS metadata_path, emptyArrayString() AS data_paths) " +
		"FROM system.tables)",

	"information_schema.character_sets": "", "information_schema.collations": "", "information_schema.columns": "", "information_schema.engines": "",
	"information_schema.key_column_usage": "", "information_schema.referential_constraints": "", "information_schema.schemata": "",
	"information_schema.statistics": "", "information_schema.tables": "",
	"information_schema.views": "(SELECT * REPLACE ('' AS view_definition, '' AS VIEW_DEFINITION) FROM information_schema.views)",
}

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
}

// newAnalystGuard returns the guard of no analyst; see of. list is the text of what analysts may name, and spill limits the bytes of temporary files of
// one statement.
func newAnalystGuard(c *conn, public, list string, spill uint64) (*analystGuard, error) {
	private := sql.Private(public)
	g := &analystGuard{public: public, privateDatabase: strings.ToLower(private), spill: spill, private: regexp.MustCompile(privatePattern(private))}
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

// admit returns the statement to run in place of text, or the exception that rejects it. format is that of the result if the statement names none, and
// params are those of the statement.
func (g *analystGuard) admit(ctx context.Context, c *conn, text, format string, params []param) (statement, error) {
	if !g.allowed.formats[strings.ToLower(format)] {
		return statement{}, g.denied("Format %s is not open to analysts", format)
	}
	rendered, _, err := c.queryContext(ctx, "SELECT formatQuerySingleLine({text:String})", "RawBLOB", []param{{"text", escapeParam(text)}})
	if err != nil {
		return statement{}, inText(err, text)
	}
	bound, err := bindIdentifiers(string(rendered), params)
	if err != nil {
		return statement{}, err
	}
	st, err := parseFormatted(bound)
	if err != nil {
		return statement{}, err
	}
	if rewritten, err := g.check(st); err != nil {
		return statement{}, err
	} else if rewritten != st.text {
		return parseFormatted(rewritten)
	}
	return st, nil
}

// inText returns the error of formatting an analyst's text as an error of that text, with line and column.
func inText(err error, text string) error {
	e, ok := errors.AsType[*exception](err)
	if !ok {
		return err
	}
	message, _, _ := strings.Cut(e.message, ": In scope SELECT formatQuerySingleLine(")
	if strings.TrimSpace(text) == "" {
		message = "Syntax error: Empty query"
	}
	if m := failedAt.FindStringSubmatchIndex(message); m != nil && !strings.Contains(message, "(line ") {
		if position, err := strconv.Atoi(message[m[2]:m[3]]); err == nil && position > 0 && position <= len(text)+1 {
			before := text[:position-1]
			line, column := strings.Count(before, "\n")+1, position-1-strings.LastIndex(before, "\n")
			message = message[:m[1]] + fmt.Sprintf(" (line %d, col %d)", line, column) + message[m[1]:]
		}
	}
	return &exception{e.code, e.name, message}
}

// failedAt matches the byte position in a syntax error, from 1, and the token there.
var failedAt = regexp.MustCompile(`failed at position (\d+)(?: \((?:[^()]|\(\))*\))?`)

// bindIdentifiers replaces parameters of type Identifier in a formatted statement by their values, quoted, so that the guard checks them as names.
func bindIdentifiers(text string, params []param) (string, error) {
	lex := &lexer{src: text}
	var out strings.Builder
	copied := 0
	for tok := lex.next(); tok.kind != tokenEnd; tok = lex.next() {
		if !tok.isMark('{') {
			continue
		}
		ahead := *lex
		name := ahead.next()
		if !ahead.next().isMark(':') || !ahead.next().is("Identifier") {
			continue
		}
		end := ahead.next()
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name.text })
		if !end.isMark('}') || i < 0 {
			return "", newException(codeUnknownParameter, "Substitution %s is not set", quoteName(name.text))
		}
		parts := []string{params[i].value}
		if plainName.MatchString(params[i].value) {
			parts = strings.Split(params[i].value, ".")
		}
		for i, part := range parts {
			parts[i] = quoteName(part)
		}
		out.WriteString(text[copied:tok.pos] + strings.Join(parts, "."))
		copied = end.pos + 1
		*lex = ahead
	}
	return out.String() + text[copied:], nil
}

// plainName matches a name that may have that of its database in front.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

var analystVerbs = []string{"SELECT", "WITH", "FROM", "SHOW", "DESCRIBE", "DESC", "EXISTS", "EXPLAIN"}

// analystShows lists what SHOW may show. Each reads tables of the catalogue.
var analystShows = []string{"CHANGED", "COLUMNS", "CURRENT", "DATABASES", "DICTIONARIES", "ENABLED", "ENGINES", "EXTENDED", "FIELDS", "FULL", "FUNCTIONS", "INDEX", "INDEXES",
	"INDICES", "KEYS", "SETTING", "SETTINGS", "TABLES"}

// beforeTable lists the tokens that may precede a table name. The engine reads a table name with a slash as a file.
var beforeTable = []string{"FROM", "JOIN", "TABLE", "EXISTS", "DESCRIBE", "IN", ",", ".", "("}

func (g *analystGuard) denied(format string, args ...any) error {
	return newException(codeAccessDenied, "%s: Not enough privileges. %s", g.user, fmt.Sprintf(format, args...))
}

// check returns the text to run in place of that of st, or an exception if the analyst may not run st. The engine has formatted the text of st.
func (g *analystGuard) check(st statement) (string, error) {
	if !slices.Contains(analystVerbs, st.verb) {
		return "", newException(codeReadonly, "%s: Cannot execute query in readonly mode", g.user)
	}
	out, err := g.tokens(st)
	if err != nil {
		return "", err
	}
	switch st.verb {
	case "SHOW":
		return g.show(st, out)
	case "EXPLAIN":
		return g.explain(st, out)
	}
	return out, nil
}

// bracket is an open bracket of a statement.
type bracket struct {
	function  string // whose arguments are in it, "" for none
	signature signature
	argument  int // index of the current argument
	tokens    int // of the current argument
	first     token
}

// beforeBracket lists the keywords that may precede a bracket in a formatted statement.
var beforeBracket = []string{"ALL", "AND", "ANY", "APPLY", "AS", "BY", "COLUMNS", "CUBE", "DESCRIBE", "DISTINCT", "EXCEPT", "EXISTS", "EXPLAIN", "FROM", "GLOBAL",
	"HAVING", "ILIKE", "IN", "INTERPOLATE", "INTERSECT", "JOIN", "LIKE", "LIMIT", "NOT", "OFFSET", "ON", "OR", "OVER", "PREWHERE", "QUALIFY", "REPLACE", "ROLLUP",
	"SELECT", "SETS", "STEP", "SYNTAX", "TABLE", "TO", "TREE", "UNION", "USING", "WHERE", "WITH"}

// call returns the signature of the function or table function that a statement calls by name.
func (g *analystGuard) call(name string) (signature, error) {
	if s, ok := g.allowed.function(name); ok {
		return s, nil
	}
	switch folded := strings.ToLower(name); {
	case g.allowed.tableFunctions[folded]:
		return signature{}, nil
	case g.allowed.otherFunctions[folded], g.allowed.otherTableFunctions[folded]:
		return signature{}, g.denied("Function %s is not open to analysts; the documentation has a list of those that are", quoteName(name))
	}
	return signature{}, newException(codeUnknownFunction, "Function with name %s does not exist", quoteName(name))
}

// isFunction reports whether the engine has a function of this name, in lower case.
func (g *analystGuard) isFunction(name string) bool {
	_, allowed := g.allowed.functions[name]
	return allowed || g.allowed.otherFunctions[name]
}

// takesFunction reports whether the innermost bracket, perhaps within others without a name, has arguments of a function that takes lambdas. The engine
// accepts the name of a function in the place of a lambda.
func takesFunction(open []bracket) bool {
	for _, b := range slices.Backward(open) {
		if b.function != "" {
			name := strings.ToLower(b.function)
			return strings.HasPrefix(name, "array") || strings.HasPrefix(name, "map")
		}
	}
	return false
}

// endArgument checks the argument of b that has ended. last is whether it is the last one.
func (g *analystGuard) endArgument(b bracket, last bool) error {
	kind := b.signature.at(b.argument, last)
	if b.tokens == 0 || kind == anyArgument {
		return nil
	}
	text, literal := b.first.literal()
	switch {
	case b.tokens > 1:
		literal = false
	case kind == zoneArgument && b.first.isNumber(): // a number is never the name of a zone
		return nil
	}
	if kind == typeArgument {
		if !literal {
			return g.denied("%s takes a data type as plain text here", b.function)
		}
		return g.checkType(text)
	}
	if !literal || !g.allowed.zones[text] {
		return g.denied("%s takes a time zone as plain text here, such as 'UTC' or 'Europe/Paris'; the documentation has a list of those that are open to analysts", b.function)
	}
	return nil
}

// checkType checks the text of a data type.
func (g *analystGuard) checkType(text string) error {
	lex := &lexer{src: text}
	open, name := []string{""}, "" // types whose brackets are open, innermost last, and the last word
	for tok := lex.next(); tok.kind != tokenEnd; tok = lex.next() {
		word, isName := tok.identifier()
		zone, isText := tok.literal()
		switch folded := strings.ToLower(word); {
		case lex.comments, tok.kind == tokenQuoted && !isName && !isText: // other forms of texts
			return g.denied("The data type %s cannot be read with certainty", quoteString(text))
		case isName && (g.allowed.otherTypes[folded] || lex.peek().isMark('(') && !g.allowed.types[folded]):
			return g.denied("Data type %s is not open to analysts", quoteName(word))
		case isName:
			name = folded
		case tok.isMark('('):
			open, name = append(open, name), ""
		case tok.isMark(')') && len(open) > 1:
			open = open[:len(open)-1]
		case isText && !strings.HasPrefix(open[len(open)-1], "enum") && !g.allowed.zones[zone]: // only enumerations and times have texts
			return g.denied("Time zone %s is not open to analysts; the documentation has a list of those that are", quoteString(zone))
		}
	}
	return nil
}

// tokens checks each token of a statement and returns the text with the tables and functions in it that are replaced.
func (g *analystGuard) tokens(st statement) (string, error) {
	lex := &lexer{src: st.text}
	var out strings.Builder
	copied := 0 // bytes of the source that out has
	replace := func(from, to int, text string) {
		out.WriteString(st.text[copied:from])
		out.WriteString(text)
		copied = to
	}
	open := []bracket{{}} // innermost last, outside all first
	called := bracket{}   // of the function whose bracket comes next
	prev := token{}
	for tok := lex.next(); tok.kind != tokenEnd; prev, tok = tok, lex.next() {
		inner := &open[len(open)-1]
		if (tok.isMark(',') || tok.isMark(')')) && inner.function != "" {
			if err := g.endArgument(*inner, tok.isMark(')')); err != nil {
				return "", err
			}
		}
		switch {
		case tok.isMark(','):
			inner.argument, inner.tokens = inner.argument+1, 0
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			if open = open[:len(open)-1]; len(open) == 0 {
				return "", g.denied("The statement cannot be read with certainty")
			}
		default:
			if inner.tokens++; inner.tokens == 1 {
				inner.first = tok
			}
			if inner.signature.reads() && (tok.isMark('*') && (inner.tokens == 1 || prev.isMark('.')) || tok.is("COLUMNS")) {
				return "", g.denied("%s takes single arguments here, not all columns", inner.function)
			}
		}
		if tok.isMark('(') || tok.isMark('[') || tok.isMark('{') {
			open = append(open, called)
			called = bracket{}
		}
		if tok.isMark('{') { // {name:Type}, or a map
			ahead := *lex
			if _, ok := ahead.next().identifier(); ok && ahead.next().isMark(':') {
				from := ahead.pos
				end := ahead.next()
				for !end.isMark('}') && end.kind != tokenEnd {
					end = ahead.next()
				}
				if err := g.checkType(st.text[from:end.pos]); err != nil {
					return "", err
				}
				*lex, open = ahead, open[:len(open)-1]
			}
			continue
		}
		name, ok := tok.identifier()
		if !ok {
			continue
		}
		folded := strings.ToLower(name)
		if setting, ok := lex.settingAfter(tok); ok {
			ahead := *lex
			settings, plain := ahead.settings()
			if !plain {
				return "", newException(codeSettingConstraint, "Setting %s should not be changed: this user gives settings as plain values", setting)
			}
			for _, s := range settings {
				if r, err := g.rules.check(s.name, s.value); err != nil {
					return "", err
				} else if r.kind == dropped || r.kind == ignored {
					return "", newException(codeSettingConstraint, "Setting %s should not be changed here: give it at the end of the statement, or in the URL", s.name)
				}
			}
			*lex, tok = ahead, token{}
			continue
		}
		switch next := lex.peek(); {
		case folded == g.privateDatabase:
			return "", g.denied("The tables of the service are private: read the views of %s", g.public)
		case strings.Contains(name, "/") && slices.Contains(beforeTable, strings.ToUpper(prev.text)):
			return "", g.denied("%s reads as a file", quoteName(name))
		case tok.isBare("FORMAT") && !next.isMark('('):
			if format, ok := next.identifier(); ok && g.allowed.otherFormats[strings.ToLower(format)] {
				return "", g.denied("Format %s is not open to analysts", quoteName(format))
			}
		case tok.isBare("APPLY"): // the name of a function, or a lambda, perhaps in brackets
			ahead := *lex
			for ahead.peek().isMark('(') {
				ahead.next()
			}
			function, ok := ahead.next().identifier()
			if lambda := ahead.peek(); ok && !lambda.isMark('-') {
				if _, err := g.call(function); err != nil {
					return "", err
				}
			}
		case (folded == "system" || folded == "information_schema") && next.isMark('.') && !prev.isMark('.'):
			ahead := *lex
			ahead.next()
			last := ahead.next()
			table, _ := last.identifier()
			with, open := catalogue[folded+"."+strings.ToLower(table)]
			if !open {
				return "", g.denied("To execute this query, it's necessary to have the grant SELECT ON %s.%s", folded, table)
			}
			if with != "" && st.verb != "EXISTS" && st.verb != "DESCRIBE" { // these do not read it
				after := ahead.peek()
				if !after.is("AS") {
					with += " AS " + quoteName(table)
				}
				if after.isMark('.') { // a column with its table
					with = quoteName(table)
				}
				replace(tok.pos, last.pos+len(last.text), with)
				*lex, tok = ahead, last
			}
		case slices.Contains(userFunctions, folded) && !prev.isMark('.') && (!next.isMark('(') || lex.callsWithout()):
			ahead, end := *lex, tok.pos+len(tok.text)
			if next.isMark('(') {
				ahead.next()
				closing := ahead.next()
				end = closing.pos + 1
			} else if folded != "current_user" || tok.kind != tokenWord || next.isMark('.') || prev.is("AS") {
				break // a column
			}
			replace(tok.pos, end, "("+quoteString(g.user)+" AS "+quoteName(st.text[tok.pos:end])+")")
			*lex = ahead
		case next.isMark('(') && lex.isColumnList(prev):
			for !lex.peek().isMark(')') {
				lex.next()
			}
			tok = lex.next()
		case takesFunction(open) && (prev.isMark('(') || prev.isMark(',')) && (next.isMark(')') || next.isMark(',') || next.is("AS")) && g.isFunction(folded):
			return "", g.denied("%s is the name of a function, and would be called: write a lambda such as x -> %[1]s(x), or qualify the column", quoteName(name))
		case next.isMark('(') && !(tok.kind == tokenWord && slices.Contains(beforeBracket, name)):
			signature, err := g.call(name)
			if err != nil {
				return "", err
			}
			called = bracket{function: name, signature: signature}
		}
	}
	if lex.comments || len(open) != 1 {
		return "", g.denied("The statement cannot be read with certainty")
	}
	out.WriteString(st.text[copied:])
	return out.String(), nil
}

// userFunctions lists the functions that return the name of the user, lower case. To the engine all analysts are one user.
var userFunctions = []string{"authenticateduser", "authuser", "currentuser", "current_user", "user"}

// show returns the text to run for a SHOW statement.
func (g *analystGuard) show(st statement, text string) (string, error) {
	switch {
	case slices.Contains(analystShows, st.target):
		return text, nil
	case st.target == "CREATE":
		return "", g.denied("The definitions of views are private: DESCRIBE has their columns")
	case st.target != "GRANTS" && st.target != "GRANT":
		return "", g.denied("SHOW %s is not open to this user", st.target)
	}
	for lex := (&lexer{src: text[:st.clause]}); ; {
		tok := lex.next()
		if tok.kind == tokenEnd {
			break
		}
		name, _ := lex.peek().identifier()
		if tok.is("FOR") && name != g.user && !strings.EqualFold(name, "CURRENT_USER") {
			return "", g.denied("To execute this query, it's necessary to have the grant SHOW USERS ON *.*")
		}
	}
	grants := []string{fmt.Sprintf("GRANT %s TO %s", roleAnalysts, g.user), fmt.Sprintf("GRANT SELECT ON %s.* TO %s", g.public, roleAnalysts)}
	return "SELECT arrayJoin([" + quoteString(grants[0]) + ", " + quoteString(grants[1]) + "]) AS GRANTS " + st.text[st.clause:], nil
}

// explain returns the text to run for an EXPLAIN statement. Plans name the tables under a view.
func (g *analystGuard) explain(st statement, text string) (string, error) {
	switch st.target {
	case "ESTIMATE", "TABLE", "CURRENT":
		return "", g.denied("EXPLAIN %s is not open to this user: EXPLAIN shows the plan", st.target)
	}
	format := st.text[st.clause:]
	return "SELECT replaceRegexpAll(explain, " + quoteString(g.private.String()) + ", 'a private table') AS explain FROM (" + strings.TrimSuffix(text, format) + ") " + format, nil
}
