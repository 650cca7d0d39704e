package clickhouse_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"companyscore/internal/test/wait"
)

// dashboard is what the tests read of a dashboard of Grafana.
type dashboard struct {
	UID        string
	Links      []struct{ URL string }
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []struct {
		Title       string
		Targets     []struct{ RawSQL string }
		FieldConfig struct {
			Overrides []struct {
				Matcher    struct{ Options string }
				Properties []struct {
					ID    string
					Value json.RawMessage
				}
			}
		}
	}
}

// dashboards returns the dashboards of deploy/grafana by the name of their file.
func dashboards(t *testing.T) map[string]dashboard {
	t.Helper()
	paths, err := filepath.Glob("../deploy/grafana/*.json")
	if err != nil || len(paths) < 2 {
		t.Fatalf("%d dashboards, %v; want 2 at least", len(paths), err)
	}
	all := make(map[string]dashboard)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard
		if err := json.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = d
	}
	return all
}

var (
	timeMacro     = regexp.MustCompile(`\$__(timeFilter|dateFilter|timeInterval)\((\w+)\)`)
	companyOnPage = "${company:sqlstring}"
)

// expand replaces the macros of the ClickHouse plugin and the variables of the dashboards, as Grafana does for a time range and a panel
// that is 100 points wide.
func expand(query string, from, to time.Time, company, other string) string {
	seconds := func(at time.Time) string { return fmt.Sprintf("toDateTime(%d)", at.Unix()) }
	date := func(at time.Time) string { return "toDate('" + at.Format(time.DateOnly) + "')" }
	query = timeMacro.ReplaceAllStringFunc(query, func(macro string) string {
		m := timeMacro.FindStringSubmatch(macro)
		switch m[1] {
		case "timeFilter":
			return fmt.Sprintf("%[1]s >= %[2]s AND %[1]s <= %[3]s", m[2], seconds(from), seconds(to))
		case "dateFilter":
			return fmt.Sprintf("%[1]s >= %[2]s AND %[1]s <= %[3]s", m[2], date(from), date(to))
		}
		return fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL %d second)", m[2], max(1, int(to.Sub(from).Seconds()/100)))
	})
	return strings.NewReplacer("$__fromTime", seconds(from), "$__toTime", seconds(to), companyOnPage, "'"+company+"'", "${other:sqlstring}",
		"'"+other+"'").Replace(query)
}

// TestDashboardsAnswer runs every query of the Grafana dashboards as the analyst. Those with a macro must follow the time range, and those
// with the variable of the company must follow both its list and its text box.
func TestDashboardsAnswer(t *testing.T) {
	t.Parallel()
	server, _, now := known(t)
	// The window of movers follows the length of the range.
	from, otherTo := now.AddDate(0, 0, -90), now.AddDate(-20, 0, 0)
	to, otherFrom := now.Add(time.Minute), otherTo.AddDate(0, 0, -7)
	ask := func(title, query string) string {
		if strings.Contains(query, "$") || !strings.Contains(query, " v1_") {
			t.Errorf("%s: asks for something else than the public views, or uses a variable that the test does not know: %s", title, query)
		}
		status, answer := asAnalyst(t, server, query, "TSV")
		if status != http.StatusOK {
			t.Errorf("%s: status %d, answer %q", title, status, answer)
		}
		return strings.TrimSpace(answer)
	}
	for name, d := range dashboards(t) {
		ranges, companies := 0, 0
		for _, panel := range d.Panels {
			title := name + ": " + panel.Title
			if len(panel.Targets) == 0 {
				t.Errorf("%s asks for nothing", title)
			}
			for _, target := range panel.Targets {
				answer := ask(title, expand(target.RawSQL, from, to, "apple.com", ""))
				if answer == "" {
					t.Errorf("%s: the answer is empty and so proves nothing", title)
				}
				if strings.Contains(target.RawSQL, "$__") {
					ranges++
					if ask(title, expand(target.RawSQL, otherFrom, otherTo, "apple.com", "")) == answer {
						t.Errorf("%s has the same answer for another time range", title)
					}
				}
				if strings.Contains(target.RawSQL, companyOnPage) {
					companies++
					var of string
					wait.Until(t, title+" follows the company", func() bool { // an age may change between two questions
						of = ask(title, expand(target.RawSQL, from, to, "alpha.com", ""))
						return of == ask(title, expand(target.RawSQL, from, to, "apple.com", "alpha.com"))
					})
					if of == answer {
						t.Errorf("%s has the same answer for another company: %s", title, of)
					}
				}
			}
		}
		if len(d.Panels) < 10 || ranges < 4 || companies < 1 {
			t.Errorf("%s: %d panels, %d follow the time range, %d the company", name, len(d.Panels), ranges, companies)
		}
		for _, variable := range d.Templating.List {
			if variable.Type != "query" {
				continue
			}
			list := ask(name+": variable "+variable.Name, expand(variable.Query, from, to, "", ""))
			if want := "delta.com\nbeta.com\nbank.com\napple.com\nalpha.com\ngamma.com\nshop.com\ntrust.com"; list != want {
				t.Errorf("%s: variable %s lists %q, want %q", name, variable.Name, list, want)
			}
		}
	}
}

// TestDashboardsLinkToEachOther checks that links lead to dashboards of the directory.
func TestDashboardsLinkToEachOther(t *testing.T) {
	t.Parallel()
	all := dashboards(t)
	uids := make(map[string]string)
	for name, d := range all {
		if uids[d.UID] != "" || d.UID == "" {
			t.Errorf("%s has the uid %q, as %q", name, d.UID, uids[d.UID])
		}
		uids[d.UID] = name
	}
	link := regexp.MustCompile(`"/d/([^"?]+)`)
	for name, d := range all {
		text, err := os.ReadFile(filepath.Join("../deploy/grafana", name))
		if err != nil {
			t.Fatal(err)
		}
		found := link.FindAllStringSubmatch(string(text), -1)
		for _, match := range found {
			if uids[match[1]] == "" {
				t.Errorf("%s links to %s, which is no dashboard", name, match[1])
			}
		}
		if len(d.Links) == 0 || len(found) < len(d.Links) {
			t.Errorf("%s: %d links, %d of them at the top", name, len(found), len(d.Links))
		}
	}
}

// TestDashboardsNameGradesAsViews compares the names that dashboards give to the numbers of grades and confidences with the types of the
// views.
func TestDashboardsNameGradesAsViews(t *testing.T) {
	t.Parallel()
	server, _, _ := known(t)
	names := func(column string) (of []string) {
		_, enum := asAnalyst(t, server, "SELECT toTypeName("+column+") FROM v1_score_latest LIMIT 1", "TSVRaw")
		for i, m := range regexp.MustCompile(`'([^']+)' = (\d+)`).FindAllStringSubmatch(enum, -1) {
			if m[2] != fmt.Sprint(i+1) {
				t.Fatalf("%s: %s", column, enum)
			}
			of = append(of, m[1])
		}
		return of
	}
	want := map[string][]string{"^grade": names("rating"), "^confidence": names("confidence")}
	compared := 0
	for name, d := range dashboards(t) {
		for _, panel := range d.Panels {
			for _, override := range panel.FieldConfig.Overrides {
				for _, property := range override.Properties {
					if property.ID != "mappings" || want[override.Matcher.Options] == nil {
						continue
					}
					var mappings []struct {
						Options map[string]struct{ Text string }
					}
					if err := json.Unmarshal(property.Value, &mappings); err != nil || len(mappings) != 1 {
						t.Fatalf("%s: %s: %d mappings, %v", name, panel.Title, len(mappings), err)
					}
					got := make([]string, len(mappings[0].Options))
					for i := range got {
						got[i] = mappings[0].Options[fmt.Sprint(i+1)].Text
					}
					if !slices.Equal(got, want[override.Matcher.Options]) {
						t.Errorf("%s: %s: %s are named %q, want %q", name, panel.Title, override.Matcher.Options, got,
							want[override.Matcher.Options])
					}
					compared++
				}
			}
		}
	}
	if compared < 10 {
		t.Errorf("%d mappings were compared", compared)
	}
}

// TestProvisioningLoadsTheDashboards follows the files that Grafana reads in deploy/grafana/docker-compose.yml: the provisioned directory
// must be the mounted one, and the data source the plugin and the database of the dashboards.
func TestProvisioningLoadsTheDashboards(t *testing.T) {
	t.Parallel()
	read := func(path string, into any) {
		text, err := os.ReadFile(filepath.Join("../deploy/grafana", path))
		if err == nil {
			err = yaml.Unmarshal(text, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var compose struct {
		Services map[string]struct {
			Environment map[string]string
			Volumes     []string
		}
	}
	var dashboards struct {
		Providers []struct {
			Type    string
			Options struct{ Path string }
		}
	}
	var sources struct {
		Datasources []struct {
			Type           string
			JSONData       map[string]any    `yaml:"jsonData"`
			SecureJSONData map[string]string `yaml:"secureJsonData"`
		}
	}
	read("docker-compose.yml", &compose)
	read("provisioning/dashboards/companyscore.yaml", &dashboards)
	read("provisioning/datasources/companyscore.yaml", &sources)
	grafana := compose.Services["grafana"]
	if len(dashboards.Providers) != 1 || dashboards.Providers[0].Type != "file" ||
		!slices.Contains(grafana.Volumes, "./deploy/grafana:"+dashboards.Providers[0].Options.Path+":ro") ||
		!slices.Contains(grafana.Volumes, "./deploy/grafana/provisioning:/etc/grafana/provisioning:ro") {
		t.Errorf("providers %+v, volumes %q", dashboards.Providers, grafana.Volumes)
	}
	if home := grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home != filepath.Join(dashboards.Providers[0].Options.Path,
		"companyscore.json") {
		t.Errorf("the first page is %s", home)
	}
	if len(sources.Datasources) != 1 {
		t.Fatalf("data sources %+v", sources.Datasources)
	}
	source := sources.Datasources[0]
	if password := strings.TrimPrefix(source.SecureJSONData["password"],
		"$"); source.Type != grafana.Environment["GF_PLUGINS_PREINSTALL"] || source.JSONData["defaultDatabase"] != "companyscore" ||
		source.JSONData["protocol"] != "http" || source.JSONData["port"] != 8123 || grafana.Environment[password] == "" {
		t.Errorf("data source %+v", source)
	}
}
