package zonefilter

import (
	"maps"
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/openinof/inof/hardzone"
)

// zoneOf gives the counter of an open pair, as the program finds it.
func (r *rows) zoneOf(p pairKey) (zone uint32, open bool) {
	k, word, bit := tileOf(p)
	v := r.tiles.want[k]
	if v.Bits[word]&bit == 0 {
		return 0, false
	}
	if v.Zone == mixed {
		return r.zones.want[p], true
	}
	return v.Zone, true
}

func TestTilesAndBlocksSayWhatTheirStepsSay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, pairs, hosts := newRows(), map[pairKey]uint32{}, map[netip.Addr]uint32{}
		addr := func() netip.Addr {
			last := byte(rapid.IntRange(0, 40).Draw(t, "last"))
			if rapid.Bool().Draw(t, "six") {
				return netip.AddrFrom16([16]byte{0x20, 1, 15: last})
			}
			return netip.AddrFrom4([4]byte{192, 0, 2, last})
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			p := pairKey(hardzone.KeyOf(uint32(rapid.IntRange(1, 40).Draw(t, "a")), uint32(rapid.IntRange(41, 60).Draw(t, "b"))))
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				pairs[p] = uint32(rapid.IntRange(0, 3).Draw(t, "zone"))
				r.putPair(p, pairs[p])
			case 1:
				delete(pairs, p)
				r.deletePair(p)
			case 2:
				a, n := addr(), uint32(rapid.IntRange(1, 1000).Draw(t, "number"))
				hosts[a] = n
				r.setNumber(a, n)
			case 3:
				a := addr()
				delete(hosts, a)
				r.setNumber(a, 0)
			}
		}
		got := map[netip.Addr]uint32{}
		for h := range r.all() {
			got[h.Addr] = h.Number
		}
		if !maps.Equal(got, hosts) || r.hosts != len(hosts) {
			t.Fatalf("hosts %v (%d), want %v", got, r.hosts, hosts)
		}
		if r.pairs != len(pairs) {
			t.Fatalf("%d pairs, want %d", r.pairs, len(pairs))
		}
		n := 0
		for k, v := range r.tiles.want {
			pairsOf(k, v, func(p pairKey) {
				n++
				want, open := pairs[p]
				if zone, _ := r.zoneOf(p); !open || zone != want {
					t.Fatalf("pair %v of zone %d, want %d, %t", p, zone, want, open)
				}
			})
		}
		if n != len(pairs) {
			t.Fatalf("%d bits, want %d", n, len(pairs))
		}
		for p := range r.zones.want {
			if k, _, _ := tileOf(p); r.tiles.want[k].Zone != mixed {
				t.Fatalf("the zone of pair %v is left behind", p)
			}
		}
		for _, v := range r.blocks4.want {
			if v == (blockValue{}) {
				t.Fatal("an empty block")
			}
		}
	})
}
