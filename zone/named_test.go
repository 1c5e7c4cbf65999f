package zone

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/snsd"
)

// What is said of a host that is not known is what holds once it is put.
func TestAHostThatIsNotKnownWouldShareWhatItSharesWhenItIs(t *testing.T) {
	self := netip.MustParseAddr("10.0.0.1")
	host := func(addr, port, nqn string) Host {
		return Host{HostKey: HostKey{Addr: netip.MustParseAddr(addr), Device: self, Port: port}, Service: snsd.Service{NQN: nqn}}
	}
	member := func(text string) Member {
		m, err := ParseMember(text)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	d := NewDirectory(self)
	d.SetZones(Set{AutoJoin: true, Zones: []Zone{
		{Name: "a", Members: []Member{member("192.0.2.0/28"), member("192.0.2.101")}},
		{Name: "b", Members: []Member{member("nqn.2026-11.test:x"), member("192.0.2.102")}},
		{Name: "c", Members: []Member{member("port:10.0.0.1/eth9"), member("192.0.2.101"), member("192.0.2.102")}},
		{Name: "d", Members: []Member{member("nqn.2026-11.test:y at 10.0.0.1/eth1"), member("nqn.2026-11.test:z at 192.0.2.64/28"), member("192.0.2.103")}},
	}})
	d.Reserve("r", []Member{member("192.0.2.77")})
	for i := 101; i < 105; i++ {
		d.PutHost(host(fmt.Sprintf("192.0.2.%d", i), "eth1", ""))
	}
	for _, h := range []Host{
		host("192.0.2.5", "eth1", ""), host("192.0.2.5", "eth9", "nqn.2026-11.test:x"), host("192.0.2.60", "eth1", "nqn.2026-11.test:x"),
		host("192.0.2.61", "eth9", ""), host("192.0.2.62", "eth1", ""), host("192.0.2.77", "eth1", ""),
		host("192.0.2.63", "eth1", "nqn.2026-11.test:y"), host("192.0.2.63", "eth2", "nqn.2026-11.test:y"), host("192.0.2.65", "eth2", "nqn.2026-11.test:z"), host("192.0.2.63", "eth1", "nqn.2026-11.test:z"),
	} {
		peers := slices.Collect(d.PeersFor(h))
		var share []netip.Addr
		for a := range d.Addrs() {
			if d.ShareFor(h, a) {
				share = append(share, a)
			}
		}
		if d.Known(h.Addr) {
			t.Fatalf("%s is known for having been asked about", h.Addr)
		}
		d.PutHost(h)
		if want := slices.Collect(d.Peers(h.Addr)); !slices.Equal(peers, want) || !slices.Equal(share, want) {
			t.Errorf("%s on %s: peers %v, shares with %v, want %v", h.Addr, h.HostKey.Port, peers, share, want)
		}
		d.RemoveHost(h.HostKey, snsd.ReasonAgedOut)
	}
}
