package site

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

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

// words are the names of one kind of page.
type words struct {
	// segments are parts of a path, labels first labels of a host name, texts whole texts of a
	// link, all in lower case.
	segments, labels, texts []string
}

func list(text string) []string { return strings.Fields(text) }
func texts(all string) []string { return strings.Split(all, "|") }

var vocabulary = [kinds]words{
	Team: {
		segments: list("about about-us aboutus about_us team our-team the-team leadership management executives people who-we-are " +
			"our-company company our-story board-of-directors ueber-uns uber-uns unternehmen a-propos qui-sommes-nous equipe nosotros " +
			"quienes-somos sobre-nosotros sobre chi-siamo over-ons om-oss om-os o-nas"),
		texts: texts("about|about us|our team|team|leadership|leadership team|meet the team|our people|who we are|company|our " +
			"company|our story|über uns|das unternehmen|unternehmen|à propos|qui sommes-nous|l'équipe|nosotros|sobre nosotros|quiénes " +
			"somos|chi siamo|over ons|om oss|om os"),
	},
	Careers: {
		segments: list("careers career jobs job join-us joinus join-our-team work-with-us work-for-us working-here open-positions " +
			"open-roles openings vacancies hiring we-are-hiring life-at karriere stellenangebote stellen carrieres carriere recrutement " +
			"emplois empleo empleos trabaja-con-nosotros trabalhe-conosco lavora-con-noi vacatures karriar jobb"),
		labels: list("careers career jobs karriere"),
		texts: texts("careers|career|jobs|join us|join our team|work with us|work for us|open positions|open roles|we're hiring|we are " +
			"hiring|we’re hiring|vacancies|karriere|jobs & karriere|stellenangebote|carrières|recrutement|empleo|lavora con noi|vacatures"),
	},
	Pricing: {
		segments: list("pricing prices price plans plans-and-pricing plans-pricing pricing-plans packages preise preise-und-pakete " +
			"tarifs tarif precios planes prezzi prijzen precos"),
		texts: texts("pricing|prices|plans|plans & pricing|plans and pricing|pricing & plans|see pricing|view " +
			"pricing|packages|preise|tarifs|precios|prezzi|prijzen|preços"),
	},
	Customers: {
		segments: list("customers customer-stories case-studies casestudies case-study success-stories customer-success clients " +
			"testimonials references showcase our-work our-customers our-clients kunden referenzen kundenstimmen clientes casos-de-exito " +
			"referenties klanten"),
		texts: texts("customers|our customers|customer stories|case studies|case study|success stories|clients|our " +
			"clients|testimonials|references|kunden|referenzen|clientes|casos de éxito|klanten"),
	},
	Docs: {
		segments: list("docs documentation developers developer api api-docs api-reference dev-docs sdk"),
		labels:   list("docs documentation developers developer devdocs apidocs"),
		texts: texts("docs|documentation|developers|developer|api|api docs|api reference|developer " +
			"docs|dokumentation|entwickler|documentación"),
	},
	Blog: {
		segments: list("blog blogs news newsroom press press-releases articles insights journal updates changelog magazine stories " +
			"aktuelles neuigkeiten presse actualites noticias prensa notizie nieuws"),
		labels: list("blog news newsroom press"),
		texts: texts("blog|news|newsroom|press|press " +
			"releases|insights|articles|journal|changelog|aktuelles|neuigkeiten|presse|actualités|noticias|notizie|nieuws"),
	},
	Security: {
		segments: list("security trust trust-center trust-centre trustcenter security-and-compliance security-compliance compliance " +
			"sicherheit securite seguridad"),
		labels: list("security trust"),
		texts: texts("security|trust|trust center|trust centre|security & compliance|security and compliance|trust & security|trust and " +
			"security|compliance|sicherheit|sécurité|seguridad"),
	},
	Products: {
		segments: list("product products solution solutions platform features product-overview produkte produkt loesungen produits " +
			"solutions-logicielles productos soluciones prodotti"),
		texts: texts("product|products|our products|solutions|platform|features|produkte|lösungen|produits|productos|soluciones|prodotti"),
	},
	Integrations: {
		segments: list("integrations integration partners partner partner-program partnerships marketplace ecosystem integrationen " +
			"partnerprogramm"),
		labels: list("partners marketplace"),
		texts:  texts("integrations|partners|partner program|become a partner|marketplace|ecosystem|integrationen|partner|partnerships"),
	},
	Login: {
		segments: list("login log-in signin sign-in sign_in signup sign-up sign_up register app account my-account dashboard portal " +
			"anmelden connexion"),
		labels: list("app login signin my portal dashboard console account accounts id auth"),
		texts: texts("log in|login|sign in|signin|sign up|signup|log in / sign up|sign in / register|start free trial|start for " +
			"free|try for free|get started free|my account|customer login|client login|anmelden|einloggen|kundenportal|connexion|iniciar " +
			"sesión|accedi|inloggen|entrar"),
	},
	Status: {
		segments: list("system-status service-status"),
		labels:   list("status"),
		texts:    texts("status|system status|service status|status page"),
	},
	Sales: {
		segments: list("contact-sales contact_sales talk-to-sales sales request-demo request-a-demo book-a-demo book-demo get-a-demo " +
			"get-demo schedule-demo schedule-a-demo demo live-demo quote get-a-quote request-a-quote request-quote angebot " +
			"angebot-anfordern demander-une-demo demande-de-devis devis demo-buchen solicitar-demo"),
		texts: texts("contact sales|talk to sales|sales|request demo|request a demo|book a demo|book demo|get a demo|get demo|schedule a " +
			"demo|schedule demo|see a demo|request a quote|get a quote|demo|demo buchen|angebot anfordern|demander une démo|solicitar " +
			"demo"),
	},
	Terms: {
		segments: list("refund refunds refund-policy returns return-policy returns-policy shipping-returns terms-of-sale " +
			"conditions-of-sale sales-terms checkout cart basket bag warenkorb panier carrito carrello cancellation-policy agb widerruf"),
		texts: texts("refund policy|refunds|returns|return policy|returns & refunds|shipping & returns|terms of " +
			"sale|cart|basket|checkout|warenkorb|panier|carrito|carrello"),
	},
}

var (
	caseStudySegments = list("customers customer-stories case-studies casestudies case-study success-stories customer-success stories " +
		"showcase kunden referenzen clientes casos-de-exito")
	contentSegments = list("blog blogs news newsroom press press-releases articles article insights journal updates changelog magazine " +
		"stories posts aktuelles neuigkeiten presse actualites noticias prensa notizie nieuws")
	contentLabels = list("blog news newsroom press")
)

// statusHosts host status pages of other companies.
var statusHosts = list("statuspage.io status.io instatus.com betteruptime.com hund.io statuspal.io")

// segmentsRead is the number of path segments that are compared: /en/company/about-us.
const segmentsRead = 3

// pathSegments returns the segments of a path in lower case, without file extensions, at most 8.
func pathSegments(u *url.URL) []string {
	var segments []string
	for segment := range strings.SplitSeq(strings.ToLower(u.Path), "/") {
		if segment == "" {
			continue
		}
		if i := strings.LastIndexByte(segment, '.'); i > 0 && len(segment)-i <= 6 {
			segment = segment[:i]
		}
		if segments = append(segments, segment); len(segments) == 8 {
			break
		}
	}
	return segments
}

func has(segments, words []string) bool {
	return slices.ContainsFunc(segments, func(s string) bool { return slices.Contains(words, s) })
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

// match returns how well a link fits a kind: 0 is no match, higher is better. A path that is only
// the word fits better than a longer one.
func (w *words) match(l Link, segments []string, subdomain bool) int {
	score := 0
	if slices.Contains(w.texts, l.Text) {
		score = 4
	}
	for i, s := range segments[:min(len(segments), segmentsRead)] {
		if !slices.Contains(w.segments, s) {
			continue
		}
		rest := len(segments) - 1 - i
		switch {
		case rest == 0 && i == 0:
			return score + 10
		case rest == 0:
			return score + 8
		case i == 0 && rest <= 2 || rest == 1:
			score = max(score, 2) // a page below such a page
		}
	}
	if subdomain && slices.Contains(w.labels, firstLabel(l.URL)) {
		score += 6
	}
	return score
}

// matchNeeded is the least match of a link that counts.
const matchNeeded = 2

// Map has, for each kind, the URL of the best link of a page within the company's own registrable
// domain, nil if there is none.
type Map [kinds]*url.URL

// IsContent reports whether the name of a sitemap is one of a list of articles.
func IsContent(sitemap string) bool { return contentFile(sitemap) }

// Sort finds the best link of each kind among the links of the page at base. Only links within
// the registrable domain of base count, except links to hosted status pages.
func Sort(links []Link, base *url.URL) Map {
	var found Map
	var scores [kinds]int
	own := Registrable(base.Hostname())
	for _, l := range links {
		host := strings.ToLower(l.URL.Hostname())
		if host != own && !strings.HasSuffix(host, "."+own) {
			if under(host, statusHosts) && found[Status] == nil {
				found[Status], scores[Status] = l.URL, matchNeeded
			}
			continue
		}
		segments := pathSegments(l.URL)
		subdomain := host != own && firstLabel(l.URL) != "www"
		for kind := range kinds {
			if score := vocabulary[kind].match(l, segments, subdomain); score >= matchNeeded && score > scores[kind] {
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
var notProfiles = list("share sharer sharer.php sharearticle intent dialog home login signup search hashtag watch embed plugins policies " +
	"privacy legal help tr explore oauth")

// Network returns the social network whose profile u is, "" if none.
func Network(u *url.URL) string {
	name := networks[Registrable(u.Hostname())]
	first, _, _ := strings.Cut(strings.Trim(strings.ToLower(u.Path), "/"), "/")
	if name == "" || first == "" || slices.Contains(notProfiles, first) {
		return ""
	}
	return name
}

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// ValidToken reports whether a text is safe as a job board or account name in a URL.
func ValidToken(text string) bool { return token.MatchString(text) }

// notAccounts are first path segments on github.com that are not accounts.
var notAccounts = list("about account apps blog codespaces collections contact customer-stories customers dashboard enterprise events " +
	"explore features gist issues join login logout marketplace mobile new nonprofit notifications orgs organizations pricing pulls " +
	"readme search security settings signup site sponsors stars team topics trending users")

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
var applicantHosts = list("greenhouse.io lever.co ashbyhq.com myworkdayjobs.com smartrecruiters.com workable.com bamboohr.com icims.com " +
	"recruitee.com personio.de personio.com teamtailor.com jobvite.com successfactors.com successfactors.eu breezy.hr")

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
