package embedded

import (
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// rule is what the analyst may set one setting to.
type rule struct {
	kind    ruleKind
	ceiling uint64 // of a limit: its default in every session and its maximum
}

type ruleKind uint8

const (
	free    ruleKind = iota // any value: the setting affects only the result and cannot name anything outside the database
	limit                   // above 0 and up to the ceiling; 0 would disable the limit
	zone                    // must look like a time zone name: the engine would open a path as a file
	dropped                 // accepted and ignored
)

// unlimited is the ceiling of a limit without a default.
const unlimited = math.MaxUint64

// zoneName matches names such as UTC, Etc/GMT+1 and America/Argentina/Buenos_Aires, and the empty default.
var zoneName = regexp.MustCompile(`^([A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*)?$`)

// analystSettings lists all settings that the analyst may send, in the URL or in SQL. It must not contain a setting that names a file,
// a path, a schema, an address, a script or a dictionary, or whose value the engine looks up outside the database.
var analystSettings = map[string]rule{
	"max_block_size":     {limit, 65409}, // rows, the engine's default
	"max_bytes_to_read":  {limit, unlimited},
	"max_execution_time": {limit, 300},     // seconds
	"max_memory_usage":   {limit, 2 << 30}, // bytes of one statement
	"max_result_bytes":   {limit, 8 << 30},
	"max_result_rows":    {limit, 20_000_000},
	"max_rows_to_read":   {limit, unlimited},
	"max_threads":        {limit, uint64(runtime.NumCPU())},
	"readonly":           {limit, 2}, // 2: settings may change, data not

	// Settings of ClickHouse's HTTP interface.
	"http_headers_progress_interval_ms":     {kind: dropped},
	"http_write_exception_in_output_format": {kind: dropped},

	"extremes":             {},
	"group_by_use_nulls":   {},
	"join_use_nulls":       {},
	"limit":                {},
	"offset":               {},
	"result_overflow_mode": {},
	"session_timezone":     {kind: zone},

	"bool_false_representation":            {},
	"bool_true_representation":             {},
	"date_time_output_format":              {},
	"format_csv_delimiter":                 {},
	"format_csv_null_representation":       {},
	"format_tsv_null_representation":       {},
	"output_format_decimal_trailing_zeros": {},
	"output_format_parallel_formatting":    {},
	"output_format_trim_fixed_string":      {},
	"output_format_write_statistics":       {},

	"output_format_arrow_compression_method":                            {},
	"output_format_arrow_date_as_uint16":                                {},
	"output_format_arrow_fixed_string_as_fixed_byte_array":              {},
	"output_format_arrow_low_cardinality_as_dictionary":                 {},
	"output_format_arrow_string_as_string":                              {},
	"output_format_arrow_unsupported_types_as_binary":                   {},
	"output_format_arrow_use_64_bit_indexes_for_dictionary":             {},
	"output_format_arrow_use_signed_indexes_for_dictionary":             {},
	"output_format_avro_codec":                                          {},
	"output_format_avro_string_column_pattern":                          {},
	"output_format_binary_encode_types_in_binary_format":                {},
	"output_format_binary_write_json_as_string":                         {},
	"output_format_bson_string_as_string":                               {},
	"output_format_csv_crlf_end_of_line":                                {},
	"output_format_csv_serialize_tuple_into_separate_columns":           {},
	"output_format_json_array_of_rows":                                  {},
	"output_format_json_escape_forward_slashes":                         {},
	"output_format_json_map_as_array_of_tuples":                         {},
	"output_format_json_named_tuples_as_objects":                        {},
	"output_format_json_pretty_print":                                   {},
	"output_format_json_quote_64bit_floats":                             {},
	"output_format_json_quote_64bit_integers":                           {},
	"output_format_json_quote_decimals":                                 {},
	"output_format_json_quote_denormals":                                {},
	"output_format_json_skip_null_value_in_named_tuples":                {},
	"output_format_json_validate_utf8":                                  {},
	"output_format_markdown_escape_special_characters":                  {},
	"output_format_msgpack_uuid_representation":                         {},
	"output_format_native_encode_types_in_binary_format":                {},
	"output_format_native_use_flattened_dynamic_and_json_serialization": {},
	"output_format_native_write_json_as_string":                         {},
	"output_format_orc_compression_method":                              {},
	"output_format_orc_string_as_string":                                {},
	"output_format_parquet_compression_method":                          {},
	"output_format_parquet_date_as_uint16":                              {},
	"output_format_parquet_datetime_as_uint32":                          {},
	"output_format_parquet_enum_as_byte_array":                          {},
	"output_format_parquet_fixed_string_as_fixed_byte_array":            {},
	"output_format_parquet_geometadata":                                 {},
	"output_format_parquet_string_as_string":                            {},
	"output_format_parquet_write_bloom_filter":                          {},
	"output_format_parquet_write_checksums":                             {},
	"output_format_parquet_write_page_index":                            {},
	"output_format_pretty_color":                                        {},
	"output_format_pretty_display_footer_column_names":                  {},
	"output_format_pretty_fallback_to_vertical":                         {},
	"output_format_pretty_grid_charset":                                 {},
	"output_format_pretty_highlight_digit_groups":                       {},
	"output_format_pretty_max_column_name_width_cut_to":                 {},
	"output_format_pretty_max_column_pad_width":                         {},
	"output_format_pretty_max_rows":                                     {},
	"output_format_pretty_max_value_width":                              {},
	"output_format_pretty_multiline_fields":                             {},
	"output_format_pretty_named_tuples_as_json":                         {},
	"output_format_pretty_row_numbers":                                  {},
	"output_format_pretty_single_large_number_tip_threshold":            {},
	"output_format_protobuf_nullables_with_google_wrappers":             {},
	"output_format_sql_insert_include_column_names":                     {},
	"output_format_sql_insert_quote_names":                              {},
	"output_format_sql_insert_table_name":                               {},
	"output_format_sql_insert_use_replace":                              {},
	"output_format_tsv_crlf_end_of_line":                                {},
	"output_format_values_escape_quote_with_quote":                      {},
}

// analystLimits returns the initial settings of the analyst's sessions: the limits, and the bytes of memory above which aggregations
// and sorts use the disk.
func analystLimits() string {
	settings := map[string]string{
		"max_bytes_before_external_group_by": "536870912",
		"max_bytes_before_external_sort":     "536870912",
		"result_overflow_mode":               "throw",
	}
	for name, r := range analystSettings {
		if r.kind == limit && r.ceiling != unlimited {
			settings[name] = strconv.FormatUint(r.ceiling, 10)
		}
	}
	return assignments(settings)
}

// check returns an exception if the analyst may not set the setting to value.
func (r rule) check(name, value string) error {
	switch {
	case r.kind == zone && !zoneName.MatchString(value):
		return newException(codeBadArguments, "Setting %s is %q: send the name of a time zone, such as Europe/Paris", name, value)
	case r.kind != limit:
		return nil
	}
	n, err := strconv.ParseFloat(value, 64)
	if name != "max_execution_time" { // drivers derive it from a deadline, so it may have a fraction
		var whole uint64
		whole, err = strconv.ParseUint(value, 10, 64)
		n = float64(whole)
	}
	if err == nil && n > 0 && n <= float64(r.ceiling) {
		return nil
	}
	values := "1 or more"
	if r.ceiling != unlimited {
		values = "1 to " + strconv.FormatUint(r.ceiling, 10)
	}
	return newException(codeSettingConstraint, "Setting %s is %s: this user may lower it, not raise it or switch it off: send %s", name, value, values)
}

// set applies one setting from the URL or, for the analyst, from the statement.
func (r *request) set(name, value string) (err error) {
	if r.user.guard != nil {
		known, ok := analystSettings[name]
		if !ok {
			return newException(codeReadonly, "Cannot modify '%s' setting in readonly mode: it is not one of those open to this user", name)
		}
		if err := known.check(name, value); err != nil || known.kind == dropped {
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

// setFromStatement applies the settings at the end of a statement of the analyst and returns the statement without them. The guard
// rejects settings elsewhere in the statement.
func (r *request) setFromStatement(text string) (string, error) {
	var rest strings.Builder
	end := 0
	for _, clause := range settingsClauses(text) {
		for _, s := range clause.settings {
			if err := r.set(s.name, s.value); err != nil {
				return "", err
			}
		}
		rest.WriteString(text[end:clause.from])
		end = clause.to
	}
	rest.WriteString(text[end:])
	r.session.settings = assignments(r.settings)
	return rest.String(), nil
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
func settingsClauses(text string) (clauses []settingsClause) {
	depth := 0
	lex := &lexer{src: text}
	for tok := lex.next(); tok.kind != tokenEnd; tok = lex.next() {
		switch {
		case tok.isMark('(') || tok.isMark('[') || tok.isMark('{'):
			depth++
		case tok.isMark(')') || tok.isMark(']') || tok.isMark('}'):
			depth--
		case depth == 0 && tok.is("SETTINGS"):
			ahead := *lex
			settings, ok := ahead.settings()
			if next := ahead.peek(); ok && (next.kind == tokenEnd || next.is("FORMAT")) {
				clauses = append(clauses, settingsClause{tok.pos, next.pos, settings})
				*lex = ahead
			}
		}
	}
	return clauses
}

// settings parses name = value, name = value and so on. ok is false if the text has another form.
func (l *lexer) settings() (settings []setting, ok bool) {
	for {
		name, isName := l.next().identifier()
		if !isName || !l.next().isMark('=') {
			return nil, false
		}
		value, ok := l.plainValue()
		if !ok {
			return nil, false
		}
		settings = append(settings, setting{name, value})
		if !l.peek().isMark(',') {
			return settings, true
		}
		l.next()
	}
}

// settingAfter returns the first setting name of the SETTINGS clause that begins with tok, the last token read.
func (l *lexer) settingAfter(tok token) (name string, ok bool) {
	if !tok.is("SETTINGS") {
		return "", false
	}
	ahead := *l
	name, ok = ahead.next().identifier()
	next := ahead.next()
	for next.isMark('.') {
		ahead.next()
		next = ahead.next()
	}
	return name, ok && next.isMark('=')
}

// plainValue parses a number, a string, true or false.
func (l *lexer) plainValue() (value string, ok bool) {
	tok := l.next()
	switch {
	case tok.is("TRUE"):
		return "1", true
	case tok.is("FALSE"):
		return "0", true
	case tok.kind == tokenQuoted && len(tok.text) > 1 && tok.text[0] == '\'' && tok.text[len(tok.text)-1] == '\'':
		return stringUnquoter.Replace(tok.text[1 : len(tok.text)-1]), true
	case tok.isMark('-'):
		value, tok = "-", l.next()
	}
	if tok.kind != tokenWord || tok.text[0] < '0' || tok.text[0] > '9' {
		return "", false
	}
	value += tok.text
	if l.peek().isMark('.') {
		l.next()
		value += "." + l.next().text
	}
	return value, true
}

var stringUnquoter = strings.NewReplacer(`\\`, `\`, `\'`, `'`, `''`, `'`, `\t`, "\t", `\n`, "\n", `\r`, "\r", `\0`, "\x00")
