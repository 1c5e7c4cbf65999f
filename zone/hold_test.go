package zone

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/openinof/inof/snsd"
)

func TestAHeldHostIsNotInTheDefaultZone(t *testing.T) {
	dev := netip.MustParseAddr("10.0.0.1")
	a, b := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
	d := NewDirectory(dev)
	d.SetAutoJoin(true)
	put := func(addr netip.Addr) Changes {
		return d.PutHost(Host{HostKey: HostKey{Addr: addr, Device: dev, Port: "eth1"}, Since: time.Unix(1, 0)})
	}
	d.HoldDefault(a, true)
	put(a)
	put(b)
	if d.Share(a, b) || len(d.ZonesOf(a)) != 0 {
		t.Fatalf("held %v is in %v", a, d.ZonesOf(a))
	}
	want := Changes{{Addr: a}}
	if got := d.HoldDefault(a, false); !slices.Equal(got, want) || !d.Share(a, b) {
		t.Errorf("released: changes %v, want %v, share %v", got, want, d.Share(a, b))
	}
	want = Changes{{Addr: a, Why: snsd.ReasonZoneChanged}}
	if got := d.HoldDefault(a, true); !slices.Equal(got, want) || d.Share(a, b) {
		t.Errorf("held again: changes %v, want %v, share %v", got, want, d.Share(a, b))
	}
	d.PutZone(Zone{Name: "z", Members: []Member{{Kind: MemberAddr, First: a}, {Kind: MemberAddr, First: b}}})
	if !d.Share(a, b) {
		t.Error("a held host is not in the zone it is configured for")
	}
	d.DeleteZone("z")
	if d.Share(a, b) {
		t.Error("a held host fell into the default zone")
	}
	if d.HoldDefault(a, true) != nil {
		t.Error("holding twice is a change")
	}
}
