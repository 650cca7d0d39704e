package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"

	"gopkg.in/yaml.v3"
)

// Overrides replaces the internet by fakes on this machine, for tests, demos and load tests of
// the real client. All connections go to these addresses. A host from untrusted input still needs
// a public address in the DNS of the fakes, and must pass the guard.
type Overrides struct {
	// Endpoints are base URLs on loopback by name of the endpoint. An endpoint without one is
	// off.
	Endpoints map[string]string `yaml:"endpoints"`
	// HTTP and HTTPS are loopback addresses, IP:port. They replace port 80 and 443 of every
	// public host.
	HTTP  string `yaml:"http"`
	HTTPS string `yaml:"https"`
	// CA is the path of a PEM file. Its certificates replace the system's CAs.
	CA string `yaml:"ca"`
	// Resolvers are DNS servers on loopback addresses, IP:port.
	Resolvers []string `yaml:"resolvers"`
	// Scale multiplies every limit of the sources. 0 and 1 leave them unchanged.
	Scale float64 `yaml:"scale"`
	// Slowness multiplies the time limits of connections and requests, for machines that are busy
	// with the fakes as well. 0 and 1 leave them unchanged.
	Slowness int `yaml:"slowness"`
	// Failures replaces the number of consecutive failures that open a circuit breaker, if it is
	// larger. Fakes that fail on purpose fail many times in a row.
	Failures int `yaml:"failures"`
}

// ReadOverrides reads overrides from a YAML file. Unknown keys are errors.
func ReadOverrides(path string) (*Overrides, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the source overrides: %w", err)
	}
	defer file.Close()
	var r Overrides
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		return nil, fmt.Errorf("read the source overrides %s: %w", path, err)
	}
	if _, err := r.addresses(); err != nil {
		return nil, fmt.Errorf("read the source overrides %s: %w", path, err)
	}
	return &r, nil
}

// addresses returns the addresses of the overrides. It fails unless all are loopback.
func (r *Overrides) addresses() (*overrideAddresses, error) {
	var faults []error
	address := func(what, text string) netip.AddrPort {
		to, err := netip.ParseAddrPort(text)
		if err != nil || !to.Addr().IsLoopback() {
			faults = append(faults, fmt.Errorf("%s %q: write a loopback address and a port, such as 127.0.0.1:8081", what, text))
		}
		return to
	}
	s := new(overrideAddresses)
	if r.HTTP != "" {
		s.http = address("http", r.HTTP)
	}
	if r.HTTPS != "" {
		s.https = address("https", r.HTTPS)
	}
	known := make(map[string]bool)
	for _, e := range Endpoints {
		known[e.Name] = true
	}
	for name, base := range r.Endpoints {
		u, err := url.Parse(base)
		if !known[name] || err != nil || u.Scheme != "http" || u.User != nil {
			faults = append(faults, fmt.Errorf("endpoint %s at %q: name a known endpoint and an http URL", name, base))
			continue
		}
		s.endpoints = append(s.endpoints, address("endpoint "+name, u.Host))
	}
	for _, server := range r.Resolvers {
		address("resolver", server)
	}
	if r.Scale < 0 {
		faults = append(faults, fmt.Errorf("scale %g: write a number above 0", r.Scale))
	}
	if r.Slowness < 0 {
		faults = append(faults, fmt.Errorf("slowness %d: write a number above 0", r.Slowness))
	}
	return s, errors.Join(faults...)
}
