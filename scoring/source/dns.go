package source

import (
	"context"
	_ "embed"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/miekg/dns"

	"companyscore/scoring/source/fetch"
)

// DNS is the source of DNS records: mail security, infrastructure, and services in use.
type DNS struct{ live }

// NewDNS returns the source.
func NewDNS(c *fetch.Client) *DNS { return &DNS{newLive(c, "dns")} }

// The queries for a domain.
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

// Fetch sends ten queries concurrently. If a query fails, the signals that need it are missing;
// the others are used, and the error is returned.
func (d *DNS) Fetch(ctx context.Context, req Request) (Result, error) {
	domain := req.Registrable
	questions := [askCount]struct {
		name  string
		qtype uint16
	}{
		askHost: {req.Domain, dns.TypeA}, askWWW: {"www." + req.Domain, dns.TypeA}, askMX: {domain, dns.TypeMX},
		askTXT: {domain, dns.TypeTXT},
		askNS:  {domain, dns.TypeNS}, askCAA: {domain, dns.TypeCAA}, askDS: {domain, dns.TypeDS},
		askDMARC: {"_dmarc." + domain, dns.TypeTXT},
		askSTS:   {"_mta-sts." + domain, dns.TypeTXT}, askTLS: {"_smtp._tls." + domain, dns.TypeTXT},
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
	s := builder{source: "dns"}
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
	s.result.Unregistered = answered(askHost, askNS) && messages[askHost].Rcode == dns.RcodeNameError &&
		messages[askNS].Rcode == dns.RcodeNameError
	return s.result, errors.Join(faults[:]...)
}

// zone is the DNS records of a domain.
type zone struct {
	mx    []string // mail hosts, lower case without the trailing dot
	txt   []string // of the registrable domain, each record joined
	ns    []string
	alias []string // canonical names of the host and of www
	dmarc []string // text records, as the next two
	sts   []string
	tls   []string
	caa   bool // a CAA record restricts who may issue certificates
	ds    bool // the parent zone has a DS record: DNSSEC
}

// txtMaxBytes bounds the text records of one name, in bytes.
const txtMaxBytes = 16 << 10

// texts returns the text records of an answer, each record's strings joined, at most txtMaxBytes
// in total.
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

// bare returns a name in lower case without the trailing dot, "" for the root.
func bare(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }

// mailHosts returns the mail hosts. A null MX (RFC 7505) counts as none.
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

// aliasMax bounds a chain of CNAME records.
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

// restricted reports whether a CAA record restricts who may issue certificates.
func restricted(msg *dns.Msg) bool {
	return slices.ContainsFunc(answers[*dns.CAA](msg), func(rr *dns.CAA) bool {
		return strings.EqualFold(rr.Tag, "issue") || strings.EqualFold(rr.Tag, "issuewild")
	})
}

// tagged returns the tags of the first text whose first tag is the version v, as in "v=DMARC1;
// p=reject", lower case without spaces. It is nil if there is none.
func tagged(texts []string, v string) map[string]string {
	for _, text := range texts {
		first, rest, _ := strings.Cut(text, ";")
		if key, value, ok := strings.Cut(first, "="); !ok || strings.TrimSpace(strings.ToLower(key)) != "v" ||
			!strings.EqualFold(strings.TrimSpace(value), v) {
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

// sender returns the terms of the SPF record in lower case, nil if there is none.
func sender(texts []string) []string {
	for _, text := range texts {
		if terms := strings.Fields(strings.ToLower(text)); len(terms) > 0 && terms[0] == "v=spf1" {
			return terms
		}
	}
	return nil
}

// includes returns the domains in include and redirect terms of an SPF record. They are not
// resolved.
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

// vendorsCSV has the traces of services in the DNS, all in lower case. Its traces are:
//
//   - token: the beginning of a text record that verifies the domain's owner;
//   - sender: a domain that the service sends mail from. Domains below it count too, since a
//     flattened SPF record includes the parts of the service's own.
//
// Paid services are for sales, marketing or support.
//
//go:embed vendors.csv
var vendorsCSV string

// vendor is a service with its traces.
type vendor struct {
	key             string
	tokens, senders []string
	paid            bool
}

// vendors is vendorsCSV in its order.
var vendors = func() []vendor {
	var all []vendor
	for _, row := range table(vendorsCSV, 4) {
		i := slices.IndexFunc(all, func(v vendor) bool { return v.key == row[0] })
		if i < 0 {
			i, all = len(all), append(all, vendor{key: row[0], paid: row[1] == "paid"})
		}
		if row[2] == "sender" {
			all[i].senders = append(all[i].senders, row[3])
		} else {
			all[i].tokens = append(all[i].tokens, row[3])
		}
	}
	return all
}()

// vendorsOf returns the keys of the vendors in text records and SPF includes, and the number of
// paid ones among those that send mail.
func vendorsOf(texts, includes []string) (keys []string, paidSenders int) {
	for _, v := range vendors {
		proved := slices.ContainsFunc(texts, func(text string) bool {
			return slices.ContainsFunc(v.tokens, func(token string) bool {
				return len(text) >= len(token) && strings.EqualFold(text[:len(token)], token)
			})
		})
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

// mailHosters are providers of business mail.
var mailHosters = []string{
	"google.com", "googlemail.com", "outlook.com", "pphosted.com", "mimecast.com", "zoho.com", "messagelabs.com", "barracudanetworks.com",
}

// managed matches managed DNS services and content delivery networks.
var managed = regexp.MustCompile(`(^|\.)awsdns-[0-9]+\.(com|net|org|co\.uk)$|^ns-cloud-[a-z0-9]+\.googledomains\.com$|` +
	`(^|\.)(cloudflare\.com|cloudflare\.net|azure-dns\.(com|net|org|info)|nsone\.net|ultradns\.(com|net|org|biz|info|co\.uk)|akam\.net|akamai\.net|akamaiedge\.net|edgekey\.net|edgesuite\.net|dynect\.net|fastly\.net|cloudfront\.net|azureedge\.net|azurefd\.net)$`)

// mailPoints returns the points for e-mail authentication, 0 to 5.
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

// securityPoints returns the points for a security programme, 0 to 2.
func (z zone) securityPoints() (points int) {
	if z.caa {
		points++
	}
	if z.ds {
		points++
	}
	return points
}

// commercialPoints returns the points for commercial infrastructure, 0 to 3.
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
