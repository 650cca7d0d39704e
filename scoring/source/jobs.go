package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"companyscore/internal/country"
	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
	"companyscore/scoring/source/site"
)

// Jobs is the source of hiring: the roles on the public job board that a company's site links to.
type Jobs struct{ live }

// NewJobs returns the source.
func NewJobs(c *fetch.Client) *Jobs { return &Jobs{newLive(c, "jobs", "web")} }

var _ Source = (*Jobs)(nil)

var roleSignals = []string{"open_roles", "department_breadth", "technical_role_share", "hiring_location_count", "fresh_role_share_30d",
	"open_roles_change_90d"}

// Fetch reads the board. It never guesses one: a token can belong to another company.
func (j *Jobs) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "jobs"}
	provider, token, tracked := boardOf(req.Company)
	switch {
	case token != "":
	case tracked:
		s.ok("ats_in_use", 1)
		s.missing(scoring.ReasonUnsupportedProvider, roleSignals...)
		return s.result, nil
	case !req.HasAnswered("web"):
		s.missing(scoring.ReasonUnresolvedIdentity, append(roleSignals, "ats_in_use")...)
		return s.result, nil
	default:
		careers, _ := scoring.MostTrusted("careers_page_present", req.Observed)
		switch careers.State {
		case scoring.StateMissing:
			s.missing(careers.Reason, append(roleSignals, "ats_in_use")...)
		case scoring.StateOK:
			if careers.Raw >= 0.5 {
				s.absent("ats_in_use")
				s.missing(scoring.ReasonNotFound, roleSignals...)
				break
			}
			fallthrough
		default:
			// The site was read and has no careers page.
			s.absent("ats_in_use")
			observeRoles(&s, nil, req)
		}
		return s.result, nil
	}
	roles, err := j.roles(ctx, provider, token)
	if err != nil && !fetch.IsNotFound(err) {
		return Result{}, err
	}
	s.ok("ats_in_use", 1)
	if err != nil {
		s.missing(scoring.ReasonNotFound, roleSignals...)
		return s.result, nil
	}
	observeRoles(&s, roles, req)
	return s.result, nil
}

// boardOf returns the first readable board, and whether the company uses any applicant tracking
// system.
func boardOf(company Company) (provider, token string, tracked bool) {
	for _, board := range company.All(JobBoard) {
		tracked = true
		provider, token, _ := strings.Cut(board, "/")
		if boardProviders[provider] && site.ValidToken(token) {
			return provider, token, true
		}
	}
	return "", "", tracked
}

var boardProviders = map[string]bool{"greenhouse": true, "lever": true, "lever_eu": true, "ashby": true}

// Bounds of a board.
const (
	rolesMax      = 5000
	leverPage     = 100
	leverPagesMax = 20
)

func (j *Jobs) roles(ctx context.Context, provider, token string) ([]role, error) {
	ask := func(path string, query url.Values, parse func(io.Reader) ([]role, error)) ([]role, error) {
		return fetch.Get(ctx, j.client, fetch.Request{Source: "jobs", Endpoint: "jobs." + provider, Path: path, Query: query},
			func(res *fetch.Response) ([]role, error) { return parse(res.Body) })
	}
	switch provider {
	case "greenhouse":
		roles, err := ask("/v1/boards/"+token+"/jobs", url.Values{"content": {"true"}}, parseGreenhouse)
		if err != nil && WarningCode(err) == fetch.CodeTooLarge {
			// Departments come only with the texts.
			return ask("/v1/boards/"+token+"/jobs", nil, parseGreenhouse)
		}
		return roles, err
	case "ashby":
		return ask("/posting-api/job-board/"+token, nil, parseAshby)
	}
	var all []role
	for page := range leverPagesMax {
		roles, err := ask("/v0/postings/"+token, url.Values{"mode": {"json"}, "limit": {strconv.Itoa(leverPage)},
			"skip": {strconv.Itoa(page * leverPage)}}, parseLever)
		if err != nil {
			return nil, err
		}
		all = append(all, roles...)
		if len(roles) < leverPage {
			break
		}
	}
	return all, nil
}

// role is one open position.
type role struct {
	Title       string
	Departments []string
	Location    string
	// Published is zero if the board does not have it.
	Published time.Time
}

// roleText shortens a text of a role.
func roleText(text string) string {
	return strings.Join(strings.Fields(text[:min(len(text), 200)]), " ")
}

// roleTime parses a time of a board; zero if it is malformed.
func roleTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05.999-0700"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// jobList reads the member "jobs" of a board, each element as a T.
func jobList[T any](body io.Reader, keep func(T) (role, bool)) ([]role, error) {
	roles := []role{}
	seen := false
	err := eachMember(body, func(key string, d *json.Decoder) error {
		if key != "jobs" {
			return skip(d)
		}
		seen = true
		return elements(d, func() (bool, error) {
			var job T
			if err := d.Decode(&job); err != nil {
				return false, err
			}
			if r, ok := keep(job); ok {
				if len(roles) >= rolesMax {
					return false, &fetch.Error{Code: fetch.CodeTooLarge, Err: fmt.Errorf("more than %d roles", rolesMax)}
				}
				roles = append(roles, r)
			}
			return true, nil
		})
	})
	if err == nil && !seen {
		err = errors.New("the answer has no jobs")
	}
	return roles, err
}

func parseGreenhouse(body io.Reader) ([]role, error) {
	type named struct {
		Name string `json:"name"`
	}
	type job struct {
		Title       string  `json:"title"`
		Updated     string  `json:"updated_at"`
		Published   string  `json:"first_published"`
		Location    named   `json:"location"`
		Departments []named `json:"departments"`
	}
	return jobList(body, func(j job) (role, bool) {
		r := role{Title: roleText(j.Title), Location: roleText(j.Location.Name), Published: roleTime(j.Published)}
		if r.Published.IsZero() {
			r.Published = roleTime(j.Updated)
		}
		for _, d := range j.Departments[:min(len(j.Departments), 10)] {
			r.Departments = append(r.Departments, roleText(d.Name))
		}
		return r, r.Title != ""
	})
}

func parseAshby(body io.Reader) ([]role, error) {
	type job struct {
		Title      string `json:"title"`
		Department string `json:"department"`
		Location   string `json:"location"`
		Listed     *bool  `json:"isListed"`
		Published  string `json:"publishedAt"`
	}
	return jobList(body, func(j job) (role, bool) {
		listed := j.Listed == nil || *j.Listed
		return role{Title: roleText(j.Title), Departments: []string{roleText(j.Department)}, Location: roleText(j.Location),
			Published: roleTime(j.Published)}, listed && j.Title != ""
	})
}

func parseLever(body io.Reader) ([]role, error) {
	roles := []role{}
	err := eachElement(body, func(d *json.Decoder) (bool, error) {
		var j struct {
			Text       string `json:"text"`
			Categories struct {
				Location   string `json:"location"`
				Team       string `json:"team"`
				Department string `json:"department"`
			} `json:"categories"`
			Created int64 `json:"createdAt"` // unix milliseconds
		}
		if err := d.Decode(&j); err != nil {
			return false, err
		}
		r := role{Title: roleText(j.Text), Departments: []string{roleText(j.Categories.Department)},
			Location: roleText(j.Categories.Location)}
		if r.Departments[0] == "" {
			r.Departments[0] = roleText(j.Categories.Team)
		}
		if j.Created > 0 {
			r.Published = time.UnixMilli(j.Created).UTC()
		}
		if r.Title != "" {
			roles = append(roles, r)
		}
		return len(roles) < rolesMax, nil
	})
	if err != nil {
		return nil, err
	}
	return roles, nil
}

var technical = regexp.MustCompile(`(?i)engineer|developer|data|security|research|design|product`)

// technicalMin is the number of roles that a share of technical roles needs.
const technicalMin = 3

// The least and greatest age of the earlier run that open roles are compared with.
const (
	rolesThenMin = 60 * day
	rolesThenMax = 120 * day
)

// observeRoles derives the signals from the open roles. No roles are absent, not missing.
func observeRoles(s *builder, roles []role, req Request) {
	departments, locations, regions := map[string]bool{}, map[string]bool{}, map[string]bool{}
	techs, fresh, dated := 0, 0, 0
	for _, r := range roles {
		isTech := technical.MatchString(r.Title)
		for _, d := range r.Departments {
			if d = strings.ToLower(strings.TrimSpace(d)); d != "" && d != "no department" {
				departments[d] = true
				isTech = isTech || technical.MatchString(d)
			}
		}
		if isTech {
			techs++
		}
		location := strings.ToLower(r.Location)
		if strings.Contains(location, "remote") {
			location = "remote"
		}
		if location != "" {
			locations[location] = true
		}
		if region := regionOf(r.Location); region != "" {
			regions[region] = true
		}
		if !r.Published.IsZero() {
			dated++
			if age := req.Now.Sub(r.Published); age >= -day && age <= 30*day {
				fresh++
			}
		}
	}
	n := len(roles)
	s.count("open_roles", n)
	// add adds a signal: absent without roles, missing if no role has the data. told is the
	// number of values.
	add := func(signal string, value float64, told int) {
		switch {
		case n == 0:
			s.absent(signal)
		case told == 0:
			s.missing(scoring.ReasonNotFound, signal)
		default:
			s.ok(signal, value)
		}
	}
	add("department_breadth", float64(len(departments)), len(departments))
	add("hiring_location_count", float64(len(locations)), len(locations))
	add("fresh_role_share_30d", float64(fresh)/float64(n), dated)
	if n > 0 && n < technicalMin {
		s.missing(scoring.ReasonNotApplicable, "technical_role_share")
	} else {
		add("technical_role_share", float64(techs)/float64(n), n)
	}
	if then, _, ok := req.Before("jobs."+ValueOpenRoles, rolesThenMin, rolesThenMax); ok {
		s.ok("open_roles_change_90d", math.Log((float64(n)+2)/(then+2)))
	} else {
		s.missing(scoring.ReasonInsufficientHistory, "open_roles_change_90d")
	}
	s.result.Values = map[string]float64{ValueOpenRoles: float64(n), ValueHiringRegions: float64(len(regions))}
}

// cities are large cities that roles name without a country.
var cities = func() map[string]string {
	all := map[string]string{}
	for country, names := range map[string]string{
		"US": "new york|nyc|san francisco|sf|los " +
			"angeles|boston|seattle|austin|chicago|denver|atlanta|washington|miami|dallas|houston|palo alto|mountain view|san jose|new " +
			"york city|us|usa|remote us",
		"CA": "toronto|vancouver|montreal|ottawa|calgary", "GB": "london|manchester|edinburgh|bristol|cambridge|leeds", "IE": "dublin",
		"DE": "berlin|munich|münchen|hamburg|cologne|köln|frankfurt|stuttgart", "FR": "paris|lyon", "ES": "madrid|barcelona|valencia",
		"IT": "milan|rome", "NL": "amsterdam|rotterdam|utrecht", "PT": "lisbon|porto",
		"SE": "stockholm|gothenburg", "DK": "copenhagen", "NO": "oslo", "FI": "helsinki", "PL": "warsaw|krakow|kraków|wroclaw",
		"CH": "zurich|zürich|geneva", "AT": "vienna", "BE": "brussels", "CZ": "prague", "RO": "bucharest", "HU": "budapest",
		"IN": "bangalore|bengaluru|mumbai|delhi|new delhi|hyderabad|pune|chennai|gurgaon|gurugram", "JP": "tokyo|osaka",
		"CN": "shanghai|beijing|shenzhen", "KR": "seoul", "AU": "sydney|melbourne|brisbane", "NZ": "auckland|wellington", "TW": "taipei",
		"BR": "são paulo|sao paulo|rio de janeiro", "MX": "mexico city|ciudad de méxico|guadalajara", "AR": "buenos aires",
		"CO": "bogotá|bogota", "CL": "santiago", "IL": "tel aviv", "AE": "dubai|abu dhabi", "ZA": "cape town|johannesburg", "KE": "nairobi",
		"NG": "lagos", "EG": "cairo",
	} {
		for name := range strings.SplitSeq(names, "|") {
			all[name] = country
		}
	}
	return all
}()

// regionOf returns the world region of a role's location, "" if it is unknown. The last part of a
// location is the widest: Portland, OR, United States.
func regionOf(location string) string {
	parts := strings.FieldsFunc(location, func(r rune) bool { return strings.ContainsRune(",;/|()-–", r) })
	for i := len(parts) - 1; i >= 0; i-- {
		part := strings.TrimSpace(parts[i])
		code := cities[strings.ToLower(part)]
		switch {
		case code != "":
		case len(part) == 2 && i > 0 && slices.Contains(secStates, part):
			code = "US" // as in "San Francisco, CA"
		default:
			code = country.Code(part)
		}
		if region := scoring.RegionOf(code); region != scoring.Unknown {
			return region
		}
	}
	return ""
}
