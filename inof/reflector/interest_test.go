package reflector

import (
	"testing"

	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/zone"
)

// Every client is told of all zones; one that asks for everything of hosts too with which it
// shares none.
func TestInterestInEverything(t *testing.T) {
	b := newBench(t, inoftest.ThreeZones, Config{}, 3)
	b.refl.SetInterest(inoftest.DevID(2), true)
	mustJoin(t, b, 0, 1, 2)
	b.clients[inoftest.DevID(0)].PutHost(inoftest.HostAt(inoftest.HostIP(0), inoftest.DevID(0), "p"))
	b.clients[inoftest.DevID(0)].PutHost(inoftest.HostAt(inoftest.HostIP(40), inoftest.DevID(0), "p"))
	b.flush(inoftest.DevID(0))
	holds := func(when string, zones int, hosts ...int) {
		t.Helper()
		for i, want := range hosts {
			s := b.held[inoftest.DevID(i)]
			if len(s.zones) != zones || len(s.hosts) != want {
				t.Errorf("%s: device %d holds %d zones and %d hosts, want %d and %d", when, i, len(s.zones), len(s.hosts), zones, want)
			}
		}
	}
	holds("at first", len(inoftest.ThreeZones.Zones), 0, 0, 1)
	ds, err := b.refl.PutZone(zone.Zone{Name: "new", Members: []zone.Member{inoftest.AddrMember(inoftest.HostIP(41))}}, inoftest.T0)
	if err != nil {
		t.Fatal(err)
	}
	b.toClients(ds)
	holds("with a new zone", len(inoftest.ThreeZones.Zones)+1, 0, 0, 1)
	b.toClients(b.refl.DeleteZone("new", inoftest.T0))
	holds("without it", len(inoftest.ThreeZones.Zones), 0, 0, 1)
	b.leave(inoftest.DevID(2))
	b.refl.SetInterest(inoftest.DevID(2), false)
	b.join(inoftest.DevID(2))
	holds("when it asks for less", len(inoftest.ThreeZones.Zones), 0, 0, 0)
}
