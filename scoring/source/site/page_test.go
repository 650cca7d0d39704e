package site

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var now = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func mustURL(t testing.TB, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func parse(t testing.TB, page string) Page {
	t.Helper()
	return ParsePage([]byte(page), mustURL(t, "https://www.quillworks.com/"))
}

const home = `<!doctype html><html lang="en-GB"><head><title>Quillworks | Payments for
 bakeries</title>
<meta name="description" content="We move &amp; settle money">
<meta property="og:site_name" content="Quillworks">
<link rel="alternate" hreflang="de-AT" href="/de/"><link rel="alternate" hreflang="x-default" href="/">
<link rel="alternate" type="application/rss+xml" href="/blog/feed.xml">
<script src="https://js.stripe.com/v3/"></script>
<script type="application/ld+json">{"@context":"https://schema.org","@graph":[{"@type":["Organization","Brand"],"@id":"#o","name":"Quillworks","legalName":"Quillworks Ltd","url":"https://quillworks.com","foundingDate":"2016","numberOfEmployees":{"@type":"QuantitativeValue","value":"1,180"},"sameAs":["https://www.linkedin.com/company/quillworks","https://github.com/quillworks"],"address":{"@type":"PostalAddress","addressCountry":{"@type":"Country","name":"United Kingdom"}},"founder":[{"@id":"#ada"},{"@type":"Person","name":"Bo Tarn"},"Cy Orrin"],"parentOrganization":{"@type":"Corporation","name":"Holding"}},{"@id":"#ada","@type":"Person","name":"Ada Quill"}]}</script>
</head><body><svg><title>icon</title></svg>
<nav><a href="/about-us/">About</a> <a href="/pricing">Pricing</a> <a href="https://docs.quillworks.com/">Docs</a>
<a href="/company/careers">Careers</a> <a href="https://app.quillworks.com/login"><span>Log</span> <b>in</b></a></nav>
<h1><a href="/">Payments <em>made</em> simple</a></h1>
<p>From $12.50 / mo per user. Hidden<style>p{}</style><noscript>no</noscript></p>
<blockquote>Great <p>stuff</p><footer><cite>A baker</cite></footer></blockquote>
<iframe src="https://boards.greenhouse.io/embed/job_board?for=quillworks"></iframe>
<a href="mailto:x@quillworks.com">Mail</a> <a href="javascript:void(0)">x</a> <a href="#top">top</a>
<footer><a href="https://x.com/quillworks" aria-label="X"></a></footer></body></html>`

func TestParsePage(t *testing.T) {
	t.Parallel()
	p := parse(t, home)
	if p.Title != "Quillworks | Payments for bakeries" || p.Description != "We move & settle money" || p.SiteName != "Quillworks" ||
		p.Headings != "Payments made simple" {
		t.Errorf("texts: title %q, description %q, site %q, headings %q", p.Title, p.Description, p.SiteName, p.Headings)
	}
	if diff := cmp.Diff([]string{"de", "en"}, p.Languages); diff != "" {
		t.Errorf("languages: %s", diff)
	}
	if !p.Priced || !p.Paying || !p.Reviewed || p.Parked || p.ScriptFiles != 1 {
		t.Errorf("priced %v paying %v reviewed %v parked %v scripts %d", p.Priced, p.Paying, p.Reviewed, p.Parked, p.ScriptFiles)
	}
	if len(p.Feeds) != 1 || p.Feeds[0].String() != "https://www.quillworks.com/blog/feed.xml" {
		t.Errorf("feeds %v", p.Feeds)
	}
	var links []string
	for _, l := range p.Links {
		links = append(links, l.URL.String()+" "+l.Text)
	}
	want := []string{
		"https://www.quillworks.com/about-us/ about", "https://www.quillworks.com/pricing pricing", "https://docs.quillworks.com/ docs",
		"https://www.quillworks.com/company/careers careers", "https://app.quillworks.com/login log in",
		"https://www.quillworks.com/ payments made simple",
		"https://boards.greenhouse.io/embed/job_board?for=quillworks ", "https://x.com/quillworks x",
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	orgs := []Organization{{
		Name: "Quillworks", LegalName: "Quillworks Ltd", URL: "https://quillworks.com", Founded: time.Date(2016, 7, 1, 0, 0, 0, 0,
			time.UTC), Employees: 1180,
		SameAs: []string{"https://www.linkedin.com/company/quillworks", "https://github.com/quillworks"}, Country: "GB",
		People: []string{"Ada Quill", "Bo Tarn", "Cy Orrin"}, Top: true,
	}}
	if diff := cmp.Diff(orgs, p.Organizations); diff != "" {
		t.Errorf("organisations (-want +got):\n%s", diff)
	}
	// What stands in titles, styles and noscript is not seen.
	if want := len([]rune(strings.Join(strings.Fields("About Pricing Docs Careers Log in Payments made simple From $12.50 / mo per user. "+
		"Hidden Great stuff A baker Mail x top"), ""))); p.TextRunes != want {
		t.Errorf("text of %d runes, want %d", p.TextRunes, want)
	}
}

func TestPageStates(t *testing.T) {
	t.Parallel()
	scripts := strings.Repeat(`<script src="/a.js"></script>`, 4)
	f := func(name, page string, parked, needsScripts bool) {
		t.Helper()
		p := parse(t, page)
		if p.Parked != parked || p.NeedsScripts() != needsScripts {
			t.Errorf("%s: parked %v, needs scripts %v; want %v, %v", name, p.Parked, p.NeedsScripts(), parked, needsScripts)
		}
	}
	f("empty", "", false, false)
	f("for sale", "<title>quillworks.com</title><p>This domain is for sale.</p>", true, false)
	f("for sale in German", "<h1>Diese Domain steht zum Verkauf</h1>", true, false)
	f("a parking host's script", `<script src="https://www.sedoparking.com/x.js"></script>`, true, false)
	f("a long article about domains", "<p>this domain is for sale</p>"+strings.Repeat("<p>We write about many things.</p>", 200), false,
		false)
	f("an empty shell", "<div id=root></div>"+scripts, false, true)
	f("scripts with text", scripts+strings.Repeat("<p>words and words</p>", 30), false, false)
	f("little text, few scripts", `<script src=a.js></script><p>Hello</p>`, false, false)
	f("binary", string([]byte{0, 1, 2, 0xff, '<', 0xfe, '>'}), false, false)
}

func TestPrice(t *testing.T) {
	t.Parallel()
	f := func(text string, want bool) {
		t.Helper()
		if got := parse(t, "<p>"+text+"</p>").Priced; got != want {
			t.Errorf("%q: priced %v, want %v", text, got, want)
		}
	}
	f("$10/mo", true)
	f("€ 9,90 per user", true)
	f("£120 / year", true)
	f("$<b>49</b><span>/month</span>", true)
	f("$10", false)
	f("10/mo", false)
	f("$10 billion per quarter", false)
}

func TestSort(t *testing.T) {
	t.Parallel()
	base := mustURL(t, "https://quillworks.co.uk/")
	f := func(name, links string, want map[Kind]string) {
		t.Helper()
		p := ParsePage([]byte(links), base)
		got := map[Kind]string{}
		for kind, u := range Sort(p.Links, base) {
			if u != nil {
				got[Kind(kind)] = u.String()
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	f("nothing", "", map[Kind]string{})
	f("by path, the shallow one", `<a href=/about/history>x</a><a href=/en/about-us>y</a><a href=/about>z</a>`,
		map[Kind]string{Team: "https://quillworks.co.uk/about"})
	f("by text", `<a href=/p/77>Careers</a>`, map[Kind]string{Careers: "https://quillworks.co.uk/p/77"})
	f("by host", `<a href=https://status.quillworks.co.uk>x</a><a href=//developers.quillworks.co.uk/>x</a>`,
		map[Kind]string{Status: "https://status.quillworks.co.uk", Docs: "https://developers.quillworks.co.uk/"})
	f("a status page run by others", `<a href=https://quillworks.statuspage.io/>x</a>`,
		map[Kind]string{Status: "https://quillworks.statuspage.io/"})
	f("other companies", `<a href=https://example.co.uk/pricing>Pricing</a><a href=https://evilquillworks.co.uk/about>About</a>`+
		`<a href=https://evilquillworks.co.uk/jobs>Ovenly</a>`, map[Kind]string{})
	f("a word within a word", `<a href=/blogging-tips-for-jobs-seekers-2024/pricing-theory>x</a>`, map[Kind]string{})
	f("with a file ending", `<a href=/pricing.html>x</a><a href=/team.php?x=1>x</a>`,
		map[Kind]string{Pricing: "https://quillworks.co.uk/pricing.html", Team: "https://quillworks.co.uk/team.php?x=1"})
}

func TestWordsOfLinks(t *testing.T) {
	t.Parallel()
	base := mustURL(t, "https://www.quillworks.co.uk/")
	f := func(kind Kind, link, text string, want bool) {
		t.Helper()
		found := Sort([]Link{{URL: mustURL(t, link), Text: strings.ToLower(text)}}, base, "Quill & Works")
		if got := found[kind] != nil; got != want {
			t.Errorf("%s %q is %s: %v, want %v", link, text, kindNames[kind], got, want)
		}
	}
	const own = "https://quillworks.co.uk/p/7"
	for _, text := range []string{
		"About", "About Quillworks", "About the Quillworks team", "About Quill & Works", "Om Quillworks", "Sobre a Quillworks",
		"Über Quillworks",
		"À propos de Quillworks", "Over Quillworks", "Acerca de Quillworks", "Quillworks hakkında", "About us »", "О Quillworks",
		"Quiénes somos",
	} {
		f(Team, own, text, true)
	}
	for _, text := range []string{"About Ovenly", "About time", "Over the moon", "Quillworks", "About", "About Quillworks"} {
		f(Team, "https://ovenly.com/p/7", text, false)
		f(Team, own, text, text == "About" || text == "About Quillworks")
	}
	careers := []string{
		"Careers", "Jobs (12)", "→ Careers", "We're hiring!", "We’re hiring", "Job Opportunities", "Careers at Quillworks",
		"Quillworks Jobs",
		"Jobs @ Quillworks", "Emploi", "Trabalhe na Quillworks", "Trabalhe no Quillworks", "Karriere bei Quillworks", "Lediga jobb",
		"Ledige stillinger", "Avoimet työpaikat", "Kariéra", "Trabaja con nosotros", "Lavora con noi", "Werken bij Quillworks", "Вакансии",
	}
	for _, text := range careers {
		f(Careers, own, text, true)
	}
	f(Careers, "https://quillworks.co.uk/emploi", "x", true)
	f(Careers, "https://quillworks.co.uk/fr/nous_rejoindre.php", "x", true)
	f(Careers, "https://quillworks.co.uk/p/7", "Careers at Ovenly", false)
	f(Careers, "https://quillworks.co.uk/Jobs/Browse", "Jobs", false)
	f(Careers, "https://quillworks.co.uk/classifieds/jobs", "Jobs", false)
	// Careers pages on other sites: both the text and the address must say so.
	for _, text := range careers {
		for _, link := range []string{
			"https://quillworksjobs.com/", "http://www.shopgroupcareers.com/", "http://jobs.quillgroup.com/en", "https://jobs.ovenly.com",
			"http://about.ovenly.com/careers/#hq", "https://qwzd.com/careers/", "https://quillbewerbermanagement-1.umantis.com/Vacancies",
			"https://quillworks.wd5.myworkdayjobs.com/x", "https://www.quillworks.com/p/7",
		} {
			f(Careers, link, text, true)
		}
		f(Careers, "https://ovenly.com/", text, false)
		f(Careers, "https://www.linkedin.com/company/quillworks/jobs", text, false)
		f(Careers, "https://de.indeed.com/jobs", text, false)
	}
	f(Careers, "https://jobs.ovenly.com", "Jobs at Ovenly", true)
	f(Careers, "https://jobs.ovenly.com", "Ovenly", false)
	f(Careers, "https://jobs.ovenly.com", "", false)
	// A page of the own site is better, wherever it is on the page.
	page := `<a href=https://quillworksjobs.com/>Careers</a><a href=https://jobs.ovenly.com/>Careers</a>`
	p := ParsePage([]byte(page+`<a href=/p/7>Careers</a>`), base)
	if got := Sort(p.Links, base)[Careers]; got == nil || got.String() != "https://www.quillworks.co.uk/p/7" {
		t.Errorf("the careers page is %v", got)
	}
	p = ParsePage([]byte(page+`<a href=/careers/a/b>x</a>`), base)
	if got := Sort(p.Links, base)[Careers]; got == nil || got.String() != "https://quillworksjobs.com/" {
		t.Errorf("the careers page is %v", got)
	}
	f(Security, "https://quillworks.co.uk/Sicherheit.html", "Sicherheit", true)
	f(Security, "https://quillworks.co.uk/en-gb/security", "Security", true)
	f(Security, "https://quillworks.co.uk/platform/security", "Security", true)
	f(Security, "https://quillworks.co.uk/quill-works/security", "Security", true)
	f(Security, "https://quillworks.co.uk/Software/Sicherheit.html", "Sicherheit", false)
	f(Security, "https://quillworks.co.uk/Heim+~+Garten/Sicherheit.html", "Sicherheit", false)
	f(Login, own, "Log ind", true)
	f(Login, "https://quillworks.co.uk/sign_in", "x", true)
	f(Terms, "https://quillworks.co.uk/shopping_cart.php", "x", true)
	f(Terms, own, "AGB", true)
	f(Terms, own, "Returns & Exchanges", true)
}

func TestWordsFile(t *testing.T) {
	t.Parallel()
	for name, words := range wordLists {
		seen := map[string]bool{}
		for _, word := range words {
			if word == "" || seen[word] {
				t.Errorf("%s: %q is empty or twice in the list", name, word)
			}
			seen[word] = true
			if kind, what, _ := strings.Cut(name, " "); what == "path" && strings.ContainsAny(word, " _/") {
				t.Errorf("%s of %s: %q is no segment", what, kind, word)
			}
		}
	}
	for _, name := range kindNames {
		if wordLists[name+" path"] == nil || wordLists[name+" text"] == nil {
			t.Errorf("there are no words for %s", name)
		}
	}
	for i, stems := range months {
		if len(stems) == 0 {
			t.Errorf("month %d has no names", i+1)
		}
	}
}

func TestBoards(t *testing.T) {
	t.Parallel()
	f := func(link string, want Board, tracks bool) {
		t.Helper()
		u := mustURL(t, link)
		if got, ok := FindBoard(u); got != want || ok != (want != Board{}) {
			t.Errorf("%s: %+v, %v; want %+v", link, got, ok, want)
		}
		if got := TracksApplicants(u); got != tracks {
			t.Errorf("%s: tracks applicants %v, want %v", link, got, tracks)
		}
	}
	f("https://boards.greenhouse.io/quillworks", Board{"greenhouse", "quillworks"}, true)
	f("https://boards.greenhouse.io/quillworks/jobs/1234", Board{"greenhouse", "quillworks"}, true)
	f("https://job-boards.eu.greenhouse.io/quillworks", Board{"greenhouse", "quillworks"}, true)
	f("https://boards.greenhouse.io/embed/job_board/js?for=quillworks", Board{"greenhouse", "quillworks"}, true)
	f("https://boards.greenhouse.io/embed/job_board/js", Board{}, true)
	f("https://boards.greenhouse.io/embed/job_board?for=../../x", Board{}, true)
	f("https://boards-api.greenhouse.io/v1/boards/quillworks/jobs", Board{"greenhouse", "quillworks"}, true)
	f("https://jobs.lever.co/quill-works", Board{"lever", "quill-works"}, true)
	f("https://jobs.eu.lever.co/quill-works/", Board{"lever_eu", "quill-works"}, true)
	f("https://jobs.ashbyhq.com/Quill%20Works", Board{}, true)
	f("https://jobs.ashbyhq.com/QuillWorks", Board{"ashby", "QuillWorks"}, true)
	f("https://quillworks.wd5.myworkdayjobs.com/en-US/x", Board{}, true)
	f("https://www.greenhouse.io/", Board{}, false)
	f("https://greenhouse.io.evil.com/quillworks", Board{}, false)
	f("https://apply.workable.com/quillworks", Board{}, true)
	f("https://www.workable.com/", Board{}, false)
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	f := func(link, network, account string) {
		t.Helper()
		u := mustURL(t, link)
		if got := Network(u); got != network {
			t.Errorf("%s is of %q, want %q", link, got, network)
		}
		if got := GitHubAccount(u); got != account {
			t.Errorf("%s is the account %q, want %q", link, got, account)
		}
	}
	f("https://www.linkedin.com/company/quillworks", "linkedin", "")
	f("https://twitter.com/quillworks", "x", "")
	f("https://twitter.com/intent/tweet?text=x", "", "")
	f("https://www.facebook.com/sharer/sharer.php?u=x", "", "")
	f("https://facebook.com/", "", "")
	f("https://www.youtube.com/v/abc", "", "")
	f("https://www.youtube.com/playlist?list=abc", "", "")
	f("https://www.youtube.com/shorts/abc", "", "")
	f("https://www.youtube.com/@quillworks", "youtube", "")
	f("https://www.instagram.com/p/abc/", "", "")
	f("https://www.instagram.com/quillworks/", "instagram", "")
	f("https://www.pinterest.de/quillworks", "pinterest", "")
	f("https://www.pinterest.co.uk/quillworks", "pinterest", "")
	f("https://de.pinterest.com/pin/12", "", "")
	f("https://pinterest.quillworks.com/quillworks", "", "")
	f("https://github.com/quillworks", "", "quillworks")
	f("https://github.com/quillworks/quill/issues", "", "quillworks")
	f("https://github.com/orgs/quillworks/repositories", "", "quillworks")
	f("https://github.com/features/actions", "", "")
	f("https://github.com/", "", "")
	f("https://gist.github.com/quillworks", "", "")
	f("https://github.com/quill%2f..%2fworks", "", "")
}

func TestStructured(t *testing.T) {
	t.Parallel()
	f := func(name, script string, want ...Organization) {
		t.Helper()
		got := ParseStructured([]byte(script))
		if diff := cmp.Diff(want, got.Organizations); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	f("nothing", ``)
	f("no JSON", `{"@type":"Organization","name":"A"`)
	f("another type", `{"@type":"WebSite","name":"A"}`)
	f("an object", `{"@type":"Organization","name":"A"}`, Organization{Name: "A", Top: true})
	f("a list", `[{"@type":"Corporation","name":"A"},{"@type":"http://schema.org/LocalBusiness","name":"B"}]`,
		Organization{Name: "A", Top: true}, Organization{Name: "B", Top: true})
	f("nested as a publisher", `{"@type":"WebSite","name":"Site","publisher":{"@type":"NGO","name":"A"}}`,
		Organization{Name: "A", Top: true})
	f("not the organisations around it",
		`{"@type":"Article","author":{"@type":"Organization","name":"A"},"x":{"@type":"Organization","name":"B"}}`, Organization{Name: "B"})
	f("values in objects and lists",
		`{"@type":"Organization","name":{"@value":"A","@language":"en"},"url":["https://a.com","https://b.com"],"foundingDate":1998,"numberOfEmployees":"200+","address":[{"addressCountry":"Germany"}],"sameAs":"https://x.com/a"}`,
		Organization{Name: "A", URL: "https://a.com", Founded: time.Date(1998, 7, 1, 0, 0, 0, 0, time.UTC), Employees: 200, Country: "DE",
			SameAs: []string{"https://x.com/a"}, Top: true})
	f("a range of employees", `{"@type":"Organization","name":"A","numberOfEmployees":{"minValue":50,"maxValue":100}}`,
		Organization{Name: "A", Employees: 75, Top: true})
	f("employees that are none", `{"@type":"Organization","name":"A","numberOfEmployees":-5,"foundingDate":"soon"}`,
		Organization{Name: "A", Top: true})
	f("people in roles, once",
		`{"@type":"Organization","name":"A","member":[{"@type":"OrganizationRole","member":{"name":"Ada Quill"}},{"@type":"Person","name":"ada quill"},{"@type":"Organization","name":"Guild"}],"employee":{"@type":"Person","givenName":"Bo","familyName":"Tarn"}}`,
		Organization{Name: "A", People: []string{"Bo Tarn", "Ada Quill"}, Top: true})
	f("too deep", strings.Repeat("[", 10_000)+`{"@type":"Organization","name":"A"}`+strings.Repeat("]", 10_000))
	if !ParseStructured([]byte(`{"@type":"Product","aggregateRating":{"@type":"AggregateRating"}}`)).Reviewed {
		t.Error("a rating is a review")
	}
}
