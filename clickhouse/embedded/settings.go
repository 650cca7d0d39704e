package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"companyscore/clickhouse/embedded/roster"
)

// rule is what an analyst may set one setting to.
type rule struct {
	kind    ruleKind
	ceiling uint64 // of a limit: its default in every session and its maximum
	value   string // of a fixed setting: its only value
	zones   map[string]bool
}

type ruleKind uint8

const (
	fixed   ruleKind = iota // its current value only
	free                    // any value: the setting affects only the result and cannot name anything outside the database
	flag                    // 0 or 1
	number                  // any number
	limit                   // above 0 and up to the ceiling; 0 would disable the limit
	zone                    // empty, or a time zone of the list: the engine would open a path as a file
	dropped                 // accepted and ignored
	ignored                 // a number or boolean, accepted and ignored
)

// unlimited is the ceiling of a limit without a default.
const unlimited = math.MaxUint64

// namedSettings has the rules of settings whose type does not tell what they may do. A free one must not name a file, a path, a schema, an
// address, a script or a dictionary, and the engine must not look up its value outside the database.
var namedSettings = map[string]ruleKind{
	// They change what is checked, or show the tables under a view.
	"analyzer_inline_views": fixed, "dialect": fixed, "format_display_secrets_in_show_and_select": fixed,
	"count_distinct_implementation": fixed, "enable_analyzer": fixed, "implicit_select": fixed, "replace_running_query": fixed,

	"limit": number, "offset": number,

	"bool_false_representation": free, "bool_true_representation": free, "format_csv_null_representation": free,
	"format_tsv_null_representation": free, "join_algorithm": free, "output_format_avro_codec": free,
	"output_format_avro_string_column_pattern": free, "output_format_pretty_color": free, "output_format_pretty_grid_charset": free,
	"output_format_sql_insert_table_name": free,

	// Settings of ClickHouse's HTTP interface and of its logs, and those of drivers that insert.
	"async_insert": ignored, "cancel_http_readonly_queries_on_client_close": ignored, "http_write_exception_in_output_format": ignored,
	"insert_deduplicate": ignored, "log_comment": dropped, "log_queries": ignored, "send_logs_level": dropped,
	"send_progress_in_http_headers": ignored, "wait_for_async_insert": ignored,
}

// rules are the rules of all settings of an engine, by name.
type rules map[string]rule

// readRules returns the rules for all settings that the engine has. The type decides: no value of a Bool or of an enumeration can name
// anything, a number that begins with max_ is a limit that can be lowered from the default, other numbers only tune, and what is a text may
// not change. zones are the time zones that analysts may name.
func readRules(c *libraryConn, zones map[string]bool) (rules, error) {
	out, _, err := c.query("SELECT name, type, value FROM system.settings", "JSONCompactEachRow", nil)
	if err != nil {
		return nil, fmt.Errorf("list settings: %w", err)
	}
	all := make(rules)
	for lines := json.NewDecoder(bytes.NewReader(out)); ; {
		var row [3]string
		if err := lines.Decode(&row); errors.Is(err, io.EOF) {
			all["session_timezone"] = rule{kind: zone, zones: zones}
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("list settings: %w", err)
		}
		all[row[0]] = ruleOf(row[0], row[1], row[2])
	}
}

func ruleOf(name, kind, value string) rule {
	if named, ok := namedSettings[name]; ok {
		return rule{kind: named, value: value}
	}
	switch kind {
	case "Bool", "BoolAuto":
		// experiments and compilers, which could end the process
		if strings.HasPrefix(name, "allow_") || strings.HasPrefix(name, "compile_") {
			return rule{kind: fixed, value: value}
		}
		return rule{kind: flag}
	case "UInt64", "Int64", "Int32", "Float", "Double", "FloatAuto", "UInt64Auto", "NonZeroUInt64", "MaxThreads", "Seconds", "Milliseconds":
		switch ceiling, err := strconv.ParseUint(value, 10, 64); {
		// to the engine, analysts and service are one user
		case strings.Contains(name, "_for_user"), strings.Contains(name, "_for_all_users"):
			return rule{kind: ignored}
		case strings.HasPrefix(name, "max_") && err == nil && ceiling > 0:
			return rule{kind: limit, ceiling: ceiling}
		case strings.HasPrefix(name, "max_"):
			return rule{kind: limit, ceiling: unlimited}
		case strings.HasPrefix(name, "output_format_"), strings.HasPrefix(name, "min_execution_speed"):
			return rule{kind: number}
		}
		return rule{kind: ignored}
	case "String", "Map", "URI", "Timezone", "Dialect":
		return rule{kind: fixed, value: value}
	}
	return rule{kind: free} // a character or an enumeration
}

// of returns the rules of an analyst with limits. spill limits the bytes of temporary files of one statement.
func (r rules) of(l roster.Limits, spill uint64) rules {
	own := maps.Clone(r)
	for name, ceiling := range map[string]uint64{
		"max_execution_time": l.Seconds, "max_memory_usage": l.MemoryBytes, "max_result_bytes": l.Bytes, "max_result_rows": l.Rows,
		"max_temporary_data_on_disk_size_for_query": spill, "max_threads": uint64(runtime.NumCPU()), "readonly": 2,
	} {
		own[name] = rule{kind: limit, ceiling: ceiling}
	}
	for _, name := range []string{"allow_ddl", "allow_introspection_functions"} {
		own[name] = rule{kind: fixed, value: "0"}
	}
	return own
}

// initial returns the initial settings of the sessions of an analyst with limits: the limits, and the bytes of memory above which
// aggregations and sorts use the disk. An aggregation that used the disk reads it back into as much memory, so half is the most that it can
// have; a quarter is left for a sort of the same statement.
func initial(l roster.Limits, spill uint64) string {
	half, quarter := strconv.FormatUint(max(1, l.MemoryBytes/2), 10), strconv.FormatUint(max(1, l.MemoryBytes/4), 10)
	return assignments(map[string]string{
		"allow_ddl": "0", "allow_introspection_functions": "0",
		"max_bytes_before_external_group_by": half, "max_bytes_before_external_sort": quarter, "result_overflow_mode": "throw",
		"max_execution_time": strconv.FormatUint(l.Seconds, 10), "max_memory_usage": strconv.FormatUint(l.MemoryBytes, 10),
		"max_result_bytes": strconv.FormatUint(l.Bytes, 10), "max_result_rows": strconv.FormatUint(l.Rows, 10),
		"max_temporary_data_on_disk_size_for_query": strconv.FormatUint(spill, 10),
		"max_threads": strconv.Itoa(runtime.NumCPU()), "readonly": "2",
	})
}

// check returns an exception if the analyst may not set a setting to value.
func (all rules) check(name, value string) (rule, error) {
	r, ok := all[name]
	if !ok {
		return r, newException(codeUnknownSetting,
			"Setting %s is neither a builtin setting nor started with the prefix 'SQL_' registered for user-defined settings", name)
	}
	isOne, isZero := value == "1" || value == "true", value == "0" || value == "false"
	switch r.kind {
	case fixed:
		if value != r.value && !(isOne && r.value == "1") && !(isZero && r.value == "0") {
			return r, newException(codeSettingConstraint, "Setting %s should not be changed", name)
		}
	case flag:
		if !isOne && !isZero && value != "auto" {
			return r, newException(codeBadArguments, "Setting %s is %q: send 0 or 1", name, value)
		}
	case zone:
		if value != "" && !r.zones[value] {
			return r, newException(codeBadArguments, "Setting %s is %q: send the name of a time zone, such as Europe/Paris; "+
				"the documentation has a list of those that are open to analysts", name, value)
		}
	case number, ignored:
		if _, err := strconv.ParseFloat(value, 64); err != nil && value != "auto" && !isOne && !isZero {
			return r, newException(codeBadArguments, "Setting %s is %q: send a number", name, value)
		}
	case limit:
		return r, r.within(name, value)
	}
	return r, nil
}

// within returns an exception if a value is not one of the limit.
func (r rule) within(name, value string) error {
	n, err := strconv.ParseFloat(value, 64)
	if name != "max_execution_time" { // drivers derive it from a deadline, so it may have a fraction
		var whole uint64
		whole, err = strconv.ParseUint(value, 10, 64)
		n = float64(whole)
	}
	switch {
	case err != nil:
		return newException(codeSettingConstraint, "Setting %s is %q: send a number", name, value)
	case n <= 0:
		return newException(codeSettingConstraint, "Setting %s shouldn't be less than 1: this user may lower it, not switch it off", name)
	case n > float64(r.ceiling):
		return newException(codeSettingConstraint, "Setting %s shouldn't be greater than %d: this user may lower it, not raise it",
			name, r.ceiling)
	}
	return nil
}

// set applies one setting from the URL or, for an analyst, from the statement.
func (r *request) set(name, value string) (err error) {
	if r.user.guard != nil {
		known, err := r.user.guard.rules.check(name, value)
		if err != nil || known.kind == dropped || known.kind == ignored || known.kind == fixed {
			return err
		}
	}
	if name == "max_execution_time" {
		// Not part of the session: clickhouse-go derives it from the deadline of each call, and calls with different
		// sessions cannot share a connection.
		r.limit, err = executionTime(value)
		return err
	}
	r.settings[name] = value
	return nil
}

// setFromStatement applies the settings at the end of a statement of an analyst and returns its text with blanks in their place, so that
// positions in errors are those of the analyst's text. The guard checks settings elsewhere in the statement.
func (r *request) setFromStatement(st statement, clauses []settingsClause) (string, error) {
	text := []byte(st.text)
	for _, clause := range clauses {
		for _, s := range clause.settings {
			if err := r.set(s.name, s.value); err != nil {
				return "", err
			}
		}
		for i := clause.from; i < clause.to; i++ {
			if text[i] != '\n' {
				text[i] = ' '
			}
		}
	}
	r.session.settings = assignments(r.settings)
	return string(text), nil
}

// assignments returns settings as the argument of SET, sorted by name.
func assignments(settings map[string]string) string {
	parts := make([]string, 0, len(settings))
	for name, value := range settings {
		parts = append(parts, quoteName(name)+" = "+quoteString(value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// settingsClause is a SETTINGS clause at the end of a statement, or before its FORMAT clause.
type settingsClause struct {
	from, to int // byte offsets of the word SETTINGS and of the end of the clause
	settings []setting
}

type setting struct{ name, value string }

// settingsClauses returns the SETTINGS clauses whose values are numbers, strings, true or false.
func settingsClauses(rest tokens) (clauses []settingsClause) {
	depth := 0
	for tok := rest.next(); tok.kind != tokenEnd; tok = rest.next() {
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case depth == 0 && tok.is("SETTINGS"):
			ahead := rest
			settings, ok := ahead.settings()
			if next := ahead.peek(); ok && (next.kind == tokenEnd || next.is("FORMAT")) {
				clauses = append(clauses, settingsClause{tok.pos, next.pos, settings})
				rest = ahead
			}
		}
	}
	return clauses
}

// settings reads name = value, name = value and so on. ok is false if the tokens have another form.
func (ts *tokens) settings() (settings []setting, ok bool) {
	for {
		name, isName := ts.next().identifier()
		if !isName || !ts.next().isMark('=') {
			return nil, false
		}
		value, ok := ts.plainValue()
		if !ok {
			return nil, false
		}
		settings = append(settings, setting{name, value})
		if !ts.peek().isMark(',') {
			return settings, true
		}
		ts.next()
	}
}

// settingAfter returns the first setting name of the SETTINGS clause that begins with tok, the token before ts.
func (ts tokens) settingAfter(tok token) (name string, ok bool) {
	if !tok.is("SETTINGS") {
		return "", false
	}
	name, ok = ts.next().identifier()
	next := ts.next()
	for next.isMark('.') {
		ts.next()
		next = ts.next()
	}
	return name, ok && next.isMark('=')
}

// plainValue reads a number, a string, true or false.
func (ts *tokens) plainValue() (value string, ok bool) {
	tok := ts.next()
	switch {
	case tok.is("TRUE"):
		return "1", true
	case tok.is("FALSE"):
		return "0", true
	case tok.kind == tokenQuoted:
		return tok.literal()
	case tok.isMark('-'):
		value, tok = "-", ts.next()
	}
	if !tok.isNumber() {
		return "", false
	}
	value += tok.text
	if ts.peek().isMark('.') {
		ts.next()
		value += "." + ts.next().text
	}
	return value, true
}
