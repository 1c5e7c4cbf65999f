package inof

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/openinof/inof/zone"
)

// At the limits all zones of a reflector are below 64 MiB at a client, its own table of
// zones included, and below 16 MB on the wire; those of a second one cost little.
func TestAllZonesAtTheLimitsFitASwitch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	six := func(n int) netip.Addr {
		a := [16]byte{0x20, 1, 0x0d, 0xb8}
		binary.BigEndian.PutUint32(a[12:], uint32(n))
		return netip.AddrFrom16(a)
	}
	for name, addr := range map[string]func(int) netip.Addr{"IPv4": scaleHost, "IPv6": six} {
		var set zone.Set
		for i := range DefaultMaxZones {
			z := zone.Zone{Name: fmt.Sprintf("zone-%06d", i)}
			for m := range DefaultMaxMemberships / DefaultMaxZones {
				z.Members = append(z.Members, addrMember(addr((2*i+m)%DefaultMaxHosts+1)))
			}
			set.Zones = append(set.Zones, z)
		}
		refls := []netip.Addr{reflID, reflID.Next()}
		var made []*Reflector
		for _, id := range refls {
			r, err := NewReflector(id, 1, set, ReflectorConfig{}, t0)
			if err != nil {
				t.Fatal(err)
			}
			made = append(made, r)
		}
		before := heap()
		c, dir := NewClient(devID(0), 7), zone.NewDirectory(devID(0))
		c.SetReflectors(len(refls), AgreeIdentical, 0)
		for i, id := range refls {
			sent := 0
			take := func(ds []Delivery) {
				for _, d := range ds {
					e, err := Encode(d.Msg)
					if err != nil {
						t.Fatal(err)
					}
					sent += e.Len()
					m, _ := decodeBody(e.Type(), e.Body())
					a, err := c.Receive(id, m, t0)
					if err != nil {
						t.Fatal(err)
					}
					for _, z := range a.Zones {
						dir.PutZone(z.Zone)
					}
				}
			}
			c.Up(id, t0)
			take(made[i].Join(devID(0), t0))
			for made[i].Owing() {
				take(made[i].Step(nil, t0))
			}
			take([]Delivery{{Msg: &EndOfSync{Epoch: 1, Seq: 1}}})
			all := (heap() - before) >> 20
			t.Logf("%s, %d reflector(s): %d bytes on the wire, %d MiB of heap", name, i+1, sent, all)
			if sent > 16_000_000 || all >= uint64(64+16*i) {
				t.Errorf("%s: %d bytes on the wire, %d MiB of heap", name, sent, all)
			}
		}
		if n := len(dir.Zones().Zones); n != DefaultMaxZones {
			t.Errorf("%s: %d zones in force", name, n)
		}
		runtime.KeepAlive(c)
	}
}
