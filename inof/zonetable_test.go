package inof

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/openinof/inof/zone"
)

func TestPackedMembersAreTheMembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := zone.Zone{Members: rapid.SliceOfN(rapid.Custom(drawAnyMember), 0, 10).Draw(t, "members")}.Canonical().Members
		p := pack(members)
		if diff := cmp.Diff(members, p.members(), cmpOpts); diff != "" || p.count() != len(members) {
			t.Fatalf("%d of %d members (-want +got):\n%s", p.count(), len(members), diff)
		}
		if slices.Reverse(members); pack(members) != p {
			t.Fatal("the order of members makes another form")
		}
	})
}

// What comes of what several reflectors say of a zone; numbers are hosts, nil: does not say it.
func TestWhatReflectorsSayOfAZone(t *testing.T) {
	addrs := func(hosts []int) (ms []zone.Member) {
		for _, h := range hosts {
			ms = append(ms, addrMember(hostIP(h)))
		}
		return ms
	}
	for _, c := range []struct {
		what                string
		said                [][]int
		identical, reserved []int // in force with agreement identical, and reserved then; nil: not in force
		union               []int
		differs             bool
	}{
		{"one alone", [][]int{{1, 2}}, []int{1, 2}, nil, []int{1, 2}, false},
		{"an empty zone", [][]int{{}}, []int{}, nil, []int{}, false},
		{"nobody says it", [][]int{nil, nil}, nil, nil, nil, false},
		{"both", [][]int{{1, 2}, {1, 2}}, []int{1, 2}, nil, []int{1, 2}, false},
		{"one only", [][]int{{1, 2}, nil}, nil, []int{1, 2}, []int{1, 2}, true},
		{"the other only", [][]int{nil, {1, 2}}, nil, []int{1, 2}, []int{1, 2}, true},
		{"one has more", [][]int{{1}, {1, 2}}, []int{1}, []int{2}, []int{1, 2}, true},
		{"different ones", [][]int{{1, 2}, {2, 3}}, []int{2}, []int{1, 3}, []int{1, 2, 3}, true},
		{"nothing in common", [][]int{{1}, {2}}, []int{}, []int{1, 2}, []int{1, 2}, true},
		{"three", [][]int{{1, 2, 3}, {2, 3}, {3, 4}}, []int{3}, []int{1, 2, 4}, []int{1, 2, 3, 4}, true},
		{"two of three", [][]int{{1}, nil, {1}}, nil, []int{1}, []int{1}, true},
	} {
		var words []word
		for _, hosts := range c.said {
			w := word{said: hosts != nil}
			if w.said {
				w.members = pack(addrs(hosts))
			}
			words = append(words, w)
		}
		for rule, want := range map[Agreement]verdict{
			AgreeIdentical: {inForce: c.identical != nil, differs: c.differs, members: addrs(c.identical), reserved: addrs(c.reserved)},
			AgreeUnion:     {inForce: c.union != nil, differs: c.differs, members: addrs(c.union)},
		} {
			if diff := cmp.Diff(want, rule.of(words), cmpOpts, cmp.AllowUnexported(verdict{})); diff != "" {
				t.Errorf("%s, %v (-want +got):\n%s", c.what, rule, diff)
			}
		}
	}
}

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
			wire := 0
			take := func(ds []Delivery) {
				for _, d := range ds {
					e, err := Encode(d.Msg)
					if err != nil {
						t.Fatal(err)
					}
					wire += e.Len()
					m, _ := decodeBody(e.typ, e.body)
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
			t.Logf("%s, %d reflector(s): %d bytes on the wire, %d MiB of heap", name, i+1, wire, all)
			if wire > 16_000_000 || all >= uint64(64+16*i) {
				t.Errorf("%s: %d bytes on the wire, %d MiB of heap", name, wire, all)
			}
		}
		if n := len(dir.Zones().Zones); n != DefaultMaxZones {
			t.Errorf("%s: %d zones in force", name, n)
		}
		runtime.KeepAlive(c)
	}
}
