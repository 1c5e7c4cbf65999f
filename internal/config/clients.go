package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

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
)

// readClients reads a list of device ids and of entries with what a device is bound to.
func readClients(s *section, loopback bool) (list []BoundClient) {
	seen := map[netip.Addr]int{}
	add := func(n *yaml.Node, path string, b BoundClient) {
		if first, dup := seen[b.Device]; dup {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = fmt.Sprintf("is listed twice, first in line %d", first), allowedClients
			s.p.add(pr)
			return
		}
		seen[b.Device] = n.Line
		list = append(list, b)
	}
	for i, n := range s.items("clients", "[]", "a list of: "+allowedClients) {
		path := fmt.Sprintf("%s[%d]", s.full("clients"), i)
		if !isNull(n) && n.Kind == yaml.MappingNode {
			e := s.p.section(path, n)
			b := readBoundClient(e, loopback)
			e.close()
			if b.Device.IsValid() {
				add(n, path, b)
			}
			continue
		}
		if !s.single(n, path, allowedClients) {
			continue
		}
		a, what := parseAddr(n.Value, loopback)
		if what != "" {
			pr := s.p.at(n, path)
			pr.What, pr.Allowed = what, allowedAddr
			s.p.add(pr)
			continue
		}
		add(n, path, BoundClient{Device: a})
	}
	return list
}

func readBoundClient(e *section, loopback bool) BoundClient {
	b := BoundClient{Device: e.addr("device", "required", loopback)}
	if _, ok := e.values["device"]; !ok {
		e.problem("device", "is missing", allowedAddr)
	}
	b.Prefixes = readPrefixes(e, "prefixes")
	b.NQNs = e.list("nqns", "[]", allowedNQNs, checkNQNPattern)
	b.MaxHosts = e.number("max-hosts", 0, 0, DefaultMaxHost)
	return b
}

// readPrefixes reads a list of addresses and prefixes.
func readPrefixes(s *section, name string) (list []netip.Prefix) {
	s.list(name, "[]", allowedPrefixes, func(v string) string {
		p, what := parsePrefix(v)
		if what == "" {
			list = append(list, p)
		}
		return what
	})
	return list
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
