package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/semaphore"
)

// perAddress bounds the concurrent connections to one address, so that many names on one shared
// server do not overload it.
const perAddress = 4

// dialer makes every connection of the client. It resolves a name, checks all its addresses with
// the guard, and connects to a checked address. The Control hook checks the final address once
// more before the system call.
type dialer struct {
	resolver *resolver
	guard    guard
	// overrides are the addresses that replace the internet, nil if there are none.
	overrides *overrideAddresses
	slots     *lru[netip.Addr, *semaphore.Weighted]
}

// overrideAddresses are the loopback addresses of Overrides.
type overrideAddresses struct {
	endpoints   []netip.AddrPort // of known servers
	http, https netip.AddrPort   // of all public hosts; may be invalid
}

func (s *overrideAddresses) has(to netip.AddrPort) bool {
	return to.IsValid() && (to == s.http || to == s.https || slices.Contains(s.endpoints, to))
}

type connectKey struct{}

// withConnect bounds the time of each connection attempt under ctx by d.
func withConnect(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, connectKey{}, d)
}

func connectLimit(ctx context.Context) time.Duration {
	if d, ok := ctx.Value(connectKey{}).(time.Duration); ok {
		return d
	}
	return 4 * time.Second
}

// known connects to a known server. With overrides these are the loopback addresses of the
// endpoints; without, a known server passes the same guard as any host.
func (d *dialer) known(ctx context.Context, network, address string) (net.Conn, error) {
	if d.overrides != nil {
		to, err := netip.ParseAddrPort(address)
		if err != nil || !slices.Contains(d.overrides.endpoints, to) {
			return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("%s is not a server of the overrides", address)}
		}
		ctx, cancel := context.WithTimeout(ctx, connectLimit(ctx))
		defer cancel()
		return d.connect(ctx, to)
	}
	return d.untrusted(ctx, network, address)
}

// untrusted connects to a host that comes from untrusted input.
func (d *dialer) untrusted(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, connectLimit(ctx))
	defer cancel()
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &Error{Code: CodeAddress, Err: err}
	}
	if port != "80" && port != "443" {
		return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("port %s is not allowed", port)}
	}
	if host, err = d.guard.host(host); err != nil {
		return nil, &Error{Code: CodeAddress, Err: err}
	}
	addrs, err := d.resolver.addresses(ctx, host, d.guard)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, addr := range addrs {
		conn, err := d.connectTo(ctx, addr, port)
		if err == nil {
			return conn, nil
		}
		if faults = append(faults, err); ctx.Err() != nil {
			break
		}
	}
	return nil, fmt.Errorf("connect to %s: %w", host, errors.Join(faults...))
}

// connectTo connects to a checked address, or to its override.
func (d *dialer) connectTo(ctx context.Context, addr netip.Addr, port string) (net.Conn, error) {
	to := netip.AddrPortFrom(addr, 443)
	if port == "80" {
		to = netip.AddrPortFrom(addr, 80)
	}
	if d.overrides != nil {
		if to = d.overrides.https; port == "80" {
			to = d.overrides.http
		}
		if !to.IsValid() {
			return nil, &Error{Code: CodeAddress, Err: fmt.Errorf("the overrides have no server for port %s", port)}
		}
		return d.connect(ctx, to)
	}
	slots := d.slots.getOr(addr, func() *semaphore.Weighted { return semaphore.NewWeighted(perAddress) })
	if err := slots.Acquire(ctx, 1); err != nil {
		return nil, fmt.Errorf("wait for a connection to %s: %w", addr, err)
	}
	conn, err := d.connect(ctx, to)
	if err != nil {
		slots.Release(1)
		return nil, err
	}
	return &countedConn{Conn: conn, release: func() { slots.Release(1) }}, nil
}

func (d *dialer) connect(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	dial := net.Dialer{Control: d.control, KeepAliveConfig: net.KeepAliveConfig{Enable: false}}
	return dial.DialContext(ctx, "tcp", to.String())
}

// control checks the address that the operating system is about to connect to.
func (d *dialer) control(network, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return &Error{Code: CodeAddress, Err: fmt.Errorf("connect to %q: %w", address, err)}
	}
	switch {
	case network != "tcp4" && network != "tcp6":
		return &Error{Code: CodeAddress, Err: fmt.Errorf("network %s is not allowed", network)}
	case d.overrides != nil && d.overrides.has(to):
		return nil
	case d.overrides != nil:
		return &Error{Code: CodeAddress, Err: fmt.Errorf("%s is not a server of the overrides", to)}
	case to.Port() != 80 && to.Port() != 443:
		return &Error{Code: CodeAddress, Err: fmt.Errorf("port %d is not allowed", to.Port())}
	}
	if err := d.guard.address(to.Addr()); err != nil {
		return &Error{Code: CodeAddress, Err: err}
	}
	return nil
}

// countedConn releases its slot when it is closed.
type countedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *countedConn) Close() error {
	c.once.Do(c.release)
	return c.Conn.Close()
}
