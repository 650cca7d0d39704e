package embedded_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/test/extent"
)

// TestAnalystsNameOnlyWhatIsAllowed sends statements that took the memory, the time or the process of the engine, or showed what is
// private, in several spellings.
func TestAnalystsNameOnlyWhatIsAllowed(t *testing.T) {
	t.Parallel()
	const denied = "ACCESS_DENIED"
	f := func(want, query string, params ...string) {
		t.Helper()
		values := url.Values{}
		for i := 0; i < len(params); i += 2 {
			values.Set(params[i], params[i+1])
		}
		status, body := ask(t, "analyst", query, values)
		if want == "" && status != http.StatusOK || want != "" && !strings.Contains(body, "("+want+")") {
			t.Errorf("%s %v: %d %.300s; want %s", query, params, status, body, want)
		}
	}
	for _, call := range []string{"polygonsUnionCartesian([[(1., 1.)]], [[(1., 1.)]])", "PolygonsUnionCartesian(1)",
		"`polygonsUnionCartesian`(1)", `"polygonsUnionCartesian"(1)`,
		"base58Encode('a')", "levenshteinDistance('a', 'b')", "editDistance('a', 'b')", "arrayReduce('sum', [1])",
		"initializeAggregation('sum', 1)",
		"hasAny([1], [2])", "repeat('a', 2)", "formatRow('Protobuf', 1)", "formatQuery('SELECT 1')", "arrayFold((a, x) -> a, [1], 1)",
		"dictGet('d', 'a', 1)", "reinterpret(1, 'Int8')"} {
		f(denied, "SELECT "+call)
		f(denied, "SELECT arrayMap(x -> "+call+", [1])")
		f(denied, "SELECT 1 WHERE (SELECT 1, "+call+") = 1")
		f(denied, "WITH "+call+" AS a SELECT a")
		f(denied, "SELECT 1 SETTINGS max_threads = 1 UNION ALL SELECT "+call)
	}
	f(denied, "SELECT * APPLY polygonAreaCartesian FROM (SELECT 1)")
	f(denied, "SELECT * APPLY(polygonAreaCartesian) FROM (SELECT 1)")
	f(denied, "SELECT * APPLY(x -> base58Encode(x)) FROM (SELECT 1)")
	f("", "SELECT * APPLY(x -> toString(x)), * APPLY toString, * APPLY(quantile(0.5)), COLUMNS('a') APPLY max FROM (SELECT 1 AS a) GROUP "+
		"BY a")
	for _, source := range []string{"primes(10)", "format(ORC, 'x')", "format(Arrow, unhex('00'))", "FORMAT(JSONEachRow, '{}')",
		"values('a DateTime(\\'file:/proc/self/fd/0\\')', 1)",
		"generateRandom('a Int8')", "null('a Int8')", "input('a Int8')", "fuzzJSON('x')"} {
		f(denied, "SELECT * FROM "+source)
		f(denied, "SELECT * FROM view(SELECT * FROM "+source+")")
		f(denied, "DESCRIBE TABLE "+source)
	}
	f(denied, "SELECT * FROM system.primes")
	for _, call := range []string{"noSuchFunction(1)", "sumState(1)", "sumForEach([1])", "sumIfState(1, 1)"} {
		f("UNKNOWN_FUNCTION", "SELECT "+call)
	}

	for _, format := range []string{"Protobuf", "ProtobufList", "CapnProto", "Template", "protobuf"} {
		if format != "CapnProto" { // which this engine does not have
			f(denied, "SELECT 1 FORMAT "+format)
		}
		f(denied, "SELECT 1", "default_format", format)
	}
	f("", "SELECT 1 FORMAT json")

	for _, zone := range []string{"Europe//Paris", "/Europe/Paris", "file:/proc/self/fd/0", "europe/paris", "", "Antarctica/Troll",
		"Europe/Paris\\0"} {
		quoted := "'" + zone + "'"
		for _, expression := range []string{"toTimeZone(now(), %s)", "toTimezone(now(), (%s))", "now(%s)", "toDateTime(0, %s)",
			"toString(now(), %s)", "toYear(now(), %s)",
			"addDays(now(), 1, %s)", "formatDateTime(now(), '%%Y', %s)", "toStartOfInterval(now(), INTERVAL 1 DAY, %s)",
			"dateDiff('day', now(), now(), %s)",
			"toTimeZone(now(), concat('', %s))", "toTimeZone(now(), lower(%s))", "toTimeZone(now(), {p:String})",
			"toTimeZone(now(), (SELECT %s))", "toTimeZone(now(), [%s][1])",
			"now() AT TIME ZONE %s", "parseDateTimeBestEffort('2020', %s)", "DATE_TRUNC('day', now(), %s)",
			"TO_UNIXTIME('2020', '%%Y', %s)"} {
			query := "SELECT " + expression
			if strings.Contains(query, "%s") {
				query = fmt.Sprintf(query, quoted)
			}
			if _, body := ask(t, "analyst", query, url.Values{"param_p": {zone}}); !strings.Contains(body, "(ACCESS_DENIED)") &&
				!strings.Contains(body, "(SYNTAX_ERROR)") {
				t.Errorf("%s: %.300s", query, body)
			}
		}
		inner := strings.ReplaceAll(quoted, "'", `\'`)
		for _, query := range []string{"CAST(0, 'DateTime(" + inner + ")')", "CAST(0 AS Nullable(DateTime(" + quoted + ")))",
			"0::DateTime64(3, " + quoted + ")",
			"CAST(0, concat('DateTime', '(" + inner + ")'))", "JSONExtract('{}', 'Array(DateTime(" + inner + "))')",
			"JSONExtract('{}', 'a', 'b', 'DateTime(" + inner + ")')",
			"accurateCastOrNull(0, 'TIMESTAMP(" + inner + ")')", "{p:DateTime(" + quoted + ")}",
			"{p:Enum8('}' = 1)}, toTimeZone(now(), {q:String}), 'x'",
			"accurateCastOrDefault(0, 'DateTime64(-1 , " + inner + ")')"} {
			if _, body := ask(t, "analyst", "SELECT "+query, url.Values{"param_p": {"0"}, "param_q": {zone}}); !strings.Contains(body,
				"(ACCESS_DENIED)") && !strings.Contains(body, "(SYNTAX_ERROR)") {
				t.Errorf("%s: %.300s", query, body)
			}
		}
	}
	f("", "SELECT toTimeZone(now(), 'Europe/Paris'), now('UTC'), toDateTime64(0, 3, 'UTC'), toStartOfInterval(now(), INTERVAL 5 MINUTE), "+
		"CAST(0, 'DateTime(\\'UTC\\')'), "+
		"CAST('a', 'Enum8(\\'a\\' = 1)'), {p:DateTime('UTC')}, {q:Array(String)}, 0::Decimal(10, 2), toDateTime('2020-01-01', "+
		"'America/New_York')", "param_p", "2020-01-01 00:00:00", "param_q", "['}']")
	for _, name := range []string{"AggregateFunction(sum, UInt8)", "SimpleAggregateFunction(sum, UInt8)", "Dynamic", "JSON",
		"Variant(UInt8)", "Point", "Object(\\'json\\')"} {
		f(denied, "SELECT CAST('', '"+name+"')")
		f(denied, "SELECT JSONExtract('{}', 'Array("+name+")')")
		f(denied, "SELECT {p:"+strings.ReplaceAll(name, `\`, "")+"}", "param_p", "1")
	}

	// A function's name in the place of a lambda.
	for _, call := range []string{"arrayMap(file, ['/etc/hostname'])", "arrayMap(`file`, ['a'])", "arrayMap((repeat), ['a'], [2])",
		"arrayMap(repeat AS f, ['a'], [2])", "arrayMap({f:Identifier}, ['a'])",
		"arrayMap(toString, [now()], ['Pacific/Apia'])", "arrayExists(isPrime, [1])", "arrayPartialSort(base58Encode, 1, ['a'])",
		"mapApply(repeat, map('a', 2))", "arrayMap(x -> arrayMap(repeat, ['a'], [2]), [1])"} {
		f(denied, "SELECT "+call, "param_f", "formatQuery")
	}
	f("", "SELECT arrayMap(x -> x + length, [1]), arrayMap((x, y) -> x * y, [1], [2]), arraySum(r.range), arraySort(a -> -a, a) FROM "+
		"(SELECT 1 AS length, [1] AS range, [2] AS a) AS r")
	// Texts and comments in data types that are not plain.
	for _, kind := range []string{"DateTime($$Pacific/Apia$$)", "DateTime(‘Pacific/Apia’)", "/* /* */ -- */ JSON",
		"DateTime(/* /* */ -- */ \\'Pacific/Apia\\')", "DateTime -- \\n (\\'UTC\\')",
		"DateTime(\\'UTC\\') -- UTC", "String /*"} {
		f(denied, "SELECT CAST('1', '"+kind+"')")
		f(denied, "SELECT JSONExtract('{}', '"+kind+"')")
	}
	f(denied, "SELECT {p:DateTime($$Pacific/Apia$$)}", "param_p", "1")
	f(denied, "SELECT {p:DateTime(‘Pacific/Apia’)}", "param_p", "1")
	// All columns as arguments.
	for _, call := range []string{"toString(*)", "toString(t.*)", "toTimezone(* REPLACE (concat('Pacific', '/Apia') AS b))",
		"toTypeName(accurateCast(* REPLACE ('JSON' AS b)))", "toString(COLUMNS('a|b'))",
		"toString(t.COLUMNS('a|b'))", "toString(a, t.* EXCEPT a)", "toString(COLUMNS(a, b))"} {
		f(denied, "SELECT "+call+" FROM (SELECT now() AS a, 'Pacific/Apia' AS b) AS t")
	}
	f("SETTING_CONSTRAINT_VIOLATION", "SELECT count(DISTINCT number) FROM numbers(10)", "count_distinct_implementation", "groupArrayState")
	f("", "SELECT count(*), concat(*), min(COLUMNS('a')) FROM (SELECT 'a' AS a, 'b' AS b) AS t GROUP BY ALL")

	// Plain SQL whose formatted text has names that are no functions.
	for _, query := range []string{"SELECT 1 WHERE EXISTS (SELECT 1)",
		"SELECT number % 2 AS n, GROUPING(n) FROM numbers(9) GROUP BY ROLLUP(n)", "WITH t(a, b) AS (SELECT 1, 2) SELECT a + b FROM t",
		"WITH t(a) AS (SELECT 1), u(b) AS (SELECT 2) SELECT a, b FROM t, u", "SELECT b FROM (SELECT 1) AS x(b)",
		"SELECT * FROM (VALUES (1, 'a'), (2, 'b'))", "SELECT 1 AS format ORDER BY format", "SELECT @@version"} {
		f("", query)
	}
	f("UNKNOWN_FUNCTION", "WITH t(a) AS a SELECT t")
	f(denied, "WITH repeat('a', 2) AS b SELECT b")
	f("SYNTAX_ERROR", "SELECT 1 "+manyTags(200)+" SETTINGS nosuch = 1")

	f("SETTING_CONSTRAINT_VIOLATION", "EXPLAIN SYNTAX SELECT 1", "enable_analyzer", "0")
	f("SETTING_CONSTRAINT_VIOLATION", "EXPLAIN SYNTAX SELECT 1 SETTINGS enable_analyzer = 0")
	f("SETTING_CONSTRAINT_VIOLATION", "EXPLAIN SYNTAX SELECT 1", "allow_experimental_analyzer", "0")
	f("", "EXPLAIN SYNTAX SELECT 1 FORMAT TSV")
}

// manyTags returns tags of heredocs that are not closed.
func manyTags(n int) string {
	var tags strings.Builder
	for i := range n {
		fmt.Fprintf(&tags, "$%d$ ", i)
	}
	return tags.String()
}

// arityProof is the number of calls that the engine must refuse for their number of arguments before no further types are tried. Some
// functions refuse one type of an argument in these words.
const arityProof = 3

var noZone = regexp.MustCompile(`Cannot load time zone No/Such`)

// TestZonesAreReadWhereTheyAreTaken calls every allowed function with a text that is no time zone at each position, beside arguments of
// other types. Where the engine looks for a time zone, the guard must have refused it.
func TestZonesAreReadWhereTheyAreTaken(t *testing.T) {
	t.Parallel()
	fillers := []string{"now()", "1", "'day'", "toIntervalDay(1)", "'2020-01-01 00:00:00'"}
	combinations := [][]string{nil}
	lists := [][][]string{combinations}
	for range 3 {
		var longer [][]string
		for _, c := range combinations {
			for _, filler := range fillers {
				longer = append(longer, append(c[:len(c):len(c)], filler))
			}
		}
		combinations = longer
		lists = append(lists, combinations)
	}
	found, every := 0, extent.Of(1, 8) // of all functions, which takes a minute, or of one in eight
	for i, function := range embedded.AllowedFunctions() {
		if i%every != 0 || strings.HasPrefix(function, "sleep") {
			continue
		}
		timely := regexp.MustCompile(`(?i)date|time|day|week|month|year|hour|minute|second|start|now|age`).MatchString(function)
		for others, combinations := range lists {
			if others > 1 && !timely || others > 2 && !strings.HasPrefix(strings.ToLower(function), "date") && function != "age" {
				break
			}
			for position := range others + 1 {
				refused := 0 // for the number of arguments
				for i := range combinations {
					c := combinations[i*37%len(combinations)] // so that neighbours differ in each argument
					arguments := append(append(append([]string{}, c[:position]...), "'No/Such'"), c[position:]...)
					call := function + "(" + strings.Join(arguments, ", ") + ")"
					_, body := ask(t, "companyscore", "SELECT "+call, nil)
					if strings.Contains(body, "(NUMBER_OF_ARGUMENTS_DOESNT_MATCH)") {
						if refused++; refused == arityProof {
							break
						}
					}
					if !noZone.MatchString(body) {
						continue
					}
					found++
					if _, body := ask(t, "analyst", "SELECT "+call, nil); !strings.Contains(body, "(ACCESS_DENIED)") {
						t.Errorf("%s: %s", call, body)
					}
					break
				}
			}
		}
	}
	t.Logf("%d positions of time zones", found)
	if found < 120/every-5 {
		t.Errorf("only %d positions of time zones were found", found)
	}
}
