package embedded

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// catalogue lists the system tables that analysts may read. They have constants, the current session, or only rows that the analyst may
// see, as those that ClickHouse opens to all users of a server. The value, if there is one, takes the place of the table: it hides columns.
var catalogue = map[string]string{
	"system.aggregate_function_combinators": "", "system.build_options": "", "system.collations": "", "system.columns": "",
	"system.contributors": "", "system.current_roles": "", "system.data_type_families": "", "system.database_engines": "",
	"system.dictionaries": "", "system.enabled_roles": "", "system.formats": "", "system.functions": "", "system.keywords": "",
	"system.licenses": "", "system.merge_tree_settings": "", "system.numbers": "", "system.numbers_mt": "", "system.one": "",
	"system.privileges": "", "system.settings": "", "system.settings_changes": "", "system.table_engines": "",
	"system.table_functions": "", "system.time_zones": "", "system.zeros": "", "system.zeros_mt": "",
	"system.databases": "(SELECT * REPLACE ('' AS data_path, '' AS metadata_path) FROM system.databases)",
	"system.tables": "(SELECT * REPLACE ('' AS create_table_query, '' AS as_select, '' AS engine_full, '' AS metadata_path, " +
		"emptyArrayString() AS data_paths) FROM system.tables)",

	"information_schema.character_sets": "", "information_schema.collations": "", "information_schema.columns": "",
	"information_schema.engines": "", "information_schema.key_column_usage": "", "information_schema.referential_constraints": "",
	"information_schema.schemata": "", "information_schema.statistics": "", "information_schema.tables": "",
	"information_schema.views": "(SELECT * REPLACE ('' AS view_definition, '' AS VIEW_DEFINITION) FROM information_schema.views)",
}

// systemTable checks and replaces the table of a system database, which comes next. Its result is that of token.
func (in *inspection) systemTable(database token, folded string) (last token, err error) {
	ahead := in.rest
	ahead.next()
	last = ahead.next()
	table, _ := last.identifier()
	with, open := catalogue[folded+"."+strings.ToLower(table)]
	switch after := ahead.peek(); {
	case in.recipe:
		return last, in.denied("A recipe reads files and no tables: %s.%s", folded, table)
	case !open:
		return last, in.denied("To execute this query, it's necessary to have the grant SELECT ON %s.%s", folded, table)
	case with == "" || in.st.verb == "EXISTS" || in.st.verb == "DESCRIBE": // these do not read it
		return database, nil
	case after.isMark('.'): // a column with its table
		with = quoteName(table)
	case !after.is("AS"):
		with += " AS " + quoteName(table)
	}
	in.edits = append(in.edits, edit{database.pos, last.end(), with})
	in.rest = ahead
	return last, nil
}

// userFunctions lists the functions that return the name of the user, lower case. To the engine all analysts are one user.
var userFunctions = []string{"authenticateduser", "authuser", "currentuser", "current_user", "user"}

// userFunction replaces a function of userFunctions by the name of the analyst. Without brackets only CURRENT_USER is a function, and
// others are columns.
func (in *inspection) userFunction(tok token) {
	ahead, next, end := in.rest, in.rest.peek(), tok.end()
	if next.isMark('(') {
		ahead.next()
		end = ahead.next().end()
	} else if !tok.is("CURRENT_USER") || next.isMark('.') || in.prev.is("AS") {
		return
	}
	in.edits = append(in.edits, edit{tok.pos, end, "(" + quoteString(in.user) + " AS " + quoteName(in.st.text[tok.pos:end]) + ")"})
	in.rest = ahead
}

// bindIdentifiers replaces parameters of type Identifier in a formatted statement by their values, quoted, so that the guard checks them as
// names.
func bindIdentifiers(l lexed, params []param) (lexed, error) {
	var edits []edit
	rest := l.tokens
	for tok := rest.next(); tok.kind != tokenEnd; tok = rest.next() {
		if !tok.isMark('{') {
			continue
		}
		ahead := rest
		name := ahead.next()
		if !ahead.next().isMark(':') || !ahead.next().is("Identifier") {
			continue
		}
		end := ahead.next()
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name.text })
		if !end.isMark('}') || i < 0 {
			return lexed{}, newException(codeUnknownParameter, "Substitution %s is not set", quoteName(name.text))
		}
		parts := []string{params[i].value}
		if plainName.MatchString(params[i].value) {
			parts = strings.Split(params[i].value, ".")
		}
		for i, part := range parts {
			parts[i] = quoteName(part)
		}
		edits = append(edits, edit{tok.pos, end.end(), strings.Join(parts, ".")})
		rest = ahead
	}
	return l.with(edits), nil
}

// plainName matches a name that may have that of its database in front.
var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// analystShows lists what SHOW may show. Each reads tables of the catalogue.
var analystShows = []string{
	"CHANGED", "COLUMNS", "CURRENT", "DATABASES", "DICTIONARIES", "ENABLED", "ENGINES", "EXTENDED", "FIELDS", "FULL", "FUNCTIONS",
	"INDEX", "INDEXES", "INDICES", "KEYS", "SETTING", "SETTINGS", "TABLES",
}

// show returns the edits of a SHOW statement. edits are those of the names in it.
func (g *analystGuard) show(st statement, edits []edit) ([]edit, error) {
	switch {
	case slices.Contains(analystShows, st.target):
		return edits, nil
	case st.target == "CREATE":
		return nil, g.denied("The definitions of views are private: DESCRIBE has their columns")
	case st.target != "GRANTS" && st.target != "GRANT":
		return nil, g.denied("SHOW %s is not open to this user", st.target)
	}
	rest := st.before(st.clause)
	for tok := rest.next(); tok.kind != tokenEnd; tok = rest.next() {
		name, _ := rest.peek().identifier()
		if tok.is("FOR") && name != g.user && !strings.EqualFold(name, "CURRENT_USER") {
			return nil, g.denied("To execute this query, it's necessary to have the grant SHOW USERS ON *.*")
		}
	}
	grants := []string{fmt.Sprintf("GRANT %s TO %s", roleAnalysts, g.user), fmt.Sprintf("GRANT SELECT ON %s.* TO %s", g.public,
		roleAnalysts)}
	return []edit{{0, st.clause, "SELECT arrayJoin([" + quoteString(grants[0]) + ", " + quoteString(grants[1]) + "]) AS GRANTS "}}, nil
}

// explain returns the edits of an EXPLAIN statement, whose plan names the tables under a view. edits are those of the names in it.
func (g *analystGuard) explain(st statement, edits []edit) ([]edit, error) {
	switch st.target {
	case "ESTIMATE", "TABLE", "CURRENT":
		return nil, g.denied("EXPLAIN %s is not open to this user: EXPLAIN shows the plan", st.target)
	}
	hidden := "SELECT replaceRegexpAll(explain, " + quoteString(g.private.String()) + ", 'a private table') AS explain FROM ("
	return append([]edit{{0, 0, hidden}, {st.clause, st.clause, ") "}}, edits...), nil
}
