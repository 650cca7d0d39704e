package embedded_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"companyscore/clickhouse/embedded"
)

// outsideWords select the settings that may reach outside the database.
const outsideWords = "(?i)file|path|schema|url|uri|script|dictionar|director|folder"

// settingsLike returns the names of the engine's settings whose name or description matches a pattern.
func settingsLike(t *testing.T, pattern string) []string {
	t.Helper()
	status, body := ask(t, "companyscore",
		"SELECT name FROM system.settings WHERE match(name, {p:String}) OR match(description, {p:String}) ORDER BY name",
		url.Values{"param_p": {pattern}})
	if status != http.StatusOK {
		t.Fatal(body)
	}
	return strings.Fields(body)
}

// TestAnalystCannotNameFiles tries every setting of the engine that speaks of files, paths, schemas, addresses, scripts or dictionaries,
// with the path of a file as its value, in every place a setting may stand.
func TestAnalystCannotNameFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	victim, created := filepath.Join(dir, "victim"), filepath.Join(dir, "new")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := settingsLike(t, outsideWords)
	// A parameter of the HTTP interface, which never reaches the engine.
	names = slices.DeleteFunc(names, func(name string) bool { return name == "enable_http_compression" })
	for _, name := range []string{"output_format_schema", "format_schema", "format_template_row", "format_avro_schema_registry_url"} {
		if !slices.Contains(names, name) {
			t.Fatalf("%s is not among the %d settings found", name, len(names))
		}
	}
	for _, name := range names {
		refused := func(query string, params url.Values) {
			t.Helper()
			if status, body := ask(t, "analyst", query, params); status == http.StatusOK {
				t.Errorf("%s %v is answered: %.100s", query, params, body)
			}
		}
		for _, format := range []string{"Protobuf", "CapnProto", "AvroConfluent", "Template"} {
			refused("SELECT 1 AS a FORMAT "+format, url.Values{name: {victim}})
			refused(fmt.Sprintf("SELECT 1 AS a FORMAT %s SETTINGS %s = '%s'", format, name, victim), nil)
		}
		refused("", url.Values{name: {created}, "query": {"SELECT 1 AS a"}, "default_format": {"Protobuf"}})
		refused(fmt.Sprintf("SELECT 1 AS a SETTINGS max_threads = 1, %s = '%s' FORMAT Protobuf", name, created), nil)
		refused(fmt.Sprintf("SELECT a FROM (SELECT 1 AS a SETTINGS %s = '%s') FORMAT Protobuf", name, created), nil)
		refused(fmt.Sprintf("SET %s = '%s'", name, created), nil)
		refused(fmt.Sprintf("SELECT 1 AS a SETTINGS %s = DEFAULT", name), nil)
		if found, err := os.ReadDir(dir); err != nil || len(found) != 1 {
			t.Fatalf("%s: the directory holds %v, %v", name, found, err)
		}
		if text, err := os.ReadFile(victim); err != nil || string(text) != "precious" {
			t.Fatalf("%s: the file holds %q, %v", name, text, err)
		}
	}
}

// TestSettingsOpenToTheAnalyst checks that the engine has each setting with a rule by name and accepts its default value, and settings that
// tools send.
func TestSettingsOpenToTheAnalyst(t *testing.T) {
	t.Parallel()
	open := func(name, value string) {
		t.Helper()
		if status, body := ask(t, "analyst", "SELECT 1", url.Values{name: {value}}); status != http.StatusOK {
			t.Errorf("%s = %q in the URL: %s", name, value, body)
		}
		if status, body := ask(t, "analyst", fmt.Sprintf("SELECT 1 SETTINGS %s = '%s'", name, strings.ReplaceAll(value, `\`, `\\`)),
			nil); status != http.StatusOK {
			t.Errorf("%s = %q in SQL: %s", name, value, body)
		}
	}
	for _, name := range embedded.NamedSettings() {
		status, body := ask(t, "analyst", "SELECT concat('value ', value) FROM system.settings WHERE name = {n:String} FORMAT TSVRaw",
			url.Values{"param_n": {name}})
		value, known := strings.CutPrefix(body, "value")
		if status != http.StatusOK || !known {
			t.Errorf("the engine has no setting %s: %s", name, body)
		}
		open(name, strings.TrimPrefix(value, " "))
	}
	for name, value := range map[string]string{
		"async_insert": "0", "cancel_http_readonly_queries_on_client_close": "1", "connect_timeout": "30", "date_time_output_format": "iso",
		"final":                             "1",
		"http_headers_progress_interval_ms": "110000", "join_algorithm": "grace_hash", "join_use_nulls": "1", "log_comment": "dashboard",
		"max_bytes_in_join":  "1000000",
		"max_execution_time": "60", "max_memory_usage": "1000000000", "max_result_bytes": "1000", "max_result_rows": "1000",
		"max_rows_to_group_by": "10", "max_threads": "1",
		"output_format_json_quote_64bit_integers": "0", "output_format_parquet_compression_method": "snappy",
		"output_format_pretty_max_rows": "100000", "priority": "5",
		"query_plan_enable_optimizations": "1", "readonly": "1", "send_progress_in_http_headers": "1", "send_timeout": "30",
		"union_default_mode": "ALL", "use_query_cache": "0", "wait_for_async_insert": "0",
	} {
		open(name, value)
	}
	for name, value := range map[string]string{"allow_experimental_json_type": "2", "compatibility": "22.3", "no_such_setting": "1",
		"max_threads": "100", "max_joined_block_size_rows": "100000000"} {
		status, body := ask(t, "analyst", "SELECT 1", url.Values{name: {value}})
		if code := map[bool]string{true: "UNKNOWN_SETTING",
			false: "SETTING_CONSTRAINT_VIOLATION"}[name == "no_such_setting"]; status == http.StatusOK || !strings.Contains(body, code) {
			t.Errorf("%s = %s: %d %s", name, value, status, body)
		}
	}
}

// TestAnalystOnlyLowersLimits sends each limit below, at and above its value, as 0 and as words, in the URL and in SQL.
func TestAnalystOnlyLowersLimits(t *testing.T) {
	t.Parallel()
	for name, ceiling := range map[string]uint64{
		"max_result_rows": 20_000_000, "max_result_bytes": 8 << 30, "max_memory_usage": 2 << 30, "max_execution_time": 300,
		"max_block_size": 65409,
		"max_threads":    0, "max_rows_to_read": 0, "max_bytes_to_read": 0, "readonly": 2,
	} {
		read := fmt.Sprintf("SELECT getSetting('%s')", name)
		_, before := ask(t, "analyst", read, nil)
		switch {
		case name == "max_threads":
			ceiling, _ = strconv.ParseUint(before, 10, 64)
		case ceiling > 0 && before != strconv.FormatUint(ceiling, 10):
			t.Errorf("%s starts at %s, want %d", name, before, ceiling)
		}
		accepted := []string{"1"}
		if name == "max_execution_time" { // one second may be too little on a busy machine
			accepted[0] = "200"
		}
		refused := []string{"0", "-1", "DEFAULT", "'auto'", "''", "'0'", "18446744073709551616"}
		if ceiling > 0 {
			accepted = append(accepted, strconv.FormatUint(ceiling, 10))
			refused = append(refused, strconv.FormatUint(ceiling+1, 10), strconv.FormatUint(1000*ceiling, 10))
		}
		for _, value := range accepted {
			want := value
			if name == "max_execution_time" { // no state of the session; see TestExecutionTimeIsNoSessionState
				want = "300"
			}
			if status, body := ask(t, "analyst", read, url.Values{name: {value}}); status != http.StatusOK || body != want {
				t.Errorf("%s = %s in the URL: %d %s", name, value, status, body)
			}
			if status, body := ask(t, "analyst", fmt.Sprintf("%s SETTINGS %s = %s", read, name, value), nil); status != http.StatusOK ||
				body != want {
				t.Errorf("%s = %s in SQL: %d %s", name, value, status, body)
			}
		}
		for _, value := range refused {
			if status, body := ask(t, "analyst", read, url.Values{name: {strings.Trim(value, "'")}}); status == http.StatusOK {
				t.Errorf("%s = %s in the URL is answered: %s", name, value, body)
			}
			for _, query := range []string{"%s SETTINGS %s = %s", "%s SETTINGS max_rows_to_read = 5, %s = %s FORMAT CSV",
				"%s FORMAT CSV SETTINGS %s = %s", "(%s SETTINGS %s = %s)",
				"SELECT * FROM (%s SETTINGS %s = %s)", "EXPLAIN %s SETTINGS %s = %s", "%s SETTINGS %s = %s UNION ALL SELECT 1",
				"%s SETTINGS/**/`%s`=%s"} {
				query = fmt.Sprintf(query, read, name, value)
				if status, body := ask(t, "analyst", query, nil); status == http.StatusOK {
					t.Errorf("%s is answered: %s", query, body)
				}
			}
		}
		if _, after := ask(t, "analyst", read, nil); after != before {
			t.Errorf("%s is %s, and was %s", name, after, before)
		}
	}
	// What a lowered limit does, and what one that cannot be lifted does.
	for _, at := range []func(query, value string) (int, string){
		func(query, value string) (int, string) {
			return ask(t, "analyst", query, url.Values{"max_result_rows": {value}})
		},
		func(query, value string) (int, string) {
			return ask(t, "analyst", query+" SETTINGS max_result_rows = "+value, nil)
		},
	} {
		if status, body := at("SELECT number FROM numbers(11)", "10"); status == http.StatusOK ||
			!strings.Contains(body, "TOO_MANY_ROWS_OR_BYTES") {
			t.Errorf("eleven rows of ten: %d %s", status, body)
		}
		if status, body := at("SELECT number FROM numbers(20000001) FORMAT RowBinary", "0"); status == http.StatusOK {
			t.Errorf("the limit is switched off: %d bytes", len(body))
		}
	}
}

// TestReadonlyCannotBeReset checks that no statement of the analyst resets its session to the defaults of the engine, which can read files.
func TestReadonlyCannotBeReset(t *testing.T) {
	t.Parallel()
	for _, query := range []string{
		"SELECT getSetting('readonly') SETTINGS readonly = DEFAULT", "SELECT getSetting('readonly') FORMAT CSV SETTINGS readonly = DEFAULT",
		"SELECT getSetting('readonly') SETTINGS profile = 'default'",
		"SELECT getSetting('readonly') SETTINGS max_threads = 1, readonly = DEFAULT",
		"WITH (SELECT 1 SETTINGS readonly = DEFAULT) AS a SELECT a", "SELECT getSetting('readonly') SETTINGS `readonly` = DEFAULT",
		"SELECT getSetting('readonly') settings readonly = default", "SELECT getSetting('readonly') SETTINGS\n-- a\nreadonly\n=\nDEFAULT",
		"SELECT * FROM view(SELECT getSetting('readonly') SETTINGS readonly = DEFAULT)",
	} {
		if status, body := ask(t, "analyst", query, nil); status == http.StatusOK {
			t.Errorf("%s is answered: %s", query, body)
		}
	}
}

// TestTimeZonesAreNames checks that no path is accepted as a time zone: the engine would open it.
func TestTimeZonesAreNames(t *testing.T) {
	t.Parallel()
	for zone, want := range map[string]int{
		"Europe/Paris": http.StatusOK, "America/Argentina/Buenos_Aires": http.StatusOK, "Etc/UTC": http.StatusOK, "": http.StatusOK,
		"Europe//Paris": http.StatusBadRequest, "Antarctica/Troll": http.StatusBadRequest,
		server.secret: http.StatusBadRequest, "../" + server.secret: http.StatusBadRequest, "file:" + server.secret: http.StatusBadRequest,
		"/": http.StatusBadRequest,
	} {
		status, body := ask(t, "analyst", "SELECT 1", url.Values{"session_timezone": {zone}})
		if inSQL, _ := ask(t, "analyst", fmt.Sprintf("SELECT 1 SETTINGS session_timezone = '%s'", zone), nil); status != want ||
			inSQL != want {
			t.Errorf("%q: %d in the URL, %d in SQL, want %d: %s", zone, status, inSQL, want, body)
		}
		if want == http.StatusBadRequest && !strings.Contains(body, "send the name of a time zone") {
			t.Errorf("%q reaches the engine: %s", zone, body)
		}
	}
}

// TestSettingsAreNoWords checks that columns and tables may be named "settings".
func TestSettingsAreNoWords(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"SELECT 1 AS settings, settings = 1": "1\t1",
		"SELECT 'SETTINGS readonly = 0'":     "SETTINGS readonly = 0",
		"SELECT count() > 0 FROM system.settings WHERE name = 'readonly' AND value = '2' SETTINGS max_threads = 1":   "1",
		"SELECT count() FROM (SELECT 1 AS settings) AS settings WHERE settings.settings = 1":                         "1",
		"SELECT a FROM (SELECT 'x\\'y' AS a) SETTINGS format_csv_delimiter = ';', session_timezone = 'Asia/Tokyo'":   "x\\'y",
		"SELECT 'a', 'b' FORMAT CSV SETTINGS format_csv_delimiter = ';', output_format_csv_crlf_end_of_line = false": `"a";"b"`,
		"SELECT NULL SETTINGS format_csv_null_representation = '\\'\\\\', max_execution_time = 10.5 FORMAT CSV":      `'\`,
	} {
		if status, body := ask(t, "analyst", query, nil); status != http.StatusOK || body != want {
			t.Errorf("%s: %d %q, want %q", query, status, body, want)
		}
	}
}

// TestAnalystsLimitNobodyElse sends limits of the engine's user, which all share.
func TestAnalystsLimitNobodyElse(t *testing.T) {
	t.Parallel()
	for _, name := range settingsLike(t, "_for_(user|all_users)$") {
		if status, body := ask(t, "analyst", "SELECT sum(number) FROM numbers(1000000)", url.Values{name: {"1"}}); status != http.StatusOK {
			t.Errorf("%s in the URL: %s", name, body)
		}
		if status, body := ask(t, "analyst", "SELECT * FROM (SELECT 1 SETTINGS "+name+" = 1)", nil); status == http.StatusOK {
			t.Errorf("%s in a subquery: %s", name, body)
		}
		for _, user := range []string{"companyscore", "analyst"} {
			if status, body := ask(t, user, "SELECT length(groupArray(number)) FROM numbers(1000000)", nil); status != http.StatusOK {
				t.Errorf("after %s, %s: %s", name, user, body)
			}
		}
	}
}
