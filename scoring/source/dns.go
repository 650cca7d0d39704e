package source

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// DNS is the source of what name servers say of a domain: how its mail is
// secured, who runs its infrastructure and which services it uses.
type DNS struct{ client *fetch.Client }

// NewDNS returns the source.
func NewDNS(c *fetch.Client) *DNS { return &DNS{client: c} }

// Name is the key of the source.
func (*DNS) Name() string { return "dns" }

// Plan says when the source runs.
func (*DNS) Plan() Plan { return Plan{Deadline: fetch.PolicyOf("dns").Deadline} }

// The questions about a domain.
const (
	askHost = iota
	askWWW
	askMX
	askTXT
	askNS
	askCAA
	askDS
	askDMARC
	askSTS
	askTLS
	askCount
)

// Fetch asks ten questions at once. A question that nobody answers leaves the
// signals that need it missing; the others are used, and its error is returned.
func (d *DNS) Fetch(ctx context.Context, req Request) (Result, error) {
	domain := req.Registrable
	questions := [askCount]struct {
		name  string
		qtype uint16
	}{
		askHost: {req.Domain, dns.TypeA}, askWWW: {"www." + req.Domain, dns.TypeA}, askMX: {domain, dns.TypeMX}, askTXT: {domain, dns.TypeTXT},
		askNS: {domain, dns.TypeNS}, askCAA: {domain, dns.TypeCAA}, askDS: {domain, dns.TypeDS}, askDMARC: {"_dmarc." + domain, dns.TypeTXT},
		askSTS: {"_mta-sts." + domain, dns.TypeTXT}, askTLS: {"_smtp._tls." + domain, dns.TypeTXT},
	}
	var messages [askCount]*dns.Msg
	var faults [askCount]error
	var asking sync.WaitGroup
	for i, question := range questions {
		asking.Go(func() { messages[i], faults[i] = d.client.Lookup(ctx, question.name, question.qtype) })
	}
	asking.Wait()

	z := zone{
		mx: mailHosts(messages[askMX]), txt: texts(messages[askTXT]), ns: nameServers(messages[askNS]),
		alias: slices.Concat(aliases(messages[askHost]), aliases(messages[askWWW])),
		dmarc: texts(messages[askDMARC]), sts: texts(messages[askSTS]), tls: texts(messages[askTLS]),
		caa: restricted(messages[askCAA]), ds: len(answers[*dns.DS](messages[askDS])) > 0,
	}
	answered := func(asked ...int) bool {
		return !slices.ContainsFunc(asked, func(i int) bool { return faults[i] != nil })
	}
	s := says{source: "dns"}
	if answered(askMX, askTXT, askDMARC, askSTS, askTLS) {
		s.ok("email_auth_maturity", float64(z.mailPoints()))
	}
	if answered(askTXT) {
		keys, _ := vendorsOf(z.txt, includes(sender(z.txt)))
		s.count("saas_tooling_breadth", len(keys))
	}
	if answered(askCAA, askDS) {
		s.part("security_program", float64(z.securityPoints()))
	}
	if answered(askHost, askWWW, askMX, askTXT, askNS) {
		s.part("commercial_infrastructure", float64(z.commercialPoints(domain)))
	}
	s.result.Unregistered = answered(askHost, askNS) && messages[askHost].Rcode == dns.RcodeNameError && messages[askNS].Rcode == dns.RcodeNameError
	return s.result, errors.Join(faults[:]...)
}

// zone is what the name servers say about a domain. It holds records only of the
// names that were asked for.
type zone struct {
	mx    []string // hosts that take mail, lower case without the trailing dot
	txt   []string // of the registrable domain, each record joined
	ns    []string
	alias []string // canonical names behind the host and www
	dmarc []string // text records, likewise the next two
	sts   []string
	tls   []string
	caa   bool // certificates may be issued by named authorities only
	ds    bool // the parent zone vouches for the keys: DNSSEC
}

// txtMaxBytes bounds the text records of one name that are read.
const txtMaxBytes = 16 << 10

// texts returns the text records of an answer for a name, each record's strings
// joined, up to txtMaxBytes in all.
func texts(msg *dns.Msg) []string {
	var found []string
	left := txtMaxBytes
	for _, rr := range answers[*dns.TXT](msg) {
		text := strings.Join(rr.Txt, "")
		if text = text[:min(len(text), left)]; text == "" {
			break
		}
		left -= len(text)
		found = append(found, text)
	}
	return found
}

// answers returns the records of one type in an answer, at most 100.
func answers[T dns.RR](msg *dns.Msg) []T {
	var found []T
	if msg == nil {
		return nil
	}
	for _, rr := range msg.Answer {
		if record, ok := rr.(T); ok && len(found) < 100 {
			found = append(found, record)
		}
	}
	return found
}

// bare is a name in lower case without the trailing dot; it is empty for the root.
func bare(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// mailHosts returns the hosts that take mail. A null MX (RFC 7505) is none.
func mailHosts(msg *dns.Msg) []string {
	var hosts []string
	for _, rr := range answers[*dns.MX](msg) {
		if host := bare(rr.Mx); host != "" {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

func nameServers(msg *dns.Msg) []string {
	var hosts []string
	for _, rr := range answers[*dns.NS](msg) {
		hosts = append(hosts, bare(rr.Ns))
	}
	return hosts
}

// aliasMax bounds a chain of canonical names.
const aliasMax = 8

func aliases(msg *dns.Msg) []string {
	var names []string
	for _, rr := range answers[*dns.CNAME](msg) {
		if len(names) < aliasMax {
			names = append(names, bare(rr.Target))
		}
	}
	return names
}

// restricted reports whether a CAA record names who may issue certificates.
func restricted(msg *dns.Msg) bool {
	return slices.ContainsFunc(answers[*dns.CAA](msg), func(rr *dns.CAA) bool {
		return strings.EqualFold(rr.Tag, "issue") || strings.EqualFold(rr.Tag, "issuewild")
	})
}

// tagged returns the tags of the first text that has the version v as its first
// tag, as in "v=DMARC1; p=reject", lower case without spaces. It is nil when none has.
func tagged(texts []string, v string) map[string]string {
	for _, text := range texts {
		first, rest, _ := strings.Cut(text, ";")
		if key, value, ok := strings.Cut(first, "="); !ok || strings.TrimSpace(strings.ToLower(key)) != "v" || !strings.EqualFold(strings.TrimSpace(value), v) {
			continue
		}
		tags := map[string]string{"v": strings.ToLower(v)}
		for part := range strings.SplitSeq(rest, ";") {
			if key, value, ok := strings.Cut(part, "="); ok {
				tags[strings.ToLower(strings.TrimSpace(key))] = strings.ToLower(strings.TrimSpace(value))
			}
		}
		return tags
	}
	return nil
}

// sender returns the terms of the SPF record, lower case, nil without one.
func sender(texts []string) []string {
	for _, text := range texts {
		if terms := strings.Fields(strings.ToLower(text)); len(terms) > 0 && terms[0] == "v=spf1" {
			return terms
		}
	}
	return nil
}

// includes returns the domains that an SPF record takes in or hands over to. They
// are not followed.
func includes(spf []string) []string {
	var domains []string
	for _, term := range spf {
		for _, prefix := range []string{"include:", "+include:", "?include:", "~include:", "redirect="} {
			if domain, ok := strings.CutPrefix(term, prefix); ok {
				domains = append(domains, bare(domain))
			}
		}
	}
	return domains
}

// vendor is a service whose use shows in the DNS.
type vendor struct {
	key string
	// token is found in a text record that proves to the service who owns the domain.
	token *regexp.Regexp
	// senders are domains under which the service sends mail for its customers.
	senders []string
	// paid services are bought for sales, marketing or support.
	paid bool
}

// vendors in their order: of several that match a record the first counts.
var vendors = []vendor{
	{key: "google", token: regexp.MustCompile(`^google-site-verification=`), senders: []string{"_spf.google.com"}},
	{key: "microsoft", token: regexp.MustCompile(`^ms=`), senders: []string{"spf.protection.outlook.com"}},
	{key: "facebook", token: regexp.MustCompile(`^facebook-domain-verification=`)},
	{key: "apple", token: regexp.MustCompile(`^apple-domain(-verification)?=`)},
	{key: "atlassian", token: regexp.MustCompile(`^atlassian-(domain|sending-domain)-verification=`)},
	{key: "docusign", token: regexp.MustCompile(`^docusign=`)},
	{key: "stripe", token: regexp.MustCompile(`^stripe-verification=`)},
	{key: "hubspot", token: regexp.MustCompile(`^hubspot-(developer|domain)-verification=`), senders: []string{"hubspotemail.net"}, paid: true},
	{key: "zoom", token: regexp.MustCompile(`^zoom(-domain-verification|_verify_)`)},
	{key: "slack", token: regexp.MustCompile(`^slack-domain-verification=`)},
	{key: "adobe", token: regexp.MustCompile(`^adobe-(idp-site|sign)-verification=`)},
	{key: "dropbox", token: regexp.MustCompile(`^dropbox-domain-verification=`)},
	{key: "openai", token: regexp.MustCompile(`^openai-domain-verification=`)},
	{key: "notion", token: regexp.MustCompile(`^notion([-_]domain[-_]verification)?=`)},
	{key: "miro", token: regexp.MustCompile(`^miro-verification=`)},
	{key: "asana", token: regexp.MustCompile(`^asana(-domain-verification)?=`)},
	{key: "onetrust", token: regexp.MustCompile(`^onetrust(-domain-verification)?=`)},
	{key: "webex", token: regexp.MustCompile(`^webexdomainverification`)},
	{key: "cisco", token: regexp.MustCompile(`^cisco(-ci-domain-verification|-site-verification)?=`)},
	{key: "citrix", token: regexp.MustCompile(`^citrix([.-]mobile[.-]ads[^=]*|-verification-code)?=`)},
	{key: "sophos", token: regexp.MustCompile(`^sophos-domain-verification=`)},
	{key: "knowbe4", token: regexp.MustCompile(`^knowbe4-site-verification=`)},
	{key: "logmein", token: regexp.MustCompile(`^logmein-(verification-code|domain-confirmation)`)},
	{key: "1password", token: regexp.MustCompile(`^1password-site-verification=`)},
	{key: "canva", token: regexp.MustCompile(`^canva-site-verification=`)},
	{key: "zapier", token: regexp.MustCompile(`^zapier-domain-verification[^=]*=`)},
	{key: "pinterest", token: regexp.MustCompile(`^pinterest-site-verification=`)},
	{key: "yandex", token: regexp.MustCompile(`^yandex-verification[:=]`)},
	{key: "sendgrid", senders: []string{"sendgrid.net"}, paid: true},
	{key: "mailgun", senders: []string{"mailgun.org"}, paid: true},
	{key: "salesforce", senders: []string{"salesforce.com", "exacttarget.com"}, paid: true},
	{key: "zendesk", senders: []string{"zendesk.com"}, paid: true},
	{key: "marketo", senders: []string{"mktomail.com"}, paid: true},
	{key: "amazonses", senders: []string{"amazonses.com"}},
	{key: "mailchimp", senders: []string{"mandrillapp.com", "mcsv.net"}, paid: true},
	{key: "freshdesk", senders: []string{"freshdesk.com", "freshemail.io"}, paid: true},
	{key: "intercom", senders: []string{"intercom.io", "intercom-mail.com"}, paid: true},
}

// vendorsOf returns the keys of the vendors in text records and SPF includes,
// and how many of those that send mail are paid for sales, marketing or support.
func vendorsOf(texts, includes []string) (keys []string, paidSenders int) {
	for _, v := range vendors {
		proved := v.token != nil && slices.ContainsFunc(texts, func(text string) bool { return v.token.MatchString(strings.ToLower(text)) })
		sends := slices.ContainsFunc(includes, func(domain string) bool {
			return slices.ContainsFunc(v.senders, func(sender string) bool { return below(domain, sender) })
		})
		if proved || sends {
			keys = append(keys, v.key)
		}
		if sends && v.paid {
			paidSenders++
		}
	}
	return keys, paidSenders
}

// mailHosters run business mail for others.
var mailHosters = []string{
	"google.com", "googlemail.com", "outlook.com", "pphosted.com", "mimecast.com", "zoho.com", "messagelabs.com", "barracudanetworks.com",
}

// managed finds the names of managed DNS services and content networks.
var managed = regexp.MustCompile(`(^|\.)awsdns-[0-9]+\.(com|net|org|co\.uk)$|^ns-cloud-[a-z0-9]+\.googledomains\.com$|` +
	`(^|\.)(cloudflare\.com|cloudflare\.net|azure-dns\.(com|net|org|info)|nsone\.net|ultradns\.(com|net|org|biz|info|co\.uk)|akam\.net|akamai\.net|akamaiedge\.net|edgekey\.net|edgesuite\.net|dynect\.net|fastly\.net|cloudfront\.net|azureedge\.net|azurefd\.net)$`)

// mailPoints are the points of e-mail authentication, 0 to 5.
func (z zone) mailPoints() (points int) {
	dmarc := tagged(z.dmarc, "DMARC1")
	for _, point := range []bool{
		len(z.mx) > 0,
		sender(z.txt) != nil,
		dmarc != nil,
		dmarc["p"] == "quarantine" || dmarc["p"] == "reject",
		tagged(z.sts, "STSv1") != nil || tagged(z.tls, "TLSRPTv1") != nil,
	} {
		if point {
			points++
		}
	}
	return points
}

// securityPoints are the zone's points of a security programme, 0 to 2.
func (z zone) securityPoints() (points int) {
	if z.caa {
		points++
	}
	if z.ds {
		points++
	}
	return points
}

// commercialPoints are the zone's points of commercial infrastructure, 0 to 3.
func (z zone) commercialPoints(domain string) (points int) {
	_, paid := vendorsOf(nil, includes(sender(z.txt)))
	for _, point := range []bool{
		slices.ContainsFunc(z.mx, func(host string) bool {
			return below(host, domain) || slices.ContainsFunc(mailHosters, func(hoster string) bool { return below(host, hoster) })
		}),
		slices.ContainsFunc(slices.Concat(z.ns, z.alias), managed.MatchString),
		paid >= 2,
	} {
		if point {
			points++
		}
	}
	return points
}
