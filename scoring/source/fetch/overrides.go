package fetch

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"

	"gopkg.in/yaml.v3"
)

// Overrides replaces the internet by servers on this machine: for tests, demos
// and load tests of the real client. Every connection leads to one of them and
// nowhere else. A host that a stranger could have chosen must still have a public
// address in the rehearsal's own DNS, and is refused as ever when it has not.
type Overrides struct {
	// Endpoints are base URLs by name of the endpoint, on loopback addresses. One
	// that is not named is off.
	Endpoints map[string]string `yaml:"endpoints"`
	// HTTP and HTTPS are the loopback addresses, IP:port, to which connections to
	// port 80 and 443 of any public host lead.
	HTTP  string `yaml:"http"`
	HTTPS string `yaml:"https"`
	// CA is the path of a PEM file with the authority to trust instead of the system's.
	CA string `yaml:"ca"`
	// Resolvers are DNS servers on loopback addresses, IP:port.
	Resolvers []string `yaml:"resolvers"`
	// Scale multiplies every limit of the sources, so that a rehearsal of many runs
	// ends soon; zero and 1 keep them as they are.
	Scale float64 `yaml:"scale"`
	// Failures is how many failures in a row make a server be left alone, when it is
	// more than in earnest: where failures are made on purpose they come together.
	Failures int `yaml:"failures"`
}

// ReadOverrides reads a rehearsal from a YAML file. Unknown keys are errors.
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

// addresses collects the addresses of the rehearsal, all of which must be loopback.
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
	return s, errors.Join(faults...)
}
