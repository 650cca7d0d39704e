package source

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"companyscore/internal/test/fakenet"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

func TestJobsOfSitesWithoutBoard(t *testing.T) {
	t.Parallel()
	f := func(name string, company Company, answered bool, careers *scoring.Observation, roles, tracks string) {
		t.Helper()
		req := requestFor("brindleworks.com")
		req.Company = company
		if answered {
			req.Answered = []string{"web"}
		}
		if careers != nil {
			careers.Signal, careers.Source = "careers_page_present", "web"
			req.Observed = []scoring.Observation{*careers}
		}
		got, err := NewJobs(nil).Fetch(t.Context(), req)
		said := spoken(got)
		if err != nil || said["open_roles"] != roles || said["ats_in_use"] != tracks || len(said) != len(roleSignals)+1 {
			t.Errorf("%s: %v, %v; want open roles %q and tracking %q", name, said, err, roles, tracks)
		}
		wantValid(t, got)
	}
	f("the site was not read", Company{}, false, nil, "unresolved_identity", "unresolved_identity")
	f("neither page nor board", Company{}, true, &scoring.Observation{State: scoring.StateAbsent}, "absent", "absent")
	f("a page of zero", Company{}, true, &scoring.Observation{State: scoring.StateOK}, "absent", "absent")
	f("a page without a board", Company{}, true, &scoring.Observation{State: scoring.StateOK, Raw: 1}, "not_found", "absent")
	f("a site that needs scripts", Company{}, true, &scoring.Observation{State: scoring.StateMissing, Reason: scoring.ReasonNotApplicable},
		"not_applicable", "not_applicable")
	f("a board that cannot be read", wikidataSays("job_board", "myworkdayjobs.com"), true, nil, "unsupported_provider", "1")
	f("a token that is none", wikidataSays("job_board", "greenhouse/../x"), true, nil, "unsupported_provider", "1")
}

func TestJobsPages(t *testing.T) {
	t.Parallel()
	network := fakenet.New(t)
	page := func(n int) string {
		var all []obj
		for range n {
			all = append(all, obj{"text": "Baker", "categories": obj{"location": "Oslo", "team": "Ovens"},
				"createdAt": instant.AddDate(0, 0, -5).UnixMilli()})
		}
		return toJSON(all)
	}
	serve(network, "jobs.lever", map[string]string{
		"/v0/postings/brindle?" + encoded("mode", "json", "limit", "100", "skip", "0"): page(100), "/v0/postings/brindle?" +
			encoded("mode", "json", "limit", "100", "skip", "100"): page(3),
	})
	req := requestFor("brindleworks.com")
	req.Company = wikidataSays("job_board", "lever/brindle")
	got, err := NewJobs(network.Client()).Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantSpoken(t, got, "ats_in_use 1, open_roles 103, department_breadth 1, hiring_location_count 1, technical_role_share 0, "+
		"fresh_role_share_30d 1, open_roles_change_90d insufficient_history")
	req.Company = wikidataSays("job_board", "lever/gone")
	got, err = NewJobs(network.Client()).Fetch(t.Context(), req)
	if said := spoken(got)["open_roles"]; err != nil || said != "not_found" {
		t.Errorf("a board that is gone: %q, %v", said, err)
	}
}

func TestJobsRejectsBadAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "{}", "null", "[]", `{"jobs":{}}`, `{"jobs":[{"title":1}]}`, `{"jobs":[{"title":"a"},`, "<html>"} {
		if got, err := parseGreenhouse(strings.NewReader(body)); err == nil {
			t.Errorf("greenhouse %q: %v", body, got)
		}
		if got, err := parseAshby(strings.NewReader(body)); err == nil {
			t.Errorf("ashby %q: %v", body, got)
		}
		if got, err := parseLever(strings.NewReader(body)); err == nil && body != "[]" {
			t.Errorf("lever %q: %v", body, got)
		}
	}
	many := `{"jobs":[` + strings.TrimSuffix(strings.Repeat(`{"title":"a"},`, rolesMax+1), ",") + `]}`
	if _, err := parseAshby(strings.NewReader(many)); WarningCode(err) != fetch.CodeTooLarge {
		t.Errorf("too many roles have the warning code %q", WarningCode(err))
	}
}

func TestRegionOf(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]string{
		"San Francisco, CA": scoring.GeoNorthAmerica, "Toronto, Canada": scoring.GeoNorthAmerica, "CA": scoring.GeoNorthAmerica,
		"Berlin": scoring.GeoEurope, "Remote - Germany": scoring.GeoEurope, "Paris, TX": scoring.GeoNorthAmerica,
		"Bengaluru, Karnataka, India": scoring.GeoAsiaPacific, "São Paulo": scoring.GeoLatinAmerica,
		"Dubai, UAE": scoring.GeoMiddleEastAfrica, "Remote": "", "": "", "Wilmington, DE": scoring.GeoNorthAmerica,
		"Berlin, DE": scoring.GeoEurope, "Bengaluru, IN": scoring.GeoAsiaPacific, "Anywhere / EMEA": scoring.GeoEurope,
		"Europe": scoring.GeoEurope, "LatAm": scoring.GeoLatinAmerica, "Remote (EMEA)": scoring.GeoEurope, "APAC": scoring.GeoAsiaPacific,
		"North America": scoring.GeoNorthAmerica, "Remote: United States": scoring.GeoNorthAmerica, "Remote, EU": scoring.GeoEurope,
		"Remote-Friendly, United States": scoring.GeoNorthAmerica, "Ontario, CAN": scoring.GeoNorthAmerica,
		"MENA":             scoring.GeoMiddleEastAfrica,
		"Washington, D.C.": scoring.GeoNorthAmerica, "U.S.": scoring.GeoNorthAmerica, "Bangalore, Karnataka": scoring.GeoAsiaPacific,
		"New York, NY (HQ)": scoring.GeoNorthAmerica, "Atlantis": "", ",;/|()-": "",
	} {
		if got := regionOf(place); got != want {
			t.Errorf("regionOf(%q) = %q, want %q", place, got, want)
		}
	}
}

// rolesOf parses a board of one provider.
func rolesOf(t *testing.T, parse func(io.Reader) ([]role, error), body string) []role {
	t.Helper()
	roles, err := parse(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return roles
}

func TestPlacesOfRoles(t *testing.T) {
	t.Parallel()
	f := func(name string, parse func(io.Reader) ([]role, error), body string, locations, regions int) {
		t.Helper()
		s := builder{source: "jobs"}
		observeRoles(&s, rolesOf(t, parse, body), requestFor("brindleworks.com"))
		if got := spoken(s.result)["hiring_location_count"]; got != fmt.Sprint(locations) {
			t.Errorf("%s: %s locations, want %d", name, got, locations)
		}
		if got := s.result.Values[ValueHiringRegions]; got != float64(regions) {
			t.Errorf("%s: %g regions, want %d", name, got, regions)
		}
	}
	f("a list in one text", parseGreenhouse,
		`{"jobs":[{"title":"Baker","location":{"name":"Oslo, Norway | Lyon | Austin, TX"}},`+
			`{"title":"Miller","location":{"name":"Lyon; Cork, Ireland"}}]}`,
		4, 2)
	f("two places with or", parseGreenhouse, `{"jobs":[{"title":"Baker","location":{"name":"Oslo or Osaka"}}]}`, 2, 2)
	f("or within a remote place", parseGreenhouse, `{"jobs":[{"title":"Baker","location":{"name":"Remote (US or Brazil)"}}]}`, 1, 2)
	f("secondary places", parseAshby, `{"jobs":[
		{"title":"Baker","location":"Oslo","secondaryLocations":[{"location":"Lyon"},{"location":"Remote (Norway)"}],
		 "address":{"postalAddress":{"addressCountry":"Norway"}}},
		{"title":"Miller","location":"Lyon","secondaryLocations":[{"location":"Remote"},{"location":"oslo"}]},
		{"title":"Cook","location":"Lyon","secondaryLocations":null,"address":null}]}`, 3, 1)
	f("all locations", parseLever, `[{"text":"Baker","categories":{"location":"Oslo","allLocations":["Oslo","Osaka","Lyon"]}},
		{"text":"Miller","categories":{"location":"Lyon"}}]`, 3, 2)
	f("the country of a remote role", parseLever, `[{"text":"Baker","categories":{"location":"Remote"},"country":"PL"},
		{"text":"Miller","categories":{"location":"Télétravail"},"country":null},
		{"text":"Cook","categories":{"location":"Remote"},"country":"CO"}]`, 1, 2)
	f("a region as country", parseAshby,
		`{"jobs":[{"title":"Baker","location":"Anywhere","address":{"postalAddress":{"addressCountry":"European Union"}}}]}`, 1, 1)
}

func TestPlacesAreBounded(t *testing.T) {
	t.Parallel()
	r := newRole("Baker", time.Time{}, strings.Repeat("A|", 1000), strings.Join(strings.Split(strings.Repeat("a", 500), ""), ";"))
	if len(r.Places) != 2 {
		t.Errorf("got %q", r.Places)
	}
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("Town ", i))
	}
	if r = newRole("Baker", time.Time{}, strings.Join(many, "|")); len(r.Places) != placesMax {
		t.Errorf("%d places, want %d", len(r.Places), placesMax)
	}
	for _, text := range []string{"((((", "))))", "(|", "|)", " or ", "a or ", strings.Repeat("(", 10_000)} {
		splitPlaces(text) // must not panic
	}
}

func TestTechnicalRoles(t *testing.T) {
	t.Parallel()
	f := func(title, department string, want bool) {
		t.Helper()
		if got := isTechnical(role{Title: title, Departments: []string{department}}); got != want {
			t.Errorf("%q in %q: got %t, want %t", title, department, got, want)
		}
	}
	f("Architect - Ovens", "Tech", true)
	f("Lead", "Technology", true)
	f("Lead", "R&D", true)
	f("Lead", "IT", true)
	f("Lead", "Product & Engineering", true)
	f("Lead", "Bakery", false)
	f("Lead", "Product Marketing", false)
	f("Lead", "", false)
	f("Software Engineer II", "", true)
	f("Site Reliability Lead", "", true)
	f("Head of Data", "", true)
	f("Director of IT", "G&A", true)
	f("Make IT happen", "", true)
	f("Italian Teacher", "", false)
	f("Administrative Business Partner - Security", "", false)
	f("Executive Assistant, Engineering", "Engineering", false)
	f("Technical Recruiter", "People", false)
	f("Account Executive, Data Cloud", "Sales", false)
	f("Sales Engineer", "Sales", true)
	f("Product Marketing Manager", "Product", false)
	f("Senior Product Manager", "", true)
	f("Security Guard", "Facilities", false)
	f("Softwareentwickler (m/w/d)", "", true)
	f("Werkstudent Softwareentwicklung", "", true)
	f("Assistenz der Geschäftsführung", "Entwicklung", false)
	f("Personalentwicklung", "", false)
	f("Ingénieur·e logiciel", "", true)
	f("Développeuse web", "", true)
	f("Assistante commerciale", "Technique", false)
	f("Ingeniera de datos", "", true)
	f("Desenvolvedor Pleno", "", true)
	f("Vendedor", "Tecnologia", false)
	f("Sviluppatore Java", "", true)
	f("Programista Go", "", true)
	f("Разработчик Go", "", true)
	f("バックエンドエンジニア", "", true)
	f("営業", "技術", false)
	f("高级软件工程师", "", true)
	f("백엔드 개발자", "", true)
	f("", "", false)
}

func TestRoleTables(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, row := range table(technicalCSV, 3) {
		if key := row[0] + row[2]; seen[key] || len(row[0]) != 2 || !slices.Contains([]string{"role", "topic", "other"}, row[1]) ||
			wordsOf(row[2]) == "" {
			t.Errorf("row %q of the technical roles", row)
		} else {
			seen[key] = true
		}
	}
	for _, row := range table(placesCSV, 2) {
		name, means := row[0], row[1]
		region := means
		if means == strings.ToUpper(means) {
			region = scoring.RegionOf(means)
		}
		if name != strings.ToLower(name) || seen["place "+name] || !slices.Contains([]string{remotePlace, scoring.GeoNorthAmerica,
			scoring.GeoEurope, scoring.GeoAsiaPacific, scoring.GeoLatinAmerica, scoring.GeoMiddleEastAfrica}, region) {
			t.Errorf("row %q of the places", row)
		}
		seen["place "+name] = true
		if got := regionOf(name); means != remotePlace && got != region {
			t.Errorf("regionOf(%q) = %q, want %q", name, got, region)
		}
	}
}

// board returns an Ashby board of about size bytes. A role has 17.6 kB there, nearly all of it the
// description.
func board(size int) (body string, roles int) {
	var b strings.Builder
	b.WriteString(`{"apiVersion":"1","jobs":[`)
	text := strings.Repeat("We bake bread and the ovens for it. ", 240)
	for b.Len() < size {
		if roles++; roles > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"%d","title":"Oven Engineer %d","department":"Ovens %d","location":"Oslo",`+
			`"secondaryLocations":[{"location":"Town %d"}],`+
			`"isListed":true,"publishedAt":"2026-03-01T00:00:00.000+00:00","descriptionHtml":"<p>%s</p>","descriptionPlain":"%s"}`,
			roles, roles, roles%9, roles%50, text, text)
	}
	b.WriteString("]}")
	return b.String(), roles
}

func TestJobsOfALargeBoard(t *testing.T) {
	t.Parallel()
	body, want := board(16 << 20)
	network := fakenet.New(t)
	network.Endpoint("jobs.ashby", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}))
	network.Endpoint("jobs.greenhouse", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("content") == "true" {
			fmt.Fprintf(w, `{"jobs":[{"title":"Baker","content":%q}]}`, strings.Repeat("x", 9<<20))
			return
		}
		fmt.Fprint(w, `{"jobs":[{"title":"Baker","location":{"name":"Oslo"}}]}`)
	}))
	client := network.Client()
	req := requestFor("brindleworks.com")
	req.Company = wikidataSays("job_board", "ashby/brindle")
	got, err := NewJobs(client).Fetch(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	wantSpoken(t, got, fmt.Sprintf("ats_in_use 1, open_roles %d, department_breadth 9, hiring_location_count 51, technical_role_share 1, "+
		"fresh_role_share_30d 1, open_roles_change_90d insufficient_history", want))
	// The second board has one role of 9 MB. Without the texts it can be read.
	req.Company = wikidataSays("job_board", "greenhouse/brindle")
	if got, err = NewJobs(client).Fetch(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	wantSpoken(t, got, "ats_in_use 1, open_roles 1, department_breadth not_found, hiring_location_count 1, technical_role_share "+
		"not_applicable, fresh_role_share_30d not_found, open_roles_change_90d insufficient_history")
}

// endlessBody is a body that repeats a text after a beginning, and never ends.
type endlessBody struct {
	begin, repeat string
	read          int
}

func (e *endlessBody) Read(p []byte) (int, error) {
	text := e.repeat
	if e.begin != "" {
		text, e.begin = e.begin, ""
	}
	n := copy(p, text)
	e.read += n
	return n, nil
}

// A board whose values are too large is refused after a few megabytes, at any place in it.
func TestJobsBoundsMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 64<<10)
	for _, begin := range []string{`{"jobs":[{"title":"`, `{"`, `{"meta":"`, `{"meta":{"a":["`, `{"jobs":[{"descriptionPlain":"`,
		`{"jobs":[{"title":"a"},{"secondaryLocations":[{"location":"`} {
		body := &endlessBody{begin: begin, repeat: long}
		if _, err := parseAshby(body); WarningCode(err) != fetch.CodeTooLarge || body.read > 4*roleMaxBytes {
			t.Errorf("%s: %q (%v) after %d bytes", begin, WarningCode(err), err, body.read)
		}
	}
	for _, begin := range []string{`[{"text":"`, `["`, `[{"categories":{"allLocations":["`} {
		body := &endlessBody{begin: begin, repeat: long}
		if _, err := parseLever(body); WarningCode(err) != fetch.CodeTooLarge || body.read > 4*roleMaxBytes {
			t.Errorf("%s: %q (%v) after %d bytes", begin, WarningCode(err), err, body.read)
		}
	}
}

// BenchmarkBoard reads a board of 8 MB, as Ashby sends it for about 475 roles.
func BenchmarkBoard(b *testing.B) {
	body, roles := board(8_000_000)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := parseAshby(strings.NewReader(body)); err != nil || len(got) != roles {
			b.Fatalf("%d roles, %v", len(got), err)
		}
	}
}

func FuzzRolePlaces(f *testing.F) {
	f.Add("Oslo, Norway | Remote (US or Canada); Lyon / Cork", "Architecte - Ingénieur·e R&D")
	f.Add("((|or or ", "")
	f.Fuzz(func(t *testing.T, text, title string) {
		r := newRole(title, time.Time{}, text, title)
		if len(r.Places) > placesMax {
			t.Errorf("%d places", len(r.Places))
		}
		isTechnical(r)
		for _, place := range r.Places {
			if key := placeKey(place); key == "" || placeKey(key) != key {
				t.Errorf("%q is counted as %q", place, key)
			}
		}
		for _, region := range regionsOf(r) {
			if region == "" || region == remotePlace {
				t.Errorf("the region %q in %q", region, r.Places)
			}
		}
	})
}
