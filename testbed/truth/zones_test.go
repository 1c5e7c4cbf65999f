package truth

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/openinof/inof/zone"
)

func set(auto bool, zones ...string) zone.Set {
	s := zone.Set{AutoJoin: auto}
	for _, z := range zones { // a name of one letter, then members by their letters
		out := zone.Zone{Name: z[:1]}
		for _, m := range z[1:] {
			out.Members = append(out.Members, zone.Member{Kind: zone.MemberAddr, First: map[rune]netip.Addr{'A': addrA, 'B': addrB, 'C': addrC}[m]})
		}
		s.Zones = append(s.Zones, out)
	}
	return s.Canonical()
}

func TestWhatReflectorsAgreeOn(t *testing.T) {
	for _, c := range []struct {
		union bool
		sets  []zone.Set
		a     string // zones of A
		share bool   // one with B
	}{
		{sets: []zone.Set{set(false, "xAB")}, a: "x", share: true},
		{sets: []zone.Set{set(false, "xAC", "yB")}, a: "x"},
		{sets: []zone.Set{set(false, "xAB"), set(false, "xA")}, a: "x"},
		{union: true, sets: []zone.Set{set(false, "xAB"), set(false, "xA")}, a: "x", share: true},
		{union: true, sets: []zone.Set{set(false, "xA"), set(false, "xB")}, a: "x", share: true},
		{sets: []zone.Set{set(false, "xAB"), set(false)}},
		{union: true, sets: []zone.Set{set(false, "xA"), set(false, "yB")}, a: "x"},
		{sets: []zone.Set{set(true)}, a: zone.DefaultName, share: true},
		{sets: []zone.Set{set(true, "xB")}, a: zone.DefaultName},
		{sets: []zone.Set{set(true), set(false)}},
		{union: true, sets: []zone.Set{set(true), set(false)}, a: zone.DefaultName, share: true},
		{sets: []zone.Set{set(true), set(true, "xAC")}}, // somebody names A
		{sets: []zone.Set{set(false, "xAB"), set(false, "xAB"), set(false, "xB")}},
	} {
		z := Agree(c.union, c.sets...)
		a, b := z.Of(Known{Addr: addrA}), z.Of(Known{Addr: addrB})
		if got := append(slices.Clone(a), "")[0]; got != c.a || len(a) > 1 || Common(a, b) != c.share {
			t.Errorf("union %v of %v: A is in %v, B in %v; want A in %q, together %v", c.union, c.sets, a, b, c.a, c.share)
		}
	}
}

func TestWhatAnAddressIsKnownBy(t *testing.T) {
	port := zone.Member{Kind: zone.MemberPort, Device: devX, Port: "eth1"}
	k := Known{addrB, []string{"nqn.b"}, []zone.Member{port}}
	for _, c := range []struct {
		m  zone.Member
		is bool
	}{
		{zone.Member{Kind: zone.MemberAddr, First: addrB}, true},
		{zone.Member{Kind: zone.MemberAddr, First: addrA}, false},
		{zone.Member{Kind: zone.MemberRange, First: addrA, Last: addrB}, true},
		{zone.Member{Kind: zone.MemberRange, First: addrB, Last: addrC}, true},
		{zone.Member{Kind: zone.MemberRange, First: addrC, Last: addrC}, false},
		{zone.Member{Kind: zone.MemberRange, First: netip.MustParseAddr("::"), Last: netip.MustParseAddr("ff::")}, false},
		{zone.Member{Kind: zone.MemberNQN, NQN: "nqn.b"}, true},
		{zone.Member{Kind: zone.MemberNQN, NQN: "nqn.a"}, false},
		{port, true},
		{zone.Member{Kind: zone.MemberPort, Device: devY, Port: "eth1"}, false},
		{zone.Member{Kind: zone.MemberPort, Device: devX, Port: "eth2"}, false},
	} {
		if k.is(c.m) != c.is {
			t.Errorf("%v: want %v", c.m, c.is)
		}
	}
}

// What a device may say depends on what it may hold, and on whether it hears everybody.
func TestWhatADeviceMayHold(t *testing.T) {
	none, both := set(false, "xA"), set(false, "xAB")
	for _, c := range []struct {
		d     Doubt
		share bool
	}{
		{Doubt{Voices: [][]zone.Set{{none}}}, false},
		{Doubt{Voices: [][]zone.Set{{none, both}}}, true}, // it has not heard of the newer one yet
		{Doubt{Voices: [][]zone.Set{{both}, {none}}}, true},
		{Doubt{Voices: [][]zone.Set{{both}, {none}}, All: true}, false},
		{Doubt{Voices: [][]zone.Set{{both}, {none, both}}, All: true}, true},
		{Doubt{Voices: [][]zone.Set{{both}, {none}}, All: true, Union: true}, true},
		{Doubt{Voices: [][]zone.Set{{none}, {set(false, "xB")}}, Union: true}, true},
		{Doubt{Voices: [][]zone.Set{{none}, {set(false, "xB")}}}, false},
		{Doubt{Voices: [][]zone.Set{{set(true, "xA")}, {set(true)}}, All: true}, false},
	} {
		if got := c.d.MayShare([]Known{{Addr: addrA}}, []Known{{Addr: addrB}}); got != c.share {
			t.Errorf("%+v: %v, want %v", c.d, got, c.share)
		}
	}
	mixed := Doubt{Voices: [][]zone.Set{{set(true, "xA")}, {set(false)}}}
	if !mixed.MayBeDefault([]Known{{Addr: addrA}}) {
		t.Error("one reflector has the default zone, the other one says that A is in no zone")
	}
	if named := (Doubt{Voices: [][]zone.Set{{set(true, "xA")}}}); named.MayBeDefault([]Known{{Addr: addrA}}) {
		t.Error("A is in a zone")
	}
	if (Doubt{Voices: [][]zone.Set{{set(false)}}}).MayShare([]Known{{Addr: addrA}}, []Known{{Addr: addrB}}) {
		t.Error("without auto-join those of no zone see each other")
	}
}

// What one of two reflectors takes away is taken away; what one adds waits for the other.
func TestAZoneIsChangedAtOneReflectorThenAtTheOther(t *testing.T) {
	all := []netip.Addr{addrA, addrB}
	f := NewFacts([]Place{{Addr: addrA}, {Addr: addrB}}, map[string][]netip.Addr{"z": all})
	f.SetReflectors(2)
	for _, a := range all {
		f.SetAgent(a, true)
	}
	for i, c := range []struct {
		members []netip.Addr
		at      []int
		told    int
	}{{all[:1], []int{1}, 2}, {all[:1], []int{0}, 0}, {all, []int{0}, 0}, {all, []int{1}, 2}, {nil, nil, 2}, {all, nil, 2}} {
		n := f.Change(func() { f.SetZone("z", c.members, c.at...) })
		if len(n) != c.told {
			t.Errorf("step %d: %v, want %d notices", i, n, c.told)
		}
	}
	if got := f.Members("z"); !slices.Equal(got, all) {
		t.Errorf("members %v", got)
	}
}
