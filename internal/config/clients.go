package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/openinof/inof/internal/setting"
	"github.com/openinof/inof/snsd"
)

// BoundClient is one device that may connect to a reflector, and which hosts it may have.
type BoundClient struct {
	Device   netip.Addr
	Prefixes []netip.Prefix // of its hosts' addresses; empty: any
	NQNs     []string       // that its hosts may say, exact or with * and ?; empty: any
	MaxHosts int            // 0: as many as any device
}

// String is the device id, and what it is bound to.
func (b BoundClient) String() string {
	parts := []string{b.Device.String()}
	if len(b.Prefixes) > 0 {
		parts = append(parts, fmt.Sprint("prefixes ", b.Prefixes))
	}
	if len(b.NQNs) > 0 {
		parts = append(parts, fmt.Sprint("nqns ", b.NQNs))
	}
	if b.MaxHosts > 0 {
		parts = append(parts, fmt.Sprint("max-hosts ", b.MaxHosts))
	}
	return strings.Join(parts, " ")
}

// Allows reports whether a device may connect.
func (r *Reflector) Allows(dev netip.Addr) bool {
	return len(r.Clients) == 0 || slices.ContainsFunc(r.Clients, func(b BoundClient) bool { return b.Device == dev })
}

const (
	allowedClients  = "device ids, or entries of device, prefixes, nqns, max-hosts"
	allowedPrefixes = "addresses, and prefixes of them"
	allowedNQNs     = "NQNs, which may have * (any text) and ? (any character)"

	mostBound = 1024 // prefixes, and NQNs, of a device: what a message tells it of them
)

// boundClients is reflector.clients: device ids, and entries with what a device is bound to.
func (c *Config) boundClients() item {
	into := &c.Reflector.Clients
	seen := map[netip.Addr]int{} // its line
	it := entries("clients", allowedClients,
		"Only these may connect. Empty: any device with the right password or certificate. An entry besides says which hosts the device may "+
			"have, so that it cannot speak for others': what is outside is refused, shown on both sides, and no host for anybody else, neither for "+
			"the other hosts of its own device ([security](security.md#addresses)). Write it at every reflector. A reload that would leave out "+
			"hosts that are known is refused and names them; with `--force` they count as gone (aged out) at once.", joined(into),
		func(b *BoundClient) []item {
			return []item{
				{Setting: c.address("device", &b.Device, "The device.").Required("").Documented("required", asDeviceID)},
				prefixes("prefixes", "Its hosts have these addresses, at most 1,024 prefixes. Empty: any.", &b.Prefixes),
				words("nqns", allowedNQNs, "Its hosts say these NQNs, at most 1,024; one that says none is allowed. Empty: any.", joined(&b.NQNs), appending(&b.NQNs, checkNQNPattern)).
					documented("", "NQNs, which may have `*` (any text) and `?` (any character)"),
				{Setting: setting.Int("max-hosts", &b.MaxHosts, 0, 0, DefaultMaxHost,
					"Host addresses of the device, where that is less than `reflector.max-hosts-per-device`. 0: as many as that.")},
			}
		}, func(e *section, b *BoundClient) {
			switch first, twice := seen[b.Device]; {
			case !b.Device.IsValid(): // reported
			case twice:
				e.problem("device", fmt.Sprintf("is listed twice, first in line %d", first), "each device once")
			default:
				for key, n := range map[string]int{"prefixes": len(b.Prefixes), "nqns": len(b.NQNs)} {
					if n > mostBound {
						e.problem(key, fmt.Sprintf("has %d entries", n), fmt.Sprint("at most ", mostBound))
					}
				}
				seen[b.Device] = e.node.Line
				*into = append(*into, *b)
			}
		}).documented("", "a list of device ids, and of entries with the keys below")
	it.short = func(v string) []string { return []string{"device", v} }
	return it
}

// prefixes is a list of addresses and prefixes.
func prefixes(key, doc string, into *[]netip.Prefix) item {
	return words(key, allowedPrefixes, doc, joined(into), func(v string) string {
		p, what := parsePrefix(v)
		if what == "" {
			*into = append(*into, p)
		}
		return what
	})
}

// parsePrefix takes a prefix, or an address alone.
func parsePrefix(v string) (netip.Prefix, string) {
	p, err := netip.ParsePrefix(v)
	if a, aErr := netip.ParseAddr(v); aErr == nil && a.Zone() == "" {
		p, err = a.Prefix(a.BitLen())
	}
	switch {
	case err != nil:
		return p, "is neither an address nor a prefix"
	case p.Addr().Is4In6():
		return p, "is IPv4 in IPv6 form"
	case p.Masked() != p:
		return p, fmt.Sprintf("has bits behind the prefix, did you mean %q?", p.Masked())
	}
	return p, ""
}

// checkNQNPattern says what is wrong with a name that may have * and ?.
func checkNQNPattern(v string) string {
	if what := checkName(v, snsd.MaxNQN); what != "" {
		return what
	}
	if strings.ContainsAny(v, " \t") {
		return "has a space"
	}
	for _, p := range []string{"nqn.", "iqn.", "eui.", "naa.", "*", "?"} {
		if strings.HasPrefix(v, p) {
			return ""
		}
	}
	return "does not begin with nqn., iqn., eui., naa. or *"
}
