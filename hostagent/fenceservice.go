package hostagent

import (
	"fmt"
	"net/netip"
	"time"
)

// DefaultFencePort is where the agents of arrays listen for hosts that ask for a fence.
const DefaultFencePort = 4424

// DefaultFenceHold is how long an array blocks a pair that no host has asked for: 3 x the kernel's
// keep-alive time of 5 s, and 2 s, and as much as fence.hold of a switch.
const DefaultFenceHold = 20 * time.Second

// FenceServiceConfig is how hosts and arrays prove to each other who they are, where the agent of an
// array listens, and where a host asks. Package fencing implements it.
type FenceServiceConfig struct {
	Listen      []netip.AddrPort  `yaml:"listen"`      // of an array; none: it is not asked
	Port        uint16            `yaml:"port"`        // at which a host asks the agents of arrays
	Certificate string            `yaml:"certificate"` // PEM files; with subjectAltName IP: the own addresses
	Key         string            `yaml:"key"`
	CA          string            `yaml:"ca"`       // of all certificates
	KeyFile     string            `yaml:"key-file"` // of a host: its secret, instead of certificates
	Hosts       []FenceHostConfig `yaml:"hosts"`    // of an array: hosts by their secrets, instead of certificates
	Hold        time.Duration     `yaml:"hold"`     // of a block that no host has asked for
}

// FenceHostConfig is a host that an array knows by its secret.
type FenceHostConfig struct {
	KeyFile   string       `yaml:"key-file"`
	Addresses []netip.Addr `yaml:"addresses"`
}

// Serves reports whether this is the agent of an array that hosts may ask.
func (c *FenceServiceConfig) Serves() bool { return len(c.Listen) > 0 }

// Asks reports whether this is the agent of a host that asks arrays.
func (c *FenceServiceConfig) Asks() bool { return c.Certificate != "" || c.KeyFile != "" }

func (c *FenceServiceConfig) check(bad func(key string, value any, want string)) {
	files := 0
	for _, f := range []string{c.Certificate, c.Key, c.CA} {
		if f != "" {
			files++
		}
	}
	if files != 0 && files != 3 {
		bad("fence-service", fmt.Sprintf("certificate %q, key %q, ca %q", c.Certificate, c.Key, c.CA), "all three or none")
	}
	if files != 0 && (c.KeyFile != "" || len(c.Hosts) > 0) {
		bad("fence-service", "certificates and secrets", "one of them: certificate, key and ca, or key-file and hosts")
	}
	if c.Serves() && files == 0 && len(c.Hosts) == 0 {
		bad("fence-service.listen", c.Listen, "certificate, key and ca, or hosts, beside it")
	}
	if c.Port == 0 {
		bad("fence-service.port", c.Port, "1..65535")
	}
	if c.Hold < time.Second || c.Hold > time.Hour {
		bad("fence-service.hold", c.Hold, "1s..1h")
	}
	for i, l := range c.Listen {
		if !l.IsValid() || l.Port() == 0 || l.Addr().IsMulticast() {
			bad(fmt.Sprintf("fence-service.listen[%d]", i), l, fmt.Sprintf("an address of this machine and a port, such as [::]:%d", DefaultFencePort))
		}
	}
	of := map[netip.Addr]bool{}
	for i, h := range c.Hosts {
		at := fmt.Sprintf("fence-service.hosts[%d]", i)
		if h.KeyFile == "" {
			bad(at+".key-file", `""`, "the file of the host's secret")
		}
		if len(h.Addresses) == 0 {
			bad(at+".addresses", "[]", "the addresses of the host")
		}
		for _, a := range h.Addresses {
			if !a.IsValid() || a.Is4In6() || a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() {
				bad(at+".addresses", a, "unicast addresses")
			} else if of[a] {
				bad(at+".addresses", a, "each address once: it would be two hosts'")
			}
			of[a] = true
		}
	}
}
