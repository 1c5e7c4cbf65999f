package zone

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

// A reserved host is in no zone at all, whatever names it, and only as long.
func TestAReservedHostIsNotInTheDefaultZone(t *testing.T) {
	dev := netip.MustParseAddr("10.0.0.1")
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	for name, m := range map[string]Member{
		"address": {Kind: MemberAddr, First: a},
		"range":   {Kind: MemberRange, First: netip.MustParseAddr("192.0.2.0"), Last: a},
		"NQN":     {Kind: MemberNQN, NQN: "nqn.2026-01.org.example:a"},
		"port":    {Kind: MemberPort, Device: dev, Port: "eth1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := NewDirectory(dev)
			d.SetAutoJoin(true)
			d.PutHost(Host{HostKey: HostKey{Addr: b, Device: dev, Port: "eth2"}, Since: time.Unix(1, 0)})
			d.Reserve("z", []Member{m})
			h := Host{HostKey: HostKey{Addr: a, Device: dev, Port: "eth1"}, Since: time.Unix(1, 0)}
			h.NQN = "nqn.2026-01.org.example:a"
			d.PutHost(h)
			if d.Share(a, b) || len(d.ZonesOf(a)) != 0 {
				t.Errorf("reserved %v is in %v", a, d.ZonesOf(a))
			}
			want := Changes{{Addr: a, Peers: true}}
			if got := d.Reserve("z", nil); !slices.Equal(got, want) || !d.Share(a, b) {
				t.Errorf("the end: changes %v, want %v, share %v", got, want, d.Share(a, b))
			}
			want = Changes{{Addr: a, Why: snsd.ReasonZoneChanged, Peers: true}}
			if got := d.Reserve("y", []Member{m}); !slices.Equal(got, want) || d.Share(a, b) {
				t.Errorf("reserved again: changes %v, want %v, share %v", got, want, d.Share(a, b))
			}
			if d.Reserve("y", []Member{m}) != nil || d.Reserve("x", nil) != nil {
				t.Error("the same again is a change")
			}
			d.PutZone(Zone{Name: "y", Members: []Member{{Kind: MemberAddr, First: a}, {Kind: MemberAddr, First: b}}})
			if !d.Share(a, b) {
				t.Error("a reserved host is not in the zone it is configured for")
			}
		})
	}
}
