package source

import (
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

// answer is a message with the given records in their textual form.
func answer(t testing.TB, records ...string) *dns.Msg {
	t.Helper()
	msg := new(dns.Msg)
	for _, record := range records {
		rr, err := dns.NewRR(record)
		if err != nil {
			t.Fatal(err)
		}
		msg.Answer = append(msg.Answer, rr)
	}
	return msg
}

func TestMailPoints(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name            string
		mx              []string
		txt, dmarc, sts []string
		tls             []string
		want            int
	}{
		{name: "nothing"},
		{name: "a null MX is none", mx: []string{"x.com. 60 IN MX 0 ."}},
		{name: "mail", mx: []string{"x.com. 60 IN MX 10 mail.x.com."}, want: 1},
		{name: "a watched policy", txt: []string{"v=spf1 -all"}, dmarc: []string{"v=DMARC1; p=none"}, want: 2},
		{name: "an enforced policy", txt: []string{"v=SPF1 ~all"}, dmarc: []string{"V=dmarc1 ;P=Quarantine"}, want: 3},
		{
			name: "all", mx: []string{"x.com. 60 IN MX 10 mail.x.com."}, txt: []string{"hello", "v=spf1 include:x ~all"},
			dmarc: []string{"v=DMARC1; p=reject; rua=mailto:a@x.com"}, sts: []string{"v=STSv1; id=1"},
			tls: []string{"v=TLSRPTv1; rua=mailto:a@x.com"}, want: 5,
		},
		{name: "reports only", tls: []string{"v=TLSRPTv1; rua=mailto:a@x.com"}, want: 1},
		{name: "other texts", txt: []string{"v=spf10 all", "spf1"}, dmarc: []string{"v=DMARC2; p=reject", "p=reject"},
			sts: []string{"STSv1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			z := zone{mx: mailHosts(answer(t, test.mx...)), txt: test.txt, dmarc: test.dmarc, sts: test.sts, tls: test.tls}
			if got := z.mailPoints(); got != test.want {
				t.Errorf("got %d points, want %d", got, test.want)
			}
		})
	}
}

func TestCommercialPoints(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		z    zone
		want int
	}{
		{"nothing", zone{mx: []string{"mail.cheaphost.example"}, ns: []string{"ns1.cheaphost.example"}}, 0},
		{"hosted mail", zone{mx: []string{"aspmx.l.google.com"}}, 1},
		{"own mail", zone{mx: []string{"mx1.x.com"}}, 1},
		{"who only sounds like it", zone{mx: []string{"mx.notgoogle.com"}, ns: []string{"ns.awsdns.example", "cloudflare.com.example"}}, 0},
		{"managed names", zone{ns: []string{"ns-12.awsdns-45.co.uk"}}, 1},
		{"managed names of Google", zone{ns: []string{"ns-cloud-a1.googledomains.com"}}, 1},
		{"a content network", zone{alias: []string{"x.com.cdn.cloudflare.net"}}, 1},
		{"one sender is not enough", zone{txt: []string{"v=spf1 include:sendgrid.net ~all", "hubspot-developer-verification=1"}}, 0},
		{"senders that cost nothing", zone{txt: []string{"v=spf1 include:amazonses.com include:_spf.google.com ~all"}}, 0},
		{"two paid senders", zone{txt: []string{"v=spf1 include:_spf.salesforce.com include:mail.zendesk.com ~all"}}, 1},
		{
			"all", zone{
				mx: []string{"x-com.mail.protection.outlook.com"}, ns: []string{"ada.ns.cloudflare.com"},
				txt: []string{"v=spf1 include:mktomail.com include:spf.mandrillapp.com -all"},
			}, 3,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.z.commercialPoints("x.com"); got != test.want {
				t.Errorf("got %d points, want %d", got, test.want)
			}
		})
	}
}

func TestVendors(t *testing.T) {
	t.Parallel()
	f := func(name string, texts []string, spf string, paid int, want ...string) {
		t.Helper()
		keys, n := vendorsOf(texts, includes(sender([]string{spf})))
		slices.Sort(keys)
		slices.Sort(want)
		if !slices.Equal(keys, want) || n != paid {
			t.Errorf("%s: got %v and %d paid senders, want %v and %d", name, keys, n, want, paid)
		}
	}
	f("tokens and senders", []string{
		"google-site-verification=abc", "GOOGLE-site-verification=def", "MS=ms123", "docusign=1", "openai-domain-verification=dv-1",
		"yandex-verification: 9", "unknown-site-verification=1", "see google-site-verification=",
	}, "v=spf1 ip4:192.0.2.1 include:_spf.google.com include:mailgun.org include:eu.mailgun.org ?include:u1.sendgrid.net "+
		"redirect=notsendgrid.net", 2, "google", "microsoft", "docusign", "openai", "yandex", "sendgrid", "mailgun")
	f("parts of a flattened record", nil, "v=spf1 include:_netblocks.google.com include:_netblocks2.google.com "+
		"include:spf-a.outlook.com include:servers.mcsv.net ~all", 1, "google", "microsoft", "mailchimp")
	f("newer vendors", []string{
		"anthropic-domain-verification-a1b2c3=x", "cursor-domain-verification-q=1", "loom-site-verification=1", "jamf-site-verification=1",
		"calendly-site-verification=1", "serval-verification=1", "TAILSCALE-abcdef", "Dynatrace-site-verification=1",
	}, "", 0, "anthropic", "cursor", "loom", "jamf", "calendly", "serval", "tailscale", "dynatrace")
	f("several names of one vendor", []string{"zoom-domain-verification=1", "ZOOM_verify_abc", "citrix.mobile.ads.otp=1",
		"citrix-verification-code=1", "notion_domain_verification=1", "apple-domain=1"}, "", 0, "zoom", "citrix", "notion", "apple")
	f("names that are alike only", []string{"anthropicdomain", "ms", "google", "loom", "pardo"},
		"v=spf1 include:notgoogle.com include:google.com.evil.example include:outlook.com.example", 0)
}

func TestVendorTable(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	paid := make(map[string]string)
	for _, row := range table(vendorsCSV, 4) {
		if old, ok := paid[row[0]]; ok && old != row[1] {
			t.Errorf("%s is paid in one row and not in another", row[0])
		}
		paid[row[0]] = row[1]
		trace := row[2] + " " + row[3]
		switch {
		case row[0] == "" || len(row[3]) < 3 || seen[trace] || trace != strings.ToLower(trace) || row[1] != "" && row[1] != "paid":
			t.Errorf("row %q", row)
		case row[2] != "token" && (row[2] != "sender" || !strings.Contains(row[3], ".")):
			t.Errorf("row %q", row)
		}
		seen[trace] = true
	}
}

func TestRecords(t *testing.T) {
	t.Parallel()
	msg := answer(t,
		`x.com. 60 IN TXT "v=spf1 include:" "sendgrid.net -all"`, `x.com. 60 IN TXT ""`,
		`x.com. 60 IN CAA 0 issue "letsencrypt.org"`, `www.x.com. 60 IN CNAME X.com.cdn.cloudflare.net.`, "x.com. 60 IN NS NS1.x.com.",
	)
	if got := texts(msg); !slices.Equal(got, []string{"v=spf1 include:sendgrid.net -all"}) {
		t.Errorf("texts: %q", got)
	}
	if !restricted(msg) || restricted(answer(t, `x.com. 60 IN CAA 0 iodef "mailto:a@x.com"`)) {
		t.Error("a CAA record restricts when it names an issuer")
	}
	if got := slices.Concat(aliases(msg), nameServers(msg)); !slices.Equal(got, []string{"x.com.cdn.cloudflare.net", "ns1.x.com"}) {
		t.Errorf("names: %q", got)
	}
	var long []string
	for range 100 {
		long = append(long, `x.com. 60 IN TXT "`+strings.Repeat("a", 250)+`"`)
	}
	if got := len(strings.Join(texts(answer(t, long...)), "")); got != txtMaxBytes {
		t.Errorf("%d bytes of text are read, want %d", got, txtMaxBytes)
	}
}

// FuzzZone reads arbitrary messages as every kind of answer.
func FuzzZone(f *testing.F) {
	packed, err := answer(f, `x.com. 60 IN TXT "v=spf1 include:sendgrid.net -all"`, `x.com. 60 IN CAA 0 issue "a"`,
		"x.com. 60 IN MX 1 mx.x.com.", "x.com. 60 IN NS ns.x.com.").Pack()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(packed)
	f.Fuzz(func(t *testing.T, wire []byte) {
		msg := new(dns.Msg)
		if msg.Unpack(wire) != nil {
			return
		}
		text := texts(msg)
		z := zone{
			mx: mailHosts(msg), txt: text, ns: nameServers(msg), alias: aliases(msg), dmarc: text, sts: text, tls: text,
			caa: restricted(msg), ds: len(answers[*dns.DS](msg)) > 0,
		}
		if p := z.mailPoints(); p < 0 || p > 5 {
			t.Errorf("%d points for mail", p)
		}
		if p := z.commercialPoints("x.com"); p < 0 || p > 3 {
			t.Errorf("%d points for infrastructure", p)
		}
		if keys, _ := vendorsOf(text, includes(sender(text))); len(keys) > len(vendors) {
			t.Errorf("%d vendors", len(keys))
		}
	})
}
