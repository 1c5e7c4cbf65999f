package zone_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/fabric"
	"github.com/openinof/inof/snsd"
	"github.com/openinof/inof/zone"
)

func TestImpactSaysWhoWouldBeToldWhat(t *testing.T) {
	dev := netip.MustParseAddr("10.0.0.1")
	host := func(n byte, role snsd.Role) zone.Host {
		return zone.Host{HostKey: zone.HostKey{Addr: netip.AddrFrom4([4]byte{192, 0, 2, n}), Device: dev, Port: fmt.Sprintf("eth%d", n)},
			MAC: fabric.MAC{2, 0, 0, 0, 0, n}, Subscribes: true, Service: snsd.Service{Role: role}}
	}
	set := func(auto bool, zones ...string) (s zone.Set) {
		s.AutoJoin = auto
		for i := 0; i < len(zones); i += 2 {
			m, err := zone.ParseMember(zones[i+1])
			if err != nil {
				t.Fatal(err)
			}
			s.Zones = append(s.Zones, zone.Zone{Name: zones[i], Members: []zone.Member{m}})
		}
		return s.Canonical()
	}
	i1, i2, t3, t4 := host(1, snsd.RoleInitiator), host(2, snsd.RoleInitiator), host(3, snsd.RoleTarget), host(4, snsd.RoleTarget)
	hosts := []zone.Host{i1, i2, t3, t4}
	for name, c := range map[string]struct {
		before, after zone.Set
		faults        []zone.Fault
		want          []string
	}{
		"nothing":    {set(true), set(true), nil, nil},
		"a new zone": {set(false), set(false, "a", "192.0.2.1-192.0.2.3"), nil, []string{"1 of 3 active none", "2 of 3 active none", "3 of 1 active none", "3 of 2 active none"}},
		"out of it":  {set(false, "a", "192.0.2.1-192.0.2.3"), set(false, "a", "192.0.2.2-192.0.2.3"), nil, []string{"1 of 3 inactive zone-changed", "3 of 1 inactive zone-changed"}},
		"of default": {set(true), set(true, "a", "192.0.2.4"), nil, []string{"1 of 4 inactive zone-changed", "2 of 4 inactive zone-changed", "4 of 1 inactive zone-changed", "4 of 2 inactive zone-changed"}},
		"not one up": {set(false), set(false, "a", "192.0.2.1-192.0.2.3"), []zone.Fault{{Device: dev, Port: "eth3", Why: snsd.ReasonLinkDown, Addrs: []netip.Addr{t3.Addr}}}, []string{"3 of 1 active none", "3 of 2 active none"}},
		"one that is down is left too": {set(false, "a", "192.0.2.1-192.0.2.3"), set(false), []zone.Fault{{Device: dev, Port: "eth3", Why: snsd.ReasonLinkDown, Addrs: []netip.Addr{t3.Addr}}},
			[]string{"1 of 3 inactive zone-changed", "2 of 3 inactive zone-changed", "3 of 1 inactive zone-changed", "3 of 2 inactive zone-changed"}},
	} {
		x := zone.ImpactOf(c.before, c.after, hosts, c.faults, 100)
		var got []string
		for _, n := range x.Told {
			got = append(got, fmt.Sprintf("%d of %d %s %s", n.Host.As4()[3], n.Subject.As4()[3], n.State, n.Reason))
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) || x.Active+x.Inactive != len(c.want) || x.AtLeast {
			t.Errorf("%s: %d active, %d inactive: %q, want %q", name, x.Active, x.Inactive, got, c.want)
		}
	}
	if x := zone.ImpactOf(set(false), set(true), hosts, nil, 1); len(x.Told) != 1 || x.Active != 8 {
		t.Errorf("limited: %+v", x)
	}
}
