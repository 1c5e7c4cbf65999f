package device

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/zone"
)

// A host that asks at another port before it registers there is still known where it was: who
// shares a zone with it there hears of what becomes of it.
func TestAHostThatAsksElsewhereStillHasItsPeers(t *testing.T) {
	here, there := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	moved, peer, other := netip.MustParseAddr(t1), netip.MustParseAddr(i1), netip.MustParseAddr(i2)
	d := zone.NewDirectory(here)
	d.PutZone(zone.Zone{Name: "before", Members: []zone.Member{{Kind: zone.MemberPort, Device: there, Port: "eth3"}, {Kind: zone.MemberAddr, First: peer}}})
	d.PutZone(zone.Zone{Name: "after", Members: []zone.Member{{Kind: zone.MemberPort, Device: here, Port: "eth2"}, {Kind: zone.MemberAddr, First: other}}})
	put := func(addr, dev netip.Addr, port string) zone.Host {
		h := zone.Host{HostKey: zone.HostKey{Addr: addr, Device: dev, Port: port}, MAC: hostMAC(addr.String())}
		d.PutHost(h)
		return h
	}
	put(peer, here, "eth1")
	put(other, here, "eth4")
	h := put(moved, there, "eth3")
	h.HostKey = zone.HostKey{Addr: moved, Device: here, Port: "eth2"}
	e := &early{Directory: d, hosts: map[netip.Addr]earlyHost{moved: {Host: h}}}
	got := slices.SortedFunc(e.Peers(moved), netip.Addr.Compare)
	if !slices.Equal(got, []netip.Addr{peer, other}) {
		t.Errorf("its peers are %v, want %v", got, []netip.Addr{peer, other})
	}
	if !e.Share(peer, moved) || e.Share(moved, peer) || !e.Share(moved, other) {
		t.Errorf("who hears of whom: %t, %t, %t", e.Share(peer, moved), e.Share(moved, peer), e.Share(moved, other))
	}
}
