package inof

import (
	"testing"

	"github.com/openinof/inof/zone"
)

// A client that asks for everything is told of zones in which it has nobody.
func TestInterestInEverything(t *testing.T) {
	b := newBench(t, threeZones, ReflectorConfig{}, 3)
	b.refl.SetInterest(devID(2), true)
	mustJoin(t, b, 0, 2)
	b.clients[devID(0)].PutHost(hostAt(hostIP(0), devID(0), "p"))
	b.clients[devID(0)].PutHost(hostAt(hostIP(40), devID(0), "p"))
	b.flush(devID(0))
	c := b.clients[devID(2)]
	if len(c.learned.zones) != len(threeZones.Zones) {
		t.Errorf("%d of %d zones", len(c.learned.zones), len(threeZones.Zones))
	}
	ds, err := b.refl.PutZone(zone.Zone{Name: "new", Members: []zone.Member{addrMember(hostIP(41))}}, t0)
	if err != nil {
		t.Fatal(err)
	}
	b.toClients(ds)
	if c.learned.zones["new"] == nil || b.clients[devID(0)].learned.zones["new"] != nil {
		t.Error("the new zone is not told, or to everybody")
	}
	if got := len(c.learned.hosts); got == 0 {
		t.Error("no host was told")
	}
	b.toClients(b.refl.DeleteZone("new", t0))
	if c.learned.zones["new"] != nil {
		t.Error("the zone stays")
	}
	b.leave(devID(2))
	b.refl.SetInterest(devID(2), false)
	b.join(devID(2))
	if len(c.learned.zones) != 0 || len(c.learned.hosts) != 0 {
		t.Errorf("after it asked for less it holds %d zones and %d hosts", len(c.learned.zones), len(c.learned.hosts))
	}
}
