package source

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"companyscore/scoring"
	"companyscore/scoring/source/fetch"
)

// Repositories is the source of a company's public repositories.
type Repositories struct{ live }

// NewRepositories returns the source.
func NewRepositories(c *fetch.Client) *Repositories {
	return &Repositories{newLive(c, "github", "wikidata", "web")}
}

var _ Source = (*Repositories)(nil)

const githubType = "application/vnd.github+json"

var githubSignals = []string{
	"github_org_verified", "github_followers", "github_stars_total", "github_push_recency_days", "github_active_repo_share_90d",
	"github_new_repos_365d",
}

// Fetch reads an organisation and its most recently pushed repositories. The organisation is the
// one in the imported facts or in Wikidata; else the one that the site links to, or the one with the name of the domain's
// label, if its profile links to the domain.
func (g *Repositories) Fetch(ctx context.Context, req Request) (Result, error) {
	s := builder{source: "github"}
	login, namedBy := loginOf(req)
	trusted := namedBy != ""
	if login == "" {
		s.missing(scoring.ReasonNotFound, githubSignals...)
		return s.result, nil
	}
	org, err := fetch.Get(ctx, g.client, fetch.Request{Source: "github", Endpoint: "github", Path: "/orgs/" + login, Accept: githubType},
		func(res *fetch.Response) (githubOrg, error) { return parseOrg(res.Body) })
	switch {
	case fetch.IsNotFound(err):
		s.missing(scoring.ReasonNotFound, githubSignals...)
		return s.result, nil
	case err != nil:
		return Result{}, err
	case !trusted && !org.leadsTo(req):
		s.missing(scoring.ReasonUnresolvedIdentity, githubSignals...)
		return s.result, nil
	}
	if trusted {
		s.claim(GitHub, "key", org.Login, namedBy+" names "+login)
	} else {
		s.claim(GitHub, "blog", org.Login, "the organisation "+org.Login+" gives "+org.Blog+" as its site")
	}
	org.observe(&s)
	repos, err := fetch.Get(ctx, g.client, fetch.Request{
		Source: "github", Endpoint: "github", Path: "/orgs/" + org.Login + "/repos", Query: url.Values{"type": {"sources"},
			"sort": {"pushed"}, "per_page": {"100"}}, Accept: githubType,
	}, func(res *fetch.Response) ([]githubRepo, error) { return parseRepos(res.Body) })
	if err != nil && !fetch.IsNotFound(err) {
		return s.result, err
	}
	observeRepos(&s, repos, req.Now)
	return s.result, nil
}

// loginOf returns the organisation to read, and who names it. One that Wikidata or an import names need not link to the domain; else
// namedBy is "".
func loginOf(req Request) (login, namedBy string) {
	if claim, ok := req.Company.Best(GitHub); ok && loginText.MatchString(claim.Value) {
		switch claim.Source {
		case scoring.FactsSource:
			return claim.Value, "the import"
		case "wikidata":
			return claim.Value, "Wikidata"
		}
		return claim.Value, ""
	}
	label, _, _ := strings.Cut(req.Registrable, ".")
	if !loginText.MatchString(label) {
		return "", ""
	}
	return label, ""
}

// githubOrg is the profile of an organisation.
type githubOrg struct {
	Login     string
	Blog      string
	Followers int
	Verified  bool
}

func parseOrg(body io.Reader) (githubOrg, error) {
	var answer struct {
		Login     string `json:"login"`
		Blog      string `json:"blog"`
		Followers *int   `json:"followers"`
		Verified  bool   `json:"is_verified"`
	}
	if err := decodeJSON(body, &answer); err != nil {
		return githubOrg{}, err
	}
	if !loginText.MatchString(answer.Login) || answer.Followers == nil || *answer.Followers < 0 {
		return githubOrg{}, errors.New("an answer without an organisation")
	}
	return githubOrg{Login: answer.Login, Blog: answer.Blog[:min(len(answer.Blog), 300)], Followers: *answer.Followers,
		Verified: answer.Verified}, nil
}

// leadsTo reports whether the organisation's profile links to the domain.
func (o githubOrg) leadsTo(req Request) bool {
	blog := strings.ToLower(strings.TrimSpace(o.Blog))
	if !strings.Contains(blog, "://") {
		blog = "https://" + blog
	}
	u, err := url.Parse(blog)
	if err != nil {
		return false
	}
	host := strings.TrimPrefix(strings.TrimSuffix(u.Hostname(), "."), "www.")
	return host == req.Domain || host == req.Registrable
}

func (o githubOrg) observe(s *builder) {
	verified := 0.0
	if o.Verified {
		verified = 1
	}
	s.ok("github_org_verified", verified)
	s.ok("github_followers", float64(o.Followers))
}

// githubRepo is one repository.
type githubRepo struct {
	Stars           int
	Pushed, Created time.Time
	Archived        bool
}

// reposMax is the size of a page of repositories.
const reposMax = 100

// parseRepos parses a page of repositories. It skips forks.
func parseRepos(body io.Reader) ([]githubRepo, error) {
	repos := []githubRepo{}
	err := eachElement(body, func(d *json.Decoder) (bool, error) {
		var r struct {
			Stars    int       `json:"stargazers_count"`
			Pushed   time.Time `json:"pushed_at"` // null before the first push
			Created  time.Time `json:"created_at"`
			Archived bool      `json:"archived"`
			Fork     bool      `json:"fork"`
		}
		if err := d.Decode(&r); err != nil {
			return false, err
		}
		if !r.Fork {
			repos = append(repos, githubRepo{Stars: max(0, r.Stars), Pushed: r.Pushed, Created: r.Created, Archived: r.Archived})
		}
		return len(repos) < reposMax, nil
	})
	if err != nil {
		return nil, err
	}
	return repos, nil
}

func observeRepos(s *builder, repos []githubRepo, now time.Time) {
	var stars, live, active, created int
	var pushed time.Time
	for _, r := range repos {
		stars += r.Stars
		if r.Pushed.After(pushed) {
			pushed = r.Pushed
		}
		if !r.Archived {
			live++
			if now.Sub(r.Pushed) <= 90*day {
				active++
			}
		}
		if now.Sub(r.Created) <= 365*day {
			created++
		}
	}
	s.ok("github_stars_total", float64(stars))
	s.ok("github_new_repos_365d", float64(created))
	if pushed.IsZero() {
		s.absent("github_push_recency_days")
	} else {
		s.ok("github_push_recency_days", max(0, now.Sub(pushed).Hours()/24))
	}
	if live == 0 {
		s.absent("github_active_repo_share_90d")
	} else {
		s.ok("github_active_repo_share_90d", float64(active)/float64(live))
	}
}
