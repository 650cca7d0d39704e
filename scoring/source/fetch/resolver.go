package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/idna"
)

// publicResolvers are the default.
var publicResolvers = []string{"1.1.1.1:53", "9.9.9.9:53"}

const (
	dnsTTLMin      = 5 * time.Minute
	dnsTTLMax      = 6 * time.Hour
	dnsAnswersMax  = 20_000
	aliasesMax     = 8
	udpPayloadMax  = 1232 // fits the MTU of common paths
	addressesTried = 3
)

// resolver queries recursive DNS servers. It is safe for concurrent use.
type resolver struct {
	servers []string
	policy  Policy
	limits  *limits
	wire    Wire
	now     func() time.Time
	answers *lru[question, answer]
}

type question struct {
	name  string
	qtype uint16
}

type answer struct {
	msg     *dns.Msg
	expires time.Time
}

func toASCII(host string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(host, "."))
	return strings.ToLower(ascii), err
}

func (r *resolver) lookup(ctx context.Context, name string, qtype uint16) (*dns.Msg, error) {
	q := question{dns.CanonicalName(name), qtype}
	if _, ok := dns.IsDomainName(q.name); !ok {
		return nil, &Error{Code: CodeDNS, Err: fmt.Errorf("%q is not a domain name", name)}
	}
	if cached, ok := r.answers.get(q); ok && r.now().Before(cached.expires) {
		return cached.msg, nil
	}
	var fault error
	for i, server := range r.servers {
		msg, err := r.query(ctx, i+1, server, q)
		if err == nil {
			r.answers.put(q, answer{msg, r.now().Add(ttlOf(msg))}, 1)
			return msg, nil
		}
		if fault = err; ctx.Err() != nil {
			break
		}
	}
	return nil, fault
}

// query sends a question to one server over UDP, and over TCP if the answer is truncated. number
// is the place of the server, from 1.
func (r *resolver) query(ctx context.Context, number int, server string, q question) (*dns.Msg, error) {
	over := func(network string) Exchange {
		return exchange(ctx, fmt.Sprintf("%s %s %s %d", q.name, dns.Type(q.qtype), network, number))
	}
	done, err := r.wire.Turn(over("udp"), func() (func(), error) { return r.limits.acquire(ctx, "dns", "", r.policy.need()) })
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, r.policy.Total)
	defer cancel()
	message := new(dns.Msg)
	message.SetQuestion(q.name, q.qtype)
	message.AuthenticatedData = true // ask the resolver to report DNSSEC validation
	message.SetEdns0(udpPayloadMax, false)
	send := func(network string) (*dns.Msg, error) {
		return r.wire.DNS(over(network), message, func() (*dns.Msg, error) { return r.exchange(ctx, network, server, message) })
	}
	reply, err := send("udp")
	if err == nil && reply.Truncated {
		reply, err = send("tcp")
	}
	fault := func(err error) error {
		return &Error{Code: CodeDNS, Err: fmt.Errorf("look up %s %s: %w", q.name, dns.TypeToString[q.qtype], err)}
	}
	switch {
	case err != nil && isTimeout(err):
		return nil, &Error{Code: CodeTimeout, Err: fmt.Errorf("look up %s %s: %w", q.name, dns.TypeToString[q.qtype], err)}
	case err != nil:
		return nil, fault(err)
	case len(reply.Question) != 1 || !strings.EqualFold(reply.Question[0].Name, q.name) || reply.Question[0].Qtype != q.qtype:
		return nil, fault(errors.New("the answer does not match the question"))
	case reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError:
		return nil, fault(fmt.Errorf("the server answered %s", dns.RcodeToString[reply.Rcode]))
	case countAliases(reply) > aliasesMax:
		return nil, fault(fmt.Errorf("more than %d aliases", aliasesMax))
	}
	return reply, nil
}

func (r *resolver) exchange(ctx context.Context, network, server string, query *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: network, UDPSize: udpPayloadMax, Timeout: r.policy.Total}
	reply, _, err := client.ExchangeContext(ctx, query, server)
	return reply, err
}

func countAliases(msg *dns.Msg) (n int) {
	for _, rr := range msg.Answer {
		if rr.Header().Rrtype == dns.TypeCNAME || rr.Header().Rrtype == dns.TypeDNAME {
			n++
		}
	}
	return n
}

// ttlOf returns how long an answer is cached: its shortest TTL, within bounds.
func ttlOf(msg *dns.Msg) time.Duration {
	records := msg.Answer
	if len(records) == 0 {
		records = msg.Ns // the SOA record sets the TTL of a negative answer
	}
	shortest := dnsTTLMax
	for _, rr := range records {
		ttl := rr.Header().Ttl
		if soa, ok := rr.(*dns.SOA); ok {
			ttl = min(ttl, soa.Minttl)
		}
		shortest = min(shortest, time.Duration(ttl)*time.Second)
	}
	return max(shortest, dnsTTLMin)
}

// addresses returns at most addressesTried addresses of a host, IPv4 first. It rejects the host
// if the guard rejects any of its addresses: a name with a public and a private address is an
// attack.
func (r *resolver) addresses(ctx context.Context, host string, g guard) ([]netip.Addr, error) {
	var found [2][]netip.Addr
	var faults [2]error
	var both sync.WaitGroup
	for i, qtype := range []uint16{dns.TypeA, dns.TypeAAAA} {
		both.Go(func() {
			msg, err := r.lookup(ctx, host, qtype)
			if err != nil {
				faults[i] = err
				return
			}
			for _, rr := range msg.Answer {
				var ip net.IP
				switch rr := rr.(type) {
				case *dns.A:
					ip = rr.A
				case *dns.AAAA:
					ip = rr.AAAA
				default:
					continue
				}
				// Unmap an IPv4-mapped address, so that the guard checks it as IPv4.
				if addr, ok := netip.AddrFromSlice(ip); ok {
					found[i] = append(found[i], addr.Unmap())
				}
			}
		})
	}
	both.Wait()
	all := append(found[0], found[1]...)
	for _, addr := range all {
		if err := g.address(addr); err != nil {
			return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("host %s: %w", host, err)}
		}
	}
	switch {
	case len(all) > 0:
		return all[:min(len(all), addressesTried)], nil
	case faults[0] != nil:
		return nil, faults[0]
	case faults[1] != nil:
		return nil, faults[1]
	}
	return nil, &Error{Code: CodeDNS, Err: fmt.Errorf("host %s has no address", host)}
}
