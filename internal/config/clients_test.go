package config

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClientsMayBeBoundToHosts(t *testing.T) {
	c, err := Parse("f", []byte(`device: {id: 192.0.2.1, roles: [reflector]}
session: {auth: none}
reflector:
  clients:
    - 192.0.2.11
    - {device: 192.0.2.12, prefixes: [10.1.0.0/16, "2001:db8::1"], nqns: ["nqn.2026-01.org.example:a-*"], max-hosts: 48}
`), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	want := []BoundClient{{Device: netip.MustParseAddr("192.0.2.11")}, {
		Device:   netip.MustParseAddr("192.0.2.12"),
		Prefixes: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("2001:db8::1/128")},
		NQNs:     []string{"nqn.2026-01.org.example:a-*"}, MaxHosts: 48,
	}}
	if d := cmp.Diff(want, c.Reflector.Clients, cmp.Comparer(func(a, b netip.Addr) bool { return a == b }), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); d != "" {
		t.Error(d)
	}
	if r := &c.Reflector; !r.Allows(want[1].Device) || r.Allows(netip.MustParseAddr("192.0.2.13")) {
		t.Error("others may connect, or these may not")
	}
}
