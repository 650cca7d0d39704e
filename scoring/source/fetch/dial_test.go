package fetch

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"companyscore/internal/test/wait"
)

// TestDialerAsksAgain tests the Control hook alone: the check of the final address.
func TestDialerAsksAgain(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	reached := make(chan struct{}, 1)
	go func() {
		if conn, err := listener.Accept(); err == nil {
			conn.Close()
			reached <- struct{}{}
		}
	}()
	here := netip.MustParseAddrPort(listener.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), wait.Max)
	defer cancel()
	inEarnest := &dialer{}
	if conn, err := inEarnest.connect(ctx, here); err == nil {
		conn.Close()
		t.Error("connected to loopback")
	}
	elsewhere := &dialer{overrides: &overrideAddresses{http: netip.MustParseAddrPort("127.0.0.1:9")}}
	if conn, err := elsewhere.connect(ctx, here); err == nil {
		conn.Close()
		t.Error("the overridden dialer connected to another server on loopback")
	}
	select {
	case <-reached:
		t.Error("a refused connection reached the server")
	default:
	}
	withOverrides := &dialer{overrides: &overrideAddresses{http: here}}
	conn, err := withOverrides.connect(ctx, here)
	if err != nil {
		t.Fatalf("the overridden dialer does not reach its own server: %v", err)
	}
	conn.Close()
}

func TestControl(t *testing.T) {
	t.Parallel()
	g, err := newGuard([]string{"93.184.99.0/24", "2606:4700::1"})
	if err != nil {
		t.Fatal(err)
	}
	d := &dialer{guard: g}
	f := func(network, address string, passes bool) {
		t.Helper()
		if err := d.control(network, address, nil); (err == nil) != passes {
			t.Errorf("control(%s, %s) = %v, passes %v wanted", network, address, err, passes)
		}
	}
	f("tcp4", "93.184.215.14:443", true)
	f("tcp4", "93.184.215.14:80", true)
	f("tcp6", "[2606:4700::2]:443", true)
	f("tcp4", "93.184.215.14:22", false)
	f("tcp4", "93.184.215.14:8080", false)
	f("tcp4", "93.184.99.1:443", false)
	f("tcp6", "[2606:4700::1]:443", false)
	f("udp4", "93.184.215.14:443", false)
	f("unix", "/var/run/docker.sock", false)
	f("tcp4", "127.0.0.1:80", false)
	f("tcp6", "[::1]:443", false)
	f("tcp6", "[::ffff:10.0.0.1]:443", false)
	f("tcp6", "[64:ff9b::a00:1]:443", false)
	f("tcp6", "[fe80::1%lo]:443", false)
	f("tcp4", "169.254.169.254:80", false)
	f("tcp4", "localhost:80", false)
}

// TestPublicAddressesPass checks public addresses next to refused ranges.
func TestPublicAddressesPass(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15",
		"168.63.129.17", "169.253.255.255",
		"172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
		"223.255.255.255",
		"2000::1", "2001:200::1", "2003::1", "2606:4700:4700::1111", "2a00:1450::1", "3ffe::1", "::ffff:1.1.1.1",
	} {
		if err := CheckAddress(netip.MustParseAddr(address)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// FuzzCheckAddress compares the table of ranges with the library's address classes.
func FuzzCheckAddress(f *testing.F) {
	for _, r := range refused {
		f.Add(r.prefix.Addr().AsSlice())
	}
	f.Add([]byte{1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok || CheckAddress(addr) != nil {
			return
		}
		bare := addr.Unmap()
		if bare.IsPrivate() || bare.IsLoopback() || bare.IsMulticast() || bare.IsLinkLocalUnicast() || bare.IsUnspecified() ||
			!bare.IsGlobalUnicast() {
			t.Errorf("%s passes", addr)
		}
		if bare.Is6() && !globalUnicast.Contains(bare) {
			t.Errorf("%s passes outside of %s", addr, globalUnicast)
		}
	})
}
