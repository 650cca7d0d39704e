package fakesources

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Company is an invented company: the data behind every answer about it. A zero field means that
// there is none.
type Company struct {
	Number              int
	Domain, Name, Label string
	Sector              sector

	// Registered and Expires are the dates of the domain's registration.
	Registered, Expires time.Time

	Mail              string // mail host: "hosted", "own", "other" or none
	SPF, STS, Reports bool
	DMARC             string // policy
	CAA, Signed       bool
	Managed           bool // managed name servers
	Tokens, Senders   []string
	OV                bool // the certificate has the organisation
	Hosts             int  // host names in certificate logs

	Site Site

	// QID is the Wikidata item, "" for none; the fields up to Listed are its data.
	QID               string
	Editions          int
	Article           bool
	Employees         int
	Founded           time.Time
	Leaders           []string
	Subsidiaries      int
	Revenue, Before   float64 // of the last year and the one before it, in dollars
	Net, Operating    float64
	Assets            float64
	Listed            bool
	KeyCIK, KeyLEI    bool // the item has the keys of the other registers
	Views, ViewsTrend float64

	CIK     string // "" if the company files nothing
	Ticker  bool
	Filings []filing
	Books   []books // newest first

	LEI                   string // "" for none
	LEIStatus, LEIRenewed string
	Children              int

	Organization bool // on GitHub, named Label
	Verified     bool
	Followers    int
	Repos        []repo

	Roles []role

	First    time.Time // first capture
	Captures []capture

	Stories []story

	News float64 // articles per day on average
	Tone float64

	// Ranks are those of the newest list, and of 30 and 90 days before; 0 is unlisted.
	Ranks [3]int
}

// Site is the content of a company's own pages.
type Site struct {
	Team, Careers, Pricing, Customers, Docs, Blog, Security bool
	Products, Integrations, Login, Status, Sales, Terms     bool
	Priced, Paying, Testimonial, SecurityText, HSTS         bool
	Pages, CaseStudies                                      int
	Languages                                               []string // besides English
	Social                                                  []string
	Posts                                                   []time.Time // in the feed; nil without a feed
	Employees                                               int
	Founded                                                 time.Time
	Leaders                                                 []string
	// Board is "greenhouse", "lever", "ashby", the host of a board that cannot be read, or "".
	Board string
}

type filing struct {
	form, items string
	on          time.Time
}

// books are the audited numbers of one year, in dollars.
type books struct {
	end                                                          time.Time
	revenue, net, operating, cashFlow, capex                     float64
	assets, liabilities, currentAssets, currentLiabilities, cash float64
}

type repo struct {
	stars           int
	pushed, created time.Time
	archived, fork  bool
}

type role struct {
	title, department, location string
	published                   time.Time
}

type capture struct {
	at     time.Time
	digest string
}

type story struct {
	at               time.Time
	points, comments int
	sub              bool // the link leads to a subdomain
}

// sector is a sector with words that lead to no other.
type sector struct {
	key, industry string
	sic           int
	words         string
	views, trend  float64 // of each of its articles
}

var sectors = []sector{
	{"energy_utilities", "solar power utility", 4911, "Solar energy and battery", 900, 0.10},
	{"education", "university", 8200, "Course and university", 1200, -0.05},
	{"transport_logistics", "freight logistics", 4731, "Freight and logistics", 600, 0.20},
	{"telecom", "broadband", 4812, "Satellite broadband", 1500, 0.02},
	{"agriculture_materials", "steel", 3312, "Steel and mining", 400, -0.12},
}

var (
	firstWords = strings.Fields("Brindle Quillon Tarnwick Osmer Feldspire Halvorn Mirrow Cindrel Pavonis Lorvane Thessaly Umberline " +
		"Vextor Wrenholt Yarrowgate")
	secondWords = strings.Fields("Kestrelworks Loomhaven Marchbanks Nettlefold Oxbowlane Pellgrove Quernstone Ridgemoor Saltmarsh " +
		"Thornfield Umberlight Vantreight Willowmere Yewbarrow Zephyrton")
	people = strings.Fields("Ada Bram Cyra Dov Elke Finn Gerd Hana Ivo Juna")
	tokens = map[string]string{ // verification records, by vendor
		"google": "google-site-verification=zz", "microsoft": "MS=ms0042", "docusign": "docusign=zz",
		"atlassian": "atlassian-domain-verification=zz", "stripe": "stripe-verification=zz",
		"slack": "slack-domain-verification=zz", "openai": "openai-domain-verification=zz", "miro": "miro-verification=zz",
		"canva": "canva-site-verification=zz", "1password": "1password-site-verification=zz",
	}
	senders = map[string]string{ // SPF includes, by vendor
		"google": "_spf.google.com", "amazonses": "amazonses.com", "sendgrid": "sendgrid.net", "mailgun": "mailgun.org",
		"salesforce": "_spf.salesforce.com", "zendesk": "mail.zendesk.com",
	}
	networks  = strings.Fields("linkedin.com/company x.com facebook.com instagram.com youtube.com tiktok.com")
	languages = strings.Fields("de fr es it nl ja pt sv")
	places    = strings.Fields("Berlin London Toronto Tokyo Remote Madrid Sydney")
	titles    = []string{"Software Engineer", "Data Analyst", "Account Manager", "Recruiter", "Product Designer", "Office Manager",
		"Security Researcher"}
	units = []string{"Engineering", "Sales", "People", "Design", "Finance", "Support"}
)

// some returns up to n elements of a list, in order.
func some(random *rand.Rand, n int, of []string) []string {
	var picked []string
	for _, i := range random.Perm(len(of))[:min(n, len(of))] {
		picked = append(picked, of[i])
	}
	return picked
}

// invent returns the company of a number, as of now. Ages are never whole days, so that counts do
// not depend on the duration of a test.
func invent(seed uint64, number int, now time.Time) *Company {
	random := rand.New(rand.NewPCG(seed, uint64(number)))
	chance := func(share float64) bool { return random.Float64() < share }
	ago := func(daysMax int) time.Time {
		return now.Add(-time.Duration(random.IntN(daysMax))*day - 12*time.Hour).UTC().Truncate(time.Second)
	}
	date := func(daysMax int) time.Time { return ago(daysMax).Truncate(day) }
	first, second := firstWords[number%len(firstWords)], secondWords[number/len(firstWords)%len(secondWords)]
	label := fmt.Sprintf("zz-%03d-%s", number, strings.ToLower(second))
	c := &Company{
		Number: number, Label: label, Domain: label + ".com", Name: first + " " + second, Sector: sectors[random.IntN(len(sectors))],
		SPF: chance(0.7), STS: chance(0.2), Reports: chance(0.2), CAA: chance(0.3), Signed: chance(0.3), Managed: chance(0.5),
		OV:   chance(0.4),
		Mail: []string{"hosted", "own", "other", ""}[random.IntN(4)], DMARC: []string{"reject", "quarantine", "none", ""}[random.IntN(4)],
		Hosts: random.IntN(60),
	}
	if chance(0.9) {
		c.Registered, c.Expires = ago(9000).Add(-30*day),
			now.Add(time.Duration(random.IntN(2000))*day+12*time.Hour).UTC().Truncate(time.Second)
	}
	c.Tokens = some(random, random.IntN(8), sorted(tokens))
	if c.SPF {
		c.Senders = some(random, random.IntN(5), sorted(senders))
	}
	c.inventSite(random, chance, ago)
	if chance(0.6) {
		c.QID = fmt.Sprintf("Q%d", 990_000_000+number)
		c.Editions, c.Employees, c.Subsidiaries = random.IntN(40), random.IntN(20_000), random.IntN(30)
		c.Article = c.Editions > 0 && chance(0.8)
		c.Views, c.ViewsTrend = float64(10+random.IntN(3000)), random.Float64()*0.8-0.4
		c.Founded = date(12_000).Add(-400 * day)
		c.Leaders = some(random, random.IntN(6), people)
		c.KeyCIK, c.KeyLEI, c.Listed = chance(0.5), chance(0.5), chance(0.3)
		if chance(0.5) {
			c.Revenue = float64(1+random.IntN(900)) * 1e6
			c.Before, c.Net, c.Operating, c.Assets = c.Revenue/(0.8+random.Float64()*0.6), c.Revenue*(random.Float64()*0.4-0.1),
				c.Revenue*0.15, c.Revenue*1.7
		}
	}
	if chance(0.3) {
		c.inventFiler(random, chance, date, now)
	}
	if chance(0.5) {
		c.LEI = fmt.Sprintf("5299ZZ%014d", number)
		c.LEIStatus, c.LEIRenewed = []string{"ACTIVE", "ACTIVE", "INACTIVE"}[random.IntN(3)],
			[]string{"ISSUED", "LAPSED", "RETIRED"}[random.IntN(3)]
		c.Children = random.IntN(20)
	}
	if c.Organization = chance(0.5); c.Organization {
		c.Verified, c.Followers = chance(0.5), random.IntN(5000)
		for range random.IntN(12) {
			created := ago(2000)
			c.Repos = append(c.Repos, repo{
				stars: random.IntN(900), created: created,
				pushed:   created.Add(time.Duration(random.Float64() * float64(now.Sub(created)-12*time.Hour))).Truncate(time.Second),
				archived: chance(0.2), fork: chance(0.1),
			})
		}
		for i := range c.Repos { // pushed at an age that is not a whole number of days
			age := now.Sub(c.Repos[i].pushed).Truncate(day)
			c.Repos[i].pushed = now.Add(-age - 12*time.Hour).UTC().Truncate(time.Second)
		}
	}
	if chance(0.85) {
		c.First = ago(8000).Add(-100 * day)
		content := 0
		for month := 23; month >= 0; month-- {
			for copies := range random.IntN(4) {
				if at := now.Add(-time.Duration(month*30+copies*7)*day - 12*time.Hour).UTC().Truncate(time.Second); at.After(c.First) {
					if chance(0.4) {
						content++
					}
					c.Captures = append(c.Captures, capture{at, fmt.Sprintf("ZZ%04d", content)})
				}
			}
		}
	}
	if chance(0.6) {
		for range random.IntN(25) {
			c.Stories = append(c.Stories, story{at: ago(400), points: random.IntN(300), comments: random.IntN(200), sub: chance(0.3)})
		}
	}
	if chance(0.7) {
		c.News, c.Tone = random.Float64()*6, random.Float64()*8-4
	}
	if chance(0.6) {
		c.Ranks[0] = 1000 + 4*number + 1000*random.IntN(900)
		for i, offset := range []int{1, 2} {
			if chance(0.85) {
				c.Ranks[i+1] = 1000 + 4*number + offset + 1000*random.IntN(900)
			}
		}
	} else if chance(0.2) {
		c.Ranks[2] = 1000 + 4*number + 3
	}
	return c
}

func sorted(of map[string]string) []string { return slices.Sorted(maps.Keys(of)) }

func (c *Company) inventSite(random *rand.Rand, chance func(float64) bool, ago func(int) time.Time) {
	s := &c.Site
	for _, shown := range []*bool{
		&s.Team, &s.Careers, &s.Pricing, &s.Customers, &s.Docs, &s.Blog, &s.Security, &s.Products, &s.Integrations, &s.Login, &s.Status,
		&s.Sales, &s.Terms,
		&s.Priced, &s.Paying, &s.Testimonial, &s.SecurityText, &s.HSTS,
	} {
		*shown = chance(0.5)
	}
	if chance(0.8) {
		s.Pages = 5 + random.IntN(300)
		s.CaseStudies = random.IntN(10)
		s.Pages += s.CaseStudies
	}
	s.Languages, s.Social = some(random, random.IntN(5), languages), some(random, random.IntN(7), networks)
	if chance(0.7) {
		s.Posts = []time.Time{}
		for range random.IntN(30) {
			s.Posts = append(s.Posts, ago(500))
		}
	}
	if chance(0.4) {
		s.Employees = 1 + random.IntN(3000)
	}
	if chance(0.5) {
		s.Founded = ago(9000).Add(-700 * day).Truncate(day)
	}
	s.Leaders = some(random, random.IntN(4), people)
	if s.Careers {
		s.Board = []string{"greenhouse", "lever", "ashby", "zz-careers.bamboohr.com", "", "greenhouse"}[random.IntN(6)]
	}
	switch s.Board {
	case "greenhouse", "lever", "ashby":
		for range random.IntN(30) {
			c.Roles = append(c.Roles, role{
				title: titles[random.IntN(len(titles))], department: units[random.IntN(len(units))],
				location: places[random.IntN(len(places))], published: ago(200),
			})
		}
	}
}

func (c *Company) inventFiler(random *rand.Rand, chance func(float64) bool, date func(int) time.Time, now time.Time) {
	c.CIK = fmt.Sprint(9_000_000 + c.Number)
	c.Ticker = chance(0.6)
	for _, form := range []string{"10-K", "10-Q", "8-K", "NT 10-K", "S-1", "424B5", "D", "8-K", "4"} {
		if chance(0.5) {
			f := filing{form: form, on: date(900)}
			if form == "8-K" {
				f.items = []string{"2.02,9.01", "1.03", "5.02,4.02", "8.01"}[random.IntN(4)]
			}
			c.Filings = append(c.Filings, f)
		}
	}
	revenue := float64(5+random.IntN(4000)) * 1e6
	for i := range random.IntN(6) {
		b := books{end: time.Date(now.Year()-1-i, time.December, 31, 0, 0, 0, 0, time.UTC), revenue: revenue}
		b.net, b.operating = revenue*(random.Float64()*0.5-0.2), revenue*(random.Float64()*0.5-0.2)
		b.cashFlow, b.capex = revenue*(random.Float64()*0.5-0.2), revenue*random.Float64()*0.1
		b.assets = revenue * (0.5 + random.Float64()*2)
		b.liabilities, b.currentAssets = b.assets*random.Float64(), b.assets*random.Float64()*0.5
		b.currentLiabilities, b.cash = b.assets*(0.05+random.Float64()*0.4), b.currentAssets*random.Float64()
		c.Books = append(c.Books, b)
		revenue /= 0.8 + random.Float64()*0.6
	}
}

// newsOn returns the number of articles of a day.
func (c *Company) newsOn(at time.Time) int {
	number := uint64(at.Unix() / 86400)
	wave := rand.New(rand.NewPCG(number, uint64(c.Number))).Float64()
	return int(c.News * 2 * wave)
}

// toneOn returns the tone of a day, 0 without articles.
func (c *Company) toneOn(at time.Time) float64 {
	n := c.newsOn(at)
	if n == 0 {
		return 0
	}
	return c.Tone + float64(n%3)*0.25 - 0.125
}

// viewsOn returns the pageviews of a day: a level that grows by the factor e^trend per year.
func viewsOn(level, trend float64, at, now time.Time) int {
	return int(level * math.Exp(-trend*now.Sub(at).Hours()/24/365) * (1 + 0.1*float64(at.Unix()/86400%7)))
}
