package site

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/net/publicsuffix"
)

// Kind is the kind of page that a link leads to.
type Kind int

// The kinds of link.
const (
	Team Kind = iota
	Careers
	Pricing
	Customers
	Docs
	Blog
	Security
	Products
	Integrations
	Login
	Status
	Sales
	Terms
	kinds
)

// kindNames are the names of the kinds in words.txt.
var kindNames = [kinds]string{"team", "careers", "pricing", "customers", "docs", "blog", "security", "products", "integrations", "login",
	"status", "sales", "terms"}

// words are the words of one kind of page. See words.txt.
type words struct {
	paths, hosts, texts, never, below map[string]bool
	named                             []string
}

var vocabulary = func() (all [kinds]words) {
	for kind, name := range kindNames {
		all[kind] = words{
			paths: wordSet(name + " path"), hosts: wordSet(name + " host"), texts: wordSet(name + " text"),
			never: wordSet(name + " never"), below: wordSet(name + " below"), named: wordLists[name+" named"],
		}
	}
	return all
}()

var (
	caseStudySegments = wordSet("casestudies path")
	contentSegments   = wordSet("content path")
	contentLabels     = wordSet("content host")
	careersParts      = wordLists["careers part"]
	jobPortals        = wordLists["careers portal"]
)

// statusHosts host status pages of other companies.
var statusHosts = strings.Fields("statuspage.io status.io instatus.com betteruptime.com hund.io statuspal.io")

// segmentsRead is the number of path segments that are compared: /en/company/about-us.
const segmentsRead = 3

// segmentBytesMax is the length of the longest segment that is compared.
const segmentBytesMax = 100

// pathSegments returns the segments of a path, folded, with hyphens for underscores, without file
// extensions, at most 8. Long ones are empty.
func pathSegments(u *url.URL) []string {
	var segments []string
	for segment := range strings.SplitSeq(u.Path, "/") {
		if segment == "" {
			continue
		}
		if len(segment) > segmentBytesMax {
			segment = ""
		}
		segment = strings.ReplaceAll(fold(segment), "_", "-")
		if i := strings.LastIndexByte(segment, '.'); i > 0 && len(segment)-i <= 6 {
			segment = segment[:i]
		}
		if segments = append(segments, segment); len(segments) == 8 {
			break
		}
	}
	return segments
}

func has(segments []string, words map[string]bool) bool {
	return slices.ContainsFunc(segments, func(s string) bool { return words[s] })
}

func firstLabel(u *url.URL) string {
	label, _, _ := strings.Cut(strings.ToLower(u.Hostname()), ".")
	return label
}

// Registrable returns the registrable domain of a host, or the host itself if there is none.
func Registrable(host string) string {
	name, err := publicsuffix.EffectiveTLDPlusOne(strings.ToLower(host))
	if err != nil {
		return strings.ToLower(host)
	}
	return name
}

// linkNoise is what a text of a link has at its end besides words: careers (12).
var linkNoise = regexp.MustCompile(`[\s\p{P}\p{S}]*([(\s]\d+)?[\s\p{P}\p{S}]*$`)

// linkWords returns the words of a link's text, folded.
func linkWords(text string) string {
	text = fold(text)
	return strings.TrimLeftFunc(text[:len(text)-len(linkNoise.FindString(text))], func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// said reports whether the text of a link is that of the kind, alone or with the company's name.
func (w *words) said(text string, names Names) bool {
	if w.texts[text] {
		return true
	}
	for _, form := range w.named {
		before, after, _ := strings.Cut(form, "*")
		if len(text) > len(form)-1 && strings.HasPrefix(text, before) && strings.HasSuffix(text, after) &&
			names.Similarity(text[len(before):len(text)-len(after)]) >= resembles {
			return true
		}
	}
	return false
}

// Scores of a link within the own site: a path that is only the word fits better than a longer one.
const (
	scorePath     = 10 // the path is the word
	scoreDeepPath = 8  // the path ends in the word
	scoreHost     = 6
	scoreText     = 4
	scoreAway     = 3 // a page on another site
	scoreBelow    = 2 // a page below such a page
)

// match returns how well a link fits a kind: 0 is no match, higher is better.
func (w *words) match(l Link, text string, segments []string, subdomain bool, names Names) int {
	if has(segments, w.never) {
		return 0
	}
	score := 0
	if w.said(text, names) {
		score = scoreText
	}
	for i, s := range segments[:min(len(segments), segmentsRead)] {
		if !w.paths[s] {
			continue
		}
		if i > 0 && len(w.below) > 0 && !w.below[segments[i-1]] && !languageSegment.MatchString(segments[i-1]) &&
			names.Similarity(segments[i-1]) < resembles {
			return 0
		}
		rest := len(segments) - 1 - i
		switch {
		case rest == 0 && i == 0:
			return score + scorePath
		case rest == 0:
			return score + scoreDeepPath
		case i == 0 && rest <= 2 || rest == 1:
			score = max(score, scoreBelow)
		}
	}
	if subdomain && w.hosts[firstLabel(l.URL)] {
		score += scoreHost
	}
	return score
}

// languageSegment matches a segment such as en or en-us.
var languageSegment = regexp.MustCompile(`^[a-z]{2}(-[a-z]{2})?$`)

// isCareersAway reports whether a link to another site leads to the careers page of the company:
// its text says so, and its address is that of such pages or has the name of the company.
func isCareersAway(l Link, text string, segments []string, names Names) bool {
	host := strings.ToLower(l.URL.Hostname())
	own := Registrable(host)
	w := &vocabulary[Careers]
	if under(host, jobPortals) || has(segments, w.never) || !w.said(text, slices.Concat(names, NamesOf(own))) {
		return false
	}
	return TracksApplicants(l.URL) || has(segments[:min(len(segments), segmentsRead)], w.paths) || w.hosts[firstLabel(l.URL)] ||
		slices.ContainsFunc(careersParts, func(part string) bool { return strings.Contains(host, part) }) ||
		names.Similarity(own[:strings.IndexByte(own+".", '.')]) >= resembles
}

// Map has, for each kind, the URL of the best link of a page, nil if there is none. All are within
// the company's own registrable domain, except Status and Careers.
type Map [kinds]*url.URL

// IsContent reports whether the name of a sitemap is one of a list of articles.
func IsContent(sitemap string) bool { return contentFile(sitemap) }

// Sort finds the best link of each kind among the links of the page at base. Only links within
// the registrable domain of base count, except links to hosted status pages, and to careers pages if
// there is none within the domain. titles are other names of the company, such as that of its site.
func Sort(links []Link, base *url.URL, titles ...string) Map {
	var found Map
	var scores [kinds]int
	own := Registrable(base.Hostname())
	names := NamesOf(base.Hostname(), titles...)
	for _, l := range links {
		host := strings.ToLower(l.URL.Hostname())
		segments, text := pathSegments(l.URL), linkWords(l.Text)
		if host != own && !strings.HasSuffix(host, "."+own) {
			if under(host, statusHosts) && found[Status] == nil {
				found[Status], scores[Status] = l.URL, scoreBelow
			}
			if scores[Careers] < scoreAway && isCareersAway(l, text, segments, names) {
				found[Careers], scores[Careers] = l.URL, scoreAway
			}
			continue
		}
		subdomain := host != own && firstLabel(l.URL) != "www"
		for kind := range kinds {
			if score := vocabulary[kind].match(l, text, segments, subdomain, names); score > scores[kind] {
				found[kind], scores[kind] = l.URL, score
			}
		}
	}
	return found
}

// networks are the social networks that count, by registrable domain.
var networks = map[string]string{
	"linkedin.com": "linkedin", "twitter.com": "x", "x.com": "x", "facebook.com": "facebook", "fb.com": "facebook",
	"instagram.com": "instagram", "youtube.com": "youtube",
	"tiktok.com": "tiktok", "pinterest.com": "pinterest", "threads.net": "threads", "threads.com": "threads", "bsky.app": "bluesky",
	"xing.com": "xing", "weibo.com": "weibo", "vk.com": "vk", "line.me": "line",
}

// notProfiles are first path segments that are not profiles.
var notProfiles = wordSet("profiles never")

// Network returns the social network whose profile u is, "" if none.
func Network(u *url.URL) string {
	host := Registrable(u.Hostname())
	name := networks[host]
	if country, ok := strings.CutPrefix(host, "pinterest."); ok && len(country[strings.LastIndexByte(country, '.')+1:]) == 2 {
		name = "pinterest" // it has domains in many countries
	}
	first, _, _ := strings.Cut(strings.Trim(strings.ToLower(u.Path), "/"), "/")
	if name == "" || first == "" || notProfiles[first] {
		return ""
	}
	return name
}

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidToken reports whether a text is safe as a job board or account name in a URL.
func ValidToken(text string) bool { return token.MatchString(text) }

// notAccounts are first path segments on github.com that are not accounts.
var notAccounts = strings.Fields("about account apps blog codespaces collections contact customer-stories customers dashboard " +
	"enterprise events explore features gist issues join login logout marketplace mobile new nonprofit notifications orgs organizations " +
	"pricing pulls readme search security settings signup site sponsors stars team topics trending users")

// GitHubAccount returns the account that a link to github.com leads to, "" if none.
func GitHubAccount(u *url.URL) string {
	host := strings.TrimPrefix(strings.ToLower(u.Hostname()), "www.")
	if host != "github.com" {
		return ""
	}
	segments := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
	if strings.EqualFold(segments[0], "orgs") && len(segments) > 1 {
		segments = segments[1:]
	}
	if !ValidToken(segments[0]) || slices.Contains(notAccounts, strings.ToLower(segments[0])) {
		return ""
	}
	return segments[0]
}

// Board is a public job board that the jobs source can read.
type Board struct {
	Provider string // greenhouse, lever, lever_eu or ashby
	Token    string
}

// FindBoard returns the readable job board that a link or embed leads to.
func FindBoard(u *url.URL) (Board, bool) {
	host := strings.ToLower(u.Hostname())
	first, _, _ := strings.Cut(strings.Trim(u.EscapedPath(), "/"), "/")
	b := Board{Token: first}
	switch host {
	case "boards.greenhouse.io", "job-boards.greenhouse.io", "boards.eu.greenhouse.io", "job-boards.eu.greenhouse.io":
		b.Provider = "greenhouse"
		if board := u.Query().Get("for"); board != "" {
			b.Token = board
		}
		if b.Token == "embed" {
			return Board{}, false
		}
	case "boards-api.greenhouse.io":
		// /v1/boards/{token}/...
		b.Provider = "greenhouse"
		parts := strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
		if len(parts) < 3 || parts[1] != "boards" {
			return Board{}, false
		}
		b.Token = parts[2]
	case "jobs.lever.co":
		b.Provider = "lever"
	case "jobs.eu.lever.co":
		b.Provider = "lever_eu"
	case "jobs.ashbyhq.com":
		b.Provider = "ashby"
	default:
		return Board{}, false
	}
	if !ValidToken(b.Token) {
		return Board{}, false
	}
	return b, true
}

// applicantHosts host applicant tracking systems.
var applicantHosts = wordLists["applicants host"]

// TracksApplicants reports whether a link leads to a known applicant tracking system.
func TracksApplicants(u *url.URL) bool {
	host := strings.ToLower(u.Hostname())
	// The vendors' own home pages are not boards.
	if host == "www.greenhouse.io" || host == "www.lever.co" || host == "www.ashbyhq.com" ||
		slices.Contains(applicantHosts, strings.TrimPrefix(host, "www.")) && strings.Trim(u.Path, "/") == "" {
		return false
	}
	return under(host, applicantHosts)
}
