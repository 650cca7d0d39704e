package embedded_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"companyscore/clickhouse/embedded"
	"companyscore/internal/test/wait"
)

// recipeVariable makes the test binary the process of a recipe. With another value than recipeOne, it is a data directory: the process runs
// several recipes, which stand in standard input, and writes their errors.
const (
	recipeVariable = "COMPANYSCORE_TEST_RECIPE"
	recipeOne      = "one"
)

func serveRecipe(of string) int {
	if of != recipeOne {
		var recipes []embedded.Recipe
		if err := json.NewDecoder(os.Stdin).Decode(&recipes); err != nil {
			panic(err)
		}
		failures, err := embedded.RunRecipes(context.Background(), of, recipes)
		if err != nil {
			panic(err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(failures); err != nil {
			panic(err)
		}
		return 0
	}
	if err := embedded.ServeRecipe(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// recipeProcess returns the command of a process for a recipe.
func recipeProcess(t *testing.T, of string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), recipeVariable+"="+of)
	return cmd
}

// newRecipe returns a recipe over num, a file with three rows, and day.
func newRecipe(t *testing.T, statement string) embedded.Recipe {
	t.Helper()
	dir := t.TempDir()
	num := filepath.Join(dir, "num.txt")
	if err := os.WriteFile(num, []byte("adsh\ttag\tvalue\n1\tRevenues\t5\n2\tRevenues\t7\n3\tAssets\t\\N\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return embedded.Recipe{Statement: statement, Files: map[string]string{"num": num}, Values: map[string]string{"day": "2026-11-24"},
		Dir: filepath.Join(dir, "engine"), Result: filepath.Join(dir, "result.csv"), Limit: wait.Max}
}

// TestRecipeReadsItsFile runs a statement with what recipes need.
func TestRecipeReadsItsFile(t *testing.T) {
	t.Parallel()
	r := newRecipe(t, `
-- a comment
WITH file AS
(
    SELECT adsh, tag, value
    FROM file({num:String}, 'TSVWithNames', 'adsh String, tag LowCardinality(String), value Nullable(Float64)')
)
SELECT adsh || '.com' AS domain, toDate({day:String}) AS as_of, value AS revenue_usd, NULL AS city, 'say "' || file.tag || '"' AS industry
FROM file INNER JOIN (SELECT toString(adsh) AS adsh FROM file({num:String}, 'TSVWithNames')) AS again USING (adsh)
ORDER BY adsh
SETTINGS join_use_nulls = 1, input_format_tsv_skip_first_lines = 0, format_csv_delimiter = ','`)
	read, err := embedded.RunRecipe(t.Context(), recipeProcess(t, recipeOne), r)
	if err != nil || read != 6 {
		t.Fatalf("read %d rows, %v; want 6", read, err)
	}
	got, err := os.ReadFile(r.Result)
	want := `"domain","as_of","revenue_usd","city","industry"
"1.com","2026-11-24",5,,"say ""Revenues"""
"2.com","2026-11-24",7,,"say ""Revenues"""
"3.com","2026-11-24",,,"say ""Assets"""
`
	if err != nil || string(got) != want {
		t.Errorf("result:\n%s%v", got, err)
	}
}

func TestRecipeIsRefused(t *testing.T) {
	t.Parallel()
	var recipes []embedded.Recipe
	var want []string
	for statement, says := range map[string]string{
		"SELECT * FROM file('/etc/passwd', 'LineAsString', 'l String')":                      "a file that the head declares",
		"SELECT * FROM file({day:String}, 'LineAsString', 'l String')":                       "day:String}, which",
		"SELECT * FROM file({other:String}, 'LineAsString', 'l String')":                     "other:String}, which",
		"SELECT * FROM file({num:String} || 'x', 'LineAsString', 'l String')":                "a file that the head declares",
		"SELECT * FROM file(concat({num:String}, '/../x'), 'LineAsString')":                  "a file that the head declares",
		"SELECT * FROM file({num:Identifier}, 'LineAsString')":                               "a file that the head declares",
		"SELECT * FROM {num:Identifier}":                                                     "reads as a file",
		"SELECT * FROM '/etc/passwd'":                                                        "reads as a file",
		"SELECT * FROM `passwd.csv`":                                                         "Unknown table",
		"SELECT * FROM default.`passwd.csv`":                                                 "Unknown table",
		"SELECT file('/etc/passwd')":                                                         "after FROM or JOIN",
		"SELECT arrayMap(file, ['/etc/passwd'])":                                             "",
		"SELECT * FROM numbers(1) WHERE '' IN file({num:String}, 'LineAsString')":            "after FROM or JOIN",
		"SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')":                        "not open",
		"SELECT * FROM s3('http://127.0.0.1:1/', 'CSV', 'a String')":                         "not open",
		"SELECT * FROM fileCluster('c', {num:String})":                                       "not open",
		"SELECT * FROM merge('default', '.*')":                                               "not open",
		"SELECT * FROM executable('x', 'CSV', 'a String')":                                   "not open",
		"SELECT * FROM companies":                                                            "Unknown table",
		"SELECT * FROM companyscore.v1_score_latest":                                         "Unknown table",
		"SELECT * FROM system.tables":                                                        "no tables",
		"SELECT * FROM information_schema.tables":                                            "no tables",
		"SELECT dictGet('d', 'a', 1)":                                                        "not open",
		"SELECT now(), today()":                                                              "not open",
		"SELECT rand()":                                                                      "not open",
		"SELECT 1 INTO OUTFILE '/tmp/x'":                                                     "INTO OUTFILE",
		"SELECT 1; SELECT 2":                                                                 "Multi-statements",
		"SELECT 1 FORMAT Native":                                                             "no FORMAT",
		"SELECT 1 SETTINGS max_memory_usage = 8000000000":                                    "max_memory_usage",
		"SELECT 1 SETTINGS max_threads = 64":                                                 "max_threads",
		"SELECT 1 SETTINGS max_execution_time = 0":                                           "max_execution_time",
		"SELECT 1 SETTINGS input_format_allow_errors_num = 100":                              "input_format_allow_errors_num",
		"SELECT 1 SETTINGS format_schema = '/etc/passwd'":                                    "format_schema",
		"SELECT 1 SETTINGS readonly = 0":                                                     "readonly",
		"SELECT * FROM file({num:String}, 'Protobuf', 'a String')":                           "Format `Protobuf`",
		"SELECT * FROM file({num:String}, 'CSV', 'a String DEFAULT 1')":                      "no DEFAULT",
		"SELECT * FROM file({num:String}, 'CSV', 'a DEFAULT file(''/etc/passwd'')')":         "a name and a type",
		"SELECT * FROM file({num:String}, 'CSV', 'a Array(String) ALIAS 1')":                 "no ALIAS",
		"SELECT * FROM file({num:String}, 'CSV', 'a AggregateFunction(uniq, String)')":       "AggregateFunction",
		"SELECT * FROM file({num:String}, 'CSV', 'a Array(Array(String)')":                   "certainty",
		"SELECT * FROM file({num:String}, 'CSV', {day:String})":                              "plain texts",
		"SELECT * FROM file({num:String}, 'CSV', 'a String', 'auto', 1)":                     "plain texts",
		"INSERT INTO FUNCTION file({num:String}, 'CSV', 'a String') SELECT 'x'":              "readonly",
		"CREATE TABLE t (a String) ENGINE = File('CSV', '/etc/passwd')":                      "readonly",
		"DESCRIBE file({num:String})":                                                        "one SELECT",
		"SHOW TABLES":                                                                        "one SELECT",
		"SYSTEM SHUTDOWN":                                                                    "readonly",
		"":                                                                                   "",
		"SELECT adsh FROM file({num:String}, 'TSVWithNames', 'adsh String, v UInt8')  x y z": "yntax",
	} {
		recipes, want = append(recipes, newRecipe(t, statement)), append(want, says)
	}
	input, err := json.Marshal(recipes)
	if err != nil {
		t.Fatal(err)
	}
	cmd := recipeProcess(t, t.TempDir())
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var failures []string
	if err := json.Unmarshal(output, &failures); err != nil {
		t.Fatal(err)
	}
	for i, text := range failures {
		if text == "" || !strings.Contains(text, want[i]) {
			t.Errorf("%s: %q, want an error with %q", recipes[i].Statement, text, want[i])
		}
	}
}

func TestRecipeKeepsItsLimits(t *testing.T) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		r := newRecipe(t, "SELECT groupArray(number) FROM numbers(1000000000)")
		_, err := embedded.RunRecipe(t.Context(), recipeProcess(t, recipeOne), r)
		if err == nil || !strings.Contains(err.Error(), "memory") {
			t.Errorf("%v, want one about memory", err)
		}
	})
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		r := newRecipe(t, "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)")
		r.Limit = time.Second
		_, err := embedded.RunRecipe(t.Context(), recipeProcess(t, recipeOne), r)
		if err == nil || !strings.Contains(err.Error(), "within 1s") && !strings.Contains(err.Error(), "Timeout exceeded") {
			t.Errorf("%v, want one about the time", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancel(t.Context())
		r := newRecipe(t, "SELECT sum(cityHash64(number)) FROM numbers(1000000000000)")
		go func() { // ends with the test
			wait.Until(t, "the statement runs", func() bool {
				_, err := os.Stat(r.Result)
				return err == nil || ctx.Err() != nil
			})
			cancel()
		}()
		if _, err := embedded.RunRecipe(ctx, recipeProcess(t, recipeOne), r); err != context.Canceled {
			t.Errorf("%v, want context.Canceled", err)
		}
	})
}
