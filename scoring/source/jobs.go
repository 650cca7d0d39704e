package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

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
		careers, _ := req.Preference().Choose("careers_page_present", req.Observed)
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

// Bounds of a board. Lever has pages; Greenhouse and Ashby send a board in one answer.
const (
	rolesMax      = 5000
	leverPage     = 100
	leverPagesMax = 20 // at two requests per second they fit the deadline
	roleMaxBytes  = 1 << 20
	placesMax     = 30 // of one role
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
	// Places are all locations, as the board writes them.
	Places []string
	// Country is the country of the main place, a name or an ISO 3166-1 code, "" if the board does not have it.
	Country string
	// Published is zero if the board does not have it.
	Published time.Time
}

// newRole returns a role. Each text names one or several places of it.
func newRole(title string, published time.Time, texts ...string) role {
	r := role{Title: roleText(title), Published: published}
	for _, text := range texts {
		for _, place := range splitPlaces(text) {
			if place = roleText(place); place != "" && len(r.Places) < placesMax && !slices.Contains(r.Places, place) {
				r.Places = append(r.Places, place)
			}
		}
	}
	return r
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

// valueReader bounds the memory of a decoder that reads a board value by value: a read fails with
// CodeTooLarge when more than roleMaxBytes of one value are buffered.
type valueReader struct {
	body    io.Reader
	decoder *json.Decoder // nil before the first member
	read    int64
}

func (r *valueReader) Read(p []byte) (int, error) {
	var used int64
	if r.decoder != nil {
		used = r.decoder.InputOffset()
	}
	if r.read-used > roleMaxBytes {
		return 0, &fetch.Error{Code: fetch.CodeTooLarge, Err: fmt.Errorf("a role of more than %d bytes", roleMaxBytes)}
	}
	n, err := r.body.Read(p[:min(len(p), roleMaxBytes/2)])
	r.read += int64(n)
	return n, err
}

// jobList reads the member "jobs" of a board, each element as a T.
func jobList[T any](body io.Reader, keep func(T) (role, bool)) ([]role, error) {
	roles := []role{}
	seen := false
	bounded := &valueReader{body: body}
	err := eachMember(bounded, func(key string, d *json.Decoder) error {
		bounded.decoder = d
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
		r := newRole(j.Title, roleTime(j.Published), j.Location.Name)
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
		Secondary  []struct {
			Location string `json:"location"`
		} `json:"secondaryLocations"`
		Address struct {
			Postal struct {
				Country string `json:"addressCountry"`
			} `json:"postalAddress"`
		} `json:"address"`
		Listed    *bool  `json:"isListed"`
		Published string `json:"publishedAt"`
	}
	return jobList(body, func(j job) (role, bool) {
		texts := []string{j.Location}
		for _, more := range j.Secondary[:min(len(j.Secondary), placesMax)] {
			texts = append(texts, more.Location)
		}
		r := newRole(j.Title, roleTime(j.Published), texts...)
		r.Departments, r.Country = []string{roleText(j.Department)}, roleText(j.Address.Postal.Country)
		return r, r.Title != "" && (j.Listed == nil || *j.Listed)
	})
}

func parseLever(body io.Reader) ([]role, error) {
	roles := []role{}
	bounded := &valueReader{body: body}
	err := eachElement(bounded, func(d *json.Decoder) (bool, error) {
		bounded.decoder = d
		var j struct {
			Text       string `json:"text"`
			Categories struct {
				Location   string   `json:"location"`
				Locations  []string `json:"allLocations"`
				Team       string   `json:"team"`
				Department string   `json:"department"`
			} `json:"categories"`
			Country string `json:"country"`
			Created int64  `json:"createdAt"` // unix milliseconds
		}
		if err := d.Decode(&j); err != nil {
			return false, err
		}
		more := j.Categories.Locations[:min(len(j.Categories.Locations), placesMax)]
		r := newRole(j.Text, time.Time{}, append([]string{j.Categories.Location}, more...)...)
		r.Departments, r.Country = []string{roleText(j.Categories.Department)}, roleText(j.Country)
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
		for _, d := range r.Departments {
			if d = strings.ToLower(strings.TrimSpace(d)); d != "" && d != "no department" {
				departments[d] = true
			}
		}
		if isTechnical(r) {
			techs++
		}
		for _, place := range r.Places {
			locations[placeKey(place)] = true
		}
		for _, region := range regionsOf(r) {
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
