package embedded_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"companyscore/clickhouse/embedded"
)

// fuzzed is the engine of FuzzAnalystStatements. Each process of the fuzzer has one.
var fuzzed struct {
	sync.Mutex
	engine *child
}

// The limits of a statement. A statement may run until it has filled its memory, and the fuzzer ends a call after 10 s.
const (
	fuzzLimit  = time.Second
	fuzzMemory = 300_000_000 // bytes
)

// FuzzAnalystStatements sends an analyst's statements with damaged values, deep, wide and long, over every allowed function, data type and
// format, to an engine in a process of its own with a limit of 2 GB. The engine must answer each within its limit of time and the grace of
// the watch; it may not end, by itself or by the watch. An input is the seed of a statement. `make fuzz-sql` runs it for an hour.
func FuzzAnalystStatements(f *testing.F) {
	for seed := range uint64(150) {
		f.Add(seed)
	}
	dir := f.TempDir()
	defer func() {
		if fuzzed.engine != nil {
			fuzzed.engine.stop()
			fuzzed.engine = nil
		}
	}()
	f.Fuzz(func(t *testing.T, seed uint64) {
		fuzzed.Lock()
		defer fuzzed.Unlock()
		if fuzzed.engine == nil {
			var err error
			if fuzzed.engine, err = runChild(childConfig{Path: filepath.Join(dir, "data"), Memory: 2 << 30}); err != nil {
				t.Fatal(err)
			}
		}
		query, params := newStatement(seed)
		params.Set("max_execution_time", fmt.Sprint(fuzzLimit.Seconds()))
		params.Set("max_memory_usage", fmt.Sprint(fuzzMemory))
		ctx, cancel := context.WithTimeout(t.Context(), fuzzLimit+2*time.Minute)
		defer cancel()
		began := time.Now()
		status, body := fuzzed.engine.ask(ctx, "analyst", query, params)
		if took := time.Since(began); took > 2*fuzzLimit {
			t.Logf("slow, %s: %.2000s %v", took, query, params)
		}
		if status != 0 || !engineEnded(fuzzed.engine) {
			return // an answer that breaks off has an error at its end
		}
		log := fuzzed.engine.log.String()
		fuzzed.engine = nil
		t.Fatalf("the engine ended: %s\n%s\nstatement: %s\n%v", body, log[max(0, len(log)-2000):], query, params)
	})
}

// engineEnded reports whether the process of an engine has ended or does not answer.
func engineEnded(s *child) bool {
	status, _ := s.ask(context.Background(), "companyscore", "SELECT 1", nil)
	return status == 0
}

// newStatement returns the statement of a seed and the parameters of its address.
func newStatement(seed uint64) (string, url.Values) {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 1)), params: url.Values{}}
	query := g.statement()
	if g.chance(0.3) {
		query += " SETTINGS " + g.setting()
	}
	if g.chance(0.5) {
		query += " FORMAT " + g.pick(embedded.Allowed("formats"))
	}
	if g.chance(0.02) { // damaged text
		text := []byte(query)
		for range 1 + g.IntN(4) {
			text[g.IntN(len(text))] = byte(g.pick([]string{"(", ")", "'", "\\", "\x00", "\xff", "{", "}", ",", "`"})[0])
		}
		query = string(text)
	}
	return query, g.params
}

// generator makes statements.
type generator struct {
	*rand.Rand
	params url.Values
	calls  int // in the statement
}

func (g *generator) pick(from []string) string { return from[g.IntN(len(from))] }

func (g *generator) chance(p float64) bool { return g.Float64() < p }

// several joins up to most values of f.
func (g *generator) several(least, most int, f func() string) string {
	parts := make([]string, least+g.IntN(most-least+1))
	for i := range parts {
		parts[i] = f()
	}
	return strings.Join(parts, ", ")
}

func (g *generator) setting() string {
	return g.pick([]string{"max_threads = 1", "max_block_size = 1", "max_block_size = 7", "max_memory_usage = 10000000",
		"join_algorithm = 'grace_hash'", "join_algorithm = 'full_sorting_merge'",
		"join_algorithm = 'partial_merge'", "max_bytes_before_external_group_by = 1000000", "max_bytes_before_external_sort = 1000000",
		"group_by_use_nulls = 1", "optimize_move_to_prewhere = 0",
		"cast_keep_nullable = 1", "session_timezone = 'Asia/Kolkata'", "output_format_json_quote_denormals = 1",
		"date_time_output_format = 'iso'", "join_use_nulls = 1",
		"short_circuit_function_evaluation = 'force_enable'", "union_default_mode = 'DISTINCT'", "max_rows_in_join = 1000",
		"optimize_functions_to_subcolumns = 0"})
}

// statement returns a SELECT without FORMAT.
func (g *generator) statement() string {
	rows := g.pick([]string{"1", "2", "10", "1000", "100000"})
	from := " FROM numbers(" + rows + ")"
	switch n := g.IntN(100); {
	case n < 55:
		return "SELECT " + g.several(1, 3, func() string { return g.call(3) }) + from
	case n < 68: // aggregates
		group := g.pick([]string{"", " GROUP BY number % 7", " GROUP BY toString(number)", " GROUP BY ALL",
			" GROUP BY CUBE(number % 2, number % 3)", " GROUP BY ROLLUP(number % 2, number)", " GROUP BY 1 WITH TOTALS",
			" GROUP BY GROUPING SETS ((number % 2), ())"})
		return "SELECT " + g.several(1, 3, func() string { return g.aggregate() }) + from + group
	case n < 74: // windows
		over := g.pick([]string{"()", "(ORDER BY number)", "(PARTITION BY number % 3 ORDER BY number DESC)",
			"(ORDER BY number ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)",
			"(ORDER BY number RANGE BETWEEN 18446744073709551615 PRECEDING AND UNBOUNDED FOLLOWING)",
			"(ROWS BETWEEN UNBOUNDED PRECEDING AND 3 FOLLOWING)"})
		function := g.pick([]string{"row_number()", "rank()", "ntile(3)", "lagInFrame(" + g.value(1) + ", " + g.value(0) + ")",
			"nth_value(number, " + g.value(0) + ")", "lead(number, 2)", g.aggregate()})
		return "SELECT " + function + " OVER " + over + from
	case n < 80: // joins and sorts
		return g.pick([]string{
			"SELECT * FROM (SELECT " + g.value(2) + " AS a" + from + ") AS l " +
				g.pick([]string{"", "LEFT ", "FULL ", "ANY LEFT ", "SEMI LEFT ", "ANTI LEFT ", "ASOF "}) + "JOIN (SELECT " + g.value(2) +
				" AS b, number AS n FROM numbers(50)) AS r ON l.a = r.b",
			"SELECT count() FROM numbers(3000) AS a, numbers(3000) AS b, numbers(3000) AS c WHERE " + g.call(1),
			"SELECT " + g.value(2) + " AS a" + from + " ORDER BY a" + g.pick([]string{"", " DESC NULLS FIRST", " LIMIT 3 BY a",
				" LIMIT 10 WITH TIES", " WITH FILL", " WITH FILL FROM 1 TO 1000000 STEP 3"}),
			"SELECT a" + from + " ARRAY JOIN " + g.value(2) + " AS a",
			"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < " + g.pick([]string{"10", "100000"}) +
				") SELECT max(n) FROM r",
			"SELECT DISTINCT " + g.value(3) + from + " UNION DISTINCT SELECT " + g.value(2) + " INTERSECT SELECT " + g.value(2),
			"SELECT " + g.value(2) + " IN (SELECT " + g.value(2) + from + ")" + from,
			"SELECT * APPLY " + g.pick(embedded.AllowedFunctions()) + " FROM (SELECT " +
				g.several(1, 5, func() string { return g.value(2) }) + ")",
		})
	case n < 86: // deep
		depth := 1 + g.IntN(400)
		switch g.IntN(6) {
		case 0:
			f := g.pick(embedded.AllowedFunctions())
			return "SELECT " + strings.Repeat(f+"(", depth) + g.value(0) + strings.Repeat(")", depth) + from
		case 1:
			return "SELECT " + strings.Repeat("[", depth) + g.value(0) + strings.Repeat("]", depth)
		case 2:
			return strings.Repeat("SELECT * FROM (", depth/4+1) + "SELECT " + g.call(2) + from + strings.Repeat(")", depth/4+1)
		case 3:
			return "SELECT CAST(" + g.value(1) + ", '" + strings.Repeat(g.pick([]string{"Array(", "Tuple(", "Nullable(", "Map(String, "}),
				depth) + "UInt8" + strings.Repeat(")", depth) + "')"
		case 4:
			return "SELECT " + strings.Repeat("arrayMap(x -> ", depth/8+1) + g.call(1) + strings.Repeat(", range(3))", depth/8+1)
		default:
			return "SELECT " + "JSONExtractRaw('" + strings.Repeat(g.pick([]string{"[", `{"a":`}), depth*20) + "', 1)" + from
		}
	case n < 91: // wide
		width := 1 + g.IntN(1500)
		switch g.IntN(6) {
		case 0:
			return "SELECT " + strings.TrimSuffix(strings.Repeat(g.call(1)+", ", width), ", ") + from
		case 1:
			return "SELECT number IN (" + strings.TrimSuffix(strings.Repeat("1, 'a', ", width*4), ", ") + ")" + from
		case 2:
			return "SELECT CASE " + strings.Repeat("WHEN number = 1 THEN "+g.value(1)+" ", width) + "END" + from
		case 3:
			return strings.TrimSuffix(strings.Repeat("SELECT "+g.call(1)+" UNION ALL ", width/5+1), " UNION ALL ")
		case 4:
			return "SELECT " + strings.TrimSuffix(strings.Repeat(g.value(0)+g.pick([]string{" + ", " AND ", " || ", " * ", " OR "}),
				width*5), " ") + " 1"
		default:
			return "SELECT match(toString(number), '" + strings.Repeat(g.pick([]string{"(a|", "[a-z]*", "a?", "(?:a{1,9}", ".*"}), width) +
				"')" + from
		}
	case n < 96: // long
		long := g.pick([]string{"leftPad('', 1000000, 'ab')", "arrayStringConcat(range(100000), ',')",
			"'" + strings.Repeat(g.pick([]string{"a", "ab", "\xff", "%41", "(", "{", "0"}), 200_000) + "'", "range(1000000)",
			"arrayMap(x -> toString(x), range(100000))", "mapFromArrays(range(10000), range(10000))", "toFixedString('', 1000000)"})
		arguments := []string{long}
		for range g.IntN(3) {
			arguments = append(arguments, g.pick([]string{g.value(1), long}))
		}
		g.Shuffle(len(arguments), func(i, j int) { arguments[i], arguments[j] = arguments[j], arguments[i] })
		if g.chance(0.3) {
			arguments = append([]string{g.lambda()}, arguments...)
		}
		return "SELECT " + g.pick(embedded.AllowedFunctions()) + "(" + strings.Join(arguments, ", ") + ")"
	default: // parameters
		g.params.Set("param_p", g.damaged())
		return "SELECT {p:" + g.kind(3) + "}, " + g.call(1)
	}
}

// kind returns a data type.
func (g *generator) kind(depth int) string {
	name := g.pick(embedded.Allowed("types"))
	switch {
	case depth == 0 && (name == "Array" || name == "Tuple" || name == "Map" || name == "Nullable" || name == "LowCardinality"):
		return "String"
	case name == "Array" || name == "Nullable" || name == "LowCardinality":
		return name + "(" + g.kind(depth-1) + ")"
	case name == "Tuple":
		return "Tuple(" + g.several(1, 4, func() string { return g.kind(depth - 1) }) + ")"
	case name == "Map":
		return "Map(" + g.kind(0) + ", " + g.kind(depth-1) + ")"
	case name == "FixedString", strings.HasPrefix(name, "Decimal"), name == "DateTime64":
		return name + "(" + g.pick([]string{"1", "3", "9", "16", "76", "1000000"}) + ")"
	case strings.HasPrefix(name, "Enum"):
		return name + "('a' = 1, 'b' = -128)"
	}
	return name
}

// damaged returns a text that some parser may take.
func (g *generator) damaged() string {
	text := []byte(g.pick([]string{"", "a", "0", "-1", "1e999", "nan", "18446744073709551616", "-170141183460469231731687303715884105729",
		"2020-01-01", "2299-12-31 23:59:59.999999999", "1900-01-01 00:00:00",
		"0000-00-00", "24:00:00", "[1,2,3]", "['a','b']", "{'a':1}", `{"a":[1,{"b":null}],"c":"\u0000"}`, "(1,'a')", "255.255.255.255",
		"::ffff:1.2.3.4", "ffffffff-ffff-ffff-ffff-ffffffffffff",
		"https://user:pw@example.co.uk:99999/a/b?c=d&e#f", "(a*)*b", "[[:alpha:", `\1\2`, "%Y-%m-%d %H:%i:%s", "%", "%%%f%Z%z", "$.a[*].b",
		"$..a", "yyyy", "UTC", "Europe/Paris", "day", "nanosecond", "Array(Int8)",
		"YWJj====", "%E0%A4%A", "&lt;&#x110000;", "\xf0\x28\x8c\x28", "\xed\xa0\x80", "ﬃİß", "\x00\x01\x7f\x80\xff"}))
	for len(text) > 0 && g.chance(0.4) {
		text[g.IntN(len(text))] = []byte{0, 127, 128, 255, '\\', '"', '(', '[', '{', ',', '%', '-'}[g.IntN(12)]
	}
	for g.chance(0.1) && len(text) < 10_000 {
		text = append(text, text...)
	}
	return string(text)
}

// text returns a damaged text as a literal.
func (g *generator) text() string { return fmt.Sprintf("unhex('%x')", g.damaged()) }

// value returns an expression.
func (g *generator) value(depth int) string {
	if depth > 0 && g.chance(0.5) {
		return g.call(depth - 1)
	}
	switch g.IntN(14) {
	case 0, 1:
		return g.pick([]string{"0", "1", "-1", "2", "3", "7", "127", "-128", "255", "256", "65535", "2147483647", "-2147483648",
			"4294967295", "9223372036854775807", "-9223372036854775808", "18446744073709551615",
			"1000000", "1000000000000"})
	case 2:
		return g.pick([]string{"0.1", "-0.0", "1e308", "-1e308", "1e-320", "nan", "inf", "-inf", "0.5", "1e18", "1e19"})
	case 3, 4:
		return g.text()
	case 5:
		return "'" + g.pick([]string{"", "a", "abc", "day", "month", "%Y", "UTC", "1", "2020-01-01", ",", "(", "é", "[1]", "{}", "b"}) + "'"
	case 6:
		return g.pick([]string{"number", "toString(number)", "number % 7", "toInt8(number)", "toDate(number)", "toFloat64(number) / 3",
			"toDateTime(number)", "if(number % 3 = 0, NULL, number)"})
	case 7:
		return g.pick([]string{"now()", "today()", "toDate(0)", "toDate(65535)", "toDate32('1900-01-01')",
			"toDateTime64('2299-12-31 23:59:59', 9)", "toDateTime64('1900-01-01 00:00:00', 3, 'UTC')", "toDateTime(4294967295)",
			"toIntervalDay(1)", "toIntervalYear(9223372036854775807)", "toIntervalNanosecond(-1)"})
	case 8:
		return "[" + g.several(0, 4, func() string { return g.value(0) }) + "]"
	case 9:
		return g.pick([]string{"range(10)", "range(number % 50)", "[]", "emptyArrayString()", "[NULL]", "[[1], [2, 3]]",
			"arrayWithConstant(3, 'a')", "['a', 'b', 'a']", "[1.5, nan, inf]", "range(1000)"})
	case 10:
		return g.pick([]string{"(1, 'a')", "tuple()", "map('a', 1)", "map(1, [2])", "mapFromArrays([1, 2], ['a', 'b'])", "((1, 2), 3)"})
	case 11:
		return g.pick([]string{"NULL", "toDecimal32('1.1', 4)", "toDecimal128('-1e20', 10)", "toDecimal256('1', 70)",
			"toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')", "toInt128(-1)", "true",
			"toUUID('ffffffff-ffff-ffff-ffff-ffffffffffff')", "toIPv4('1.2.3.4')", "toIPv6('::')", "toLowCardinality('a')",
			"toFixedString('abc', 16)", "toNullable(1)", "CAST('a', 'Enum8(\\'a\\' = 1)')", "materialize('a')"})
	case 12:
		return "CAST(" + g.text() + ", '" + strings.ReplaceAll(g.kind(2), "'", `\'`) + "')"
	default:
		return "materialize(" + g.value(0) + ")"
	}
}

func (g *generator) lambda() string {
	return g.pick([]string{"x -> x", "x -> NULL", "x -> x > 1", "(x, y) -> x", "(x, y) -> (y, x)", "x -> toString(x)", "x -> [x, x]",
		"x -> intDiv(1, x)", "(k, v) -> (v, k)", "x -> throwIf(x)", "x -> length(x)"})
}

// call returns a call of an allowed function. Its arguments are of any types, more often of one that the function takes.
func (g *generator) call(depth int) string {
	name := g.pick(embedded.AllowedFunctions())
	if g.calls++; strings.HasPrefix(name, "sleep") || g.calls > 40 {
		name = "toString"
	}
	arguments := make([]string, g.IntN(5))
	for i := range arguments {
		arguments[i] = g.value(depth)
	}
	if len(arguments) > 0 && g.chance(0.7) {
		array := func() string {
			return g.pick([]string{"range(10)", "['a', 'b']", "[1, NULL]", "[[1], []]", "range(number % 100)", "[(1, 2)]", "[0.5, nan]"})
		}
		switch {
		case strings.HasPrefix(name, "array"):
			arguments[0] = array()
			if g.chance(0.5) {
				arguments = append([]string{g.lambda()}, arguments...)
			}
		case strings.HasPrefix(name, "map"):
			arguments[0] = g.pick([]string{"map('a', 1)", "map(1, 2, 3, 4)", "map()", "mapFromArrays(range(10), range(10))"})
			if g.chance(0.5) {
				arguments = append([]string{g.lambda()}, arguments...)
			}
		case strings.HasPrefix(name, "JSON"), strings.HasPrefix(name, "simpleJSON"), strings.Contains(name, "parse"),
			strings.Contains(name, "extract"), strings.Contains(name, "Or"), strings.Contains(name, "UTF8"),
			strings.Contains(name, "decode"), strings.Contains(name, "split"), strings.Contains(name, "replace"),
			strings.Contains(name, "String"):
			arguments[0] = g.text()
		case strings.HasPrefix(name, "toStart"), strings.HasPrefix(name, "add"), strings.HasPrefix(name, "subtract"),
			strings.Contains(name, "Time"), strings.Contains(name, "Day"):
			arguments[0] = g.pick([]string{"now()", "today()", "toDateTime64('1900-01-01 00:00:00', 9)", "toDate32('2299-12-31')",
				"toDate(number)"})
		}
	}
	return name + "(" + strings.Join(arguments, ", ") + ")"
}

// aggregate returns a call of an aggregate function, with combinators and parameters.
func (g *generator) aggregate() string {
	names := embedded.AllowedFunctions()
	for i, name := range names { // aggregates are the last of the list
		if name == "count" {
			names = names[i:]
			break
		}
	}
	name := g.pick(names)
	for g.chance(0.2) {
		name += g.pick(embedded.Allowed("combinators"))
	}
	if g.chance(0.4) {
		name += "(" + g.several(1, 2, func() string {
			return g.pick([]string{"0.5", "0.9", "0", "1", "-1", "2", "10", "100", "65536", "1000000", "18446744073709551615", "nan", "'a'",
				"','"})
		}) + ")"
	}
	return name + "(" + g.several(0, 3, func() string { return g.value(2) }) + ")"
}
