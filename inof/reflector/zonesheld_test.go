package reflector

import (
	"net/netip"
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// again starts the reflector anew with some zones, lets the device join it, and gives how many
// zones it was sent until its sync was complete.
func (n *network) again(dev netip.Addr, set zone.Set, amid func(r *Reflector)) (sent int) {
	n.t.Helper()
	id := n.ids[0]
	n.cut(dev, id)
	r, err := New(id, n.refls[id].epoch+1, set, Config{Paced: amid != nil}, n.now)
	if err != nil {
		n.t.Fatal(err)
	}
	n.refls[id] = r
	n.join(dev, id)
	if amid != nil {
		amid(r)
	}
	for _, l := range n.links {
		for range len(l.toRefl) {
			n.deliverToRefl(dev, id)
		}
		for n.pull(id, nil) {
		}
		for _, m := range l.toClient {
			if u, ok := m.(*wire.Update); ok {
				sent += len(u.Zones)
			}
		}
	}
	n.deliverAll()
	n.settle()
	return sent
}

// A reflector that was started anew sends its zones to a client that holds others, and none to
// one that holds the same; what changes during that sync is told as any change.
func TestZonesThatAClientHoldsAreNotSentAgain(t *testing.T) {
	n := newNetwork(t, 1, 1, client.AgreeIdentical, Config{})
	dev, id := inoftest.DevID(0), n.ids[0]
	n.settle()
	two := inoftest.ThreeZones
	if got := n.again(dev, two, nil); got != 2 || n.refls[id].counters.ZonesAlike != 0 {
		t.Errorf("to one that holds others: %d zones", got)
	}
	if got := n.again(dev, two, nil); got != 0 || n.refls[id].counters.ZonesAlike != 1 || len(n.zones[dev]) != 2 {
		t.Errorf("to one that holds the same: %d zones; it now has %v", got, n.zones[dev])
	}
	swapped := zone.Set{Zones: []zone.Zone{{Name: "ab", Members: two.Zones[1].Members}, {Name: "c", Members: two.Zones[0].Members}}}
	if got := n.again(dev, swapped, nil); got != 2 {
		t.Errorf("with their members swapped: %d zones", got)
	}
	third := zone.Zone{Name: "d", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(5))}}
	got := n.again(dev, swapped, func(r *Reflector) {
		if _, err := r.PutZone(third, n.now); err != nil {
			t.Fatal(err)
		}
		r.DeleteZone("c", n.now)
	})
	if got != 2 || len(n.zones[dev]) != 2 || n.zones[dev]["d"] == nil {
		t.Errorf("with two changes meanwhile: %d records; it now has %v", got, n.zones[dev])
	}
	if got := n.again(dev, zone.Set{}, nil); got != 0 || len(n.zones[dev]) != 0 {
		t.Errorf("without zones: %d; it now has %v", got, n.zones[dev])
	}
}

// Of a change of which the end did not come before the session ended nothing takes effect in the
// next one, where the zones are as they were.
func TestHalfAChangeEndsWithItsSession(t *testing.T) {
	n := newNetwork(t, 1, 1, client.AgreeIdentical, Config{})
	dev, id := inoftest.DevID(0), n.ids[0]
	n.settle()
	n.again(dev, inoftest.ThreeZones, nil)
	half := &wire.Update{Origin: id, Epoch: n.refls[id].epoch, Seq: 99, More: true, Partial: true, Zones: []wire.ZoneRecord{{Op: wire.Withdraw, Zone: zone.Zone{Name: "ab"}}}}
	n.link(dev, id).toClient = append(n.link(dev, id).toClient, half)
	n.deliverToClient(dev, id)
	if got := n.again(dev, inoftest.ThreeZones, nil); got != 0 || len(n.zones[dev]) != 2 {
		t.Errorf("%d zones are sent; it now has %v", got, n.zones[dev])
	}
}
