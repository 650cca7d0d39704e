package embedded_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"companyscore/clickhouse/embedded"
)

// deployVariable has the question for a test binary that opens an engine with a configuration
// file instead of running tests. A process can open one engine.
const deployVariable = "COMPANYSCORE_TEST_DEPLOY"

type question struct {
	Dir        string
	Statements []string
}

// answerQuestion runs the statements and prints the answers as JSON.
func answerQuestion(text string) int {
	var q question
	err := json.Unmarshal([]byte(text), &q)
	if err == nil {
		var answers []string
		if answers, err = embedded.WithConfiguration(filepath.Join(q.Dir, "data"), filepath.Join(q.Dir, "config.xml"),
			q.Statements); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(answers)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// The files of the ClickHouse image that those of deploy/clickhouse are merged into, and drop-ins
// of the test: the library opens its sessions as the user default.
const (
	imageConfig = "<clickhouse><users_config>users.xml</users_config></clickhouse>"
	imageUsers  = "<clickhouse><profiles><default/></profiles><quotas><default/></quotas><users><default><password/></default></users></c" +
		"lickhouse>"
	quiet   = "<clickhouse><logger><level>none</level></logger></clickhouse>"
	session = "<clickhouse><users><default><password/><networks><ip>::/0</ip></networks><profile>analyst</profile><quota>default</quota><" +
		"access_management>1</access_management></default></users></clickhouse>"
)

// deployed opens an engine with deploy/clickhouse and returns the answer to each statement; an error
// of the engine is an answer that begins with "exception". replace has pairs of an old and a new text
// in users.xml.
func deployed(t *testing.T, drop string, statements []string, replace ...string) (answers []string, err error) {
	t.Helper()
	dir := t.TempDir()
	files := map[string]string{"config.xml": strings.ReplaceAll(imageConfig, "users.xml", filepath.Join(dir, "users.xml")),
		"users.xml": imageUsers, "config.d/z.xml": quiet}
	if drop != "" {
		files["users.d/z.xml"] = drop
	}
	for from, to := range map[string]string{"config.xml": "config.d/config.xml", "users.xml": "users.d/users.xml"} {
		text := read(t, filepath.Join("../../deploy/clickhouse", from))
		if from == "users.xml" {
			for i := 0; i+1 < len(replace); i += 2 {
				if !strings.Contains(text, replace[i]) {
					t.Fatalf("users.xml has no %s", replace[i])
				}
				text = strings.Replace(text, replace[i], replace[i+1], 1)
			}
		}
		files[to] = text
	}
	for _, name := range []string{"data", "config.d", "users.d"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q, err := json.Marshal(question{dir, statements})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), deployVariable+"="+string(q), "CLICKHOUSE_SERVICE_PASSWORD=s", "CLICKHOUSE_ANALYST_PASSWORD=a")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, &answers); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return answers, nil
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDeployedUsers opens an engine with the users, profiles, constraints, quotas and grants of
// deploy/clickhouse/users.xml.
func TestDeployedUsers(t *testing.T) {
	t.Parallel()
	grants := "SHOW GRANTS FOR analyst"
	limits := "SELECT setting_name, value, min, max, writability FROM system.settings_profile_elements WHERE profile_name = 'analyst' " +
		"AND setting_name != '' ORDER BY setting_name"
	want := map[string]string{ // the session has the analyst's profile
		"SELECT name FROM system.users ORDER BY name": "analyst\ncompanyscore\ndefault\n",
		limits: "allow_ddl\t0\t\\N\t\\N\t\\N\n" +
			"max_concurrent_queries_for_user\t8\t\\N\t\\N\tCONST\n" +
			"max_execution_time\t300\t1\t300\t\\N\n" +
			"max_memory_usage\t4000000000\t1\t4000000000\t\\N\n" +
			"max_result_bytes\t2000000000\t1\t2000000000\t\\N\n" +
			"max_result_rows\t10000000\t1\t10000000\t\\N\n" +
			"max_threads\t4\t1\t4\t\\N\n" +
			"readonly\t2\t\\N\t\\N\t\\N\n" +
			"result_overflow_mode\tthrow\t\\N\t\\N\tCONST\n",
		"SELECT duration, max_queries, max_execution_time FROM system.quota_limits WHERE quota_name = 'analyst'": "3600\t10000\t7200\n",
		"SELECT 1 SETTINGS max_threads = 3":              "1\n",
		"SELECT 1 SETTINGS max_threads = 5":              "exception 452",
		"SELECT 1 SETTINGS max_result_rows = 0":          "exception 452",
		"SELECT 1 SETTINGS result_overflow_mode='break'": "exception 452",
		"SELECT 1 SETTINGS readonly = 0":                 "exception 164",
		"SET readonly = 0":                               "exception 164",
		"CREATE TABLE t (a Int8) ENGINE = Memory":        "exception 164",
		grants:                     "",
		"SHOW GRANTS FOR analysts": "GRANT SELECT ON companyscore.* TO analysts\n",
		"SELECT default_database FROM system.users WHERE name = 'analyst'": "companyscore\n",
	}
	statements := make([]string, 0, len(want))
	for statement := range want {
		statements = append(statements, statement)
	}
	answers, err := deployed(t, session, statements)
	if err != nil {
		t.Fatal(err)
	}
	for i, statement := range statements {
		if answers[i] != want[statement] && statement != grants {
			t.Errorf("%s: %q, want %q", statement, answers[i], want[statement])
		}
	}
	granted := answers[slices.Index(statements, grants)]
	if granted != "GRANT analysts TO analyst\n" {
		t.Errorf("the analyst has %q", granted)
	}
}

// TestDeployedUsersAreTheOnlyOnes holds that the user default, of the image, cannot come in, and that
// the engine refuses a file with a mistake.
func TestDeployedUsersAreTheOnlyOnes(t *testing.T) {
	t.Parallel()
	if _, err := deployed(t, "", []string{"SELECT 1"}); err == nil { // the session above differs by this user alone
		t.Error("the user default may come in")
	}
	for fault, replace := range map[string][]string{
		"a wrong setting":    {"max_result_rows>10000000</max_result_rows>", "max_result_row>10000000</max_result_row>"},
		"a wrong grant":      {"GRANT SELECT ON companyscore.*", "GRANT SELEKT ON companyscore.*"},
		"a wrong value":      {"<max_threads>4<", "<max_threads>four<"},
		"an unknown profile": {"<profile>analyst<", "<profile>analysts<"},
		"a wrong name in the constraints": {"<max_threads><min>1</min><max>4</max></max_threads>",
			"<max_thread><min>1</min><max>4</max></max_thread>"},
	} {
		if _, err := deployed(t, session, []string{"SELECT 1"}, replace...); err == nil {
			t.Errorf("%s is accepted", fault)
		}
	}
}

// sections are the elements of config.xml that system.server_settings does not list.
var sections = []string{"listen_host", "logger", "timezone", "query_log", "trace_log", "text_log", "metric_log", "asynchronous_metric_log",
	"processors_profile_log"}

// TestDeployedServerSettings opens an engine with deploy/clickhouse/config.xml and compares its settings.
func TestDeployedServerSettings(t *testing.T) {
	t.Parallel()
	var file struct {
		Elements []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
			Engine  string `xml:"engine"`
		} `xml:",any"`
	}
	if err := xml.Unmarshal([]byte(read(t, "../../deploy/clickhouse/config.xml")), &file); err != nil {
		t.Fatal(err)
	}
	statements := []string{"SELECT name, value FROM system.server_settings WHERE changed"}
	engine := ""
	for _, e := range file.Elements {
		if e.XMLName.Local == "query_log" {
			engine = e.Engine
		}
	}
	statements = append(statements, "CREATE TABLE query_log (event_date Date, event_time DateTime) "+engine)
	answers, err := deployed(t, strings.Replace(session, ">analyst<", ">default<", 1), statements)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, e := range file.Elements {
		if slices.Contains(sections, e.XMLName.Local) {
			continue
		}
		checked++
		if want := e.XMLName.Local + "\t" + strings.TrimSpace(e.Text) + "\n"; !strings.Contains(answers[0], want) {
			t.Errorf("the engine has no server setting %q; changed are\n%s", want, answers[0])
		}
	}
	if checked == 0 {
		t.Error("config.xml has no server setting")
	}
	if answers[1] != "" {
		t.Errorf("the engine of query_log is refused: %s", answers[1])
	}
}
