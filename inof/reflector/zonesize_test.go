package reflector

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/openinof/inof/inof/client"
	"github.com/openinof/inof/inof/inoftest"
	"github.com/openinof/inof/inof/wire"
	"github.com/openinof/inof/zone"
)

// At the limits all zones of a reflector are below 64 MiB at a client, its own table of
// zones included, and below 16 MB on the wire; those of a second one cost little. A client that
// holds them is not sent them again when the reflector was started anew.
func TestAllZonesAtTheLimitsFitASwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	six := func(n int) netip.Addr {
		a := [16]byte{0x20, 1, 0x0d, 0xb8}
		binary.BigEndian.PutUint32(a[12:], uint32(n))
		return netip.AddrFrom16(a)
	}
	for name, addr := range map[string]func(int) netip.Addr{"IPv4": inoftest.ScaleHost, "IPv6": six} {
		var set zone.Set
		for i := range wire.DefaultMaxZones {
			z := zone.Zone{Name: fmt.Sprintf("zone-%06d", i)}
			for m := range wire.DefaultMaxMemberships / wire.DefaultMaxZones {
				z.Members = append(z.Members, inoftest.AddrMember(addr((2*i+m)%wire.DefaultMaxHosts+1)))
			}
			set.Zones = append(set.Zones, z)
		}
		refls := []netip.Addr{inoftest.ReflID, inoftest.ReflID.Next()}
		var made []*Reflector
		for _, id := range refls {
			r, err := New(id, 1, set, Config{}, inoftest.T0)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, r)
		}
		before := inoftest.Heap()
		c, dir := client.New(inoftest.DevID(0), 7), zone.NewDirectory(inoftest.DevID(0))
		c.SetReflectors(len(refls), client.AgreeIdentical, 0)
		for i, id := range refls {
			sent := 0
			take := func(ds []wire.Delivery) {
				for _, d := range ds {
					e, err := wire.Encode(d.Msg)
					if err != nil {
						t.Fatal(err)
					}
					sent += e.Len()
					m, _ := wire.DecodeBody(e.Type(), e.Body())
					a, err := c.Receive(id, m, inoftest.T0)
					if err != nil {
						t.Fatal(err)
					}
					for _, z := range a.Zones {
						dir.PutZone(z.Zone)
					}
				}
			}
			c.Up(id, inoftest.T0)
			take(made[i].Join(inoftest.DevID(0), inoftest.T0))
			for made[i].Owing() {
				take(made[i].Step(nil, inoftest.T0))
			}
			take([]wire.Delivery{{Msg: &wire.EndOfSync{Epoch: 1, Seq: 1}}})
			all := (inoftest.Heap() - before) >> 20
			t.Logf("%s, %d reflector(s): %d bytes on the wire, %d MiB of heap", name, i+1, sent, all)
			if sent > 16_000_000 || all >= uint64(64+16*i) {
				t.Errorf("%s: %d bytes on the wire, %d MiB of heap", name, sent, all)
			}
			c.Down(id, inoftest.T0)
			made[i].Leave(inoftest.DevID(0), inoftest.T0)
			sent = 0
			seen := c.ResumePoint(id)
			seen.Epoch++ // as if the reflector had been started anew
			c.Up(id, inoftest.T0)
			take(made[i].Resume(inoftest.DevID(0), seen, nil, inoftest.T0))
			for made[i].Owing() {
				take(made[i].Step(nil, inoftest.T0))
			}
			t.Logf("%s, %d reflector(s): %d bytes when it comes back", name, i+1, sent)
			if sent > 1000 {
				t.Errorf("%s: %d bytes to a client that holds all zones", name, sent)
			}
		}
		if n := len(dir.Zones().Zones); n != wire.DefaultMaxZones {
			t.Errorf("%s: %d zones in force", name, n)
		}
		runtime.KeepAlive(c)
	}
}
