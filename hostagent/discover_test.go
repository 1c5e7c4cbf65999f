package hostagent

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/nvmetcp"
)

// A log names an address in any of its forms, and the unspecified one is that which was asked.
func TestALogNamesAnAddressInAnyForm(t *testing.T) {
	for _, c := range []struct {
		entry, asked string
		found        bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"::ffff:192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"0.0.0.0", "192.0.2.1", true},
		{"::", "2001:db8::1", true},
		{"::", "192.0.2.1", true},
		{"::ffff:0.0.0.0", "192.0.2.1", true},
		{"2001:db8:0::1", "2001:db8::1", true},
		{"192.0.2.2", "192.0.2.1", false},
		{"::ffff:192.0.2.2", "192.0.2.1", false},
	} {
		log := &nvmetcp.Log{Entries: []nvmetcp.Entry{{Transport: nvmetcp.TCP, Kind: nvmetcp.Subsystem, NQN: "nqn.a", Addr: netip.MustParseAddr(c.entry), Port: 4420}}}
		if got := at(log, nvmetcp.TCP, netip.MustParseAddr(c.asked)); len(got) == 1 != c.found {
			t.Errorf("%s, asked %s: %v", c.entry, c.asked, got)
		}
	}
}

func TestAddressesOfTheConfigurationHaveOneForm(t *testing.T) {
	a := netip.MustParseAddr("::ffff:192.0.2.1")
	c := Config{Ports: []PortConfig{{Addresses: []netip.Addr{a}}}, Direct: []DirectConfig{{Host: a, Target: a}}, Arrays: []ArrayConfig{{Address: a}}}
	_ = c.check() // says what else is missing
	for _, got := range []netip.Addr{c.Ports[0].Addresses[0], c.Direct[0].Host, c.Direct[0].Target, c.Arrays[0].Address} {
		if got != netip.MustParseAddr("192.0.2.1") {
			t.Error(got)
		}
	}
}
