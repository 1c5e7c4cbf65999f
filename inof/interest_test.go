package inof

import (
	"testing"

	"github.com/openinof/inof/zone"
)

// Every client is told of all zones; one that asks for everything of hosts too with which it
// shares none.
func TestInterestInEverything(t *testing.T) {
	b := newBench(t, threeZones, ReflectorConfig{}, 3)
	b.refl.SetInterest(devID(2), true)
	mustJoin(t, b, 0, 1, 2)
	b.clients[devID(0)].PutHost(hostAt(hostIP(0), devID(0), "p"))
	b.clients[devID(0)].PutHost(hostAt(hostIP(40), devID(0), "p"))
	b.flush(devID(0))
	holds := func(when string, zones int, hosts ...int) {
		t.Helper()
		for i, want := range hosts {
			s := b.held[devID(i)]
			if len(s.zones) != zones || len(s.hosts) != want {
				t.Errorf("%s: device %d holds %d zones and %d hosts, want %d and %d", when, i, len(s.zones), len(s.hosts), zones, want)
			}
		}
	}
	holds("at first", len(threeZones.Zones), 0, 0, 1)
	ds, err := b.refl.PutZone(zone.Zone{Name: "new", Members: []zone.Member{addrMember(hostIP(41))}}, t0)
	if err != nil {
		t.Fatal(err)
	}
	b.toClients(ds)
	holds("with a new zone", len(threeZones.Zones)+1, 0, 0, 1)
	b.toClients(b.refl.DeleteZone("new", t0))
	holds("without it", len(threeZones.Zones), 0, 0, 1)
	b.leave(devID(2))
	b.refl.SetInterest(devID(2), false)
	b.join(devID(2))
	holds("when it asks for less", len(threeZones.Zones), 0, 0, 0)
}
